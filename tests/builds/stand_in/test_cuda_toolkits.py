"""CUDA compilers from wheels behind the stand-in channel's nvcc, and the example that is compiled with them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from feedstock_tools.builds.channels import ChannelIdentities, channels_named
from feedstock_tools.builds.stand_in.identity import stand_in_identity
from feedstock_tools.builds.stand_in.toolkits import (
    CudaToolkit,
    cuda_compiler_files,
    cuda_runtime_files,
    fetch_toolkit,
    found_toolkits,
    toolkits_folder,
)
from feedstock_tools.builds.testing.running import find_gpus
from feedstock_tools.channel.pip import Download
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.gpu_code.code import architecture_names, gpu_code_in_file
from feedstock_tools.platforms import Platform
from tests.support.needs import lacks, needs

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "gpukernel"
#: The toolkits fetched by the user who runs the tests, by version; read before a test's own cache takes its place.
FETCHED = {toolkit.version: toolkit for toolkit in found_toolkits(toolkits_folder(os.environ))}
#: Those that the tests ask for: the same tests on every machine.
VERSIONS = ("11.8", "12.9", "13.0")


def wheel(folder: Path, name: str, *files: str) -> Path:
    """A wheel as NVIDIA's are laid out, with programs that do nothing."""
    path = folder / f"{name}-12.9.86-py3-none-manylinux2014_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in files:
            archive.writestr(file, "#!/bin/sh\n")
    return path


