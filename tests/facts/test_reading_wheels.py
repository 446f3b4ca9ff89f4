"""Reading wheels on an index: by ranges, checked, and only what the record lacks. The index is a folder on loopback."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from feedstock_tools.builds.stand_in.nvcc_from_nvrtc import fatbin
from maintenance.facts import framework_wheels, libraries, records, toolkits
from maintenance.facts import index as wheel_index
from maintenance.facts.__main__ import program
from tests.support.serving import Answers, serving

HEADER = """\
#if defined(__GNUC__)
#if __GNUC__ > 14
#endif
#if defined(__HORIZON__)
#if (__clang_major__ >= 7) || (__clang_major__ < 3)
#endif
#endif
#if defined(__clang__) && !defined(__ibmxl_vrm__) && !defined(__ICC)

#if (__clang_major__ >= 20) || (__clang_major__ < 3)
#endif
#endif
#endif
#if defined(_WIN32)
#if _MSC_VER < 1910 || _MSC_VER >= 1950
#endif
#endif
"""
#: A program that names architectures as ptxas does: after other bytes, each with a null at its end.
PTXAS = b"\x7fELF" + bytes(60) + b"alloccompute_75\0compute_80\0sm_90\0compute_90a\0compute_\0compute_99x\0"


@dataclass
class Index:
    """Wheels by file name, served as PEP 691 asks; `asked` are the requests for parts of wheels."""

    wheels: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    address: str = ""

    def add(self, name: str, files: Mapping[str, bytes]) -> None:
        """A wheel with some files, the first of which is stored, the others packed."""
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for number, (path, data) in enumerate(files.items()):
                kind = zipfile.ZIP_DEFLATED if number else zipfile.ZIP_STORED
                archive.writestr(path, data, compress_type=kind)
        self.wheels[name] = content.getvalue()

    def listing(self, project: str) -> bytes:
        """The wheels of a project, with their hashes; those of 1.5 are withdrawn."""
        files = [
            {
                "filename": name,
                "url": f"{self.address}/files/{name}",
                "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
                "size": len(content),
                "yanked": "-1.5-" in name,
            }
            for name, content in self.wheels.items()
            if name.startswith(project.replace("-", "_") + "-")
        ]
        return json.dumps({"files": files}).encode()

    def part(self, name: str, span: str | None) -> tuple[int, bytes]:
        """A wheel, or the bytes of it that a header `Range` names, with the place of the first."""
        self.asked.append((name, span or "all"))
        content = self.wheels[name]
        first, _, last = (span or "bytes=0-").removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(content) - int(last))
        return start, content[start : int(last) + 1 if first and last else None]


def handler(index: Index) -> type[Answers]:
    """What answers for an index."""

    class Handler(Answers):
        def respond(self) -> None:
            name = self.path.strip("/").split("/")[-1]
            span = self.headers["Range"]
            if "/files/" not in self.path:
                self.answer(index.listing(name))
                return
            if name not in index.wheels:
                self.answer(b"", 404)
                return
            start, content = index.part(name, span)
            place = f"bytes {start}-{start + len(content) - 1}/{len(index.wheels[name])}"
            if span:
                self.answer(content, 206, Content_Range=place)
            else:
                self.answer(content)

    return Handler


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    monkeypatch.setattr(records, "RECORDED", tmp_path)
    made = Index()
    with serving(handler(made)) as made.address:
        yield made


def ran(*words: str) -> tuple[int, str]:
    """The exit code of a command of `maintenance.facts`, and what it prints."""
    result = CliRunner(catch_exceptions=False).invoke(program, words)
    return result.exit_code, result.output


def library(*names: str) -> bytes:
    return b"\x7fELF" + bytes(100) + fatbin([(name, b".version 8.0\n code") for name in names]) + bytes(2000)


def test_the_first_and_the_last_release_of_each_minor_version_are_chosen() -> None:
    versions = ["2.10.1", "2.9.0", "2.10.0", "2.9.12", "2.10.3", "2.8.1"]
    assert wheel_index.first_and_last_of_minors(versions) == ["2.8.1", "2.9.0", "2.9.12", "2.10.0", "2.10.3"]


def test_releases_that_were_withdrawn_betas_and_placeholders_are_left_out(index: Index) -> None:
    for version in ("1.4", "1.5", "1.6rc1", "1.6.dev3", "1.6.post1"):
        index.add(f"tool-{version}-py3-none-manylinux2014_x86_64.whl", {"a": b""})
    index.wheels["tool-1.7.tar.gz"] = b""
    assert list(wheel_index.wheels_of(index.address, "tool")) == ["1.4"]


def test_libraries_are_read_by_ranges_and_once(index: Index) -> None:
    name = "nvidia_cudnn_cu12-9.11.0.98-py3-none-manylinux_2_27_x86_64.whl"
    unread = {"big.bin": bytes(200_000), "lib/libcudnn.so.9": b"\x7fELF" + bytes(50)}
    index.add(
        name,
        {
            "lib/libcudnn_cnn.so.9": library("sm_75", "sm_80", "compute_80"),
            **unread,
            "lib/libcudnn_ops.so.9": library("sm_50", "sm_75", "sm_75"),
        },
    )
    index.add("nvidia_cudnn_cu12-9.11.0.98-py3-none-win_amd64.whl", {"bin/cudnn.dll": library("sm_75")})
    arguments = ["libraries", "--index", index.address, "nvidia-cudnn-cu12"]
    assert ran(*arguments)[0] == 0
    recorded = records.read_table(libraries.TABLE)["nvidia-cudnn-cu12 9.11.0.98"]
    assert recorded["wheel"] == name
    assert recorded["sha256"] == hashlib.sha256(index.wheels[name]).hexdigest()
    assert {path: file["code"] for path, file in recorded["files"].items()} == {
        "libcudnn_cnn.so.9": "sm_75:1 sm_80:1 compute_80:1",
        "libcudnn_ops.so.9": "sm_50:1 sm_75:2",
    }
    assert libraries.oldest_capability(recorded) == 75, "a GPU needs code in every library"
    assert {asked for asked, span in index.asked if span == "all"} == set()
    before = len(index.asked)
    assert ran(*arguments) == (0, "1 wheels in the record, 0 contradict the facts\n")
    assert len(index.asked) == before, "a wheel that the record has is not read again"


METADATA = """\
Metadata-Version: 2.1
Requires-Python: >=3.9
Requires-Dist: numpy<2
Requires-Dist: nvidia-cuda-runtime-cu12 (==12.8.90) ; platform_system == "Linux" and platform_machine == "x86_64"
Requires-Dist: nvidia-cudnn-cu12==9.10.2.21; platform_system == "Linux" and platform_machine == "x86_64"
Requires-Dist: expecttest; extra == "tests"

