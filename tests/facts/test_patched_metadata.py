"""Facts that follow the metadata of conda-forge's channel, which patches changed after the builds.

The patches are in conda-forge-repodata-patches-feedstock; `recorded/patches.json` has file and line of each.
"""

from __future__ import annotations

import pytest

from feedstock_tools.channel.specs import admits
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.facts.packages import read_packages

PACKAGES = {package.distribution: package for package in read_packages() if package.subdir == "linux-64"}
FACTS = load_cuda()


def runs_with(library: str, version: str, built: str) -> str:
    """The CUDA versions that a build runs with: the first bound of the library that is about it."""
    return next(
        bound.cuda.replace("{built}", built)
        for bound in FACTS.libraries[library].goes_with
        if admits(bound.built, built) and admits(bound.versions, version)
    )


@pytest.mark.parametrize(
    ("library", "version", "built", "cuda"),
    [
        ("nccl", "2.26.5.1", "12.8", ">=12.0,<13"),
        ("nccl", "2.26.6.1", "12.8", ">=12.2,<13"),  # patched
        ("nccl", "2.28.3.1", "12.9", ">=12.2,<13"),  # the recipe's own bound
        ("nccl", "2.28.7.1", "12.9", ">=12.0,<13"),  # the recipe's own bound, patched back
        ("nccl", "2.8.4.1", "11.2", ">=11.2,<12"),  # patched: cudatoolkit 11.2 is any later 11
        ("nccl", "2.10.3.1", "11.2", ">=11.2,<12"),
        ("nccl", "2.10.3.1", "11.1", "11.1.*"),
        ("nccl", "2.21.5.1", "11.8", ">=11.8,<12"),
        ("nccl", "2.22.3.1", "11.8", ">=11.0,<12"),  # a bound of the recipe since 2.22.3
        ("nccl", "2.24.3.1", "11.8", ">=11.0,<12"),
        ("cutensor", "1.3.3", "11.0", "11.0.*"),
        ("cutensor", "1.2.2", "11.0", "11.*"),
        ("cutensor", "1.7.0.1", "11.1", ">=11.1,<12"),
        ("cudnn", "8.0.5.39", "11.0", "11.0.*"),
        ("cudnn", "8.9.7.29", "11.8", "11.*"),
    ],
)
def test_a_library_runs_with_the_cuda_versions_that_the_channel_says(
    library: str, version: str, built: str, cuda: str
) -> None:
    assert runs_with(library, version, built) == cuda


@pytest.mark.parametrize(
    ("distribution", "depends"),
    [
        ("nvcc_linux-64-10.2-hfc95359_23", ["cudatoolkit 10.2.*"]),
        ("nvcc_linux-64-11.1-he70e397_23", ["cudatoolkit 11.1.*", "sysroot_linux-64 >=2.17,<3.0a0", "__glibc >=2.17"]),
        (
            "nvcc_linux-64-11.2-h7156ece_23",
            ["cudatoolkit >=11.2,<12", "sysroot_linux-64 >=2.17,<3.0a0", "__glibc >=2.17"],
        ),
        ("cuda-nvcc-12.0.76-hba56722_12", ["cuda-nvcc_linux-64 12.0.76.*", "gcc_linux-64", "gxx_linux-64"]),
    ],
)
def test_a_package_of_the_stand_in_channel_has_the_patched_requirements(distribution: str, depends: list[str]) -> None:
    assert list(PACKAGES[distribution].depends) == depends


@pytest.mark.parametrize("cuda", ["12.0", "12.1", "12.2", "12.3", "12.4", "12.5", "12.6", "12.9", "13.2"])
def test_every_nvcc_of_components_asks_for_a_range_of_sysroots(cuda: str) -> None:
    (nvcc,) = (p for p in PACKAGES.values() if p.name == "cuda-nvcc_linux-64" and p.version.startswith(f"{cuda}."))
    assert "sysroot_linux-64 >=2.17,<3.0a0" in nvcc.depends
