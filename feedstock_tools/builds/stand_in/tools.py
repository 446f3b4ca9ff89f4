"""The tools of the stand-in channel that have contents: which wheels a build needs, fetching them, and their files.

A wheel is fetched with pip when a build first needs it, in exactly the version and with the hash of
`variants/tools.yaml`, and stays in the user's cache. It has Python's packages at its top, everything else below
`<name>-<version>.data`, and lists of the programs that installers make in `<name>-<version>.dist-info` (Python
Packaging User Guide: Binary distribution format).
"""

from __future__ import annotations

import configparser
import importlib.util
import marshal
import os
import re
import shutil
import struct
import sys
import time
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath

from feedstock_tools.builds.stand_in.python import PLACEHOLDER, UNCHECKED_HASH
from feedstock_tools.channel.metadata import PackageFile
from feedstock_tools.channel.pip import Download, Fetching, Watch, download_wheels, unwatched
from feedstock_tools.channel.properties import WHEELS
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import WorkError
from feedstock_tools.facts.packages import MAKE, Wheel, read_tools
from feedstock_tools.files.changes import require_room
from feedstock_tools.files.locks import locked
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.platforms import Platform
from feedstock_tools.wording import listed

_SCRIPT = """\
#!{prefix}/bin/python
import sys

from {module} import {top}

sys.exit({function}())
"""
#: The folder of large libraries among the kept wheels, and how the comment on a member of a wheel begins that is there.
LIBRARIES = "libraries"
_NOTE = b"feedstock-tools: "
#: The libraries that are large: of PyTorch with CUDA 63 files, which have 5.2 of its 5.5 GB.
_LARGE = 1 << 20
_LIBRARY = re.compile(r"(.*/)?[\w.+-]{1,150}\.(so(\.\d+)*|a)")
#: The largest number of them in a wheel, since the comment at its end has room for their names.
_MOST = 250
#: The time of each library, in seconds since 1970: one with another was written to after it was unpacked.
_TIME = 1_000_000_000
#: The record at the end of a wheel, without its comment, and that comment's largest size.
_END, _END_SIZE, _COMMENT = b"PK\5\6", 22, 0xFFFF


def tools_folder(cache: Path) -> Path:
    return cache / WHEELS


def found_tools(folder: Path | None) -> frozenset[str]:
    return frozenset(path.name for path in folder.glob("*.whl") if is_kept(path)) if folder is not None else frozenset()


def is_kept(wheel: Path) -> bool:
    """Whether a wheel was fetched, and its large libraries are as they were unpacked.

    A script of a build may have written to one. Its size and time tell, so no library is read for it.
    """
    try:
        status = wheel.stat()
        names = _libraries_of(wheel, status.st_mtime_ns, status.st_size)
        return all(_is_whole(wheel.parent / LIBRARIES / name) for name in names)
    except OSError:
        return False


@lru_cache(maxsize=4096)
def _libraries_of(wheel: Path, _time: int, size: int) -> tuple[str, ...]:
    """The names of the libraries that a wheel was left without, from the comment at its end."""
    with wheel.open("rb") as stream:
        stream.seek(max(0, size - _END_SIZE - _COMMENT))
        end = stream.read()
    comment = end[end.rfind(_END) + _END_SIZE :] if _END in end else b""
    return tuple(comment.removeprefix(_NOTE).decode().split("\n")) if comment.startswith(_NOTE) else ()


def _is_whole(library: Path) -> bool:
    status = library.lstat()
    return library.name.split("-")[1] == str(status.st_size) and status.st_mtime_ns == _TIME * 10**9


def wheels_for(name: str, platform: Platform, python: str | None) -> tuple[Wheel, ...]:
    """The wheels of a tool that builds for a platform need: of that platform, of this machine, and of the row's Python.

    Args:
        python: the Python of the row (`3.12`), if it has one.
    """
    subdirs = {"noarch", platform.subdir, Platform.here().subdir}
    return tuple(
        wheel
        for wheel in read_tools().wheels_of(name)
        if wheel.subdir in subdirs and (wheel.python is None or wheel.python == python)
    )


def why_no_tools(names: Iterable[str], platform: Platform, python: str | None, path: str | None) -> str | None:
    """Why the stand-in channel cannot have some tools on this machine; None if it can, once they are fetched.

    Args:
        path: the folders of the machine's programs.
    """
    for name in names:
        if name == MAKE:
            if shutil.which(MAKE, path=path) is None:
                return "there is no make on PATH (Debian: make), which the stand-in channel's make calls"
        elif not wheels_for(name, platform, python):
            all_of_it = read_tools().wheels_of(name)
            pythons = list(dict.fromkeys(wheel.python for wheel in all_of_it if wheel.python))
            if pythons and python not in pythons:
                return f"the stand-in channel has {name} for Python {listed(pythons)}, not for {python}"
            platforms = list(dict.fromkeys(wheel.subdir for wheel in all_of_it))
            return f"the stand-in channel has {name} for {listed(platforms)}, not for {Platform.here().subdir}"
    return None