nvidia-cuda-runtime-cu12 is for CUDA.
"""


@pytest.fixture
def variants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for `wheels.yaml`, beside the records."""
    (tmp_path / "wheels.yaml").write_text("tested: {}\nwheels: {}\n", encoding="utf-8")
    monkeypatch.setattr(framework_wheels, "data_folder", lambda _: tmp_path)
    return tmp_path / "wheels.yaml"


def test_a_framework_has_cuda_where_its_wheel_holds_gpu_code(index: Index, variants: Path) -> None:
    info = "torch-2.10.0.dist-info/METADATA"
    most = library("sm_70", "sm_90") * 9 + library("sm_70", "sm_90", "sm_90a")
    for tag in ("cp39-cp39", "cp310-cp310"):
        index.add(
            f"torch-2.10.0-{tag}-manylinux_2_28_x86_64.whl",
            {info: METADATA.encode(), "torch/lib/libtorch_cuda.so": most},
        )
        index.add(f"torch-2.10.0-{tag}-win_amd64.whl", {info: METADATA.encode(), "torch/lib/torch_cpu.dll": b"MZ"})
    assert ran("frameworks", "--index", index.address, "torch")[0] == 0
    (found,) = yaml.safe_load(variants.read_text(encoding="utf-8"))["wheels"]["torch"]
    assert found == {
        "version": "2.10.0",
        "python": ["3.9", "3.10"],
        "platforms": ["linux-64", "win-64"],
        "numpy": "<2",
        "cuda": "==12.8.90",
        "cudnn": "==9.10.2.21",
        "code": {"linux-64": "sm_70 sm_90"},
        "some": {"linux-64": "sm_90a"},
    }
    assert {name for name, _ in index.asked if "cp39" in name} == set(), "one Python is enough"
    before = len(index.asked)
    assert ran("frameworks", "--index", index.address, "torch")[0] == 0
    assert len(index.asked) == before, "what the record has is not read again"


def test_wheels_whose_metadata_names_no_cuda_state_it_themselves(index: Index, variants: Path) -> None:
    index.add(
        "torch-1.7.1-cp38-cp38-manylinux1_x86_64.whl",
        {
            "torch-1.7.1.dist-info/METADATA": b"Metadata-Version: 2.1\n\n",
            "torch/version.py": b"__version__ = '1.7.1'\ncuda = '10.2'\n",
            "torch/lib/libtorch_cuda.so": library("sm_37", "compute_37"),
        },
    )
    assert ran("frameworks", "--index", index.address, "torch")[0] == 0
    (found,) = yaml.safe_load(variants.read_text(encoding="utf-8"))["wheels"]["torch"]
    assert (found["built"], found["code"]) == ("10.2", {"linux-64": "sm_37 compute_37"})


