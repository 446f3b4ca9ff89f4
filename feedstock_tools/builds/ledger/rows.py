"""Records as the rows of the ledger's tables, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from typing import Any, TypeVar

from feedstock_tools.builds.ledger.damage import checked, refuse_leading_out
from feedstock_tools.builds.ledger.records import (
    BuildRecord,
    EnvironmentRecord,
    PackageRecord,
    SolvedPackage,
    TestRecord,
)

__all__ = [
    "BUILD_COLUMNS",
    "PACKAGE_COLUMNS",
    "TEST_COLUMNS",
    "build_of",
    "environment_json",
    "environment_of",
    "parts",
    "stored",
    "test_of",
]

T = TypeVar("T")

#: The columns of a query, the record's own first; some are keywords of SQL.
BUILD_COLUMNS = ", ".join(f'"{column}"' for column in (*BuildRecord.COLUMNS, "id"))
TEST_COLUMNS = ", ".join(f'"{column}"' for column in (*TestRecord.COLUMNS, "id"))
PACKAGE_COLUMNS = "build, channel, file, size, sha256, mtime_ns"
#: The stored fields of a package of an environment; `dataclasses.asdict` takes ten times as long.
_SOLVED = tuple(field.name for field in fields(SolvedPackage))
#: The number of values in one query, below the limit of every SQLite.
_AT_ONCE = 400


def stored(record: BuildRecord | TestRecord, column: str) -> Any:
    """A field as its column holds it."""
    value = getattr(record, column)
    if column in record.JSON:
        return json.dumps(dict(value) if isinstance(value, Mapping) else value)
    return value


def build_of(row: Sequence[Any], packages: Iterable[Sequence[Any]]) -> BuildRecord:
    """A build from a row of `BUILD_COLUMNS`, and those of its packages without the `build`.

    Raises:
        ValueError, TypeError: a value is not what a ledger holds.
    """
    values = _values(BuildRecord, row)
    channels = values.pop("channels")
    made = tuple(checked(PackageRecord(*package)) for package in packages)
    record = checked(BuildRecord(**values, channels=tuple(channels), packages=made, id=row[-1]))
    refuse_leading_out(record.log, *(path for package in made for path in (package.channel, package.file)))
    return record


def test_of(row: Sequence[Any]) -> TestRecord:
    """A test from a row of `TEST_COLUMNS`.

    Raises:
        ValueError, TypeError: a value is not what a ledger holds.
    """
    record = checked(TestRecord(**_values(TestRecord, row), id=row[-1]))
    refuse_leading_out(record.log, record.channel, record.file)
    return record


def environment_of(name: str, packages: str) -> EnvironmentRecord:
    """An environment from its row.

    Raises:
        ValueError, TypeError: a value is not what a ledger holds.
    """
    return checked(EnvironmentRecord(name, tuple(checked(SolvedPackage(**each)) for each in json.loads(packages))))


def environment_json(record: EnvironmentRecord) -> str:
    """The packages of an environment as their column holds them."""
    return json.dumps([{name: getattr(package, name) for name in _SOLVED} for package in record.packages])


def parts(values: Iterable[T]) -> Iterator[tuple[list[T], str]]:
    """Values, each once, in parts that fit into one query, each with its marks: `?, ?, ?`."""
    once = iter(dict.fromkeys(values))
    while part := list(islice(once, _AT_ONCE)):
        yield part, ", ".join("?" * len(part))


def _values(kind: type[BuildRecord | TestRecord], row: Sequence[Any]) -> dict[str, Any]:
    """The inverse of `stored` for a whole row, whose columns may be followed by others."""
    found = dict(zip(kind.COLUMNS, row, strict=False))
    for column in kind.JSON:
        found[column] = json.loads(found[column])
    if found["result"] not in kind.RESULTS:
        raise ValueError("it has an invalid 'result'")
    return found