def fetch_tools(
    wheels: Sequence[Wheel], folder: Path, machine: Mapping[str, str], watch: Watch = unwatched, why: str = ""
) -> None:
    """Fetch wheels with pip, those that are missing; afterwards no network is needed.

    Args:
        why: they are needed, for `watch`.
    """
    if all(is_kept(folder / wheel.file) for wheel in wheels):
        return
    try:
        with locked(folder):
            missing = {wheel.file: wheel for wheel in wheels if not is_kept(folder / wheel.file)}
            for group in _groups(list(missing.values())):
                _fetch(group, folder, machine, watch, why)
    except OSError as error:
        raise WorkError(f"cannot store wheels: {error.strerror or error}", path=folder) from error


def _fetch(wheels: Sequence[Wheel], folder: Path, machine: Mapping[str, str], watch: Watch, why: str) -> None:
    named = [f"{wheel.project} {wheel.release}" for wheel in wheels]
    title = listed(named if len(named) < 4 else [*named[:2], f"{len(named) - 2} other wheels"])
    size = sum(wheel.size for wheel in wheels)
    requirements = [f"{wheel.project}=={wheel.release} --hash=sha256:{wheel.sha256}" for wheel in wheels]
    download = Download(requirements, title, size, why, options=_options(wheels[0]))
    fetch_files(download, [wheel.file for wheel in wheels], folder, machine, watch)


def fetch_files(
    download: Download, files: Sequence[str], folder: Path, machine: Mapping[str, str], watch: Watch
) -> None:
    """Fetch wheels with pip into a folder, whose lock the caller holds.

    Args:
        files: their names.

    Raises:
        WorkError: pip cannot fetch them, or fetches others.
    """
    began = time.monotonic()
    with temporary_folder(folder) as temporary:
        wheels = {path: _large(path) for path in download_wheels(download, temporary / "wheels", machine, watch)}
        size, done = sum(map(_size, wheels.values())), 0
        require_room(folder, size, f"the libraries of {download.what}")  # which not every index has told
        for path, libraries in wheels.items():
            if libraries:
                watch(Fetching(download.what, "unpacking", time.monotonic() - began, done, size))
                _take_apart(path, libraries, folder / LIBRARIES)
                done += _size(libraries)
            path.rename(folder / path.name)
    absent = [file for file in files if not (folder / file).is_file()]
    if absent:
        raise WorkError(f"pip fetched other files than {listed(absent)}")
    watch(Fetching(download.what, "ready", time.monotonic() - began, download.size or 0, download.size))


def _large(wheel: Path) -> dict[str, zipfile.ZipInfo]:
    """The large libraries of a wheel. Programs are none: they look for their other files where they are themselves."""
    with zipfile.ZipFile(wheel) as archive:
        members = {member.filename: member for member in archive.infolist() if member.file_size >= _LARGE}
        found = [(name, member) for name, member in members.items() if _LIBRARY.fullmatch(name)]
        return dict(sorted(found, key=lambda each: -each[1].file_size)[:_MOST])


def _size(members: Mapping[str, zipfile.ZipInfo]) -> int:
    return sum(member.file_size for member in members.values())


def _take_apart(wheel: Path, libraries: Mapping[str, zipfile.ZipInfo], folder: Path) -> None:
    """Unpack libraries of a wheel into a folder, and leave a note in the place of each.

    Packages link to them there: they are on the disk once, not in a wheel, a package and each feedstock's environments.
    """
    folder.mkdir(exist_ok=True)
    made, part, names = wheel.with_suffix(".part"), wheel.with_suffix(".library"), []
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
        for member in archive.infolist():
            if member.filename not in libraries:
                target.writestr(member, archive.read(member))
                continue
            with archive.open(member) as source, part.open("wb") as stream:
                shutil.copyfileobj(source, stream, 1 << 20)
            part.chmod(0o755 if member.external_attr >> 16 & 0o111 else 0o644)  # of the copies that scripts make, too
            name = f"{sha256_of(part)[:32]}-{part.stat().st_size}-{PurePosixPath(member.filename).name}"
            os.utime(part, (_TIME, _TIME))
            part.replace(folder / name)
            names.append(name)
            note = zipfile.ZipInfo(member.filename)
            note.comment = _NOTE + name.encode()
            target.writestr(note, b"")
        target.comment = _NOTE + "\n".join(names).encode()
    made.replace(wheel)


def _groups(wheels: Sequence[Wheel]) -> list[list[Wheel]]:
    """The wheels by the options of pip that find them."""
    groups: dict[tuple[str, ...], list[Wheel]] = {}
    for wheel in wheels:
        groups.setdefault(_options(wheel), []).append(wheel)
    return list(groups.values())


