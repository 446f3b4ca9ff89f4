"""Newer facts than those that ship: a file that the user took from somewhere, kept in the cache beside ours."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from urllib.error import HTTPError

from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.facts.content import NAMES, Update, checked, folder_of_updates, updated
from feedstock_tools.files.changes import write_whole
from feedstock_tools.reading import read_bytes, read_text

_LARGEST = 4 << 20
_NOT_FOUND = 404


def updates() -> list[Update]:
    """All files that replace ours."""
    return [found[1] for name in NAMES if (found := updated(name))]


def reset() -> None:
    """Use the facts that ship again."""
    shutil.rmtree(folder_of_updates(), ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Taken:
    """A file that was taken, and how many lines of it came and went against the one that was used before."""

    update: Update
    came: int
    went: int


def take(source: str, sha256: str | None) -> list[Taken]:
    """Take a file as `update` does, or, of an address that ends with /, all files of facts that are there.

    Raises:
        InputError: as `update`; or there is none of the files.
        WorkError: as `update`.
    """
    if not source.endswith("/"):
        return [_taken(source, sha256)]
    if sha256 is not None or not source.startswith("https://"):
        raise InputError(f"'{source}' is not an address over TLS", hint="Name one file and its hash: --sha256 ….")
    found = []
    for name in NAMES:
        try:
            found.append(_taken(source + name, None))
        except WorkError as error:
            if not isinstance(error.__cause__, HTTPError) or error.__cause__.code != _NOT_FOUND:
                raise
    if not found:
        raise InputError(f"'{source}' has none of the files of facts", hint=f"They are {', '.join(NAMES)}.")
    return found


def _taken(source: str, sha256: str | None) -> Taken:
    name = _name_of(source)
    before = Counter(_lines_of(name)) if name in NAMES else Counter[str]()
    taken = update(source, sha256)
    after = Counter(_lines_of(name))
    return Taken(taken, (after - before).total(), (before - after).total())


def _lines_of(name: str) -> list[str]:
    found = updated(name)
    return read_text(found[0] if found else data_folder("variants") / name, within=None).splitlines()


def _name_of(source: str) -> str:
    return PurePosixPath(source.replace("\\", "/")).name


def update(source: str, sha256: str | None) -> Update:
    """Take a file of facts from a path, with its hash, or from an address over TLS, checked as ours are.

    Raises:
        InputError: it is none of the files, not there, not the one that the hash names, or breaks its schema.
        WorkError: the address does not answer.
    """
    from feedstock_tools.facts.models import FILES

    name = _name_of(source)
    if name not in NAMES:
        raise InputError(f"'{name}' is not a file of facts that can be updated", hint=f"There are {', '.join(NAMES)}.")
    if not source.startswith("https://") and (sha256 is None or "://" in source):
        raise InputError(f"'{source}' does not come over TLS", hint="Name a file and its hash: --sha256 ….")
    content = _content(source)
    digest = hashlib.sha256(content).hexdigest()
    if sha256 is not None and digest != sha256.lower():
        raise InputError(f"'{source}' is not the file with that hash: its SHA-256 is {digest}")
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        checked(path, FILES[name])
    taken = Update(name, source, digest, datetime.now(UTC).date().isoformat())
    write_whole(folder_of_updates() / f"{Path(name).stem}.json", json.dumps(asdict(taken)))
    write_whole(folder_of_updates() / name, content)
    return taken


def _content(source: str) -> bytes:
    from urllib.request import urlopen

    if not source.startswith("https://"):
        return read_bytes(Path(source), _LARGEST, within=None)
    try:
        with urlopen(source, timeout=60) as answer:  # noqa: S310 - https alone
            if not answer.url.startswith("https://"):
                raise InputError(f"'{source}' leads to an address without TLS")
            content: bytes = answer.read(_LARGEST + 1)
    except OSError as error:
        raise WorkError(f"'{source}' cannot be read: {getattr(error, 'reason', error.strerror) or error}") from error
    if len(content) > _LARGEST:
        raise InputError(f"'{source}' is larger than a file of facts ({_LARGEST >> 20} MB)")
    return content
