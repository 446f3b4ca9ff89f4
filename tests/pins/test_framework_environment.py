"""Environments for GPU and CPU, solved against a made-up channel: each file selects the intended build."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.solving import solve, virtual_packages
from feedstock_tools.channel.specs import admits
from feedstock_tools.cli.cuda import env as command
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.facts.cuda import CudaFacts, load_cuda
from feedstock_tools.facts.frameworks import load_frameworks, load_wheels
from feedstock_tools.facts.packages import known_pythons
from feedstock_tools.pins.driver import Device, Machine
from feedstock_tools.pins.environments import Request, Target, parts_of, pip_version, requested_package, target_of
from feedstock_tools.platforms import Platform

SUBDIRS = ("linux-64", "linux-aarch64", "win-64")


class _Channel:
    """A channel to add packages to, with time stamps that favour the oldest CUDA version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 10**9

    def add(self, subdir: str, distribution: str, *depends: str, constrains: Sequence[str] = ()) -> None:
        self._count -= 1
        name, version, build = distribution.split("=")
        metadata = PackageMetadata(
            name, version, build, 0, subdir, depends=depends, constrains=tuple(constrains), timestamp=self._count * 1000
        )
        write_package(self.folder, metadata)


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Frameworks as conda-forge names them, for three platforms."""
    made = _Channel(tmp_path_factory.mktemp("frameworks"))
    made.add("noarch", "pip=25.0=py_0")
    for cuda in ("11.2", "11.8", "12.6", "12.8", "12.9"):
        made.add("noarch", f"cuda-version={cuda}=h0_3", constrains=(f"cudatoolkit {cuda}.*", f"__cuda >={cuda[:2]}"))
    for subdir in SUBDIRS:
        for python in ("3.9", "3.10", "3.12"):
            made.add(subdir, f"python={python}.4=h1_0_cpython")
        for cuda in ("11.2", "11.8"):
            made.add(subdir, f"cudatoolkit={cuda}.2=h2_9", constrains=("__cuda >=11",))
        made.add(subdir, "cudnn=8.1.0.77=h3_0", "cudatoolkit 11.*")
        _add_frameworks(made, subdir)
    index_channel(made.folder)
    return str(made.folder)


def _add_frameworks(made: _Channel, subdir: str) -> None:
    if subdir == "linux-64":
        for cuda in ("11.2", "11.8"):
            build = f"cuda{cuda.replace('.', '')}py310h4_0"
            made.add(subdir, f"tensorflow=2.6.0={build}", "python 3.10.*", f"cudatoolkit >={cuda},<12", "__cuda")
    if subdir != "win-64":
        made.add(subdir, "tensorflow=2.6.0=cpu_py310h5_0", "python 3.10.*")
        made.add(subdir, "jax=0.9.2=pyh6_0", "jaxlib 0.9.2")
        made.add(subdir, "jaxlib=0.9.2=cpu_py312h7_0", "python 3.12.*")
        made.add(subdir, "jaxlib=0.9.2=cuda129_py312h8_0", "python 3.12.*", "cuda-version >=12.9,<13", "__cuda")
    made.add(subdir, "pytorch=2.5.0=cpu_mkl_py312_h9_0", "python 3.12.*")
    for cuda in ("12.6", "12.9"):
        build = f"cuda{cuda.replace('.', '')}_mkl_py312_h9_0"
        made.add(subdir, f"pytorch=2.5.0={build}", "python 3.12.*", f"cuda-version >={cuda},<13", "__cuda")
    made.add(subdir, "cupy=14.1.1=py312h10_0", "python 3.12.*", "cuda-version >=12,<13", "__cuda >=12.0")


def written(channel: str, *arguments: str) -> dict[str, Any]:
    text = (
        CliRunner()
        .invoke(command, ["--channel", channel, *arguments], catch_exceptions=False, standalone_mode=False)
        .output
    )
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def builds(channel: str, content: dict[str, Any], platform: str, cuda: str | None) -> dict[str, str]:
    """The environment that a solver makes from the file, on a machine of that kind."""
    # conda's `name=version=build` is exact only with two `=` for rattler.
    specs = [text.replace("=", "==", 1) for text in content["dependencies"] if isinstance(text, str)]
    where = Platform.parse(platform)
    return {
        record.name: record.build
        for record in solve(specs, [channel], where, virtual=virtual_packages(where, cuda=cuda))
    }


@pytest.mark.parametrize(
    ("platform", "asked", "cuda", "package", "build"),
    [
        ("linux-64", "tensorflow --gpu --cuda 11.2", "11.2", "tensorflow", "cuda112py310h4_0"),
        ("linux-64", "tensorflow --gpu", "13.0", "tensorflow", "cuda118py310h4_0"),  # despite the time stamps
        ("linux-64", "tensorflow=2.6 --gpu --cuda 11.8", "11.8", "tensorflow", "cuda118py310h4_0"),
        ("linux-64", "tensorflow --cpu", None, "tensorflow", "cpu_py310h5_0"),
        ("linux-aarch64", "tensorflow --cpu", None, "tensorflow", "cpu_py310h5_0"),
        ("linux-64", "torch --gpu --cuda 12.6", "12.6", "pytorch", "cuda126_mkl_py312_h9_0"),
        ("linux-aarch64", "pytorch --gpu", "12.9", "pytorch", "cuda129_mkl_py312_h9_0"),
        ("win-64", "pytorch --gpu", "12.9", "pytorch", "cuda129_mkl_py312_h9_0"),
        ("win-64", "pytorch-cpu --cpu", None, "pytorch", "cpu_mkl_py312_h9_0"),
        ("linux-aarch64", "jax --gpu --cuda 12.9", "12.9", "jaxlib", "cuda129_py312h8_0"),
        ("linux-64", "jax --cpu", None, "jaxlib", "cpu_py312h7_0"),
        ("win-64", "cupy --gpu --cuda 12.6", "12.6", "cupy", "py312h10_0"),
    ],
)
def test_what_is_written_solves_to_the_build_meant(
    channel: str, platform: str, asked: str, cuda: str | None, package: str, build: str
) -> None:
    content = written(channel, *asked.split(), "--platform", platform)
    assert builds(channel, content, platform, cuda)[package] == build


def test_a_machine_with_an_old_driver_gets_the_newest_that_it_runs(channel: str) -> None:
    content = written(
        channel, "pytorch", "tensorflow", "--gpu", "--platform", "linux-64", "--virtual", "__cuda=11.4", "--unsolved"
    )
    assert content["dependencies"][0] == "pytorch=*=cuda*"
    with pytest.raises(WorkError, match="no such environment for the GPU"):
        written(channel, "pytorch", "--gpu", "--platform", "linux-aarch64", "--virtual", "__cuda=11.4")


def test_a_build_for_another_toolkit_that_runs_with_this_one_is_reported(channel: str) -> None:
    arguments = ["--channel", channel, "pytorch", "--platform", "linux-64", "--cuda"]
    text = CliRunner().invoke(command, [*arguments, "12.8"], catch_exceptions=False).output
    assert "pytorch 2.5.0 cuda126_mkl_py312_h9_0, built with CUDA 12.6." in text
    assert "There is no build of it for CUDA 12.8; this one runs with it." in text
    assert "No build of it" not in CliRunner().invoke(command, [*arguments, "12.6"], catch_exceptions=False).output


@pytest.mark.parametrize(
    ("name", "subdir"), [("tensorflow", "linux-64"), ("tensorflow", "win-64"), ("pytorch", "linux-64")]
)
def test_pip_is_named_only_with_pythons_that_the_wheels_of_the_version_are_for(name: str, subdir: str) -> None:
    newest = [*load_cuda().toolkits][-1]
    target = Target("gpu", Platform.parse(subdir), machine=newest)
    for wheels in load_wheels()["torch" if name == "pytorch" else name]:
        package = requested_package(f"{name}={wheels.minor}.*", load_frameworks())
        for part in parts_of(package, target, newest, load_cuda()):
            on_pypi = part.pip and not any(text.startswith("--") for text in part.pip)
            allowed = [python for python in known_pythons() if on_pypi and part.python and admits(part.python, python)]
            assert {*allowed} <= {*wheels.python}, (wheels.version, part.pip)


@pytest.mark.parametrize("minor", ["1.10", "2.4"])
def test_tensorflow_for_another_cuda_is_not_put_beside_that_of_11_2(minor: str) -> None:
    package = requested_package(f"tensorflow={minor}.*", load_frameworks())
    target = Target("gpu", Platform.parse("linux-64"), machine=[*load_cuda().toolkits][-1])
    assert not [part for part in parts_of(package, target, target.machine, load_cuda()) if part.pip]


def test_windows_gets_the_last_tensorflow_by_pip_with_cuda_from_conda(channel: str) -> None:
    content = written(channel, "tensorflow", "--cuda", "11.2", "--platform", "win-64")
    assert content["dependencies"][:2] == ["cudatoolkit=11.2.2=h2_9", "cudnn=8.1.0.77=h3_0"]
    assert content["dependencies"][-1] == {"pip": ["tensorflow<2.11", "numpy<2"]}
    assert "python=3.10.4" in content["dependencies"]  # it has no wheels for 3.12
    assert "variables" not in content


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("tensorflow --cuda 12.9 --platform win-64", "no GPU build for Windows after 2.10"),
        ("tensorflow --gpu --platform linux-aarch64", "for linux-aarch64 without CUDA only"),
        ("jax --gpu --platform win-64", "run linux-64 in WSL 2"),
        ("pytorch --gpu --platform osx-arm64", "there is no CUDA for macOS"),
        ("cupy --cpu --platform linux-64", "CuPy runs on GPUs only"),
        ("lightgbm --gpu --platform win-64", "for Linux alone"),
        ("xgboost --gpu --platform linux-64", "no channel has"),
        ("pytorch nosuch --gpu --platform linux-64", "no channel has 'nosuch'"),
    ],
)
def test_the_reason_if_there_is_no_answer(channel: str, arguments: str, reason: str) -> None:
    with pytest.raises(WorkError) as caught:
        written(channel, *arguments.split())
    assert reason in str(caught.value)


def test_variables_are_set_in_the_environment(tmp_path: Path) -> None:
    made = _Channel(tmp_path)
    made.add("noarch", "pip=25.0=py_0")
    for text in ("python=3.10.4=h_0", "cudatoolkit=11.2.2=h_9", "cudnn=8.1.0.77=h_0"):
        made.add("linux-64", text)
    index_channel(tmp_path)
    arguments = ["tensorflow", "--cuda", "11.2", "--platform", "linux-64", "--prefix", "/opt/tf"]
    content = written(str(tmp_path), *arguments)
    assert content["variables"] == {"LD_LIBRARY_PATH": str(Path("/opt/tf").absolute() / "lib").replace("\\", "/")}
    assert content["prefix"]
    text = CliRunner().invoke(command, ["--channel", str(tmp_path), *arguments[:-2]]).output
    # conda does not fill in the values of `variables`, so without a folder there is a command for it.
    assert "variables" not in yaml.safe_load(text)
    assert 'conda env config vars set LD_LIBRARY_PATH="$CONDA_PREFIX/lib"' in text


def test_a_channel_that_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="cannot reach the channel") as caught:
        written(str(tmp_path / "none"), "tensorflow", "--gpu", "--platform", "linux-64")
    assert "--unsolved" in str(caught.value)
    arguments = ["--channel", str(tmp_path / "none"), "tensorflow=2.6", "--cuda", "11.2", "--platform", "linux-64"]
    text = CliRunner().invoke(command, [*arguments, "--unsolved"], catch_exceptions=False).output
    assert "NOT solved" in text
    # Which builds there are is not known, so none is named.
    assert yaml.safe_load(text)["dependencies"] == ["cudatoolkit=11.2", "tensorflow=2.6.*=cuda*"]


@pytest.mark.parametrize(
    ("wish", "cuda", "python", "pip"),
    [
        ("tensorflow", "12.9", None, "tensorflow[and-cuda]==2.21.*"),
        ("tensorflow=2.15", "12.2", None, "tensorflow[and-cuda]==2.15.*"),
        ("tensorflow=2.17", "12.3", "3.11", "tensorflow[and-cuda]==2.17.*"),
        ("torch=2.6", "12.4", "3.12", "torch==2.6.*"),
        ("torch=2.15", "13.2", "3.12", "torch==2.15.*"),
        ("torch=2.4", "12.1", "3.12", "torch==2.4.*"),
    ],
)
def test_pip_gets_what_can_be_installed(tmp_path: Path, wish: str, cuda: str, python: str | None, pip: str) -> None:
    made = _Channel(tmp_path)
    made.add("noarch", "pip=25.0=py_0")
    for minor in ("9", "11", "12"):
        made.add("linux-64", f"python=3.{minor}.1=h_0")
    index_channel(tmp_path)
    arguments = [wish, "--cuda", cuda, "--platform", "linux-64", *(("--python", python) if python else ())]
    first = written(str(tmp_path), *arguments)["dependencies"][-1]["pip"][0]
    assert first.split(",")[0] == pip


@pytest.fixture(scope="module")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Python and pip alone, so that pip installs the frameworks."""
    made = _Channel(tmp_path_factory.mktemp("pythons"))
    made.add("noarch", "pip=25.0=py_0")
    for subdir in SUBDIRS:
        for minor in range(7, 15):
            made.add(subdir, f"python=3.{minor}.1=h_0")
        for name in ("libcublas", "libcufft", "libcurand", "libcusolver", "libcusparse", "cuda-nvrtc", "cuda-cudart"):
            made.add(subdir, f"{name}=12.6.1=h_0")
    made.add("noarch", "cuda-version=12.6=h_3")
    index_channel(made.folder)
    return str(made.folder)


