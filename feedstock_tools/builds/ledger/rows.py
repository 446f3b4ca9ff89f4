"""Records as the rows of the ledger's tables, and back.

SQLite accepts any value in any column, so the type of each is checked here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from itertools import islice
from types import NoneType, UnionType
from typing import Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from feedstock_tools.builds.ledger.records import (
    BuildRecord,
    ComparisonRecord,
    EnvironmentRecord,
    PackageRecord,
    SolvedPackage,
    TestRecord,
)

T = TypeVar("T")
_Record = TypeVar("_Record")
_Check: TypeAlias = "Callable[[Any], bool]"

#: Of a text: the longest reason, a solver's, has some kilobytes. Of a number: no size or time is greater.
_LONGEST = 1 << 20
_GREATEST = 1 << 63

#: The columns of a query, the record's own first; some are keywords of SQL.
BUILD_COLUMNS = ", ".join(f'"{column}"' for column in (*BuildRecord.COLUMNS, "id"))
COMPARISON_COLUMNS = ", ".join(f'"{column}"' for column in (*ComparisonRecord.COLUMNS, "id"))
TEST_COLUMNS = ", ".join(f'"{column}"' for column in (*TestRecord.COLUMNS, "id"))
PACKAGE_COLUMNS = "build, channel, file, size, sha256, mtime_ns"
#: The stored fields of a package of an environment; `dataclasses.asdict` takes ten times as long.
_SOLVED = tuple(field.name for field in fields(SolvedPackage))
#: The number of values in one query, below the limit of every SQLite.
_AT_ONCE = 400


def stored(record: BuildRecord | TestRecord | ComparisonRecord, column: str) -> Any:
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
    files = tuple(_checked(PackageRecord(*package)) for package in packages)
    record = _checked(BuildRecord(**values, channels=tuple(channels), packages=files, id=row[-1]))
    _refuse_leading_out(record.log, *(path for package in files for path in (package.channel, package.file)))
    return record


def test_of(row: Sequence[Any]) -> TestRecord:
    """A test from a row of `TEST_COLUMNS`.

    Raises:
        ValueError, TypeError: a value is not what a ledger holds.
    """
    record = _checked(TestRecord(**_values(TestRecord, row), id=row[-1]))
    _refuse_leading_out(record.log, record.channel, record.file)
    return record


def comparison_of(row: Sequence[Any]) -> ComparisonRecord:
    """A comparison from a row of `COMPARISON_COLUMNS`.

    Raises:
        ValueError, TypeError: a value is not what a ledger holds.
    """
    record = _checked(ComparisonRecord(**_values(ComparisonRecord, row), id=row[-1]))
    _refuse_leading_out(record.log, record.channel, record.file)
    return record


def environment_of(name: str, packages: str) -> EnvironmentRecord:
    """An environment from its row.

    Raises:
        ValueError, TypeError: a value is not what a ledger holds.
    """
    return _checked(EnvironmentRecord(name, tuple(_checked(SolvedPackage(**each)) for each in json.loads(packages))))


def environment_json(record: EnvironmentRecord) -> str:
    """The packages of an environment as their column holds them."""
    return json.dumps([{name: getattr(package, name) for name in _SOLVED} for package in record.packages])


def parts(values: Iterable[T]) -> Iterator[tuple[list[T], str]]:
    """Values, each once, in parts that fit into one query, each with its marks: `?, ?, ?`."""
    once = iter(dict.fromkeys(values))
    while part := list(islice(once, _AT_ONCE)):
        yield part, ", ".join("?" * len(part))


def _values(kind: type[BuildRecord | TestRecord | ComparisonRecord], row: Sequence[Any]) -> dict[str, Any]:
    """The inverse of `stored` for a whole row, whose columns may be followed by others."""
    found = dict(zip(kind.COLUMNS, row, strict=False))
    for column in kind.JSON:
        found[column] = json.loads(found[column])
    if found["result"] not in kind.RESULTS:
        raise ValueError("it has an invalid 'result'")
    return found


def _checked(record: _Record) -> _Record:
    """The record itself, if each of its fields is of its type.

    Raises:
        ValueError: a field has the wrong type, is NaN or beyond all sizes, or is a string with NUL bytes, which no path
            may have.
    """
    kind: Any = type(record)
    for name, fits in _checks(kind):
        if not fits(getattr(record, name)):
            raise ValueError(f"it has an invalid '{name}'")
    return record


def _refuse_leading_out(*paths: str) -> None:
    """Refuse paths that are not below the ledger's folder: packages are read, published and removed by them.

    Raises:
        ValueError: a path is absolute, or has `..` in it.
    """
    for path in paths:
        if path[:1] in ("/", "\\") or path[1:2] == ":" or ".." in path.replace("\\", "/").split("/"):
            raise ValueError(f"the path {path[:200]!r} leads out of its folder")


@cache
def _checks(kind: Any) -> tuple[tuple[str, _Check], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, _check(hints[field.name])) for field in fields(kind))


def _check(hint: Any) -> _Check:
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, of = get_origin(hint), [_check(each) for each in get_args(hint) if each is not ...]
    if origin in (Union, UnionType):
        return lambda value: any(fits(value) for fits in of)
    if origin is tuple:
        return lambda value: isinstance(value, tuple) and all(map(of[0], value))
    if origin is Mapping:
        return lambda value: isinstance(value, dict) and all(map(of[0], value)) and all(map(of[1], value.values()))
    kind = NoneType if hint is None else hint
    return lambda value: isinstance(value, kind)


def _is_text(value: Any) -> bool:
    return type(value) is str and len(value) <= _LONGEST and "\0" not in value


def _is_whole(value: Any) -> bool:
    return type(value) is int and -_GREATEST <= value < _GREATEST


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (type(value) is float and math.isfinite(value))


_PLAIN: Mapping[Any, _Check] = {
    str: _is_text,
    int: _is_whole,
    float: _is_number,
    Any: lambda _value: True,
}
