"""Removes the coverage data of processes that were killed while they wrote it: coverage warns about each such file.

python -m tests.support.unfinished FOLDER
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

__all__ = ["remove_unfinished"]

#: Tables of coverage's data.
_TABLES = ("coverage_schema", "meta", "file", "arc")


def remove_unfinished(folder: Path) -> list[Path]:
    """Remove the data files in a folder that are incomplete, with their journals; returns them."""
    files = [path for path in sorted(folder.glob("data.*")) if not path.name.endswith("-journal")]
    removed = [path for path in files if not _is_whole(path)]
    for path in removed:
        path.unlink()
    for journal in folder.glob("data.*-journal"):
        journal.unlink()
    return removed


def _is_whole(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(path)) as data:
            for table in _TABLES:
                data.execute(f"select count(*) from {table}").fetchone()  # noqa: S608
            versions = data.execute("select count(*) from coverage_schema").fetchone()
            checked = data.execute("pragma quick_check").fetchone()
    except sqlite3.DatabaseError:
        return False
    return bool(versions[0] and checked == ("ok",))


if __name__ == "__main__":
    remove_unfinished(Path(sys.argv[1]))