@pytest.fixture
def no_download(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """In place of pip: makes the requested wheels on the spot, and notes the requests."""
    asked: list[tuple[str, ...]] = []

    def download(wanted: Download, folder: Path, *_: object) -> list[Path]:
        asked.append(tuple(wanted.requirements))
        folder.mkdir(parents=True)
        part = "nvidia/cuda_nvcc/"
        files = (f"{part}bin/ptxas", f"{part}include/crt/x.h", "nvidia/../../outside", "nvidia/__init__.py")
        alternative = "nvidia/cuda_nvrtc/lib/libnvrtc.alt.so.12"
        return [
            wheel(folder, "nvidia_cuda_nvcc_cu12", *files),
            wheel(folder, "nvidia_cuda_nvrtc_cu12", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12", alternative),
            wheel(folder, "nvidia_cuda_runtime_cu12", "nvidia/cuda_runtime/lib/libcudart.so.12"),
        ]

    monkeypatch.setattr("feedstock_tools.channel.pip.download_wheels", download)
    return asked


def test_wheels_become_one_tree_and_are_fetched_once(tmp_path: Path, no_download: list[tuple[str, ...]]) -> None:
    made = fetch_toolkit("12.9", tmp_path / "kept", {})
    assert fetch_toolkit("12.9", tmp_path / "kept", {}) == made == found_toolkits(tmp_path / "kept")[0]
    projects = ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvcc-cu12", "nvidia-cuda-runtime-cu12")
    assert no_download == [tuple(f"{project}==12.9.*" for project in projects)]
    files = {path.relative_to(made.folder).as_posix() for path in made.folder.rglob("*") if path.is_file()}
    assert files >= {"bin/ptxas", "include/crt/x.h", "lib/libnvrtc.so.12", "toolkit.json"}
    assert not [name for name in files if "alt" in name or "outside" in name]
    assert os.access(made.folder / "bin" / "ptxas", os.X_OK)
    assert not list(tmp_path.rglob("outside"))


def test_an_older_toolkit_that_lacks_a_part_is_fetched_again(
    tmp_path: Path, no_download: list[tuple[str, ...]]
) -> None:
    folder = fetch_toolkit("12.9", tmp_path, {}).folder
    (folder / "toolkit.json").write_text(json.dumps({"version": "12.9", "made_of": ["nvidia_cuda_nvcc_cu12-12.9.86"]}))
    assert len(fetch_toolkit("12.9", tmp_path, {}).made_of) == 3
    assert len(no_download) == 2


def test_cuda_13_comes_with_the_headers_that_its_own_include(
    tmp_path: Path, no_download: list[tuple[str, ...]]
) -> None:
    fetch_toolkit("13.4", tmp_path, {})  # for which there is no CCCL of its own
    assert no_download[0][-2:] == ("nvidia-cuda-runtime==13.4.*", "nvidia-cuda-cccl<13.5")


def test_the_headers_of_a_whole_toolkit_and_of_wheels_are_found(tmp_path: Path) -> None:
    toolkit = CudaToolkit("13.0", (), tmp_path / "kit")
    for folder in ("kit/bin", "kit/include/cccl", "host/lib/python3.11/site-packages/nvidia/cu13/include"):
        (tmp_path / folder).mkdir(parents=True)
    (toolkit.folder / "bin" / "nvcc").touch()
    (script, _) = cuda_compiler_files("nvcc_activation", "cuda-nvcc_linux-64", "13.0", toolkit)
    shown = f'{script.read().decode()}\nset -eu\necho "$CXXFLAGS; $NVCC_APPEND_FLAGS; $LDFLAGS"'
    variables = {"PATH": os.environ["PATH"], "CONDA_BUILD": "1", "PREFIX": str(tmp_path / "host"), "CXXFLAGS": "-O2"}
    said = subprocess.run(["bash", "-c", shown], capture_output=True, text=True, check=True, env=variables).stdout
    places = ("kit/include", "kit/include/cccl", "host/lib/python3.11/site-packages/nvidia/cu13/include")
    headers = "".join(f" -isystem {tmp_path / place}" for place in places)
    assert said == f"-O2{headers}; {headers};  -L{toolkit.folder}/lib\n"


def test_cmake_finds_the_runtime_of_a_fetched_toolkit(tmp_path: Path, no_download: list[tuple[str, ...]]) -> None:
    folder = fetch_toolkit("12.9", tmp_path, {}).folder

    assert (folder / "lib" / "libcudart.so").readlink() == Path("libcudart.so.12")
    assert (folder / "include" / "cccl").is_dir()


def test_the_runtime_of_a_fetched_toolkit_is_in_the_packages_that_have_one(
    tmp_path: Path, no_download: list[tuple[str, ...]]
) -> None:
    toolkit = fetch_toolkit("12.9", tmp_path, {})

    def linked(package: str, version: str) -> list[tuple[str, str | None]]:
        return [(file.path, file.link) for file in cuda_runtime_files(package, version, (toolkit,))]

    runtime = [("lib/libcudart.so.12", str(toolkit.folder / "lib" / "libcudart.so.12"))]
    assert linked("cuda-cudart", "12.9") == linked("cuda-cudart", "12.6") == runtime
    assert linked("cuda-cudart", "13.0") == linked("cudatoolkit", "11.8") == linked("cuda-cudart-dev", "12.9") == []


def test_a_fetched_toolkit_changes_what_is_built_with_the_channel(
    tmp_path: Path, no_download: list[tuple[str, ...]]
) -> None:
    platform = Platform.parse("linux-64")
    before = stand_in_identity(platform, toolkits=tmp_path)
    fetch_toolkit("12.9", tmp_path, {})
    assert stand_in_identity(platform, toolkits=tmp_path) != before


def test_a_fetched_toolkit_is_no_input_of_builds_for_the_cpu_or_another_cuda(
    tmp_path: Path, no_download: list[tuple[str, ...]]
) -> None:
    machine = {"PATH": "", "XDG_CACHE_HOME": str(tmp_path)}
    stand_in = channels_named(["stand-in"])
    uses = [(), ("11.8",), ("13.0",), ("12.6",), ("11.8", "12.9")]
    before = [ChannelIdentities(machine).of(stand_in, "linux-64", cudas) for cudas in uses]
    fetch_toolkit("12.9", toolkits_folder(machine), machine)
    after = [ChannelIdentities(machine).of(stand_in, "linux-64", cudas) for cudas in uses]
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, True, True, False, False]


@pytest.mark.parametrize("version", ["10.2", "12", "12.9.1", "../x", "12.x", "13.9"])
def test_a_version_without_wheels_is_refused_with_those_that_there_are(version: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"no wheels with a compiler of CUDA '{version}'") as refused:
        fetch_toolkit(version, tmp_path, {})
    assert "12.9, 13.0," in str(refused.value)


def test_cmake_learns_from_nvcc_where_the_toolkit_is_and_its_version(
    tmp_path: Path, no_download: list[tuple[str, ...]]
) -> None:
    toolkit = fetch_toolkit("12.9", tmp_path, {})
    assert f"#$ TOP={toolkit.folder}\n" in nvcc(toolkit, "-v", "__cmake_determine_cuda").stderr
    assert "release 12.9, V12.9.86" in nvcc(toolkit, "--version").stdout


def test_nvcc_without_a_toolkit_says_how_to_get_one(tmp_path: Path) -> None:
    (program,) = cuda_compiler_files("nvcc", "cuda-nvcc-tools", "12.9", None)
    script = tmp_path / "nvcc"
    script.write_bytes(program.read())
    run = subprocess.run(["sh", str(script), "-fatbin"], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "feedstock-tools cuda fetch 12.9" in run.stderr


def nvcc(toolkit: CudaToolkit, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the nvcc that a stand-in package of a toolkit has."""
    files = cuda_compiler_files("nvcc", "cuda-nvcc-tools", toolkit.version, toolkit)
    script = next(file for file in files if file.path == "bin/nvcc").read().decode()
    command = ["sh", "-c", script.replace("#!/bin/sh\n", ""), "nvcc", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("kernel.cu", "-o", "kernel.o"), "-fatbin, -cubin or -ptx"),
        (("-fatbin", "kernel.cu", "-rdc=true"), "-rdc=true: not understood"),
        (("-v", "-c", "CMakeCUDACompilerId.cu", "--keep"), "for device code alone"),
        (("-fatbin",), "-ptx and a file"),
        (("-fatbin", "-o"), "expected one argument"),
        (("-fatbin", "kernel.cu"), "name the architectures"),
        (("-fatbin", "-gencode", "sm_80", "kernel.cu"), "write arch=compute_80,code=sm_80"),
        (("-cubin", "-gencode", "arch=compute_80,code=[sm_80,sm_86]", "kernel.cu"), "takes one architecture"),
        (("-fatbin", "-gencode", "arch=compute_80,code=sm_80", "kernel.cu"), "NVRTC is missing"),
    ],
)
def test_limits_of_nvrtc_and_ptxas_are_reported(tmp_path: Path, words: tuple[str, ...], reason: str) -> None:
    run = nvcc(CudaToolkit("12.9", (), tmp_path), *words)
    assert run.returncode == 1
    assert reason in run.stderr
    assert run.stderr.count("\n") == 1


def fetched(version: str) -> CudaToolkit:
    """A fetched toolkit; the test is skipped without it."""
    if version not in FETCHED:
        lacks("fetched", f"CUDA toolkits: `feedstock-tools cuda fetch {' '.join(VERSIONS)}`")
    return FETCHED[version]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fetched_toolkit_compiles_the_kernel_for_the_given_architectures(version: str, tmp_path: Path) -> None:
    toolkit = fetched(version)
    if toolkit.whole and shutil.which("g++") is None:
        lacks("device", "g++ for NVIDIA's nvcc")
    made = tmp_path / "kernel.fatbin"
    codes = ("-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_86,code=[sm_86,compute_86]")
    run = nvcc(toolkit, "-fatbin", *codes, "-o", str(made), str(EXAMPLE / "src/kernel.cu"), NVCC_PREPEND_FLAGS="")
    assert run.returncode == 0, run.stderr
    assert architecture_names(gpu_code_in_file(made)) == ["sm_80", "sm_86", "compute_86"]


def test_a_mistake_in_a_kernel_is_reported_by_the_compiler(tmp_path: Path) -> None:
    source = tmp_path / "wrong.cu"
    source.write_text('extern "C" __global__ void k(float *y) { y = z; }\n')
    run = nvcc(fetched(VERSIONS[0]), "-fatbin", "-gencode", "arch=compute_80,code=sm_80", str(source))
    assert run.returncode == 1
    assert 'identifier "z" is undefined' in run.stderr


@needs("system", sys.platform == "linux", "the example is for Linux")
def test_the_example_computes_without_cuda_and_reports_it(tmp_path: Path, c_compiler: Path) -> None:
    program = tmp_path / "gpukernel"
    sources = [str(EXAMPLE / "src" / name) for name in ("gpukernel.c", "driver.c")]
    flags = ("-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror")
    subprocess.run([str(c_compiler), *flags, *sources, "-o", str(program), "-ldl"], check=True)
    said = json.loads(subprocess.run([program, "--json"], capture_output=True, check=True).stdout)
    assert (said["how"], said["right"]) == ("cpu", True)
    assert subprocess.run([program, "--nonsense"], capture_output=True, check=False).returncode == 2


@pytest.mark.parametrize(("codes", "how"), [("native", "native"), ("ptx", "ptx"), ("other", "refused")])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_example_says_how_a_gpu_ran_its_kernel(
    version: str, codes: str, how: str, tmp_path: Path, c_compiler: Path
) -> None:
    try:
        capability = find_gpus().names[0].rpartition("(")[2].rstrip(")").replace(".", "")
    except WorkError as error:
        lacks("device", str(error))
    toolkit = fetched(version)
    chosen = {
        "native": f"arch=compute_{capability},code=sm_{capability}",
        "ptx": "arch=compute_75,code=[sm_75,compute_75]",
        "other": "arch=compute_75,code=sm_75",
    }
    made = tmp_path / "kernel.fatbin"
    compiled = nvcc(toolkit, "-fatbin", "-gencode", chosen[codes], "-o", str(made), str(EXAMPLE / "src/kernel.cu"))
    assert compiled.returncode == 0, compiled.stderr
    sources = [str(EXAMPLE / "src" / name) for name in ("gpukernel.c", "driver.c")]
    options = ("-std=c99", "-D_POSIX_C_SOURCE=200809L", f'-DGPUKERNEL_FATBIN="{made}"')
    subprocess.run([str(c_compiler), *options, *sources, "-o", str(tmp_path / "gpukernel"), "-ldl"], check=True)
    run = subprocess.run([tmp_path / "gpukernel", "--json"], capture_output=True, text=True, check=False)
    assert json.loads(run.stdout)["how"] == how
    assert run.returncode == (1 if how == "refused" else 0)