@pytest.mark.parametrize(
    ("arguments", "pip", "python"),
    [
        # What the wheels of these releases are for, and what those of all releases of 0.4 are.
        ("jax=0.6 --cuda 12", "jax[cuda12]==0.6.*", "3.13.1"),
        ("jax=0.4.30 --cuda 12", "jax[cuda12]==0.4.30.*", "3.12.1"),
        ("jax=0.5 --cuda 12 --platform linux-aarch64", "jax[cuda12]==0.5.*", "3.13.1"),
        ("jax --cuda 12 --python 3.11", "jax[cuda12]==0.10.*", "3.11.1"),
        ("jax --cuda 13 --python 3.11", "jax[cuda13]==0.10.*", "3.11.1"),
        ("tensorflow=2.14 --cuda 11.8", "tensorflow[and-cuda]==2.14.*", "3.10.1"),  # tensorrt has no wheels for 3.11
        ("cupy=13.6 --cuda 12.6", "cupy-cuda12x==13.6.*", "3.13.1"),
        ("cupy=14 --cuda 12", "cupy-cuda12x[ctk]==14.2.*", "3.14.1"),
        ("torch=2.8.0 --cuda 12.8", "torch==2.8.0.*", "3.13.1"),
        ("torch=2.8 --cuda 12.8", "torch==2.8.*", "3.13.1"),
        ("torch=2.11 --cuda 13.0 --platform linux-aarch64", "torch==2.11.*", "3.14.1"),
        ("torch=2.10 --cuda 12.8 --platform linux-aarch64", "torch==2.10.*", "3.14.1"),
        ("torch=2.1 --cuda 11.8", "torch==2.1.*", "3.11.1"),
        ("torch=2.5 --cuda 12.1 --platform win-64", "torch==2.5.*", "3.13.1"),
        ("torch --cuda 12", "torch==2.10.*", "3.14.1"),
    ],
)
def test_pip_gets_what_the_wheels_are_for(pythons: str, arguments: str, pip: str, python: str) -> None:
    words = arguments.split()
    words += [] if "--platform" in words else ["--platform", "linux-64"]
    content = written(pythons, *words)
    assert content["dependencies"][-1]["pip"][0] == pip
    assert f"python={python}" in content["dependencies"]


