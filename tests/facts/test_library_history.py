"""Releases of libraries and the architectures of nvcc against the history of feedstocks, and against nvcc itself.

Needs clones of the feedstocks in the folder that FEEDSTOCK_MIRROR names (default `../.mirror`), as
`conda-forge+cudnn-feedstock/repo`; they are not part of the repository. nvcc is asked where one is on PATH.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from feedstock_tools.facts import Library, LibraryRelease, load_cuda
from tests.support.needs import lacks, needs, the_clone

FACTS = load_cuda()
NVCC = shutil.which("nvcc")


def git(feedstock: str, *arguments: str) -> str:
    clone = the_clone(f"{feedstock}-feedstock")
    command = ["git", "--git-dir", str(clone), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def configurations(feedstock: str, commit: str) -> dict[str, set[str]]:
    """CUDA version → subdirs, of the files in .ci_support at a commit."""
    found: dict[str, set[str]] = {}
    lines = git(feedstock, "grep", "-A1", "-E", "^cuda_compiler_version:", commit, "--", ".ci_support")
    for line in lines.splitlines():
        match = re.search(r"\.ci_support/([a-z]+)_(64|aarch64|ppc64le)?[^:]*\.yaml-- '?([\d.]+)'?$", line)
        if match:
            found.setdefault(match[3], set()).add(f"{match[1]}-{match[2] or '64'}")
    return found


def built(release: LibraryRelease) -> dict[str, set[str]]:
    return {cuda: set(subdirs) for cuda, subdirs in release.cuda.items()}


@pytest.mark.parametrize("library", FACTS.libraries.values(), ids=lambda library: library.name)
def test_each_release_was_built_as_is_said(library: Library) -> None:
    for release in library.releases:
        recipe = git(library.name, "show", f"{release.commit}:recipe/meta.yaml")
        # NCCL's recipe has 2.30.4-1, or once 2.4.8 and a revision 1, and makes it the package's version 2.30.4.1.
        versions = {found.replace("-", ".") for found in re.findall(r'set (?:patch_)?version = "([\d.-]+)"', recipe)}
        revisions = re.findall(r'set revision = "(\d+)"', recipe)
        versions |= {f"{version}.{revision}" for version in versions for revision in revisions}
        assert release.version in versions
        found = configurations(library.name, release.commit)
        if release.version == "7.6.5.32":  # a configuration for 11.0 was there, whose archive has no hash in the recipe
            found.pop("11.0", None)
        assert found == built(release), release.version


@pytest.mark.parametrize(
    ("version", "commit"), [("12.8", "18f55c57bd"), ("12.9", "00001451bd"), ("13.2", "3451669b09")]
)
def test_the_preset_conda_forge_is_what_its_nvcc_sets(version: str, commit: str) -> None:
    text = git("cuda-nvcc", "show", f"{commit}:recipe/conda_build_config.yaml")
    match = re.search(r'DEFAULT_CUDAARCHS:\n  - "([^"]*)"', text)
    assert match is not None
    expected = []
    for name in match[1].split(";"):
        number, _, kind = name.partition("-")
        expected += {"real": [f"sm_{number}"], "virtual": [f"compute_{number}"]}.get(
            kind, [f"sm_{number}", f"compute_{number}"]
        )
    assert FACTS.preset("conda-forge", version) == tuple(expected)


@needs("device", NVCC, "NVIDIA's nvcc on PATH")
def test_the_nvcc_that_is_installed_knows_what_the_facts_say() -> None:
    said = subprocess.run([str(NVCC), "--version"], check=True, capture_output=True, text=True).stdout
    match = re.search(r"release (\d+\.\d+)", said)
    assert match is not None
    asked = subprocess.run([str(NVCC), "--list-gpu-code"], check=False, capture_output=True, text=True)
    if asked.returncode:
        lacks("device", "an nvcc that lists what it knows")
    listed = asked.stdout.split()
    plain = {f"sm_{name}" for name in FACTS.toolkit(match[1]).architectures if name.isdigit()}
    assert plain == {name for name in listed if name.removeprefix("sm_").isdigit()}


@needs("device", NVCC, "NVIDIA's nvcc on PATH")
def test_the_nvcc_that_is_installed_takes_the_compilers_that_the_facts_say() -> None:
    nvcc = Path(str(NVCC)).resolve()
    header = next((path for up in nvcc.parents if (path := up / "include" / "crt" / "host_config.h").is_file()), None)
    if header is None:
        lacks("device", "an nvcc with its crt/host_config.h")
    said = subprocess.run([str(nvcc), "--version"], check=True, capture_output=True, text=True).stdout
    match = re.search(r"release (\d+\.\d+)", said)
    assert match is not None
    toolkit, text = FACTS.toolkit(match[1]), header.read_text(encoding="utf-8")
    assert set(re.findall(r"^#if __GNUC__ > (\d+)$", text, re.MULTILINE)) == {str(toolkit.newest_gcc)}
    refused = set(re.findall(r"^#if \(__clang_major__ >= (\d+)\)", text, re.MULTILINE))
    assert refused == {str((toolkit.newest_clang or 0) + 1)}
    years = {"1700": 2012, "1910": 2017, "1920": 2019, "1930": 2019, "1940": 2022, "1950": 2022, "1960": 2026}
    oldest, too_new = re.findall(r"^#if _MSC_VER < (\d+) \|\| _MSC_VER >= (\d+)$", text, re.MULTILINE)[0]
    assert toolkit.visual_studio == (years[oldest], years[too_new])
