"""Writing files whole: beside their place first and moved there then, so that nobody ever meets half of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from feedstock_tools.errors import WorkError

__all__ = ["replacing", "write_whole"]


@contextmanager
def replacing(path: Path, *, what: str = "cannot write", hint: str | None = None) -> Iterator[Path]:
    """A path beside `path` to make a file at, which takes the place of `path` at the end of the block.

    Folders that are missing are made. A file that is replaced hands on its mode; nothing stays behind where the block
    fails. The name of the part begins with a dot and ends in `.part`, is short whatever `path` is called, and is no
    other process's or thread's.

    Args:
        what: the words for what failed, before the system's reason.
        hint: what to do then.

    Raises:
        WorkError: the system refuses; also where it does so within the block.
    """
    part = path.with_name(f".{os.getpid()}-{os.urandom(6).hex()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        if path.is_file():
            part.chmod(path.stat().st_mode & 0o777)
        part.replace(path)
    except OSError as error:
        raise WorkError(f"{what}: {error.strerror or error}", path=path, hint=hint) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes | str, *, hint: str | None = None) -> None:
    """Replace a file, or make it, with bytes or a text, which is written as UTF-8 and with its line breaks as they are.

    Raises:
        WorkError: it cannot be written; what was there before is as it was.
    """
    with replacing(path, hint=hint) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
