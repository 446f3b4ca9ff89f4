"""Wheels for requirements that the stand-in channel's own packages do not meet: chosen, recorded with hashes, fetched.

pip chooses them, with what they run with, for packages that are tied to a project of PyPI and no others: by the tools
of this program, its table of frequent names, or a mapping that was fetched (`init --names`).
"""

from __future__ import annotations

import io
import json
import re
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from feedstock_tools.builds.stand_in.python import find_pythons
from feedstock_tools.builds.stand_in.tools import fetch_files, is_kept
from feedstock_tools.channel.http import NoAnswerError, ask
from feedstock_tools.channel.pip import ChosenWheel, Download, Watch, choose_wheels
from feedstock_tools.channel.specs import admits, read_spec
from feedstock_tools.digests import digest_of_values
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.facts.packages import KnownPackage, OwnSource, Wheel, read_packages, read_tools, tools_file
from feedstock_tools.files.changes import write_whole
from feedstock_tools.files.locks import locked
from feedstock_tools.generate.package_names import PackageNames
from feedstock_tools.platforms import Platform
from feedstock_tools.versions import normalized
from feedstock_tools.wording import counted

#: The role of a package that has no files because another has them.
ALIAS = "alias"
_RECORDS = "asked-*.json"
_HEAD_SECONDS = 30
#: Bytes of a large wheel, and of the end of one, where its list of files is; PyTorch names 13,000 in 1.4 MB.
_LARGE, _LIST = 10_000_000, 1 << 21
#: Of a build string for one Python.
_PYTHON = re.compile(r"py(\d+)h")
#: A pattern of builds by which recipes choose those for GPUs or without: `cuda*`.
_BUILDS = re.compile(r"(cpu|cuda)_?\*")
_FILE = re.compile(r"[A-Za-z0-9_.+!]+-[A-Za-z0-9_.+!]+(-[0-9]\w*)?-[\w.]+-[\w.]+-[\w.]+\.whl")
_PART = re.compile(r"(>=|<=|==|!=|~=|>|<|=)?\s*([0-9][\w.!+]*?)(\.\*|\*)?")
#: The tags of wheels that a machine of a Linux takes, newest first; by the last one, pip takes the older names too.
_LINUX = ("_2_34", "_2_31", "_2_28", "_2_27", "_2_26", "_2_24", "_2_17", "_2_12", "_2_5", "2014")


@dataclass(frozen=True, slots=True)
class WheelPackage:
    """A wheel, and the package that it becomes; None where the channel's own has its name and version."""

    wheel: Wheel
    package: KnownPackage | None


@dataclass(frozen=True, slots=True)
class Ties:
    """The projects of PyPI that packages are tied to."""

    names: PackageNames

    def project(self, package: str) -> str | None:
        of_tools = (wheel.project for wheel in read_tools().wheels_of(package))
        return next(of_tools, None) or self.names.project(package)

    def package(self, project: str) -> str:
        """The package for a project; `pypi-NAME` if none is known, since other software may have its name."""
        for wheel in read_tools().wheels:
            if normalized(wheel.project) == normalized(project):
                return wheel.package
        name = self.names.package(project)
        return name if self.project(name) is not None else f"pypi-{normalized(project)}"


def unmet(specs: Iterable[str], platform: Platform, python: str | None) -> list[str]:
    """The specs that no package of the channel's own meets, in their order.

    Args:
        python: the Python of the row (`3.12`), if it has one.
    """
    return [spec for spec in dict.fromkeys(specs) if not _is_met(spec, platform, python)]


@lru_cache(maxsize=4096)
def _is_met(spec: str, platform: Platform, python: str | None) -> bool:
    name, version = _read(spec)
    subdirs = {"noarch", platform.subdir, Platform.here().subdir}
    digits = python and python.replace(".", "")
    return name.startswith("__") or any(
        package.subdir in subdirs
        and (digits is None or (its_python := _PYTHON.match(package.build)) is None or its_python[1] == digits)
        and (version is None or admits(version, package.version))
        for package in _own().get(name, ())
    )


@cache
def _own() -> dict[str, list[KnownPackage]]:
    """The packages of the channel's own, by name."""
    found: dict[str, list[KnownPackage]] = {}
    for package in (*read_packages(), *read_tools().packages):
        found.setdefault(package.name, []).append(package)
    return found


def _read(spec: str) -> tuple[str, str | None]:
    """Name and version of a spec; one that the solver does not take either has its name alone."""
    try:
        read = read_spec(spec)
    except InputError:
        return spec.partition(" ")[0], None
    return read.name, read.version


