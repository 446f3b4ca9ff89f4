"""GPUs by name, and which releases of cuDNN, NCCL and cuTENSOR exist for a CUDA version."""

from __future__ import annotations

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.facts import Library, load_cuda
from feedstock_tools.platforms import KNOWN_SUBDIRS, Platform
from feedstock_tools.versions import parse_version

FACTS = load_cuda()


@pytest.mark.parametrize(
    ("name", "listed", "capability"),
    [
        ("RTX 3080", "GeForce RTX 3080", "8.6"),
        ("NVIDIA GeForce RTX 3080 Ti", "GeForce RTX 3080 Ti", "8.6"),
        ("geforce rtx 3080 laptop gpu", "GeForce RTX 3080", "8.6"),
        ("Tesla V100-SXM2-16GB", "Tesla V100", "7.0"),
        ("V100", "Tesla V100", "7.0"),
        ("NVIDIA A100-SXM4-80GB", "A100", "8.0"),
        ("NVIDIA A10", "A10", "8.6"),
        ("NVIDIA H100 80GB HBM3", "H100", "9.0"),
        ("Tesla T4", "Tesla T4", "7.5"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada", "8.9"),
        ("Quadro RTX 6000", "Quadro RTX 6000", "7.5"),
        ("NVIDIA GeForce GTX TITAN X", "GeForce GTX TITAN X", "5.2"),
        ("NVIDIA TITAN X (Pascal)", "TITAN X", "6.1"),
        ("NVIDIA GB10", "GB10", "12.1"),
    ],
)
def test_a_gpu_is_found_by_what_people_and_drivers_call_it(name: str, listed: str, capability: str) -> None:
    gpu = FACTS.gpu(name)
    assert (gpu.name, gpu.capability) == (listed, capability)


@pytest.mark.parametrize(("name", "near"), [("RTX 6000", "Quadro RTX 6000"), ("RTX 3088", "GeForce RTX 3080")])
def test_an_unknown_gpu_is_an_error_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(InputError, match=f"unknown GPU '{name}'") as caught:
        FACTS.gpu(name)
    assert near in str(caught.value)


@pytest.mark.parametrize("name", ["", "NVIDIA", "   ", "zzzzzz"])
def test_what_names_no_gpu_finds_none(name: str) -> None:
    with pytest.raises(InputError):
        FACTS.gpu(name)


def test_names_of_gpus_are_distinguished() -> None:
    for gpu in FACTS.gpus:
        assert FACTS.gpu(gpu.name) is gpu
        assert FACTS.gpu(f"NVIDIA {gpu.name}") is gpu


def test_every_gpu_since_kepler_can_be_compiled_for_by_some_toolkit() -> None:
    for gpu in FACTS.gpus:
        assert any(toolkit.accepts(gpu.architecture) for toolkit in FACTS.toolkits.values()), gpu.name


@pytest.mark.parametrize(
    ("library", "cuda", "platform", "versions"),
    [
        ("cudnn", "10.2", "linux-64", ["8.2.1.32", "8.2.0.53", "8.1.0.77", "8.0.5.39", "7.6.5.32"]),
        ("cudnn", "11.3", "linux-64", []),
        ("cudnn", "12.6", "win-64", ["9.10.1.4", "9.10.0.56", "9.9.0.52", "9.8.0.87", "9.7.1.26", "9.3.0.75"]),
        ("nccl", "12.4", "linux-64", []),
        ("cutensor", "13.0", "linux-aarch64", ["2.7.0.5", "2.6.0.4", "2.5.0.2", "2.4.1.4", "2.3.1.0"]),
        ("nccl", "12.9", "win-64", []),
    ],
)
def test_it_is_known_what_was_built_for_a_toolkit(library: str, cuda: str, platform: str, versions: list[str]) -> None:
    assert list(FACTS.libraries[library].versions(cuda, Platform.parse(platform))) == versions


def test_the_pinnings_cudnn_exists_for_every_version_that_was_pinned_with_it() -> None:
    cudnn = FACTS.libraries["cudnn"]
    for row in FACTS.rows:
        if row.cuda and row.origin == "pinning" and row.cuda not in ("11.0", "11.1"):  # these two use the build of 11.2
            versions = cudnn.versions(row.cuda, row.platform)
            assert any(version.split(".")[0] == row.values["cudnn"] for version in versions), row.name


@pytest.mark.parametrize("library", FACTS.libraries.values(), ids=lambda library: library.name)
def test_releases_are_in_order_and_name_known_platforms_and_toolkits(library: Library) -> None:
    keys = [parse_version(release.version) for release in library.releases]
    assert keys == sorted(keys, reverse=True)
    for release in library.releases:
        assert set(release.cuda) <= set(FACTS.toolkits)
        assert {subdir for subdirs in release.cuda.values() for subdir in subdirs} <= set(KNOWN_SUBDIRS)
