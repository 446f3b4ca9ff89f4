"""Mistakes planted one at a time in configurations that have none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from feedstock_tools.check.against_facts import check_configurations, why_dropped
from feedstock_tools.cli.cuda import cuda as command
from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.gpu_code.architecture_lists import read_list
from feedstock_tools.platforms import Platform
from feedstock_tools.rerender.configuration import Configuration, read_configurations

FACTS = load_cuda()
TF = "TF_CUDA_COMPUTE_CAPABILITIES"


def configuration(name: str) -> Configuration:
    """The named variant file, which has the values of conda-forge's pinning."""
    return Configuration.from_file(data_folder("variants") / f"{name}.yaml")


def planted(name: str, **values: str) -> Configuration:
    original = configuration(name)
    return replace(original, values={**original.values, **{key: (value,) for key, value in values.items()}})


@pytest.mark.parametrize("path", sorted(data_folder("variants").glob("*_cuda*.yaml")), ids=lambda path: path.stem)
def test_conda_forges_own_pins_have_no_mistake(path: Path) -> None:
    # cuDNN 9 was the pinning's for linux-ppc64le too, where it was never built.
    findings = [
        finding
        for finding in check_configurations(FACTS, [Configuration.from_file(path)])
        if "ppc64le" not in finding.message
    ]
    assert findings == []


def test_a_version_that_only_an_ordering_named_was_never_in_the_pinning() -> None:
    complaint = why_dropped("12.4", Platform.parse("linux-64"), FACTS, None)
    assert complaint is not None
    assert "never had CUDA 12.4 for linux-64" in complaint[0]
    complaint = why_dropped("11.2", Platform.parse("linux-64"), FACTS, None)
    assert complaint is not None
    assert "dropped CUDA 11.2 for linux-64" in complaint[0]


def test_the_examples_have_no_mistake() -> None:
    for example in data_folder("examples").iterdir():
        found = check_configurations(FACTS, read_configurations(example))
        assert [finding for finding in found if finding.weight == "mistake"] == []


@pytest.mark.parametrize(
    ("name", "key", "value", "said"),
    [
        ("linux_64_cuda11.2", "c_compiler_version", "11", "accepts host gcc up to 10, not 11"),
        ("linux_64_cuda11.2", "cxx_compiler_version", "12.3", "accepts host gcc up to 10, not 12.3"),
        ("win_64_cuda11.2", "cxx_compiler", "vs2022", "accepts Visual Studio 2017 to 2019, not 2022"),
        ("linux_64_cuda12.9", "cudnn", "8.4", "cudnn 8.4 was never built for CUDA 12.9 on linux-64"),
        ("linux_64_cuda11.2", "nccl", "2.28", "nccl 2.28 was never built for CUDA 11.2 on linux-64"),
        ("win_64_cuda12.9", "nccl", "2", "nccl 2 was never built for CUDA 12.9 on win-64"),
        ("linux_64_cuda11.2", "cudnn", "77", "there is no cudnn 77 on conda-forge"),
        ("linux_64_cuda11.2", "docker_image", "quay.io/condaforge/linux-anvil-cuda:11.1", "has CUDA 11.1"),
        ("linux_64_cuda11.2", "docker_image", "quay.io/condaforge/linux-anvil-x86_64:alma9", "has none"),
        ("linux_64_cuda12.9", "docker_image", "quay.io/condaforge/linux-anvil-aarch64:alma9", "is for linux-aarch64"),
        ("linux_64_cuda13.0", "c_stdlib_version", "2.17", "needs glibc 2.28 on linux-64, not 2.17"),
        ("linux_64_cuda11.0", TF, "sm_80,sm_86,compute_86", "does not know sm_86"),
        ("linux_64_cuda13.0", TF, "sm_70,sm_80,compute_80", "has dropped sm_70"),
        ("linux_64_cuda12.9", "TORCH_CUDA_ARCH_LIST", "8.0;9.0", "no PTX"),
        ("linux_64_cuda12.9", "CMAKE_CUDA_ARCHITECTURES", "80;90-real", "newest PTX is compute_80"),
        ("linux_64_cuda12.9", TF, "sm_80,fast", "'fast' is not a GPU architecture"),
        ("linux_64_cuda12.9", "CMAKE_CUDA_ARCHITECTURES", "native", "the GPU of the machine that builds"),
        ("linux_64_cuda12.4", "c_compiler_version", "13", "conda-forge's packages of CUDA 12.4 accept gcc up to 12"),
        ("win_64_cuda11.8", "c_compiler", "vs2022", "accepts Visual Studio 2017 to 2022 17.9 (_MSC_VER up to 1939)"),
        ("linux_64_cuda12.9", "cuda_compiler_version", "12.7", "never released CUDA 12.7: 12.8 followed 12.6"),
        ("linux_64_cuda12.9", "cuda_compiler_version", "12.10", "never released CUDA 12.10: 13.0 followed 12.9"),
    ],
)
def test_a_planted_mistake_is_found(name: str, key: str, value: str, said: str) -> None:
    found = check_configurations(FACTS, [planted(name, **{key: value})])
    assert {finding.key for finding in found} == {key}
    assert any(said in finding.message for finding in found)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("linux_64_cuda12.9", {TF: "sm_80,sm_90,compute_90"}),
        ("linux_aarch64_cuda12.9", {"docker_image": "quay.io/condaforge/linux-anvil-x86_64:alma9"}),  # cross-compiled
        ("linux_64_cuda12.9", {"c_compiler": "clang", "c_compiler_version": "20"}),  # clang may compile CUDA itself
        ("linux_64_cpu", {"c_compiler_version": "99", "docker_image": "linux-anvil-cuda:9.9"}),
        ("linux_64_cuda12.9", {"cuda_compiler_version": "99.1", "c_compiler_version": "99"}),
        ("linux_64_cuda12.9", {"cudnn": "undefined"}),
        ("linux_64_cuda12.9", {"CMAKE_CUDA_ARCHITECTURES": "all-major"}),
    ],
)
def test_what_is_no_mistake_or_not_known(name: str, values: dict[str, str]) -> None:
    assert check_configurations(FACTS, [planted(name, **values)]) == ()


