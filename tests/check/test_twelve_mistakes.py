"""Each of the mistakes that `cuda check` finds, planted one at a time in copies of the examples, which have none."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from feedstock_tools.check.against_facts import check_feedstock
from feedstock_tools.check.findings import Finding
from feedstock_tools.data import data_folder
from feedstock_tools.rerender.configuration import read_configurations

#: conda-forge's pinning of the days of the example of TensorFlow, as far as CUDA goes.
PINNING = """\
cuda_compiler_version:
  - None
  - 10.2                       # [linux64 or win]
  - 11.0                       # [linux64 or win]
  - 11.1                       # [linux64 or win]
  - 11.2                       # [linux64 or win]
zip_keys:
  - - cuda_compiler_version
"""
Plant = Callable[[Path], None]


@pytest.fixture
def gpuprobe(tmp_path: Path) -> Path:
    folder = tmp_path / "gpuprobe"
    shutil.copytree(data_folder("examples") / "gpuprobe", folder, ignore=shutil.ignore_patterns("output", "build"))
    for path in (folder / ".ci_support").glob("*.yaml"):
        if (
            path.stem.rpartition("version")[2] not in ("11.0", "11.2", "12.9", "13.0", "None")
            or "linux_64" not in path.stem
        ):
            path.unlink()
    return folder


@pytest.fixture
def tensorflow(tmp_path: Path) -> Path:
    folder = tmp_path / "tensorflow"
    shutil.copytree(data_folder("examples") / "tensorflow", folder)
    for version in ("10.2", "11.0", "11.2"):
        shutil.copy(data_folder("variants") / f"linux_64_cuda{version}.yaml", folder / ".ci_support")
    (tmp_path / "conda_build_config.yaml").write_text(PINNING, encoding="utf-8")
    return folder


def checked(folder: Path) -> tuple[Finding, ...]:
    pinning = folder.parent / "conda_build_config.yaml"
    found = check_feedstock(
        folder, read_configurations(folder), pinning=pinning if pinning.is_file() else None
    ).findings
    return tuple(finding for finding in found if finding.weight == "mistake")


def replaced(file: str, before: str, after: str) -> Plant:
    def plant(folder: Path) -> None:
        (path,) = folder.glob(file)
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text(text.replace(before, after), encoding="utf-8")

    return plant


def added(file: str, text: str) -> Plant:
    def plant(folder: Path) -> None:
        (path,) = folder.glob(file)
        path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")

    return plant


def without_own_versions(folder: Path) -> None:
    (folder / "recipe" / "conda_build_config.yaml").unlink()


OF_11_0, OF_11_2 = ".ci_support/linux_64_*11.0.yaml", ".ci_support/linux_64_*11.2.yaml"
OF_12_9 = ".ci_support/linux_64_*12.9.yaml"
MISTAKES = (
    "compiler", "library", "image", "platform", "unknown", "old", "ptx",
    "old-ptx", "dropped", "guard", "glibc", "zip",
)  # fmt: skip
SCRIPT = "recipe/cuda_architectures.sh"
IMAGE = "quay.io/condaforge/linux-anvil-cuda:11.2"
SIXES = "sm_80,sm_86,compute_86"


def alone_is_found(folder: Path, plant: Plant, said: str) -> None:
    """Nothing but the mistake is found once it is planted."""
    plant(folder)
    found = checked(folder)
    assert found
    assert [finding.message for finding in found if said not in finding.message] == []


def test_nothing_is_found_in_gpuprobe_before(gpuprobe: Path) -> None:
    assert checked(gpuprobe) == ()


def test_nothing_is_found_in_tensorflow_before(tensorflow: Path) -> None:
    assert checked(tensorflow) == ()


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        (replaced(OF_11_2, "c_compiler_version:\n- '10'", "c_compiler_version:\n- '12'"), "host gcc up to 10, not 12"),
        (added(OF_11_2, "nccl:\n- '2.28'\n"), "nccl 2.28 was never built for CUDA 11.2"),
        (replaced(OF_11_2, IMAGE, IMAGE.replace("11.2", "11.1")), "has CUDA 11.1, but the configuration needs 11.2"),
        (replaced(OF_12_9, "linux-anvil-x86_64", "linux-anvil-aarch64"), "is for linux-aarch64"),
        (replaced(SCRIPT, "sm_75,sm_80,compute_80", "sm_75,sm_80,sm_86,compute_86"), "CUDA 11.0 does not know"),
        (
            replaced(SCRIPT, '13.0) export CUDA_ARCHITECTURES="sm_75', '13.0) export CUDA_ARCHITECTURES="sm_70'),
            "has dropped sm_70",
        ),
        (replaced(SCRIPT, SIXES, "sm_80,sm_86"), "there is no PTX"),
        (replaced(SCRIPT, SIXES, "sm_80,sm_86,compute_80"), "newest PTX is compute_80"),
        (without_own_versions, "pinning dropped CUDA"),
        (replaced("recipe/recipe.yaml", "__cuda >=${{ cuda_compiler_version }}", "__cuda >=9.2"), "allows older ones"),
        (replaced(OF_11_2, "'2.17'", "'2.12'"), "needs glibc 2.17"),
        (replaced(OF_11_2, "- '11.2'", "- '11.2'\n- '11.8'"), "the same number of values"),
    ],
    ids=MISTAKES,
)
def test_in_gpuprobe(gpuprobe: Path, plant: Plant, said: str) -> None:
    alone_is_found(gpuprobe, plant, said)


def guarded(folder: Path) -> None:
    path = folder / "recipe" / "meta.yaml"
    text = path.read_text(encoding="utf-8")
    head, output, tail = text.partition("  - name: tensorflow-base\n")
    first, run, rest = tail.partition("      run:\n")
    guard = '        - __cuda >=10.2  # [cuda_compiler_version not in ("None", "10.2")]\n'
    path.write_text("".join([head, output, first, run, guard, rest]), encoding="utf-8")


OF_TF = ".ci_support/linux_64_cuda11.2.yaml"


def torn(folder: Path) -> None:
    replaced(OF_TF, "cuda_compiler_version:\n- '11.2'", "cuda_compiler_version:\n- '11.1'\n- '11.2'")(folder)
    added(OF_TF, "zip_keys:\n- - cuda_compiler_version\n  - docker_image\n")(folder)


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        (replaced(OF_TF, "cxx_compiler_version:\n- '10'", "cxx_compiler_version:\n- '11'"), "host gcc up to 10"),
        (added(OF_TF, "nccl:\n- '2.28'\n"), "nccl 2.28 was never built for CUDA 11.2"),
        (replaced(OF_TF, "linux-anvil-cuda:11.2", "linux-anvil-cuda:11.0"), "has CUDA 11.0"),
        (replaced(OF_TF, "linux-anvil-cuda:11.2", "linux-anvil-aarch64-cuda:11.2"), "is for linux-aarch64"),
        (replaced(SCRIPT, "sm_75,sm_80,compute_80", "sm_75,sm_80,sm_89,compute_89"), "does not know"),
        (
            replaced(
                SCRIPT,
                '11.2) export TF_CUDA_COMPUTE_CAPABILITIES="sm_35',
                '11.2) export TF_CUDA_COMPUTE_CAPABILITIES="sm_30',
            ),
            "dropped sm_30",
        ),
        (replaced(SCRIPT, ",compute_80", ""), "there is no PTX"),
        (replaced(SCRIPT, "sm_86,compute_86", "sm_86,compute_75"), "newest PTX is compute_75"),
        (replaced("../conda_build_config.yaml", "  - 11.2   ", "  - 11.4   "), "the pinning has no CUDA 11.2"),
        (guarded, "needs a driver for CUDA 11.0, but its '__cuda >=10.2' allows older ones"),
        (replaced(OF_TF, "c_stdlib_version:\n- '2.17'", "c_stdlib_version:\n- '2.12'"), "needs glibc 2.17"),
        (torn, "the same number of values"),
    ],
    ids=MISTAKES,
)
def test_in_tensorflow(tensorflow: Path, plant: Plant, said: str) -> None:
    alone_is_found(tensorflow, plant, said)


def test_architectures_of_a_spec(gpuprobe: Path) -> None:
    replaced("feedstock.yaml", "architectures: common", "architectures: [sm_75, sm_80]")(gpuprobe)
    found = checked(gpuprobe)
    assert {finding.configuration for finding in found} == {"feedstock.yaml"}
    assert any("there is no PTX" in finding.message for finding in found)
    replaced("feedstock.yaml", "[sm_75, sm_80]", "[sm_75, sm_999]")(gpuprobe)
    assert any("does not know sm_999" in finding.message for finding in checked(gpuprobe))


def test_the_lists_of_each_configuration_are_told(gpuprobe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`cuda check -v` answers which architectures a configuration is compiled for, and where that is said."""
    told: list[str] = []
    monkeypatch.setattr("feedstock_tools.check.against_facts.stage", told.append)
    checked(gpuprobe)
    said = "linux_64_cuda_compiler_version11.2: recipe/cuda_architectures.sh:7: CUDA_ARCHITECTURES=sm_35,"
    assert any(line.startswith(said) for line in told)


def test_a_list_that_no_script_sources_is_found(gpuprobe: Path) -> None:
    replaced("recipe/build-library.sh", "cuda_architectures.sh", "another.sh")(gpuprobe)
    (finding,) = (each for each in checked(gpuprobe) if each.configuration == "feedstock.yaml")
    assert finding.message.startswith("no build script sources cuda_architectures.sh")


def test_a_finding_in_a_script_has_its_place(gpuprobe: Path) -> None:
    replaced(SCRIPT, SIXES, "sm_80,sm_86")(gpuprobe)
    assert {finding.key for finding in checked(gpuprobe)} == {"recipe/cuda_architectures.sh:7: CUDA_ARCHITECTURES"}
