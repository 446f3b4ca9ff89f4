"""A conda package of Python made from an installation of this machine: pyenv's, Debian's, uv's, or one from source.

It contains the interpreter and its standard library, without its tests and its editor, but with the existing
byte code. The package works in any prefix. It is built on Linux; elsewhere Python is metadata only.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from feedstock_tools.builds.stand_in import probe
from feedstock_tools.channel.metadata import PackageFile
from feedstock_tools.errors import WorkError
from feedstock_tools.versions import minor_of

_PROBE_SECONDS = 20
_LIBPYTHON = "libpython"
#: Of byte code that Python uses without a look at the source (PEP 552).
UNCHECKED_HASH = 1
_LEFT_OUT_FOLDERS = {
    "__pycache__",
    "_bundled",
    "dist-packages",
    "idlelib",
    "idle_test",
    "site-packages",
    "test",
    "tests",
    "turtledemo",
}
_LEFT_OUT_SUFFIXES = (".a", ".o", ".pyc", ".pyo", ".exe", ".bat")
_LEFT_OUT_FILES = {"EXTERNALLY-MANAGED", "sitecustomize.py"}
# Debian's Python looks for packages in dist-packages, and installs them under local/; conda's places are site-packages.
_DEBIAN_SITE = """\
import os
import site
import sys

site.addsitedir(os.path.join(sys.prefix, "lib", "python%d.%d" % sys.version_info[:2], "site-packages"))
"""
_DEBIAN_SCHEMES = "def _get_preferred_schemes():\n"
_CONDA_SCHEMES = """\
def _get_preferred_schemes():
    return {"prefix": "posix_prefix", "home": "posix_home", "user": "posix_user"}


