"""Rerender many feedstocks in a few processes: pinning, releases and templates are read once in each of them.

What one feedstock does cannot harm another: each has its own bounds, and an error of one is only its own outcome. A
file records the outcomes, a line of JSON each, so that an interrupted run can go on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO, Literal, get_args

from feedstock_tools.bounds.limits import READING, BoundError, Bounds
from feedstock_tools.bounds.pool import each_bounded
from feedstock_tools.errors import FeedstockError, InputError, WorkError
from feedstock_tools.files.changes import Changes
from feedstock_tools.reading import CI_SUPPORT, read_text
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.rerendering import Request, Rerender, rerendered
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.smithy import Release
from feedstock_tools.variants.migration import OWN_KEYS
from feedstock_tools.yaml_reading.nodes import parse_texts

Outcome = Literal["changed", "unchanged", "not needed", "refused", "failed"]
#: `not needed`: the migration changes nothing. `refused`: the input is invalid. `failed`: it exceeds a bound, or it
#: could not be written.
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True, slots=True)
class RerenderedFeedstock:
    """What became of a feedstock.

    `reason`: why a migration is not needed, or the error. `changes`: what happens to each file, and its path.
    `seconds`: of processor time.
    """

    feedstock: Path
    outcome: Outcome
    reason: str = ""
    changes: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class MigrationFile:
    """A migration as far as it decides which feedstocks need it: `excluded` feedstocks, and the `keys` that it sets."""

    path: Path
    text: str
    excluded: frozenset[str]
    keys: frozenset[str]


@dataclass(frozen=True)
class _Order:
    pinning: Path | None
    rules: Rules
    smithy: Release | None
    migration: MigrationFile | None
    write: bool


def rerender_many(
    feedstocks: Iterable[Path],
    *,
    pinning: Path | None = None,
    rules: Rules | None = None,
    smithy: Release | None = None,
    migration: Path | None = None,
    write: bool = False,
    jobs: int = 1,
    bounds: Bounds = READING,
) -> Iterator[RerenderedFeedstock]:
    """Rerender feedstocks, and give the outcomes as they come.

    Args:
        feedstocks: their folders, taken as processes become free.
        pinning: as for `rerender`, for all of them; and so are `rules` and `smithy`.
        migration: apply this migration to each feedstock that needs it; the others are not rerendered.
        write: apply the changes.
        jobs: how many processes work in parallel.
        bounds: what each feedstock may take.

    Raises:
        InputError: the migration cannot be read.

    >>> [found] = rerender_many([Path("solver-feedstock")], pinning=Path("pinning"))
    >>> found.outcome, found.changes[0]
    ('changed', ('change', '.ci_support/linux_64_cuda_compiler_version12.9.yaml'))
    """
    read = None if migration is None else read_migration(migration)
    for name in _NEEDED_LATER:  # before processes are forked
        import_module(name)
    order = _Order(pinning, rules or Rules.newest(), smithy, read, write)
    for feedstock, found in each_bounded(partial(_rerendered, order), feedstocks, jobs, bounds):
        if isinstance(found, FeedstockError):
            is_final = isinstance(found, InputError) and not isinstance(found, BoundError)  # bounds can be lifted
            outcome: Outcome = "refused" if is_final else "failed"
            yield RerenderedFeedstock(feedstock, outcome, str(found))
        else:
            yield found


#: Keys of a migration that are no variables.
_NO_VARIABLES = OWN_KEYS | {"zip_keys", "pin_run_as_build"}
#: What a rerender imports when it needs it.
_NEEDED_LATER = (*("feedstock_tools.recipe.v0.recipe", "feedstock_tools.recipe.v1.outline"), *("jinja2.ext", "yaml"))


def _rerendered(order: _Order, feedstock: Path) -> RerenderedFeedstock:
    start = time.process_time()
    return replace(_outcome(order, feedstock), seconds=time.process_time() - start)


def _outcome(order: _Order, feedstock: Path) -> RerenderedFeedstock:
    request = Request(feedstock, order.rules, order.pinning, smithy=order.smithy)
    if order.migration is None:
        return _applied(order, feedstock, rerendered(request))
    before = rerendered(replace(request, smithy=None))
    name = feedstock.resolve().name.removesuffix("-feedstock")
    after, reason = migrated(order.migration, name, request, before)
    return _applied(order, feedstock, after) if after else RerenderedFeedstock(feedstock, "not needed", reason)


def migrated(migration: MigrationFile, name: str, request: Request, before: Rerender) -> tuple[Rerender | None, str]:
    """A feedstock with a migration, or None and why it does not need it.

    Args:
        name: that of the feedstock, such as `numpy`; its files may lie in another folder.
        before: its rerender without the migration.
    """
    if reason := _why_not(migration, name, request.feedstock):
        return None, reason
    after = rerendered(replace(request, migrations=(migration.path,)))
    return (None, _why_same(migration, before.configurations)) if after.files == before.files else (after, "")


def _applied(order: _Order, feedstock: Path, result: Rerender) -> RerenderedFeedstock:
    changes: Changes = result.changes()
    listed = changes.listed()
    if order.write:
        changes.apply()
    notes = result.tree.notes if result.tree is not None else result.ci_files().notes
    return RerenderedFeedstock(feedstock, "changed" if listed else "unchanged", "", listed, tuple(notes))


def read_migration(path: Path) -> MigrationFile:
    """Read a migration.

    Raises:
        InputError: the file is something else.
    """
    text = read_text(path, within=None)
    content = parse_texts(text, path) or {}
    settings = content.get("__migrator") if isinstance(content, dict) else None
    if not isinstance(settings, dict):
        raise InputError("is not a migration: it must be a mapping with a __migrator", path=path)
    excluded = settings.get("exclude")
    names = frozenset(name for name in excluded if isinstance(name, str)) if isinstance(excluded, list) else frozenset()
    return MigrationFile(path, text, names, frozenset(str(key).replace("-", "_") for key in content) - _NO_VARIABLES)


def _why_not(migration: MigrationFile, name: str, feedstock: Path) -> str:
    """Why a feedstock needs no migration, as far as its files tell; empty if it may need it."""
    if name in migration.excluded:
        return f"the migration excludes {name}"
    own = feedstock / CI_SUPPORT / "migrations" / migration.path.name
    if own.is_file() and read_text(own, within=feedstock) == migration.text:
        return "it has the migration"
    return ""


def _why_same(migration: MigrationFile, configurations: Iterable[Configuration]) -> str:
    """Why a migration changes no configuration; one whose key nothing pinned before shows only in the rendering."""
    found: dict[str, set[str]] = {}
    for configuration in configurations:
        for key in migration.keys & configuration.values.keys():
            found.setdefault(key, set()).update(configuration.values[key])
    if not found:
        return f"no configuration uses {' or '.join(sorted(migration.keys))}"
    have = "; ".join(f"{key} {', '.join(sorted(values))}" for key, values in sorted(found.items()))
    return f"the migration changes nothing: the configurations have {have}"


class Record:
    """An open file of outcomes: those of earlier runs, and a place for new ones."""

    def __init__(self, stream: IO[bytes], earlier: Iterable[RerenderedFeedstock]) -> None:
        """`stream` stands at its end."""
        self._stream = stream
        self.earlier = {_place(outcome.feedstock): outcome for outcome in earlier if outcome.outcome != "failed"}

    def has(self, feedstock: Path) -> bool:
        """Whether an earlier run finished a feedstock; failed ones are tried again."""
        return _place(feedstock) in self.earlier

    def add(self, found: RerenderedFeedstock) -> None:
        """Append an outcome; it is in the file when this returns.

        Raises:
            WorkError: the file cannot be written.
        """
        line = json.dumps({**asdict(found), "feedstock": _place(found.feedstock)})
        try:
            self._stream.write(line.encode() + b"\n")
            self._stream.flush()
        except OSError as error:
            raise WorkError(f"cannot be written: {error.strerror or error}", path=Path(self._stream.name)) from error


@contextmanager
def opened_record(path: Path, options: Mapping[str, str | None]) -> Iterator[Record]:
    """Open the record of a run, or begin one.

    Args:
        options: what the outcomes depend on besides the feedstocks; a record belongs to one set of them.

    Raises:
        InputError: the file is something else, or belongs to other options.
        WorkError: it cannot be read or written.
    """
    try:
        with path.open("a+b") as stream:
            stream.seek(0)
            complete = stream.read().rpartition(b"\n")[0]
            first, *lines = complete.split(b"\n")
            if first:
                _check(path, first, options)
            stream.truncate(len(complete) + 1 if first else 0)  # without a line that was cut off
            if not first:
                stream.write(json.dumps({"options": dict(options)}).encode() + b"\n")
            yield Record(stream, [_read_outcome(path, number, line) for number, line in enumerate(lines, 2)])
    except OSError as error:
        raise WorkError(f"cannot be written: {error.strerror or error}", path=path) from error


def _check(path: Path, line: bytes, options: Mapping[str, str | None]) -> None:
    try:
        before = json.loads(line)["options"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError("is not a record of rerenders", path=path, line=1, hint="Name a new file.") from error
    if before != dict(options):
        differ = sorted(key for key in options if not isinstance(before, dict) or before.get(key) != options[key])
        hint = "Name another file, or give the same options."
        raise InputError(f"belongs to a run with another {' and '.join(differ)}", path=path, line=1, hint=hint)


def _read_outcome(path: Path, number: int, line: bytes) -> RerenderedFeedstock:
    try:
        found = json.loads(line)
        changes = tuple((str(kind), str(name)) for kind, name in found["changes"])
        if found["outcome"] not in OUTCOMES:
            raise ValueError(found["outcome"])
        return RerenderedFeedstock(
            Path(found["feedstock"]),
            found["outcome"],
            str(found["reason"]),
            changes,
            tuple(map(str, found["notes"])),
            float(found["seconds"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InputError("is not an outcome of a rerender", path=path, line=number, hint="Name a new file.") from error


def _place(feedstock: Path) -> str:
    return str(feedstock.resolve())
