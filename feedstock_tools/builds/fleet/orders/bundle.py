"""Bundles: the files of a build, by their contents, so that a host gets each of them once.

A bundle holds what goes into builds and nothing else: the recipe, the spec, local sources, and the folders given as
channels. Neither the environment of the client nor anything else of its disk is in it, and a file with a credential is
refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from feedstock_tools.digests import files_below, sha256_of
from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.redaction import known_secrets, secrets_in_file

_MOST_ENTRIES = 500_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a bundle by its path in it; or a link, with its target."""

    path: str
    sha256: str = ""
    size: int = 0
    program: bool = False
    link: str = ""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files by path, in order. Its identity is the hash of its JSON."""

    entries: tuple[Entry, ...]

    @property
    def document(self) -> bytes:
        """Its JSON."""
        return json.dumps([asdict(entry) for entry in self.entries], sort_keys=True).encode()

    @property
    def identity(self) -> str:
        """The SHA-256 of the document."""
        return sha256(self.document).hexdigest()

    @classmethod
    def from_document(cls, document: bytes) -> Bundle:
        """The inverse of `document`.

        Raises:
            ValueError: it is no bundle, or one with a path or a link that leads out of it.
        """
        listed = json.loads(document)
        if not isinstance(listed, list) or len(listed) > _MOST_ENTRIES:
            raise ValueError("a bundle is a list of entries")
        bundle = cls(tuple(_entry(each) for each in listed))
        links = {PurePosixPath(entry.path) for entry in bundle.entries if entry.link}
        for entry in bundle.entries:
            if not links.isdisjoint(PurePosixPath(entry.path).parents):
                raise ValueError(f"{entry.path!r} is below a link")
        return bundle


@dataclass(frozen=True, slots=True)
class Packed:
    """A bundle on the machine that has its files: hash → a file with these contents."""

    bundle: Bundle
    files: Mapping[str, Path]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.bundle.entries)


def pack(roots: Mapping[str, Path]) -> Packed:
    """The files below some folders, and single files, as a bundle.

    Args:
        roots: path in the bundle → the file or folder there. A link is kept if it leads to a place below its root, and
            otherwise replaced by what it leads to.
    """
    files: dict[str, Path] = {}
    entries: dict[str, Entry] = {}
    for place, root in roots.items():
        for path, source in _below(root, root):
            name = PurePosixPath(place, path).as_posix()
            if source.is_symlink():
                entries[name] = Entry(name, link=str(source.readlink()))
                continue
            state = source.stat()
            content = sha256_of(source)
            entries[name] = Entry(name, content, state.st_size, bool(state.st_mode & 0o100))
            files[content] = source
    return Packed(Bundle(tuple(entries[name] for name in sorted(entries))), files)


def refuse_credentials(files: Iterable[Path], machine: Mapping[str, str]) -> None:
    """Refuse to send files that contain a token, a password in a URL, a private key, or a secret of this machine.

    Args:
        machine: the environment of this machine.

    Raises:
        InputError: some do; each with its line.
    """
    known = known_secrets(machine)
    mistakes = [
        Mistake(f"contains {kind}, which must not go to other machines", path, line)
        for path in sorted(set(files))
        for kind, line in secrets_in_file(path, known).items()
    ]
    if mistakes:
        hint = "Remove it, or build this feedstock on this machine."
        raise InputError.of(
            [*mistakes[:-1], Mistake(mistakes[-1].message, mistakes[-1].path, mistakes[-1].line, hint=hint)]
        )


def _below(root: Path, top: Path, seen: tuple[Path, ...] = ()) -> Iterator[tuple[str, Path]]:
    """The files below a root, with their paths relative to it; what links lead out to counts as being there."""
    if root.resolve() in seen:
        return  # a link to a folder above
    for name in files_below(root):
        path = Path(name)
        relative = path.relative_to(root).as_posix() if path != root else ""
        if not path.is_symlink() or _stays_inside(path, top):
            yield relative, path
        elif path.exists():
            target = path.resolve()
            for inner, source in _below(target, top, (*seen, root.resolve())):
                yield PurePosixPath(relative, inner).as_posix(), source


def _stays_inside(link: Path, top: Path) -> bool:
    target = os.fspath(link.readlink())
    return not target.startswith("/") and link.resolve().is_relative_to(top.resolve())


def _entry(content: Any) -> Entry:
    if not isinstance(content, dict) or content.keys() != _FIELDS.keys():
        raise ValueError("an entry of a bundle has other fields")
    if any(type(content[key]) is not kind for key, kind in _FIELDS.items()):
        raise ValueError("an entry of a bundle has a value of another type")
    entry = Entry(**content)
    path = PurePosixPath(entry.path)
    if (
        path.is_absolute()
        or ".." in path.parts
        or not path.parts
        or "\0" in entry.path
        or path.as_posix() != entry.path
    ):
        raise ValueError(f"{entry.path!r} leads out of the bundle")
    target = PurePosixPath(os.path.normpath(path.parent / entry.link)) if entry.link else path
    if target.is_absolute() or target.parts[:1] == ("..",):
        raise ValueError(f"the link {entry.path!r} leads out of the bundle")
    return entry


_FIELDS = {"path": str, "sha256": str, "size": int, "program": bool, "link": str}