@pytest.mark.parametrize(
    ("beside", "named", "cudnn"),
    [
        ("ctranslate2.libs/libcudnn-74a4c495.so.9.1.0", b"", "9.1.0"),
        ("README", b"libcudnn.so.8\0", "8"),
        ("README", b"", None),
    ],
)
def test_the_cudnn_that_a_wheel_loads_is_beside_its_library_or_named_in_it(
    index: Index, variants: Path, beside: str, named: bytes, cudnn: str | None
) -> None:
    index.add(
        "ctranslate2-4.5.0-cp310-cp310-manylinux_2_17_x86_64.whl",
        {
            "ctranslate2-4.5.0.dist-info/METADATA": b"Metadata-Version: 2.1\n\n",
            "ctranslate2.libs/libctranslate2-bc15bf3f.so.4.5.0": library("sm_70") + b"libcublas.so.12\0" + named,
            beside: b"",
        },
    )
    assert ran("frameworks", "--index", index.address, "ctranslate2")[0] == 0
    (found,) = yaml.safe_load(variants.read_text(encoding="utf-8"))["wheels"]["ctranslate2"]
    assert (found["built"], found.get("cudnn")) == ("12", cudnn)
    before = len(index.asked)
    assert ran("frameworks", "--index", index.address, "ctranslate2")[0] == 0
    assert len(index.asked) == before, "a wheel that names no cuDNN is read once"


def test_a_sample_of_a_large_library_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framework_wheels, "_FIRST_PART", 3000)
    monkeypatch.setattr(framework_wheels, "_ENOUGH", 50)
    content = library("sm_70", "sm_80") * 60 + bytes(200_000) + library("sm_90")
    found, read = framework_wheels.code_of_start(io.BytesIO(content), len(content), tmp_path / "library")
    assert (found, read < len(content)) == ({"sm_70 sm_80": 60}, True)
    content = bytes(20_000) + library("sm_90")
    found, read = framework_wheels.code_of_start(io.BytesIO(content), len(content), tmp_path / "library")
    assert (found, read) == ({"sm_90": 1}, len(content)), "too few of them: all is read"


@pytest.mark.parametrize(
    ("fat_binaries", "expected"),
    [
        ({"sm_70 sm_80": 9}, {"code": "sm_70 sm_80"}),
        # onnxruntime: kernels for one generation stand beside the general ones, and some of these leave old GPUs out.
        (
            {"sm_90a": 300, "sm_75 sm_80 sm_90a": 217, "sm_80 sm_90a": 91, "sm_80": 39},
            {"code": "sm_75 sm_80 sm_90a", "part": {"sm_75": "217/308"}},
        ),
        # torch 2.15: more for Hopper in some, and an architecture that few hold but whose GPUs run the others' code.
        (
            {"sm_75 sm_80 sm_86 sm_90": 400, "sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a": 2, "sm_90": 29},
            {"code": "sm_75 sm_80 sm_86 sm_90", "some": "sm_89 sm_90a"},
        ),
        # torch 1.4: a library that is linked in has code for 3.5 instead of 3.7.
        (
            {"sm_37 sm_50 sm_60": 54, "sm_35 sm_50 sm_60": 47},
            {"code": "sm_37 sm_50 sm_60", "some": "sm_35"},
        ),
        # TensorFlow 2.20: machine code for Hopper in few, PTX in all but a few.
        (
            {"sm_60 sm_80 compute_90": 1149, "sm_60 sm_80 sm_90 compute_90": 58, "compute_30": 2},
            {"code": "sm_60 sm_80 compute_90", "some": "sm_90 compute_30"},
        ),
        ({"sm_90a": 3}, {"code": "sm_90a"}),
        # vllm 0.10 for ARM: machine code for Blackwell in some, and PTX in the others.
        (
            {"sm_87 sm_90 sm_100": 27, "sm_87 sm_90 compute_90": 14},
            {"code": "sm_87 sm_90", "some": "sm_100 compute_90", "mixed": {"100": "41/41", "103": "41/41"}},
        ),
    ],
)
def test_a_wheel_runs_where_most_of_its_general_kernels_do(
    fat_binaries: Mapping[str, int], expected: Mapping[str, object]
) -> None:
    assert framework_wheels.own_code({"files": {"lib.so": {"fat_binaries": fat_binaries}}}) == expected


