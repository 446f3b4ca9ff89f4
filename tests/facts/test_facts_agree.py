"""The facts on CUDA and the stand-in packages come from different recipes; where they overlap, they agree."""

from __future__ import annotations

from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.facts.packages import read_packages
from feedstock_tools.versions import parse_version

FACTS = load_cuda()
PACKAGES = read_packages()
#: Builds are for this CUDA version and later ones; facts on earlier versions serve old channels only.
FIRST_BUILT = parse_version("10.2")


def minor_versions(name: str, subdirs: tuple[str, ...]) -> set[str]:
    packages = [package for package in PACKAGES if package.name == name and package.subdir in subdirs]
    return {".".join(package.version.split(".")[:2]) for package in packages}


def _built(version: str) -> bool:
    return parse_version(version) >= FIRST_BUILT


def test_every_toolkit_on_conda_forge_has_a_metapackage() -> None:
    on_conda_forge = {version for version, toolkit in FACTS.toolkits.items() if toolkit.platforms and _built(version)}
    assert minor_versions("cuda-version", ("noarch",)) == on_conda_forge


def test_the_toolkits_of_the_first_era_are_those_with_a_cudatoolkit() -> None:
    first_era = {
        version for version, toolkit in FACTS.toolkits.items() if toolkit.era == "cudatoolkit" and _built(version)
    }
    assert minor_versions("cudatoolkit", ("linux-64", "noarch")) == first_era


def test_every_gcc_that_was_pinned_on_linux_is_known() -> None:
    for row in FACTS.rows:
        if row.platform.subdir in ("linux-64", "linux-aarch64"):
            name = f"gcc_{row.platform}"
            majors = {package.version.split(".")[0] for package in PACKAGES if package.name == name}
            assert row.values["c_compiler_version"] in majors, row.name


def test_every_glibc_that_was_pinned_on_linux_is_known() -> None:
    for row in FACTS.rows:
        if row.platform.subdir in ("linux-64", "linux-aarch64"):
            versions = {package.version for package in PACKAGES if package.name == f"sysroot_{row.platform}"}
            assert row.values["c_stdlib_version"] in versions, row.name
