"""Which releases of cuDNN, NCCL and cuTENSOR exist for a CUDA version."""

from __future__ import annotations

import pytest

from feedstock_tools.facts.cuda import Library, load_cuda
from feedstock_tools.platforms import KNOWN_SUBDIRS, Platform
from feedstock_tools.versions import parse_version

FACTS = load_cuda()


def built_with(library: str, cuda: str, platform: Platform) -> list[str]:
    """The versions of a library that were built with a CUDA version for a platform, newest first."""
    releases = FACTS.libraries[library].releases
    return list(dict.fromkeys(release.version for release in releases if release.built_for(cuda, platform)))


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
    assert built_with(library, cuda, Platform.parse(platform)) == versions


def test_the_pinnings_cudnn_exists_for_every_version_that_was_pinned_with_it() -> None:
    for row in FACTS.rows:
        # CUDA 11.0 and 11.1 use the build of 11.2; linux-ppc64le never had the pinning's cuDNN 9.
        if row.cuda and row.origin == "pinning" and row.cuda not in ("11.0", "11.1") and row.platform.arch != "ppc64le":
            versions = built_with("cudnn", row.cuda, row.platform)
            assert any(version.split(".")[0] == row.values["cudnn"] for version in versions), row.name


@pytest.mark.parametrize("library", FACTS.libraries.values(), ids=lambda library: library.name)
def test_releases_are_in_order_and_name_known_platforms_and_toolkits(library: Library) -> None:
    keys = [parse_version(release.version) for release in library.releases]
    assert keys == sorted(keys, reverse=True)
    for release in library.releases:
        assert set(release.cuda) <= set(FACTS.toolkits)
        assert {subdir for subdirs in release.cuda.values() for subdir in subdirs} <= set(KNOWN_SUBDIRS)