def test_releases_before_the_oldest_that_is_read_are_named(index: Index, variants: Path) -> None:
    for version in ("0.4.1", "1.0.1"):
        info = {f"torch-{version}.dist-info/METADATA": b"Metadata-Version: 2.1\n\n"}
        index.add(f"torch-{version}-cp37-cp37m-manylinux1_x86_64.whl", info)
    assert ran("frameworks", "--index", index.address, "torch")[0] == 0
    old, read = yaml.safe_load(variants.read_text(encoding="utf-8"))["wheels"]["torch"]
    assert (old["version"], old["unread"]) == ("0.4.1", {"linux-64": "it is older than those that are read"})
    assert "unread" not in read


@pytest.mark.parametrize(
    ("stated", "cuda"), [("12.4", "12.4"), ("124", "12.4"), ("1208", "12.8"), ("130", "13.0"), ("12", "12")]
)
def test_cuda_is_read_as_wheels_state_it(stated: str, cuda: str) -> None:
    assert framework_wheels.dotted(stated) == cuda


def test_a_patch_release_may_have_wheels_for_fewer_pythons(index: Index, variants: Path) -> None:
    for version, tags in (("0.4.30", ("cp39", "cp310")), ("0.4.38", ("cp310", "cp313"))):
        for tag in tags:
            name = f"jax_cuda12_plugin-{version}-{tag}-{tag}-manylinux2014_x86_64.whl"
            index.add(name, {f"jax_cuda12_plugin-{version}.dist-info/METADATA": b"Metadata-Version: 2.1\n\n"})
    assert ran("frameworks", "--index", index.address, "jax-cuda12")[0] == 0
    (found,) = yaml.safe_load(variants.read_text(encoding="utf-8"))["wheels"]["jax-cuda12"]
    assert (found["version"], found["python"], found["python_of_all"]) == ("0.4.38", ["3.10", "3.13"], ["3.10"])


def test_large_libraries_can_be_left_for_a_later_run(index: Index) -> None:
    name = "nvidia_cudnn_cu12-9.11.0.98-py3-none-manylinux_2_27_x86_64.whl"
    large = library("sm_50", "sm_75") + bytes(1_000_000)
    index.add(name, {"lib/libcudnn_adv.so.9": large, "lib/libcudnn_cnn.so.9": library("sm_75")})
    arguments = ["libraries", "--index", index.address, "nvidia-cudnn-cu12"]
    assert ran(*arguments, "--largest", "0.5")[0] == 0
    (first,) = records.read_table(libraries.TABLE).values()
    assert (list(first["files"]), first["unread"]) == (["libcudnn_cnn.so.9"], ["libcudnn_adv.so.9"])
    index.asked.clear()
    assert ran(*arguments)[0] == 0
    (whole,) = records.read_table(libraries.TABLE).values()
    assert list(whole["files"]) == ["libcudnn_adv.so.9", "libcudnn_cnn.so.9"]
    assert "unread" not in whole
    assert whole["files"]["libcudnn_cnn.so.9"] == first["files"]["libcudnn_cnn.so.9"]


def test_a_wheel_that_changed_is_reported_when_it_is_read_again(index: Index) -> None:
    name = "nvidia_cudnn_cu12-9.11.0.98-py3-none-manylinux_2_27_x86_64.whl"
    index.add(name, {"lib/libcudnn_cnn.so.9": library("sm_75")})
    arguments = ["libraries", "--index", index.address, "nvidia-cudnn-cu12"]
    assert ran(*arguments)[0] == 0
    index.add(name, {"lib/libcudnn_cnn.so.9": library("sm_80")})
    code, out = ran(*arguments, "--again")
    assert code == 1
    assert "nvidia-cudnn-cu12 9.11.0.98: differs" in out
    assert "nvidia-cudnn-cu12 9.11.0.98 has code for GPUs from 80 on; the facts say 75" in out


@pytest.mark.parametrize(
    ("files", "oldest"),
    [
        (["sm_52:1 sm_80:41 sm_100:563 compute_52:2 compute_80:40"], 80),  # cuSPARSELt: nvcc's default is stray
        (["sm_70:4 sm_75:61 sm_100f:88 compute_50:1"], 70),
        (["compute_50:1", "sm_75:10 sm_80:10"], 75),
        (["sm_75:127 sm_80:135", "sm_52:3 compute_52:2"], 75),
        (["lto_50:9 sm_90a:9"], 90),
    ],
)
def test_the_oldest_gpu_is_the_one_that_every_library_has_code_for(files: list[str], oldest: int) -> None:
    entry = {"files": {str(number): {"code": code} for number, code in enumerate(files)}}
    assert libraries.oldest_capability(entry) == oldest


