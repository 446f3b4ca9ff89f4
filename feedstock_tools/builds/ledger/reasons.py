"""Why SQLite refuses, in words: it reports a full disk, a limit and a missing lock in the same way."""

from __future__ import annotations

import sqlite3

_FREE = "Free some space, or give another folder with --output-dir. Nothing that was recorded before is lost."
#: Codes of SQLite (https://www.sqlite.org/rescode.html), the particular ones first → what happened, and what to do.
_REASONS = {
    frozenset({sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_IOERR_UNLOCK, sqlite3.SQLITE_IOERR_RDLOCK}): (
        "the file system has no locks",
        "Give a folder on another file system with --output-dir.",
    ),
    frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}): (
        "it is locked",
        "Another program holds it. Wait for it to end, then try again.",
    ),
    frozenset({sqlite3.SQLITE_FULL}): ("the disk is full", _FREE),
    frozenset({sqlite3.SQLITE_IOERR}): (
        "it cannot be read or written: the disk, a quota or a limit on the size of files (`ulimit -f`) ends it",
        _FREE,
    ),
    frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}): (
        "it cannot be written",
        "Give a writable folder with --output-dir.",
    ),
}


def words_of(error: sqlite3.OperationalError) -> tuple[str, str | None]:
    """What happened, and what to do about it, if that is known."""
    code = getattr(error, "sqlite_errorcode", 0)
    return next(
        (words for codes, words in _REASONS.items() if code in codes or code & 0xFF in codes), (str(error), None)
    )
