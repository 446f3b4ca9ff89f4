"""The files of a feedstock: the names that more than one room knows, and how they are read.

Strangers may have written them: only regular ones are read, up to a size, and through no link out of a folder.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO, Protocol

from feedstock_tools.errors import InputError

#: What a person writes to have a recipe generated.
SPEC_NAME = "feedstock.yaml"
#: conda-smithy's settings.
FORGE_FILE = "conda-forge.yml"
#: The folder that holds the configurations, and the migrations in a folder of their own.
CI_SUPPORT = ".ci_support"
#: The hashes of the files that were generated from the spec; it belongs in version control.
GENERATED = ".feedstock-tools/generated.json"

#: Bytes, far above any recipe or variant file of conda-forge. A larger one is a mistake or an attack.
LARGEST_FILE = 512 * 1024
#: The same for a conda-forge.yml, a configuration or a variants.yaml, whose keys are read more than once.
LARGEST_SETTINGS = 256 * 1024
#: The same for build scripts, CI files and the like, which are only searched and compared.
LARGEST_SCRIPT = 4 * 1024 * 1024
_PIECE = 1 << 20
#: Opening a FIFO for reading would wait for a writer; the flag does nothing to a regular file.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes; none at its end."""
        ...


def is_file(path: Path) -> bool:
    """Whether a path that a recipe names is a file; False for a name too long for any file system."""
    return os.path.isfile(path)  # noqa: PTH113 - pathlib raises the system's error for a name that is too long


def is_below(path: Path, folder: Path) -> bool:
    """Whether a path is written as one below a folder, wherever links lead: `..` does not lead out of it."""
    return Path(os.path.normpath(path)).is_relative_to(os.path.normpath(folder))


def is_inside(path: Path, folder: Path) -> bool:
    """Whether a path, with all links followed, is a folder or is in it."""
    real, top = os.path.realpath(path), os.path.realpath(folder)  # as texts: hundreds of files a rerender
    return real == top or real.startswith(top if top.endswith(os.sep) else top + os.sep)


def open_file(path: Path, *, within: Path | None) -> BinaryIO:
    """Open a regular file for reading: the one way to open a file of a feedstock.

    Args:
        within: the folder that no link may lead out of, such as that of the feedstock; None for a file that the user
            names, or that this program wrote.

    Raises:
        InputError: it is missing, is a folder, a FIFO, a device or a socket, cannot be read, or is outside `within`.
    """
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - pathlib would construct a path
        if within is not None and not is_inside(path, within):
            hint = "Replace the link by a copy of the file that it leads to."
            raise InputError("leads out of the feedstock by a link", path=path, hint=hint)
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "a FIFO, a socket or a device"
            raise InputError(f"is not a file but {kind}", path=path)
        return os.fdopen(os.open(path, _FLAGS), "rb")
    except FileNotFoundError as error:
        raise InputError("there is no such file", path=path) from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", path=path) from error


def read_bytes(path: Path, largest: int = LARGEST_FILE, *, within: Path | None) -> bytes:
    """The bytes of a file.

    Raises:
        InputError: it is larger than `largest` bytes; else as `open_file`.
    """
    with open_file(path, within=within) as file:
        try:
            content = read_up_to(file, largest + 1)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", path=path) from error
    if len(content) > largest:
        raise InputError(f"is larger than {largest // 1024} KiB", path=path)
    return content


def read_up_to(stream: Readable, size: float) -> bytes:
    """The bytes of a stream, up to a size; piece by piece, since a buffer of the whole size would be allocated.

    Raises:
        OSError: it cannot be read.
    """
    parts = []
    while size > 0 and (part := stream.read(int(min(size, _PIECE)))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_text(path: Path, largest: int = LARGEST_FILE, *, within: Path | None) -> str:
    """The text of a file, with line endings as `\\n`.

    Raises:
        InputError: it contains NUL bytes or is not UTF-8; else as `read_bytes`.
    """
    content = read_bytes(path, largest, within=within)
    if b"\0" in content:
        raise InputError("is not a text file: it contains NUL bytes", path=path)
    try:
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError("is not a text file in UTF-8", path=path, line=line) from error
