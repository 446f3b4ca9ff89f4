"""The data on packages against the recipes it names, where snapshots of the feedstocks lie beside the repository."""

from __future__ import annotations

import subprocess

import pytest

from feedstock_tools.facts.known_packages import KnownPackage, PackageSource
from feedstock_tools.facts.packages import read_packages
from tests.support.needs import the_clone

PACKAGES = read_packages()
SOURCES = sorted({package.source for package in PACKAGES}, key=str)


def git(source: PackageSource, *arguments: str) -> str:
    folder = the_clone(f"{source.feedstock}-feedstock")
    command = ["git", f"--git-dir={folder}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def said(source: PackageSource) -> str:
    """The recipe, its variants and the names of its configurations."""
    recipe = git(source, "show", f"{source.commit}:{source.path}")
    others = git(source, "grep", "-h", "", source.commit, "--", "recipe/conda_build_config.yaml", ".ci_support")
    return recipe + others + git(source, "ls-tree", "--name-only", source.commit, ".ci_support/")


def in_recipe(package: KnownPackage, text: str) -> bool:
    """Whether a version stands in the text, or its parts do where the recipe puts it together."""
    version = package.version
    candidates = {version, version.replace(".", "-", 2), "-".join(version.rsplit(".", 1))}
    return any(candidate in text for candidate in candidates)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: f"{source.feedstock}-{source.commit[:8]}")
def test_the_recipe_has_what_the_data_says(source: PackageSource) -> None:
    assert git(source, "log", "-1", "--format=%ad", "--date=short", source.commit).strip() == source.date.isoformat()
    text = said(source)
    packages = [package for package in PACKAGES if package.source == source]

    assert [package.distribution for package in packages if not in_recipe(package, text)] == []
    for package in packages:
        for spec in (*package.depends, *package.constrains):
            name = spec.split(" ")[0].partition("_linux-")[0]
            runtime = name in ("libgcc", "libgcc-ng", "libstdcxx", "libstdcxx-ng", "__glibc", "cudatoolkit")
            assert runtime or name in text or name.removesuffix("-ng") in text, f"{package.distribution}: {spec}"