def requirement(project: str, version: str | None) -> str:
    """The line of a requirements file for a version as conda has it; without its bounds where pip knows no such.

    >>> requirement("numpy", ">=1.26,<3.0a0"), requirement("cmake", "3.*"), requirement("a", "1.0|2.0")
    ('numpy>=1.26,<3', 'cmake==3.*', 'a')
    """
    parts = []
    for text in (version or "*").split(","):
        found = _PART.fullmatch(text.strip())
        if found is None:
            return project
        operator, number, star = found[1] or "", found[2], bool(found[3])
        if operator == "<":
            number = re.sub(r"(\.0)?(a0|\.?dev0)$", "", number)
        fuzzy = (star and operator in ("", "==", "!=")) or operator == "="
        operator = "==" if operator in ("", "=") else operator
        parts.append(f"{operator}{number}{'.*' if fuzzy else ''}")
    return project + ",".join(parts)


def fetch_wheels(
    specs: Sequence[str],
    platform: Platform,
    python: str | None,
    ties: Ties,
    folder: Path,
    machine: Mapping[str, str],
    watch: Watch,
) -> None:
    """Fetch wheels for what a row requires and the channel's own packages do not meet, once.

    Args:
        specs: all of the row's requirements; those that are met restrict what pip chooses.
        python: the Python of the row (`3.12`), if it has one.
        folder: of the fetched wheels and their records.

    Raises:
        WorkError: pip finds none, or cannot fetch them.
    """
    lacking, record = unfetched(specs, platform, python, ties, folder)
    if not lacking:
        return
    lines, before = _lines(lacking, ties), [each.wheel for each in _recorded(record)]
    builds = _builds(lacking)
    interpreter = (
        next((each.executable for each in find_pythons([python], path=machine.get("PATH"))), None) if python else None
    )
    options = () if platform == Platform.here() and (interpreter or not python) else _options(platform, python)
    download = Download(
        lines, f"what the recipe requires ({', '.join(lacking)})", options=options, interpreter=interpreter
    )
    constraints = _lines([spec for spec in specs if spec not in lacking], ties)
    chosen = choose_wheels(download, [*constraints, *(f"{one.project}=={one.release}" for one in before)], machine)
    minor = python or f"{sys.version_info[0]}.{sys.version_info[1]}"
    try:
        with locked(folder):
            found = [_described(each, platform, minor, ties) for each in chosen]
            _refuse_changed(found, folder)
            aliases = _aliases([_read(spec)[0] for spec in lacking], found, ties)
            _fetch(found, chosen, download, folder, machine, watch)
            built = [_as_built(each, builds, source) for each, source in zip(found, chosen, strict=True)]
            packages = [_document(each) for each in (*built, *aliases)]
            write_whole(record, json.dumps({"lines": lines, "packages": packages}, indent=1))
    except OSError as error:
        raise WorkError(f"cannot store wheels: {error.strerror or error}", path=folder) from error


def unfetched(
    specs: Sequence[str], platform: Platform, python: str | None, ties: Ties, folder: Path
) -> tuple[list[str], Path]:
    """What a row requires of PyPI and has not been fetched, and the file that records what is; see `fetch_wheels`."""
    lacking = [spec for spec in unmet(specs, platform, python) if ties.project(_read(spec)[0])]
    asked = [_lines(lacking, ties), platform.subdir, python, ties.names.date, *_builds(lacking).items()]
    record = folder / _RECORDS.replace("*", digest_of_values(asked)[:16])
    is_there = record.is_file() and all(is_kept(folder / each.wheel.file) for each in _recorded(record))
    return ([] if is_there else lacking), record


def _lines(specs: Iterable[str], ties: Ties) -> list[str]:
    read = [_read(spec) for spec in specs]
    return sorted({requirement(project, version) for name, version in read if (project := ties.project(name))})


def _options(platform: Platform, python: str | None) -> tuple[str, ...]:
    """The options with which pip chooses wheels for another platform, or a Python that this machine lacks."""
    machine = (
        platform.subdir.partition("-")[2].replace("64", "x86_64", 1) if platform.subdir == "linux-64" else "aarch64"
    )
    tags = (f"--platform=manylinux{name}_{machine}" for name in _LINUX)
    version = (f"--python-version={python}", "--implementation=cp") if python else ()
    return (*version, *tags, "--target=unused")


def _builds(specs: Iterable[str]) -> dict[str, str]:
    """The kind of builds that specs choose by a pattern: `cuda` for `pytorch * cuda*`."""
    words = (spec.split(" ") for spec in sorted(specs))
    return {name: found[1] for name, *rest in words if rest and (found := _BUILDS.fullmatch(rest[-1]))}


