"""Lists of architectures in the form of each build system, and the GPUs that they cover."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from feedstock_tools.cli.cuda import cuda as command
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import CudaFacts
from feedstock_tools.gpu_code.architecture import parse_architectures, service_of
from feedstock_tools.pins.architectures import architecture_list
from feedstock_tools.report.pins.gpu import architectures_json


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (
            "tensorflow",
            "TF_CUDA_COMPUTE_CAPABILITIES=sm_35,sm_50,sm_60,sm_62,sm_70,sm_72,sm_75,sm_80,sm_86,compute_86",
        ),
        ("pytorch", "TORCH_CUDA_ARCH_LIST=3.5;5.0;6.0;6.2;7.0;7.2;7.5;8.0;8.6+PTX"),
        (
            "cmake",
            "CMAKE_CUDA_ARCHITECTURES=35-real;50-real;60-real;62-real;70-real;72-real;75-real;80-real;86",
        ),
        (
            "nvcc",
            " ".join(f"-gencode=arch=compute_{n},code=sm_{n}" for n in (35, 50, 60, 62, 70, 72, 75, 80, 86))
            + " -gencode=arch=compute_86,code=compute_86",
        ),
    ],
)
def test_what_each_build_system_wants(form: str, expected: str) -> None:
    arguments = ["archs", "cuda=11.2", "--preset", "tensorflow-2.6", "--for", form, "--quiet"]
    assert CliRunner().invoke(command, arguments).output.strip() == expected


def test_family_architectures_keep_their_letters(facts: CudaFacts) -> None:
    chosen = architecture_list(facts, "13.2", "conda-forge")
    assert "sm_90a" in map(str, chosen.architectures)
    assert "9.0a" in chosen.written("pytorch").split("=")[1].replace("+PTX", "").split(";")
    assert "90a-real" in chosen.written("cmake").split("=")[1].split(";")


@pytest.mark.parametrize("version", ["10.2", "11.0", "11.8", "12.4", "12.9", "13.0", "13.5"])
@pytest.mark.parametrize("preset", ["common", "all"])
def test_every_list_is_of_what_nvcc_knows_and_ends_with_ptx(facts: CudaFacts, version: str, preset: str) -> None:
    chosen = architecture_list(facts, f"cuda={version}", preset)
    assert facts.toolkit(version).refused(tuple(map(str, chosen.architectures))) == ()
    assert chosen.architectures[-1].ptx
    assert chosen.architectures[-1].number == max(code.number for code in chosen.architectures)


def test_coverage_names_gpus(facts: CudaFacts) -> None:
    rows = architectures_json(architecture_list(facts, "11.0", "tensorflow-2.6"), "nvcc")["coverage"]
    by_capability = {row["capability"]: (row["runs"], row["by"]) for row in rows}
    assert by_capability["8.0"] == ("native", "sm_80")
    assert by_capability["9.0"] == ("ptx", "compute_80")
    assert by_capability["3.0"] == ("no", None)
    assert "Tesla V100" in next(row["gpus"] for row in rows if row["capability"] == "7.0")


@pytest.mark.parametrize(
    ("architectures", "capability", "how", "by"),
    [
        (["sm_80", "compute_80"], 86, "native", "sm_80"),  # machine code serves later minor capabilities
        (["sm_86"], 80, "no", None),  # but not earlier ones
        (["sm_80", "compute_80"], 90, "ptx", "compute_80"),
        (["sm_80", "compute_80"], 87, "ptx", "compute_80"),  # nor those of systems on a chip
        (["sm_90a"], 90, "native", "sm_90a"),
        (["sm_90a", "compute_90a"], 100, "no", None),  # code for one architecture serves no other
        (["sm_100f"], 103, "native", "sm_100f"),
        (["sm_100f"], 120, "no", None),
        (["compute_50"], 35, "no", None),
        ([], 86, "no", None),
    ],
)
def test_which_gpu_takes_which_code(architectures: list[str], capability: int, how: str, by: str | None) -> None:
    found = service_of(parse_architectures(architectures), capability)
    assert (found.how, str(found.by) if found.by else None) == (how, by)


@pytest.mark.parametrize(
    ("cuda", "preset", "form"),
    [
        ("cuda=12.7", "common", "nvcc"),
        ("gcc=11", "common", "nvcc"),
        ("11.2", "mine", "nvcc"),
        ("11.2", "common", "bazel"),
    ],
)
def test_what_is_not_known(facts: CudaFacts, cuda: str, preset: str, form: str) -> None:
    with pytest.raises(InputError):
        architecture_list(facts, cuda, preset).written(form)