def test_a_damaged_library_is_an_error_and_not_recorded(index: Index) -> None:
    name = "nvidia_cudnn_cu12-9.11.0.98-py3-none-manylinux_2_27_x86_64.whl"
    index.add(name, {"lib/libcudnn_cnn.so.9": library("sm_75")})
    index.wheels[name] = index.wheels[name].replace(b"code", b"cold", 1)
    code, out = ran("libraries", "--index", index.address, "nvidia-cudnn-cu12")
    assert code == 1
    assert "not read: lib/libcudnn_cnn.so.9 is damaged or cut off" in out
    assert records.read_table(libraries.TABLE) == {}


def test_a_toolkit_is_read_from_its_wheels_without_running_it(index: Index) -> None:
    files = {"nvidia/bin/ptxas": PTXAS, "nvidia/include/crt/host_config.h": HEADER.encode()}
    index.add("nvidia_cuda_nvcc_cu12-12.9.86-py3-none-manylinux2014_x86_64.whl", files)
    index.add("nvidia_cuda_nvcc-13.9.1-py3-none-manylinux2014_x86_64.whl", {"cu13/bin/ptxas": PTXAS})
    index.add("nvidia_cuda_crt-13.9.1-py3-none-manylinux2014_x86_64.whl", {"cu13/crt/host_config.h": HEADER.encode()})
    code, out = ran("toolkits", "--index", index.address)
    assert code == 1
    recorded = records.read_table(toolkits.TABLE)
    assert list(recorded) == ["12.9.86", "13.9.1"]
    entry = recorded["13.9.1"]
    assert entry["architectures"] == "75 80 90a"
    assert (entry["newest_gcc"], entry["newest_clang"]) == (14, 19)
    assert (entry["oldest_msvc"], entry["newest_msvc"]) == (1910, 1949)
    assert len(entry["wheels"]) == 2
    assert "CUDA 12.9: architectures is 50 52 53" in out
    assert "CUDA 13.9 has no facts; 13.9.1 has {'architectures': '75 80 90a'" in out


def test_a_wheel_that_is_not_the_one_the_index_names_is_an_error(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"nvidia/bin/ptxas": PTXAS, "nvidia/include/crt/host_config.h": HEADER.encode()}
    name = "nvidia_cuda_nvcc_cu12-12.9.86-py3-none-manylinux2014_x86_64.whl"
    index.add(name, files)
    monkeypatch.setattr(index, "part", lambda *_: (0, b"another file"))
    code, out = ran("toolkits", "--index", index.address)
    assert code == 1
    assert f"12.9.86: not read: {name} is not the file that the index names" in out


@pytest.mark.parametrize("form", ["", HEADER.replace("__GNUC__ > 14", "__GNUC__ >= 15")])
def test_a_header_of_another_form_is_an_error(form: str) -> None:
    with pytest.raises(ValueError, match="another form"):
        toolkits.host_compilers(form)


def test_without_an_index_the_one_of_pip_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    wheel_index.pip_index.cache_clear()
    try:
        assert wheel_index.pip_index() == "http://127.0.0.1:1/simple"
    finally:
        wheel_index.pip_index.cache_clear()


def test_the_cuda_of_a_wheel_is_that_of_its_torch_or_else_is_read_in_it() -> None:
    vllm = framework_wheels.PROJECTS["vllm"]
    wheel = {"files": {"_C.abi3.so": {"fat_binaries": {"sm_80": 1}}}}
    assert framework_wheels.lacks_statement(vllm, wheel)
    assert framework_wheels.lacks_statement(vllm, {**wheel, "torch": "==0.1"})
    for known in ({"torch": "==2.1.2"}, {"cuda": ">=12"}, {"built": "11"}):
        assert not framework_wheels.lacks_statement(vllm, {**wheel, **known})


def test_an_extension_of_torch_has_the_cuda_that_its_torch_asks_for_or_states() -> None:
    assert framework_wheels.cuda_of_torch("==2.8.0") == "==12.8.90"
    assert framework_wheels.cuda_of_torch("==1.3.1") == "10.1"  # its metadata asks for none
    assert framework_wheels.cuda_of_torch("") is None
    files = {"_C.so": {"fat_binaries": {"sm_35 sm_75": 9}}}
    read = {"python": ["3.7"], "platforms": {"linux-64": {"wheel": "", "torch": "==1.3.1", "files": files}}}
    assert framework_wheels.entry_of("0.4.2", read)["built"] == "10.1"