def test_rows_of_a_zip_group_are_checked_one_by_one() -> None:
    zipped = ("cuda_compiler_version", "c_compiler_version")
    original = configuration("linux_64_cuda12.9")
    plain = {key: values for key, values in original.values.items() if "compiler" not in key and key != "docker_image"}
    values = {**plain, "cuda_compiler_version": ("None", "11.2", "12.9"), "c_compiler_version": ("15", "12", "14")}
    (found,) = check_configurations(FACTS, [Configuration("linux_64_", original.platform, values, (zipped,))])
    assert found.message == "nvcc of CUDA 11.2 accepts host gcc up to 10, not 12"
    assert found.source is not None


def test_zipped_keys_out_of_step() -> None:
    values = {"cuda_compiler_version": ("11.2", "12.9"), "c_compiler_version": ("10",)}
    platform = configuration("linux_64_cuda12.9").platform
    (found,) = check_configurations(FACTS, [Configuration("linux_64_", platform, values, (tuple(values),))])
    assert found.message.endswith("cuda_compiler_version has 2, c_compiler_version has 1")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("sm_35,compute_86", "sm_35 compute_86"),
        ("7.5;8.0+PTX", "sm_75 sm_80 compute_80"),
        ("9.0a 10.0", "sm_90a sm_100"),
        ("75-real;86-virtual;90a-real;120", "sm_75 compute_86 sm_90a sm_120 compute_120"),
    ],
)
def test_lists_of_architectures(text: str, names: str) -> None:
    assert " ".join(map(str, read_list(text))) == names


def test_on_the_command_line(tmp_path: Path) -> None:
    folder = tmp_path / ".ci_support"
    folder.mkdir()
    runner = CliRunner()
    with pytest.raises(InputError, match="no configuration"):
        runner.invoke(command, ["check", str(tmp_path)], catch_exceptions=False, standalone_mode=False)
    (folder / "linux_64_.yaml").write_bytes(configuration("linux_64_cuda12.9").to_bytes())
    good = runner.invoke(command, ["check", str(tmp_path)], catch_exceptions=False, standalone_mode=False)
    names = "architectures in scripts, commands for CUDA, guards on drivers"
    reason = f"{names} (1 of 1 job cannot be rendered)"  # without a recipe
    line = f"3 of 5 checks could not be completed: {reason}.\nNo mistake in what was checked of 1 configuration.\n"
    assert (good.return_value, good.stdout) == (0, line)
    strict = runner.invoke(command, ["check", str(tmp_path), "--strict"], standalone_mode=False)
    assert (strict.return_value, strict.stdout) == (1, line)
    (folder / "linux_64_.yaml").write_bytes(planted("linux_64_cuda12.9", cudnn="7").to_bytes())
    bad = runner.invoke(command, ["check", str(tmp_path)], catch_exceptions=False, standalone_mode=False)
    assert bad.return_value == 1
    assert bad.stdout.splitlines()[1].startswith(
        "linux_64_cuda12.9: cudnn: cudnn 7 was never built for CUDA 12.9 on linux-64"
    )
    as_json = runner.invoke(command, ["check", str(tmp_path), "--json"], standalone_mode=False).stdout
    assert json.loads(as_json)["findings"][0]["key"] == "cudnn"
