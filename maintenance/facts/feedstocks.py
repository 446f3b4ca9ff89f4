"""The evidence for the facts in clones of feedstocks: the place of each (commit, path, line), and what it says there.

Tables in tests/facts/recorded/ have it, without the text of the source. Entries whose clone is missing keep their
earlier record. Tests compare the facts with the tables, and the tables with the clones if there are any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from feedstock_tools.facts.cuda import CudaFacts, LibraryRelease, PinningRow, load_cuda
from feedstock_tools.facts.packages import KnownPackage, PackageSource, read_packages
from feedstock_tools.platforms import Platform
from maintenance.facts import pinning_rows
from maintenance.facts.records import RECORDED, Entry, git, read_table, say, write_table

PINNING = "conda-forge-pinning"
#: Commits of cuda-nvcc-feedstock by the CUDA version for which they set conda-forge's preset of architectures.
PRESETS = {"12.8": "18f55c57bd", "12.9": "00001451bd", "13.2": "3451669b09"}
#: Platform, CUDA version, and the commit of the pinning that took it out.
DROPPED = (
    ("linux-64", "10.2", "2fc059ef59"),
    ("win-64", "11.1", "2fc059ef59"),
    ("linux-aarch64", "11.2", "2afb0c7d4a"),
    ("linux-64", "11.8", "07e16d1185"),
    ("win-64", "12.0", "0154e005b9"),
    ("linux-64", "12.6", "cb0fd0cd75"),
)
ORDERING = ("734f68b40732d28153239fa3dc7f244a69596882", "recipe/migrations/cuda130.yaml")
#: Patches of conda-forge's metadata that the facts follow: what they are about, their file, and a line of it.
PATCHES = {
    "nccl 2.26.6.1 to 2.28.3.1": ("nccl", "new: cuda-version >=12.2,<13.0a0"),
    "nccl 2.28.7.1 to 2.28.9.1": ("nccl", "new: cuda-version >=12.0,<13.0a0"),
    "every package for cudatoolkit 11.2": ("cudatoolkit", "new: cudatoolkit >=11.2,<12.0a0"),
    "nvcc 11.2 to 11.8": ("nvcc", "- add_depends: cudatoolkit >=${version},<12"),
    "nvcc before 11.2": ("nvcc", '- add_depends: "cudatoolkit ${version}.*"'),
    "sysroot of nvcc": ("nvcc", "new: sysroot_linux-64 >=2.17,<3.0a0"),
    "gcc of cuda-nvcc 12.0": ("cuda-nvcc", "old: gcc_linux-64 12.*"),
    "sysroot of cuda-nvcc 12.0 to 12.2": ("cuda-nvcc", "name: sysroot_linux-64"),
}
#: The feedstock with these, and its commit.
PATCHED_AT = ("conda-forge-repodata-patches", "21f679cdeda0837f39316232d0b964b8fec141ff")
#: Names that are not in a recipe: additions of compilers' run exports.
_OF_COMPILERS = ("libgcc", "libgcc-ng", "libstdcxx", "libstdcxx-ng", "__glibc", "cudatoolkit")

#: Reads an entry of a table from a folder of clones.
Read = Callable[[Path], Entry]


class _NoCloneError(Exception):
    """The folder of clones lacks the one that an entry is read from."""


def entry_of(read: Read, mirror: Path) -> Entry | None:
    """An entry as clones have it; None if the clone is missing."""
    try:
        return read(mirror)
    except _NoCloneError:
        return None


def _clone(mirror: Path, feedstock: str) -> Path:
    clone = mirror / f"conda-forge+{feedstock}-feedstock" / "repo"
    if not clone.is_dir():
        raise _NoCloneError
    return clone


def _line(text: str, pattern: str) -> int:
    """The number of the first line that a pattern matches; 0 where none does."""
    return next((number for number, line in enumerate(text.splitlines(), 1) if re.search(pattern, line)), 0)


def _pinning_entry(row: PinningRow, mirror: Path) -> Entry:
    clone = _clone(mirror, PINNING)
    date = git(clone, "log", "-1", "--format=%cs", row.commit).strip()
    origin = "pinning" if row.origin == "ordering" else row.origin
    asked = "12.6" if row.origin == "ordering" else row.cuda
    values = pinning_rows.row_at(clone, row.commit, row.platform, asked, origin) or {}
    if row.origin == "ordering":
        values["cuda_compiler_version"] = str(row.cuda)
    path = pinning_rows.path_of(origin)
    line = _line(
        git(clone, "show", f"{row.commit}:{path}"), rf"""^\s*- ["']?{re.escape(asked or "None")}["']?\s*(#|$)"""
    )
    return {"commit": row.commit, "date": date, "path": path, "line": line, "values": values}


def _dropped_entry(platform: str, cuda: str, commit: str, mirror: Path) -> Entry:
    clone = _clone(mirror, PINNING)
    before = git(clone, "rev-parse", f"{commit}^").strip()
    row = pinning_rows.row_at(clone, commit, Platform.parse(platform), cuda, "pinning")
    return {"commit": commit, "path": pinning_rows.CONFIG, "before": before, "names_it": row is not None}


def _line_entry(feedstock: str, commit: str, path: str, pattern: str, mirror: Path) -> Entry:
    """The place of a line."""
    text = git(_clone(mirror, feedstock), "show", f"{commit}:{path}")
    return {"commit": commit, "path": path, "line": _line(text, pattern)}