def _as_built(each: WheelPackage, builds: Mapping[str, str], chosen: ChosenWheel) -> WheelPackage:
    """A wheel's package with a build string that says what the recipe chooses, unless the wheel lacks CUDA."""
    kind = builds.get(each.wheel.package)
    has_cuda = any(name.startswith(("cuda-", "nvidia-")) for name, _ in chosen.needs)
    if each.package is None or kind is None or (kind == "cuda" and not has_cuda):
        return each
    return replace(each, package=replace(each.package, build=f"{kind}_{each.package.build}"))


def _fetch(
    found: Sequence[WheelPackage],
    chosen: Sequence[ChosenWheel],
    download: Download,
    folder: Path,
    machine: Mapping[str, str],
    watch: Watch,
) -> None:
    missing = [
        (each.wheel, source)
        for each, source in zip(found, chosen, strict=True)
        if not is_kept(folder / each.wheel.file)
    ]
    if not missing:
        return
    with ThreadPoolExecutor(8) as pool:
        sizes = list(pool.map(_sizes_of, [source.url for _, source in missing]))
    named = [f"{wheel.project} {wheel.release}" for wheel, _ in missing]
    title = (
        ", ".join(named) if len(named) < 4 else f"{', '.join(named[:2])} and {counted(len(named) - 2, 'other wheel')}"
    )
    lines = [f"{wheel.project} @ {source.url} --hash=sha256:{source.sha256}" for wheel, source in missing]
    options = tuple(option for option in download.options if not option.startswith("--target"))
    size, unpacked = (sum(each) for each in zip(*sizes, strict=True))
    room = unpacked + max(packed for packed, _ in sizes)  # wheels are unpacked one after the other
    whole = replace(download, requirements=lines, what=title, size=size or None, room=room, options=options)
    takes = f", {unpacked / 1e6:.0f} MB on the disk" if unpacked > _LARGE else ""
    whole = replace(whole, why=f"requirements of the recipe that PyPI has{takes}")
    fetch_files(whole, [wheel.file for wheel, _ in missing], folder, machine, watch)


def _refuse_changed(found: Iterable[WheelPackage], folder: Path) -> None:
    """Refuse wheels whose hash is not the one that was recorded for their file before.

    Raises:
        WorkError: the index has another file under the name of a known wheel.
    """
    known = {wheel.file: (wheel.sha256, tools_file()) for wheel in read_tools().wheels}
    for record in sorted(folder.glob(_RECORDS)):
        known |= {each.wheel.file: (each.wheel.sha256, record) for each in _recorded(record)}
    for each in found:
        expected, place = known.get(each.wheel.file, (each.wheel.sha256, folder))
        if each.wheel.sha256 != expected:
            raise WorkError(
                f"the package index has {each.wheel.file} with the SHA-256 {each.wheel.sha256}, "
                f"but {place} records {expected}"
            )


def _sizes_of(url: str) -> tuple[int, int]:
    """The bytes of a wheel, and those of its files as far as they are known: of a large one by the list at its end."""
    if urlsplit(url).scheme == "file":
        with suppress(OSError, zipfile.BadZipFile):
            path = Path(unquote(urlsplit(url).path))
            return path.stat().st_size, _unpacked(path)
        return 0, 0
    size = 0
    with suppress(NoAnswerError, ValueError, zipfile.BadZipFile):
        size = int(ask(url, seconds=_HEAD_SECONDS, method="HEAD").headers.get("content-length", "0"))
        if size > _LARGE:
            end = {"Range": f"bytes=-{_LIST}"}
            return size, _unpacked(io.BytesIO(ask(url, seconds=_HEAD_SECONDS, largest=_LIST, headers=end).content))
    return size, size


def _unpacked(wheel: Path | IO[bytes]) -> int:
    """The bytes of the files of a wheel, or of the end of one with its list of files."""
    with zipfile.ZipFile(wheel) as archive:
        return sum(member.file_size for member in archive.infolist())


def _described(chosen: ChosenWheel, platform: Platform, python: str, ties: Ties) -> WheelPackage:
    """A wheel as a package: with the metadata of the channel's own of its name and version, else with its own."""
    file = unquote(PurePosixPath(urlsplit(chosen.url).path).name)
    if not _FILE.fullmatch(file) or not re.fullmatch(r"[0-9a-f]{64}", chosen.sha256):
        raise WorkError(f"the package index has a wheel of {chosen.project} with the name '{file}'")
    name = ties.package(chosen.project)
    like = next((wheel for wheel in read_tools().wheels_of(name) if wheel.take), None)
    pure = file.endswith("-none-any.whl")
    wheel = Wheel(
        package=name,
        version=chosen.version.lower().replace("-", "_"),
        project=chosen.project,
        subdir="noarch" if pure else platform.subdir,
        python=None if pure or like else python,
        file=file,
        size=0,
        sha256=chosen.sha256,
        take=like.take if like else (),
    )
    same = [each for each in _own().get(name, ()) if (each.version, each.subdir) == (wheel.version, wheel.subdir)]
    if same and not unmet([f"{name} =={wheel.version}"], platform, python):
        return WheelPackage(wheel, None)
    return WheelPackage(wheel, _package(wheel, chosen, python, ties))


