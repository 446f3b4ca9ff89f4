"""Writing what was asked for as a file."""

from __future__ import annotations

import os
from pathlib import Path

from feedstock_tools.errors import WorkError

__all__ = ["write_text"]


def write_text(path: Path, text: str) -> None:
    """Write a text and a line break to a file, which is replaced whole.

    Raises:
        WorkError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(f"{text}\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise WorkError(f"cannot write: {error.strerror or error}", path=path) from error
    finally:
        part.unlink(missing_ok=True)
