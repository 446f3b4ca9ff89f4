"""Entries of `variants/tools.yaml` for wheels: the packages of the stand-in channel that are made of them.

They are the lines of three parts of the file (`sources`, `packages`, `wheels`), with hashes, sizes, licenses and
dependencies. A wheel with compiled code becomes a package for its own Python, or one for each of `PYTHONS` if it uses
the stable ABI.
"""

from __future__ import annotations

import email.parser
import hashlib
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from feedstock_tools.facts.packages import read_tools
from feedstock_tools.versions import parse_version

#: The Pythons that get packages with compiled code.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_SUBDIRS = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}
#: Packages whose conda name is not the normalized name of the project.
_CONDA_NAMES = {"ruamel-yaml": "ruamel.yaml"}
#: What classifiers of wheels without a license expression mean.
_LICENSES = {"BSD License": "BSD-3-Clause", "MIT License": "MIT", "Apache Software License": "Apache-2.0"}


@dataclass(frozen=True, slots=True)
class ToolWheel:
    """A wheel in a folder, and what its metadata say.

    Attributes:
        name: of the conda package.
        project: of the package index.
        subdir: `noarch` or a platform; `pythons`: those that it runs with, empty for all.
        requires: dependencies as conda writes them, with names of conda.
        glibc: the version that compiled code needs: `2.17`.
    """

    name: str
    project: str
    version: str
    file: str
    size: int
    sha256: str
    subdir: str
    pythons: tuple[str, ...]
    license: str
    python: str
    requires: tuple[str, ...]
    glibc: str


def read_wheel(path: Path) -> ToolWheel:
    """Read a wheel's name, metadata and hash.

    >>> _spec("pydantic-core==2.50.4")
    'pydantic-core ==2.50.4'
    """
    project, version, _, tags = parse_wheel_filename(path.name)
    with zipfile.ZipFile(path) as archive:
        inside = next(name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        metadata = email.parser.Parser().parsestr(archive.read(inside).decode())
    needs = [Requirement(line) for line in metadata.get_all("Requires-Dist") or ()]
    machines = {machine for tag in tags if (machine := next((m for m in _SUBDIRS if tag.platform.endswith(m)), None))}
    glibcs = [
        (int(found[1]), int(found[2])) for tag in tags if (found := re.match(r"manylinux_(\d+)_(\d+)", tag.platform))
    ]
    classified = (_LICENSES.get(each.rpartition(" :: ")[2]) for each in metadata.get_all("Classifier") or ())
    stable = any(tag.abi == "abi3" for tag in tags)
    own = {f"3.{tag.interpreter[3:]}" for tag in tags if re.fullmatch(r"cp3\d+", tag.interpreter)}
    return ToolWheel(
        name=_CONDA_NAMES.get(project, project),
        project=str(project),
        version=str(version),
        file=path.name,
        size=path.stat().st_size,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        subdir=_SUBDIRS[machines.pop()] if machines else "noarch",
        pythons=() if not machines and not own else PYTHONS if stable else tuple(sorted(own)),
        license=metadata.get("License-Expression") or next(filter(None, classified), ""),
        python=str(metadata.get("Requires-Python") or ">=3.8"),
        requires=tuple(_spec(str(need)) for need in needs if _holds(need)),
        glibc=".".join(map(str, min(glibcs))) if glibcs else "",
    )


def _holds(need: Requirement) -> bool:
    """Whether a requirement holds for the oldest of `PYTHONS` on Linux, without extras."""
    where = {"python_version": PYTHONS[0], "python_full_version": f"{PYTHONS[0]}.0", "extra": ""}
    return need.marker is None or need.marker.evaluate({**where, "sys_platform": "linux", "platform_system": "Linux"})


def _spec(requirement: str) -> str:
    need = Requirement(requirement)
    name = canonicalize_name(need.name)
    bounds = ",".join(sorted(map(str, need.specifier), reverse=True))
    return f"{_CONDA_NAMES.get(name, name)} {bounds}".strip()


def entries(wheels: Iterable[ToolWheel], day: str) -> Iterator[str]:
    """The lines of the three parts of the file."""
    packages: dict[str, list[ToolWheel]] = {}
    for wheel in sorted(wheels, key=lambda each: (each.name, each.pythons, each.subdir)):
        packages.setdefault(wheel.name, []).append(wheel)
    for name in packages:
        yield f"  {name}: {{own: the wheel of {name}, date: {day}}}"
    for name, files in packages.items():
        yield ""
        yield from _package(name, files)
    yield ""
    tools = {*packages, *read_tools().names}
    for name, files in packages.items():
        yield from _files(name, files, tools)


def _package(name: str, files: Sequence[ToolWheel]) -> Iterator[str]:
    first = files[0]
    yield f"  - name: {name}"
    yield f"    license: {first.license}"
    if not first.pythons:
        yield "    noarch: python"
        yield "    build: pyh{hash}_{number}"
        yield f"    depends: [{_listed([f'python {first.python}', *first.requires])}]"
        yield f"    rows: [{{version: {first.version}, source: {name}}}]"
        return
    glibc = max((wheel.glibc for wheel in files), key=parse_version)
    python = ["python >={python},<{next}.0a0", "python_abi {python}.* *_cp{compact}"]
    yield f"    subdirs: [{', '.join(sorted({wheel.subdir for wheel in files}))}]"
    yield "    build: py{compact}h{hash}_{number}"
    yield f"    depends: [{_listed([*python, *first.requires, f'__glibc >={glibc},<3.0.a0'])}]"
    yield "    rows:"
    for version in sorted({version for wheel in files for version in wheel.pythons}):
        compact, after = version.replace(".", ""), f"3.{int(version[2:]) + 1}"
        row = f'version: {first.version}, source: {name}, python: "{version}", next: "{after}", compact: "{compact}"'
        yield f"      - {{{row}}}"


def _files(name: str, files: Sequence[ToolWheel], tools: Set[str]) -> Iterator[str]:
    first = files[0]
    needs = sorted({spec.split()[0] for spec in first.requires}.intersection(tools))
    yield f"  - name: {name}"
    if first.project != name:
        yield f"    project: {first.project}"
    yield f'    version: "{first.version}"'
    if needs:
        yield f"    needs: [{', '.join(needs)}]"
    yield "    files:"
    for wheel in files:
        for python in wheel.pythons or (None,):
            of_python = f'python: "{python}", ' if python else ""
            yield f"      - {{subdir: {wheel.subdir}, {of_python}file: {wheel.file}, size: {wheel.size},"
            yield f"         sha256: {wheel.sha256}}}"


def _listed(specs: Iterable[str]) -> str:
    return ", ".join(f'"{spec}"' for spec in specs)
