"""The seal of a record: what tells what this user built, tested or compared from what came with a feedstock.

A ledger lies among the artifacts, where a clone or an archive may bring one. The key lies in the user's own state
folder, so nobody else can seal.
"""

from __future__ import annotations

import hmac
import json
import os
from functools import cache
from pathlib import Path

from feedstock_tools.builds.ledger.records import BuildRecord, ComparisonRecord, TestRecord, told_of
from feedstock_tools.data import state_root

_KEY = "ledger.key"
_SIZE = 32
_Record = BuildRecord | TestRecord | ComparisonRecord
#: What the seal of a build covers: all that decides whether a build counts, and where its packages may go.
_COVERED = ("identity", "configuration", "row", "output", "result", "engine", "machine")


def key_of_user() -> bytes | None:
    """The key of the user of this process, made if there is none; None where none can be kept.

    A home of another user, or one that the current folder decides, keeps none.
    """
    path = state_root(os.environ) / _KEY
    return _key(path) if path.is_absolute() else None


@cache
def _key(path: Path) -> bytes | None:
    try:
        try:
            key = path.read_bytes()
        except FileNotFoundError:
            key = _made(path)
        if hasattr(os, "geteuid") and path.stat().st_uid != os.geteuid():
            return None
    except OSError:
        return None
    return key if len(key) == _SIZE else None


def _made(path: Path) -> bytes:
    """A new key in a file that nobody else may read; of two processes that make one the first wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    own = path.with_name(f".{path.name}-{os.urandom(8).hex()}")
    with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(os.urandom(_SIZE))
    try:
        path.hardlink_to(own)
    except FileExistsError:
        pass
    finally:
        own.unlink()
    return path.read_bytes()


def seal_of(record: _Record, key: bytes) -> str:
    """The seal of a build and its packages, or of all that a test or a comparison tells."""
    if isinstance(record, BuildRecord):
        packages = sorted((each.channel, each.file, each.size, each.sha256) for each in record.packages)
        covered = [getattr(record, name) for name in _COVERED]
        text = json.dumps([*covered, list(record.channels), sorted(record.marks.items()), packages])
    else:
        text = json.dumps([record.TABLE, told_of(record)], sort_keys=True)
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


def is_sealed(record: _Record, key: bytes | None) -> bool:
    return key is not None and hmac.compare_digest(record.seal.encode(), seal_of(record, key).encode())