def _package(wheel: Wheel, chosen: ChosenWheel, python: str, ties: Ties) -> KnownPackage:
    digest = wheel.sha256[:7]
    compact, following = python.replace(".", ""), f"3.{int(python.partition('.')[2]) + 1}"
    needs = [f"{ties.package(project)} {_conda_version(versions)}".strip() for project, versions in chosen.needs]
    if wheel.take:
        build, depends = f"h{digest}_0", []
    elif wheel.subdir == "noarch":
        build, depends = f"pyh{digest}_0", [f"python {_conda_version(chosen.python)}".strip(), *needs]
    else:
        its_python = [f"python >={python},<{following}.0a0", f"python_abi {python}.* *_cp{compact}"]
        build, depends = f"py{compact}h{digest}_0", [*its_python, *needs]
    return KnownPackage(
        name=wheel.package,
        version=wheel.version,
        build=build,
        build_number=0,
        subdir=wheel.subdir,
        source=OwnSource(f"the wheel {wheel.file} of {wheel.project}, sha256 {wheel.sha256}", datetime.now(UTC).date()),
        noarch="python" if wheel.subdir == "noarch" else None,
        license=chosen.license.partition("\n")[0][:80] or None,
        depends=tuple(depends),
        hash_known=False,
    )


def _aliases(asked: Iterable[str], found: Iterable[WheelPackage], ties: Ties) -> list[WheelPackage]:
    """Packages without files for other names of packages (`setuptools_scm`), each of which needs the one with them."""
    by_name = {each.wheel.package: each.wheel for each in found}
    wheels = {name: by_name.get(ties.package(ties.project(name) or name)) for name in asked}
    return [
        WheelPackage(
            wheel,
            KnownPackage(
                name=name,
                version=wheel.version,
                build="0",
                build_number=0,
                subdir="noarch",
                source=OwnSource(f"another name of {wheel.package}", datetime.now(UTC).date()),
                noarch="generic",
                depends=(f"{wheel.package} =={wheel.version}",),
                role=ALIAS,
            ),
        )
        for name, wheel in wheels.items()
        if wheel is not None and wheel.package != name
    ]


def _conda_version(specifiers: str) -> str:
    """`>=1.2,==2.*` of an index as conda writes it."""
    parts = [part.strip() for part in specifiers.split(",") if part.strip()]
    return ",".join(
        part[2:] if part.startswith("==") and part.endswith(".*") else part.replace("===", "==") for part in parts
    )


def _document(each: WheelPackage) -> dict[str, Any]:
    package = asdict(each.package) if each.package else None
    if package:
        package["source"]["date"] = package["source"]["date"].isoformat()
    return {"wheel": asdict(each.wheel), "package": package}


def _recorded(record: Path) -> list[WheelPackage]:
    """The packages of a record; none of a file that is no record."""
    try:
        return [_of_document(entry) for entry in json.loads(record.read_bytes())["packages"]]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return []


def _of_document(entry: Mapping[str, Any]) -> WheelPackage:
    wheel = Wheel(**{**entry["wheel"], "take": tuple((str(a), str(b)) for a, b in entry["wheel"]["take"])})
    content = entry["package"]
    if content is None:
        return WheelPackage(wheel, None)
    source = OwnSource(content["source"]["text"], date.fromisoformat(content["source"]["date"]))
    lists = {key: tuple(content[key]) for key in ("depends", "constrains", "track_features")}
    return WheelPackage(wheel, KnownPackage(**{**content, **lists, "source": source}))


def recorded_wheels(folder: Path | None) -> tuple[WheelPackage, ...]:
    """The packages of wheels that were fetched on demand, each once."""
    records = sorted(folder.glob(_RECORDS)) if folder is not None else ()
    found = {
        (each.wheel.file, each.wheel.python, each.package and (each.package.name, each.package.build)): each
        for path in records
        for each in _recorded(path)
    }
    return tuple(each for each in found.values() if folder is not None and is_kept(folder / each.wheel.file))
