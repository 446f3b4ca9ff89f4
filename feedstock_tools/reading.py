"""Reading text files with a limit on their size."""

from __future__ import annotations

import os
from pathlib import Path

from feedstock_tools.errors import InputError

__all__ = ["LARGEST_FILE", "LARGEST_SETTINGS", "is_file", "read_text"]

#: Bytes, far above any recipe or variant file of conda-forge. A larger one is a mistake or an attack.
LARGEST_FILE = 512 * 1024
#: The same for a conda-forge.yml, a configuration or a variants.yaml, whose keys are read more than once.
LARGEST_SETTINGS = 256 * 1024


def is_file(path: Path) -> bool:
    """Whether a path that a recipe names is a file; False for a name too long for any file system."""
    return os.path.isfile(path)  # noqa: PTH113 - pathlib raises the system's error for a name that is too long


def read_text(path: Path, largest: int = LARGEST_FILE) -> str:
    """The text of a file, with line endings as `\\n`.

    Raises:
        InputError: it is missing, not a file, larger than `largest` bytes, contains NUL bytes or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            content = file.read(largest + 1)
    except FileNotFoundError as error:
        raise InputError("there is no such file", path=path) from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", path=path) from error
    if len(content) > largest:
        raise InputError(f"is larger than {largest // 1024} KiB", path=path)
    if b"\0" in content:
        raise InputError("is not a text file: it contains NUL bytes", path=path)
    try:
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError("is not a text file in UTF-8", path=path, line=line) from error