def _options(wheel: Wheel) -> tuple[str, ...]:
    """The options with which pip finds a wheel for another platform or Python; none for this one."""
    _, _, python, abi, platforms = wheel.file.removesuffix(".whl").split("-")
    running = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    is_for_this_machine = wheel.subdir in ("noarch", Platform.here().subdir)
    if is_for_this_machine and (wheel.python is None or python == running):
        return ()
    version = (f"--python-version={wheel.python}", "--implementation=cp") if wheel.python else ()
    return (*version, f"--abi={abi}", *(f"--platform={platform}" for platform in platforms.split(".")))


def wheel_files(wheel: Wheel, path: Path) -> Iterator[PackageFile]:
    """The files of the package.

    Args:
        path: the wheel.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            for member in members:
                place = _taken(wheel, member.filename) if wheel.take else _place(wheel, member.filename)
                if place is not None and member.comment.startswith(_NOTE):
                    library = path.parent.resolve() / LIBRARIES / member.comment.removeprefix(_NOTE).decode()
                    yield PackageFile(place, link=str(library))
                elif place is not None:
                    executable = bool(member.external_attr >> 16 & 0o111) or place.startswith("bin/")
                    yield _file(place, archive.read(member), executable)
        if wheel.python is not None:
            for point in entry_points(path):
                yield _script(point)
    except (OSError, zipfile.BadZipFile) as error:
        raise WorkError(f"cannot read the wheel: {error}", path=path) from error


def byte_code(wheel: Wheel, path: Path) -> tuple[PackageFile, ...]:
    """The modules of a package for all Pythons, compiled by the one that runs this; other Pythons pass them over.

    A build starts pip several times in fresh prefixes, and lets Python write no byte code there: each would compile
    pip's modules anew, which is half of the time of `pip check`.
    """
    modules = []
    with warnings.catch_warnings(action="ignore"):
        for file in wheel_files(wheel, path):
            if file.path.endswith(".py"):
                code = marshal.dumps(compile(file.content, file.path, "exec", dont_inherit=True))
                unchecked = importlib.util.MAGIC_NUMBER + struct.pack("<IQ", UNCHECKED_HASH, 0) + code
                folder, _, name = file.path.removesuffix(".py").rpartition("/")
                place = f"{folder}/__pycache__/{name}.{sys.implementation.cache_tag}.pyc"
                modules.append(PackageFile(place, unchecked))
    return tuple(modules)


def _taken(wheel: Wheel, name: str) -> str | None:
    """The place of a file in the prefix, by the wheel's `take`; None if it does not belong to the package."""
    for source, target in wheel.take:
        if name == source:
            return target
        if name.startswith(f"{source}/"):
            rest = name.removeprefix(f"{source}/")
            return rest if target == "." else f"{target}/{rest}"
    return None


def _place(wheel: Wheel, name: str) -> str | None:
    """The place of a file of a Python package in the prefix; in `site-packages` if the package is for all Pythons."""
    python = f"lib/python{wheel.python}/" if wheel.python else ""
    parts = PurePosixPath(name).parts
    if not parts[0].endswith(".data"):
        return f"{python}site-packages/{name}"
    rest = "/".join(parts[2:])
    kind = parts[1]
    if kind in ("purelib", "platlib"):
        return f"{python}site-packages/{rest}"
    if kind == "scripts":
        return f"bin/{rest}" if wheel.python else f"python-scripts/{rest}"
    if kind == "headers" and wheel.python:
        return f"include/python{wheel.python}/{wheel.project}/{rest}"
    return rest if kind == "data" else None


def _file(place: str, content: bytes, executable: bool) -> PackageFile:
    if content.startswith(b"#!python"):
        content = f"#!{PLACEHOLDER}/bin/python\n".encode() + content.partition(b"\n")[2]
        return PackageFile(place, content, executable=True, prefix=PLACEHOLDER)
    return PackageFile(place, content, executable=executable)


def entry_points(path: Path) -> tuple[str, ...]:
    """The programs of a Python package that installers make: `pip = pip._internal.cli.main:main`."""
    try:
        with zipfile.ZipFile(path) as archive:
            listed = [name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt")]
            text = archive.read(listed[0]).decode() if listed else ""
    except (OSError, zipfile.BadZipFile) as error:
        raise WorkError(f"cannot read the wheel: {error}", path=path) from error
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    parser.read_string(text)
    if not parser.has_section("console_scripts"):
        return ()
    return tuple(f"{name} = {target.replace(' ', '')}" for name, target in parser.items("console_scripts"))


def _script(point: str) -> PackageFile:
    name, _, target = point.partition(" = ")
    module, _, function = target.partition(":")
    text = _SCRIPT.format(prefix=PLACEHOLDER, module=module, top=function.split(".")[0], function=function)
    return PackageFile(f"bin/{name}", text.encode(), executable=True, prefix=PLACEHOLDER)


def make_files(make: str) -> Iterator[PackageFile]:
    """The files of the package of make: a program that calls the machine's.

    Args:
        make: the path of the machine's.
    """
    yield PackageFile("bin/make", f'#!/bin/sh\nexec {make} "$@"\n'.encode(), executable=True)
    yield PackageFile("bin/gmake", link="make")
