"""Writing files atomically: first to a temporary name, then moved into place, so that nobody ever sees half of one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from feedstock_tools.errors import WorkError
from feedstock_tools.files.temporary import owned_name, remove_leftovers


@contextmanager
def replacing(path: Path, *, message: str = "cannot write", hint: str | None = None) -> Iterator[Path]:
    """A temporary path beside `path`; the file written there replaces `path` at the end of the block.

    Missing folders are created. A replaced file passes on its mode; no file stays behind if the block
    fails. The temporary name carries its owner (`temporary.owned_name`), is short whatever `path` is called, and is not
    used by any other process or thread; what killed processes left in the folder is removed.

    Args:
        message: the message before the system's reason.
        hint: what to do about it.

    Raises:
        WorkError: the system refuses, also within the block.
    """
    part = path.with_name(owned_name())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent)
        yield part
        if path.is_file():
            part.chmod(path.stat().st_mode & 0o777)
        part.replace(path)
    except OSError as error:
        raise WorkError(f"{message}: {error.strerror or error}", path=path, hint=hint) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes | str, *, hint: str | None = None) -> None:
    """Replace or create a file with bytes or a text, which is written as UTF-8 with unchanged line breaks.

    Raises:
        WorkError: it cannot be written; the old file is unchanged.
    """
    with replacing(path, hint=hint) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