@pytest.mark.parametrize(
    "arguments",
    [
        "jax=0.11 --cuda 12 --python 3.11 --platform linux-64",
        "jax=0.4.38 --cuda 12 --platform linux-aarch64",
        "torch=2.8 --cuda 12.8 --platform linux-aarch64",
        "torch=2.12 --cuda 12.8 --platform linux-64",
    ],
)
def test_what_the_wheels_are_not_for_is_not_written(pythons: str, arguments: str) -> None:
    with pytest.raises(WorkError):
        written(pythons, *arguments.split())


def test_the_first_line_says_what_was_not_solved(pythons: str) -> None:
    arguments = ["--channel", pythons, "torch=2.8", "--cuda", "12.8", "--platform", "linux-64"]
    text = CliRunner().invoke(command, arguments, catch_exceptions=False).output
    assert text.startswith("# torch=2.8 for the GPU, NOT solved (pip installs torch; the rest is solved) for linux-64")


def test_the_channel_of_pytorch_names_its_own_toolkit() -> None:
    arguments = ["--channel", "pytorch", "--channel", "nvidia", "pytorch", "--cuda", "11.7", "--platform", "linux-64"]
    text = CliRunner().invoke(command, [*arguments, "--unsolved"], catch_exceptions=False).output
    assert yaml.safe_load(text)["dependencies"] == ["pytorch=*=py*_cuda*", "pytorch-cuda 11.7.*"]