def _release_entry(library: str, release: LibraryRelease, mirror: Path) -> Entry:
    clone, path = _clone(mirror, library), "recipe/meta.yaml"
    recipe = git(clone, "show", f"{release.commit}:{path}")
    found: dict[str, set[str]] = {}
    words = ("grep", "-A1", "-E", "^cuda_compiler_version:", release.commit, "--", ".ci_support")
    for line in git(clone, *words).splitlines():
        match = re.search(r"\.ci_support/([a-z]+)_(64|aarch64|ppc64le)?[^:]*\.yaml-- '?([\d.]+)'?$", line)
        if match:
            found.setdefault(match[3], set()).add(f"{match[1]}-{match[2] or '64'}")
    return {
        "commit": release.commit,
        "path": path,
        "line": _line(recipe, r'set (?:patch_)?version = "'),
        "versions": sorted(_versions(recipe)),
        "configurations": {cuda: sorted(subdirs) for cuda, subdirs in sorted(found.items())},
    }


def _versions(recipe: str) -> set[str]:
    """NCCL's recipe has 2.30.4-1, or once 2.4.8 and a revision 1, and makes it the package's version 2.30.4.1."""
    versions = {found.replace("-", ".") for found in re.findall(r'set (?:patch_)?version = "([\d.-]+)"', recipe)}
    revisions = re.findall(r'set revision = "(\d+)"', recipe)
    return versions | {f"{version}.{revision}" for version in versions for revision in revisions}


def _preset_entry(commit: str, mirror: Path) -> Entry:
    path = "recipe/conda_build_config.yaml"
    text = git(_clone(mirror, "cuda-nvcc"), "show", f"{commit}:{path}")
    match = re.search(r'DEFAULT_CUDAARCHS:\n  - "([^"]*)"', text)
    named: list[str] = []
    for word in (match[1] if match else "").split(";"):
        number, _, kind = word.partition("-")
        both = [f"sm_{number}", f"compute_{number}"]
        named += {"real": both[:1], "virtual": both[1:]}.get(kind, both)
    return {"commit": commit, "path": path, "line": _line(text, "DEFAULT_CUDAARCHS:") + 1, "architectures": named}


def _source_entry(source: PackageSource, packages: Iterable[KnownPackage], mirror: Path) -> Entry:
    clone = _clone(mirror, source.feedstock)
    recipe = git(clone, "show", f"{source.commit}:{source.path}")
    date = git(clone, "log", "-1", "--format=%ad", "--date=short", source.commit).strip()
    text = recipe + git(clone, "grep", "-h", "", source.commit, "--", "recipe/conda_build_config.yaml", ".ci_support")
    text += git(clone, "ls-tree", "--name-only", source.commit, ".ci_support/")
    found = {package.distribution: _in_recipe(package, recipe, text) for package in packages}
    return {"commit": source.commit, "date": date, "path": source.path, "packages": found}


def _in_recipe(package: KnownPackage, recipe: str, text: str) -> Entry:
    """The facts on a package in a text, and the line of its version in the recipe (0: composed, or in another file)."""
    version = package.version
    candidates = [version, version.replace(".", "-", 2), "-".join(version.rsplit(".", 1))]
    there = [candidate for candidate in candidates if candidate in text]
    return {
        "line": next((line for word in there if (line := _line(recipe, re.escape(word)))), 0),
        "version": version if there else None,
        "specs": [spec for spec in (*package.depends, *package.constrains) if _is_named(spec, text)],
    }


def _is_named(spec: str, text: str) -> bool:
    name = spec.split(" ")[0].partition("_linux-")[0]
    return name in _OF_COMPILERS or name in text or name.removesuffix("-ng") in text


def _tables(facts: CudaFacts, packages: Iterable[KnownPackage]) -> dict[str, dict[str, Read]]:
    by_source: dict[PackageSource, list[KnownPackage]] = {}
    for package in packages:
        by_source.setdefault(package.recipe, []).append(package)
    return {
        "pinning": {row.name: partial(_pinning_entry, row) for row in facts.rows},
        "dropped": {
            f"{platform} {cuda}": partial(_dropped_entry, platform, cuda, at) for platform, cuda, at in DROPPED
        },
        "ordering": {
            row.name: partial(_line_entry, PINNING, *ORDERING, rf"- {re.escape(str(row.cuda))}$")
            for row in facts.rows
            if row.origin == "ordering"
        },
        "libraries": {
            f"{library.name} {release.version} {release.commit[:8]}": partial(_release_entry, library.name, release)
            for library in facts.libraries.values()
            for release in library.releases
        },
        "patches": {
            about: partial(_line_entry, *PATCHED_AT, f"recipe/patch_yaml/{file}.yaml", re.escape(line) + "$")
            for about, (file, line) in PATCHES.items()
        },
        "presets": {version: partial(_preset_entry, commit) for version, commit in PRESETS.items()},
        "packages": {
            f"{source.feedstock} {source.commit[:8]}": partial(_source_entry, source, made)
            for source, made in sorted(by_source.items(), key=lambda pair: str(pair[0]))
        },
    }


#: Name of a table → key → how its entry is read from the clones.
TABLES: Mapping[str, Mapping[str, Read]] = _tables(load_cuda(), read_packages())


def update(mirror: Path) -> None:
    """Record what the clones `<owner>+<name>/repo` in a folder say."""
    RECORDED.mkdir(exist_ok=True)
    for name, entries in TABLES.items():
        known = read_table(name)
        found = {key: entry_of(read, mirror) or known.get(key) for key, read in entries.items()}
        table = {key: entry for key, entry in found.items() if entry is not None}
        write_table(name, table)
        say(f"{name}: {len(table)} of {len(entries)}")