def _get_preferred_schemes_of_debian():
"""
#: Stands for the prefix in texts where the name of the installation's own prefix cannot: `/usr` means much else.
PLACEHOLDER = "/opt/feedstock-tools/stand-in/prefix"
_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 0, 1, 5, 15, 29


@dataclass(frozen=True, slots=True)
class Installation:
    """A Python of this machine: its version, and the paths of its parts."""

    version: str
    prefix: Path
    executable: Path
    stdlib: Path
    dynload: Path | None
    include: Path | None
    libdir: Path | None
    debian: bool

    @property
    def minor(self) -> str:
        """`3.12` of `3.12.1`."""
        return minor_of(self.version)

    @property
    def identity(self) -> str:
        """Changes when another Python is installed in its place."""
        status = self.executable.stat()
        return f"{self.version} {self.executable} {status.st_size} {status.st_mtime_ns}"


def find_pythons(minors: Sequence[str], *, path: str | None = None) -> tuple[Installation, ...]:
    """The Pythons of some versions (`3.12`) that can become real packages, in the order of `minors`.

    They are the one that runs this, and those that are on PATH as `python3.12`. Only on Linux are any found.

    Args:
        path: searched instead of PATH, folders separated as in PATH.
    """
    if not sys.platform.startswith("linux"):
        return ()
    running = f"{sys.version_info[0]}.{sys.version_info[1]}"
    named = (
        (sys.executable if minor == running else shutil.which(f"python{minor}", path=path), minor) for minor in minors
    )
    candidates = [(executable, minor) for executable, minor in named if executable]
    with ThreadPoolExecutor() as pool:
        probed = pool.map(_probe, [executable for executable, _ in candidates])
        answers = zip(probed, candidates, strict=True)
        return tuple(answer for answer, (_, minor) in answers if answer is not None and answer.minor == minor)


def python_files(installation: Installation) -> Iterator[PackageFile]:
    """The contents of a package of this Python, for `write_package`."""
    name = f"python{installation.minor}"
    try:
        interpreter = installation.executable.read_bytes()
        yield PackageFile(f"bin/{name}", _relocatable(interpreter), executable=True)
        yield PackageFile("bin/python3", link=name)
        yield PackageFile("bin/python", link=name)
        yield from _shared_library(interpreter, installation)
        yield from _standard_library(installation)
        if installation.include is not None and (installation.include / "Python.h").is_file():
            yield from _tree(installation.include, f"include/{installation.include.name}")
    except OSError as error:
        raise WorkError(
            f"cannot make a package of Python {installation.version}: {error.strerror or error}",
            path=Path(error.filename) if error.filename else installation.prefix,
        ) from error


def _probe(executable: str) -> Installation | None:
    """Query an interpreter for its paths; None if it does not answer (a shim without a Python behind it)."""
    try:
        return _installation(probe.describe() if executable == sys.executable else _answer_of(executable))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return None


def _answer_of(executable: str) -> Any:
    answer = subprocess.run(
        [executable, "-I", "-S", probe.__file__], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=True
    )
    return json.loads(answer.stdout)


def _installation(answer: Any) -> Installation | None:
    optional = {key: Path(answer[key]) if answer[key] else None for key in ("dynload", "include", "libdir")}
    stdlib = Path(answer["stdlib"])
    if not answer["plain"] or not (stdlib / "os.py").is_file():
        return None
    return Installation(
        version=answer["version"],
        prefix=Path(answer["prefix"]),
        executable=Path(answer["executable"]),
        stdlib=stdlib,
        debian=answer["debian"],
        **optional,
    )


def _relocatable(content: bytes) -> bytes:
    """An interpreter that finds libpython in its own prefix.

    One that has no run path, or none with room for another, stays as it is: it finds libpython where it did before.
    """
    dynamic = read_dynamic(content)
    if dynamic is None or dynamic.run_path is None or "$ORIGIN" in dynamic.run_path:
        return content
    return with_run_path(content, "$ORIGIN/../lib") or content


def _shared_library(interpreter: bytes, installation: Installation) -> Iterator[PackageFile]:
    dynamic = read_dynamic(interpreter)
    for needed in dynamic.needed if dynamic else ():
        if _LIBPYTHON not in needed:
            continue
        name = PurePosixPath(needed).name  # python-build-standalone names it with `$ORIGIN/../lib/` in front
        places = (installation.prefix / "lib", installation.libdir)
        library = next((place / name for place in places if place and (place / name).is_file()), None)
        if library is not None:
            yield PackageFile(f"lib/{name}", source=library, executable=True)


def _standard_library(installation: Installation) -> Iterator[PackageFile]:
    target = f"lib/python{installation.minor}"
    dynload = installation.dynload
    for file in _tree(installation.stdlib, target):
        adapted = _adapted(file, target, installation)
        yield adapted
        if adapted is file and (code := _byte_code(file, installation)) is not None:
            yield code
    if dynload is not None and dynload.is_dir() and not dynload.is_relative_to(installation.stdlib):
        yield from _tree(dynload, f"{target}/lib-dynload")
    if installation.debian:
        yield PackageFile(f"{target}/sitecustomize.py", _DEBIAN_SITE.encode())
    yield site_packages(installation.minor)


def site_packages(minor: str) -> PackageFile:
    """A file that creates the folder for installed packages, which a script may expect (`cp module.py $SP_DIR`)."""
    return PackageFile(f"lib/python{minor}/site-packages/README.txt", b"Packages of this environment lie here.\n")


def _byte_code(file: PackageFile, installation: Installation) -> PackageFile | None:
    """The byte code that the installation has for a module, in the form that Python uses without checking the source.

    A build runs Python several times in fresh prefixes and lets it write none, which would cost a third of a second
    each time. The usual form holds the time stamp of the source, which is another one in the package (see PEP 552).
    """
    if file.source is None or file.source.suffix != ".py":
        return None
    name = f"{file.source.stem}.cpython-{installation.minor.replace('.', '')}.pyc"
    compiled = file.source.parent / "__pycache__" / name
    if not compiled.is_file():
        return None
    content = compiled.read_bytes()
    status = file.source.stat()
    expected = [0, int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF]
    if list(struct.unpack_from("<III", content.ljust(16, b"\0"), 4)) != expected:
        return None
    folder, _, _ = file.path.rpartition("/")
    unchecked = content[:4] + struct.pack("<IQ", UNCHECKED_HASH, 0) + content[16:]
    return PackageFile(f"{folder}/__pycache__/{name}", unchecked)


def _adapted(file: PackageFile, target: str, installation: Installation) -> PackageFile:
    """The file, with changes to the prefix of Python and to Debian's place for packages."""
    name = file.path.removeprefix(f"{target}/")
    if name.startswith("_sysconfigdata_"):
        if installation.prefix not in (Path("/usr"), Path("/usr/local")):
            return replace(file, prefix=str(installation.prefix))
        content = file.read().decode().replace(f"'{installation.prefix}'", f"'{PLACEHOLDER}'")
        return PackageFile(file.path, content.encode(), prefix=PLACEHOLDER)
    if installation.debian and name in ("sysconfig.py", "sysconfig/__init__.py"):
        return PackageFile(file.path, file.read().decode().replace(_DEBIAN_SCHEMES, _CONDA_SCHEMES).encode())
    return file


