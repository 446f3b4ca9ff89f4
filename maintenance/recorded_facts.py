"""Record the evidence for the facts in `variants/` from clones of feedstocks, so that tests need no clones.

    python -m maintenance.recorded_facts MIRROR

MIRROR holds clones as `<owner>+<name>/repo`. A table in tests/facts/recorded/ has the place of each fact (commit, path,
line) and the fact as read there, but not the text of the source. Entries whose clone is missing keep their earlier
record. Tests compare the facts with the tables, and the tables with the clones if there are any.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from feedstock_tools.facts import CudaFacts, LibraryRelease, PinningRow, load_cuda
from feedstock_tools.facts.packages import KnownPackage, PackageSource, read_packages
from feedstock_tools.platforms import Platform
from maintenance import pinning_rows

RECORDED = Path(__file__).resolve().parents[1] / "tests" / "facts" / "recorded"
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
#: The commit of conda-forge-repodata-patches-feedstock with these.
PATCHED_AT = "21f679cdeda0837f39316232d0b964b8fec141ff"
#: Names that are not in a recipe: additions of compilers' run exports.
_OF_COMPILERS = ("libgcc", "libgcc-ng", "libstdcxx", "libstdcxx-ng", "__glibc", "cudatoolkit")

Entry = dict[str, Any]
#: Reads the entry of a key of a table from clones: the folder of clones → the entry, or None where a clone is missing.
Read = Callable[[Path], Entry | None]


def _git(mirror: Path, feedstock: str, *arguments: str) -> str | None:
    clone = mirror / f"conda-forge+{feedstock}-feedstock" / "repo"
    if not clone.is_dir():
        return None
    command = ["git", "--git-dir", str(clone), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _line(text: str, pattern: str) -> int:
    """The number of the first line that a pattern matches; 0 where none does."""
    return next((number for number, line in enumerate(text.splitlines(), 1) if re.search(pattern, line)), 0)


def _pinning_entry(row: PinningRow) -> Read:
    def read(mirror: Path) -> Entry | None:
        clone = mirror / "conda-forge+conda-forge-pinning-feedstock" / "repo"
        date = _git(mirror, "conda-forge-pinning", "log", "-1", "--format=%cs", row.commit)
        if date is None:
            return None
        origin = "pinning" if row.origin == "ordering" else row.origin
        asked = "12.6" if row.origin == "ordering" else row.cuda
        values = pinning_rows.row_at(clone, row.commit, row.platform, asked, origin) or {}
        if row.origin == "ordering":
            values["cuda_compiler_version"] = str(row.cuda)
        path = pinning_rows.path_of(origin)
        text = str(_git(mirror, "conda-forge-pinning", "show", f"{row.commit}:{path}"))
        line = _line(text, rf"""^\s*- ["']?{re.escape(asked or "None")}["']?\s*(#|$)""")
        return {"commit": row.commit, "date": date.strip(), "path": path, "line": line, "values": values}

    return read


def _dropped_entry(platform: str, cuda: str, commit: str) -> Read:
    def read(mirror: Path) -> Entry | None:
        clone = mirror / "conda-forge+conda-forge-pinning-feedstock" / "repo"
        before = _git(mirror, "conda-forge-pinning", "rev-parse", f"{commit}^")
        if before is None:
            return None
        row = pinning_rows.row_at(clone, commit, Platform.parse(platform), cuda, "pinning")
        return {"commit": commit, "path": pinning_rows.CONFIG, "before": before.strip(), "names_it": row is not None}

    return read


def _ordering_entry(row: PinningRow) -> Read:
    def read(mirror: Path) -> Entry | None:
        commit, path = ORDERING
        text = _git(mirror, "conda-forge-pinning", "show", f"{commit}:{path}")
        if text is None:
            return None
        return {"commit": commit, "path": path, "line": _line(text, rf"- {re.escape(str(row.cuda))}$")}

    return read


def _release_entry(library: str, release: LibraryRelease) -> Read:
    def read(mirror: Path) -> Entry | None:
        path = "recipe/meta.yaml"
        recipe = _git(mirror, library, "show", f"{release.commit}:{path}")
        if recipe is None:
            return None
        found: dict[str, set[str]] = {}
        words = ("grep", "-A1", "-E", "^cuda_compiler_version:", release.commit, "--", ".ci_support")
        for line in str(_git(mirror, library, *words)).splitlines():
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

    return read


def _versions(recipe: str) -> set[str]:
    """NCCL's recipe has 2.30.4-1, or once 2.4.8 and a revision 1, and makes it the package's version 2.30.4.1."""
    versions = {found.replace("-", ".") for found in re.findall(r'set (?:patch_)?version = "([\d.-]+)"', recipe)}
    revisions = re.findall(r'set revision = "(\d+)"', recipe)
    return versions | {f"{version}.{revision}" for version in versions for revision in revisions}


def _patch_entry(file: str, line: str) -> Read:
    def read(mirror: Path) -> Entry | None:
        path = f"recipe/patch_yaml/{file}.yaml"
        text = _git(mirror, "conda-forge-repodata-patches", "show", f"{PATCHED_AT}:{path}")
        if text is None:
            return None
        return {"commit": PATCHED_AT, "path": path, "line": _line(text, re.escape(line) + "$")}

    return read


def _preset_entry(commit: str) -> Read:
    def read(mirror: Path) -> Entry | None:
        path = "recipe/conda_build_config.yaml"
        text = _git(mirror, "cuda-nvcc", "show", f"{commit}:{path}")
        if text is None:
            return None
        match = re.search(r'DEFAULT_CUDAARCHS:\n  - "([^"]*)"', text)
        named: list[str] = []
        for word in (match[1] if match else "").split(";"):
            number, _, kind = word.partition("-")
            both = [f"sm_{number}", f"compute_{number}"]
            named += {"real": both[:1], "virtual": both[1:]}.get(kind, both)
        return {"commit": commit, "path": path, "line": _line(text, "DEFAULT_CUDAARCHS:") + 1, "architectures": named}

    return read


def _source_entry(source: PackageSource, packages: Iterable[KnownPackage]) -> Read:
    def read(mirror: Path) -> Entry | None:
        recipe = _git(mirror, source.feedstock, "show", f"{source.commit}:{source.path}")
        if recipe is None:
            return None
        date = str(_git(mirror, source.feedstock, "log", "-1", "--format=%ad", "--date=short", source.commit)).strip()
        words = ("grep", "-h", "", source.commit, "--", "recipe/conda_build_config.yaml", ".ci_support")
        names = _git(mirror, source.feedstock, "ls-tree", "--name-only", source.commit, ".ci_support/")
        text = recipe + str(_git(mirror, source.feedstock, *words)) + str(names)
        found = {package.distribution: _in_recipe(package, recipe, text) for package in packages}
        return {"commit": source.commit, "date": date, "path": source.path, "packages": found}

    return read


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
        "pinning": {row.name: _pinning_entry(row) for row in facts.rows},
        "dropped": {f"{platform} {cuda}": _dropped_entry(platform, cuda, at) for platform, cuda, at in DROPPED},
        "ordering": {row.name: _ordering_entry(row) for row in facts.rows if row.origin == "ordering"},
        "libraries": {
            f"{library.name} {release.version} {release.commit[:8]}": _release_entry(library.name, release)
            for library in facts.libraries.values()
            for release in library.releases
        },
        "patches": {about: _patch_entry(file, line) for about, (file, line) in PATCHES.items()},
        "presets": {version: _preset_entry(commit) for version, commit in PRESETS.items()},
        "packages": {
            f"{source.feedstock} {source.commit[:8]}": _source_entry(source, made)
            for source, made in sorted(by_source.items(), key=lambda pair: str(pair[0]))
        },
    }


#: Name of a table → key → how its entry is read from the clones.
TABLES: Mapping[str, Mapping[str, Read]] = _tables(load_cuda(), read_packages())


def read_table(name: str) -> dict[str, Entry]:
    """The text of a recorded table."""
    path = RECORDED / f"{name}.json"
    found: dict[str, Entry] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("mirror", type=Path)
    mirror = parser.parse_args().mirror
    RECORDED.mkdir(exist_ok=True)
    for name, entries in TABLES.items():
        known = read_table(name)
        found = {key: read(mirror) or known.get(key) for key, read in entries.items()}
        table = {key: entry for key, entry in found.items() if entry is not None}
        (RECORDED / f"{name}.json").write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{name}: {len(table)} of {len(entries)}")  # noqa: T201


if __name__ == "__main__":
    main()
