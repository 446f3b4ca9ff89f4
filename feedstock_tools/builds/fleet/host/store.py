"""The files of a host by their contents: what bundles consist of, each once."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from feedstock_tools.builds.fleet.orders.bundle import Bundle
from feedstock_tools.builds.fleet.orders.order import Refused
from feedstock_tools.digests import sha256_of
from feedstock_tools.files.temporary import remove

_HASH = re.compile("[0-9a-f]{64}")
#: Files that no build has used for so long are removed, in seconds.
_KEPT = 30 * 24 * 3600.0


def is_hash(text: object) -> bool:
    """Whether a value is a SHA-256 in hexadecimal."""
    return isinstance(text, str) and _HASH.fullmatch(text) is not None


class Store:
    """The folder of a host's files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._arriving = folder / "arriving"
        self._arriving.mkdir(parents=True, exist_ok=True)

    def has(self, content: str) -> bool:
        """Whether the contents of a hash are there."""
        return self._place(content).is_file()

    def missing(self, contents: Iterable[str]) -> list[str]:
        """Those of some hashes whose contents are not there."""
        return [content for content in dict.fromkeys(contents) if not self.has(content)]

    def bundle(self, identity: str) -> Bundle | None:
        """A bundle by its identity; None if its document is not there.

        Raises:
            Refused: it is no bundle.
        """
        try:
            return Bundle.from_document(self._place(identity).read_bytes()) if self.has(identity) else None
        except (ValueError, RecursionError) as error:
            raise Refused(f"the bundle is damaged: {error}") from None

    def put(self, content: str, offset: int, data: bytes, size: int) -> None:
        """A part of a file; with the last part it must have the contents of the hash.

        Args:
            offset: of the part; parts come in order, and 0 begins again.
            size: of the whole file.

        Raises:
            Refused: they come in another order, or the contents are others.
        """
        place, part = self._place(content), self._arriving / content
        if self.has(content):
            return
        with part.open("ab" if offset else "wb") as stream:
            if stream.tell() != offset or offset + len(data) > size:
                raise Refused(f"the part at {offset} of {content[:12]} does not follow the one before")
            stream.write(data)
        if offset + len(data) < size:
            return
        if sha256_of(part) != content:
            part.unlink()
            raise Refused(f"the contents of {content[:12]} are others")
        part.chmod(0o400)
        place.parent.mkdir(exist_ok=True)
        part.rename(place)

    def copy(self, content: str, target: Path) -> None:
        """A copy of the contents of a hash, checked again.

        Raises:
            Refused: they are missing or damaged.
        """
        source = self._place(content)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            os.utime(source)
        except OSError as error:
            raise Refused(f"{content[:12]} cannot be copied: {error.strerror or error}") from None
        if sha256_of(target) != content:
            source.unlink(missing_ok=True)
            raise Refused(f"{content[:12]} was damaged on this host's disk")

    def lay_out(self, bundle: Bundle, folder: Path) -> None:
        """Lay out a bundle in a folder, which is replaced.

        Raises:
            Refused: a file is missing or damaged.
        """
        if folder.exists():
            remove(folder)
        folder.mkdir(parents=True)
        for entry in bundle.entries:
            target = folder / entry.path
            if entry.link:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(entry.link)
                continue
            self.copy(entry.sha256, target)
            target.chmod(0o755 if entry.program else 0o644)

    def remove_unused(self) -> None:
        """Remove what no build has used for weeks."""
        for file in self._folder.glob("*/*"):
            with suppress(OSError):
                if time.time() - file.stat().st_mtime > _KEPT:
                    file.unlink()

    def _place(self, content: str) -> Path:
        if not is_hash(content):
            raise Refused("a hash is 64 hexadecimal digits")
        return self._folder / content[:2] / content