def _tree(folder: Path, target: str) -> Iterator[PackageFile]:
    """The files of a folder that a package needs. Links are followed, so that nothing points out of the package."""
    for place, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT_FOLDERS)
        inside = Path(place).relative_to(folder).as_posix()
        for name in sorted(files):
            path = Path(place, name)
            if name in _LEFT_OUT_FILES or name.endswith(_LEFT_OUT_SUFFIXES) or not path.is_file():
                continue
            within = f"{target}/{name}" if inside == "." else f"{target}/{inside}/{name}"
            yield PackageFile(within, source=path, executable=os.access(path, os.X_OK) and ".so" in name)


@dataclass(frozen=True, slots=True)
class Dynamic:
    """The dynamic section of an ELF file: `needed` libraries, the run path, and where the run path's text begins."""

    needed: tuple[str, ...]
    run_path: str | None
    run_path_offset: int


def read_dynamic(content: bytes) -> Dynamic | None:
    """Read the dynamic section of a 64-bit little-endian ELF file; None for any other file, or a static one."""
    if content[:6] != b"\x7fELF\x02\x01":
        return None
    try:
        segments = _segments(content)
        entries = _entries(content, segments)
        strings = _file_offset(next(value for tag, value in entries if tag == _DT_STRTAB), segments)
        needed = tuple(_text(content, strings + value) for tag, value in entries if tag == _DT_NEEDED)
        run_path = next((value for tag, value in entries if tag in (_DT_RPATH, _DT_RUNPATH)), None)
        if run_path is None:
            return Dynamic(needed, None, 0)
        return Dynamic(needed, _text(content, strings + run_path), strings + run_path)
    except (struct.error, StopIteration, OverflowError, ValueError):
        return None


def with_run_path(content: bytes, run_path: str) -> bytes | None:
    """The file with another run path, written over the one it has; None where there is no room for it."""
    dynamic = read_dynamic(content)
    if dynamic is None or dynamic.run_path is None or len(dynamic.run_path) < len(run_path):
        return None
    start, length = dynamic.run_path_offset, len(dynamic.run_path)
    return content[:start] + run_path.encode().ljust(length, b"\0") + content[start + length :]


def _segments(content: bytes) -> list[tuple[int, int, int, int]]:
    """Type, offset in the file, address and size in the file of each segment."""
    (table,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    segments = []
    for number in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", content, table + number * size)
        segments.append((kind, offset, address, length))
    return segments


def _entries(content: bytes, segments: list[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    _, offset, _, length = next(segment for segment in segments if segment[0] == _PT_DYNAMIC)
    entries = []
    for place in range(offset, offset + length, 16):
        tag, value = struct.unpack_from("<qQ", content, place)
        if tag == _DT_NULL:
            break
        entries.append((tag, value))
    return entries


def _file_offset(address: int, segments: list[tuple[int, int, int, int]]) -> int:
    for kind, offset, start, length in segments:
        if kind == _PT_LOAD and start <= address < start + length:
            return offset + address - start
    return address


def _text(content: bytes, offset: int) -> str:
    return content[offset : content.index(b"\0", offset)].decode("utf-8", "replace")