@pytest.mark.parametrize(
    ("wish", "cuda", "python"),
    [("tensorflow=2.15", "12.9", None), ("torch=1.13", "11.8", "3.11"), ("torch=1.13", "11.7", "3.12")],
)
def test_what_no_wheel_is_for_is_not_written(tmp_path: Path, wish: str, cuda: str, python: str | None) -> None:
    made = _Channel(tmp_path)
    made.add("noarch", "pip=25.0=py_0")
    made.add("linux-64", "python=3.11.1=h_0")
    made.add("linux-64", "python=3.12.1=h_0")
    index_channel(tmp_path)
    with pytest.raises(WorkError):
        written(
            str(tmp_path), wish, "--cuda", cuda, "--platform", "linux-64", *(("--python", python) if python else ())
        )


def test_json_and_a_file(channel: str, tmp_path: Path) -> None:
    output = tmp_path / "environment.yml"
    arguments = ["--channel", channel, "pytorch", "--cuda", "12.6", "--platform", "linux-64", "--python", "3.12"]
    CliRunner().invoke(command, [*arguments, "-o", str(output)], catch_exceptions=False)
    assert yaml.safe_load(output.read_text(encoding="utf-8"))["name"] == "pytorch-gpu"
    found = json.loads(CliRunner().invoke(command, [*arguments, "--json"], catch_exceptions=False).output)
    assert {entry["name"]: entry["build"] for entry in found["solved"]}["pytorch"] == "cuda126_mkl_py312_h9_0"
    assert "__cuda=12.6" in found["virtual"]
    assert found["check"][0].startswith("conda run -n pytorch-gpu python -c")
    exact = written(channel, *arguments[2:], "--exact")
    assert all(text.count("=") == 2 for text in exact["dependencies"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tensorflow", "--cpu", "--cuda", "11.2"], "are incompatible"),
        (["tensorflow", "--cuda", "99.1"], "unknown CUDA version 99.1"),
        (["=", "--gpu"], "is not a package"),
        (["tensorflow", "--platform", "moon-64"], "is not a platform"),
    ],
)
def test_what_cannot_be_asked(channel: str, arguments: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        written(channel, *arguments)


def test_gpu_or_cpu_follows_this_machine_by_default(facts: CudaFacts) -> None:
    here = Platform.here().subdir

    def accelerator(
        machine: Machine, gpu: bool | None, cuda: str | None, platform: str | None
    ) -> tuple[str, str | None]:
        target = target_of(gpu, cuda, platform, facts, probed=lambda: machine)
        return target.accelerator, Request(("x",), target).driver_cuda

    with_gpu = Machine("535.1", "12.2", (Device("A100", "8.0", 1),))
    newest = tuple(facts.toolkits)[-1]
    assert accelerator(with_gpu, None, None, here) == ("gpu", "12.2")
    assert accelerator(with_gpu, False, None, here) == ("cpu", None)
    assert accelerator(with_gpu, None, "11.2", here) == ("gpu", "11.2")
    assert accelerator(Machine(), None, None, here) == ("cpu", None)
    assert accelerator(Machine(), True, None, here) == ("gpu", newest)
    assert accelerator(with_gpu, True, None, "linux-ppc64le") == ("gpu", newest)


@pytest.mark.parametrize(("conda", "pip"), [("2.6.*", "==2.6.*"), (">=2.6,<2.8", ">=2.6,<2.8"), ("==2.6.0", "==2.6.0")])
def test_versions_for_pip(conda: str, pip: str) -> None:
    assert pip_version(conda) == pip


def test_the_facts_are_read_once() -> None:
    assert load_frameworks() is load_frameworks()
