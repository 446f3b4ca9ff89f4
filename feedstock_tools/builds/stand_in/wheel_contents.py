"""The files of a conda package that has the contents of a wheel.

A wheel has Python's packages at its top, everything else below `<name>-<version>.data`, and lists of the programs that
installers make in `<name>-<version>.dist-info` (Python Packaging User Guide: Binary distribution format).
"""

from __future__ import annotations

import configparser
import importlib.util
import marshal
import struct
import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from feedstock_tools.builds.stand_in.python import UNCHECKED_HASH
from feedstock_tools.channel.metadata import PackageFile
from feedstock_tools.errors import WorkError
from feedstock_tools.facts.tools import Wheel

#: Stands for the prefix in the first line of scripts.
_PLACEHOLDER = "/opt/feedstock-tools/stand-in/prefix"
_SCRIPT = """\
#!{prefix}/bin/python
import sys

from {module} import {top}

sys.exit({function}())
"""


def wheel_files(wheel: Wheel, path: Path) -> Iterator[PackageFile]:
    """The files of the package.

    Args:
        path: the wheel.

    Raises:
        WorkError: it is not a zip file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            for member in members:
                place = _taken(wheel, member.filename) if wheel.take else _place(wheel, member.filename)
                if place is not None:
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

    Raises:
        WorkError: it is not a zip file.
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
        first, _, rest = content.partition(b"\n")
        del first
        content = f"#!{_PLACEHOLDER}/bin/python\n".encode() + rest
        return PackageFile(place, content, executable=True, prefix=_PLACEHOLDER)
    return PackageFile(place, content, executable=executable)


def entry_points(path: Path) -> tuple[str, ...]:
    """The programs of a Python package that installers make: `pip = pip._internal.cli.main:main`.

    Raises:
        WorkError: the wheel is not a zip file.
    """
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
    text = _SCRIPT.format(prefix=_PLACEHOLDER, module=module, top=function.split(".")[0], function=function)
    return PackageFile(f"bin/{name}", text.encode(), executable=True, prefix=_PLACEHOLDER)


def make_files(make: str) -> Iterator[PackageFile]:
    """The files of the package of make: a program that calls the machine's.

    Args:
        make: the path of the machine's.
    """
    yield PackageFile("bin/make", f'#!/bin/sh\nexec {make} "$@"\n'.encode(), executable=True)
    yield PackageFile("bin/gmake", link="make")
