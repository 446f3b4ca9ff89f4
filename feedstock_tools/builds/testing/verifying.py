"""Building rows a second time, and comparing what both builds made, file by file.

The second builds have an artifacts folder of their own, with a ledger and a channel that nobody reads afterwards: they
replace no package. That a file differs is recorded and not judged: a script may read a clock, and a compiler may draw
numbers.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from feedstock_tools.builds.ledger import BuildRecord, ComparisonRecord, Ledger, PackageRecord
from feedstock_tools.builds.plan.agenda import Agenda, agenda
from feedstock_tools.builds.plan.hosts import Capacity, other_than
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.builds.plan.workspace import Workspace
from feedstock_tools.builds.runs.run import BuildResult
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.packages.archive import compare_packages
from feedstock_tools.digests import digest_of_values
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.planned import PlannedConfiguration
from feedstock_tools.files.locks import Locks
from feedstock_tools.files.temporary import remove

#: The files of a package whose differences are recorded.
_MOST_FILES = 1000
_HOW = "it was not built a second time"


@dataclass(frozen=True, slots=True)
class _Pair:
    """A package with its build, and the second build of its output, if there was one."""

    package: PackageRecord
    first: BuildRecord
    second: BuildRecord | None


def rows_to_verify(result: BuildResult, count: int) -> tuple[str, ...]:
    """The rows of a run to build a second time: first those with a package that was never compared.

    Otherwise the digest of a row's identities decides, so that equal runs choose equal rows, and other inputs others.

    Args:
        count: how many at most, of those whose outputs are all done.
    """
    made: dict[str, list[BuildRecord]] = {}
    for record in _records(result):
        made.setdefault(record.row, []).append(record)
    complete = {outcome.row.name for outcome in result.outcomes} - {
        outcome.row.name for outcome in result.outcomes if not outcome.is_done
    }
    if not complete & made.keys():
        return ()
    with Ledger(result.artifacts.ledger) as ledger:
        known = {record.sha256 for record in ledger.comparisons() if ledger.counts(record)}

    def rank(name: str) -> tuple[bool, str]:
        hashes = {package.sha256 for record in made[name] for package in record.packages}
        return hashes <= known, digest_of_values(sorted(record.identity for record in made[name]))

    return tuple(sorted(complete & made.keys(), key=rank)[:count])


def _records(result: BuildResult) -> list[BuildRecord]:
    """The finished builds of a run, each once; of an output that rows share, that of the row that built it."""
    records = (outcome.record for outcome in result.outcomes if outcome.record and outcome.is_done)
    return list({record.id: record for record in records}.values())


@contextmanager
def second_workspace(workspace: Workspace) -> Iterator[Workspace]:
    """The same feedstock with an artifacts folder of its own, which is empty now, and gone after the block.

    Raises:
        WorkError: another command uses it, or it cannot be made.
    """
    artifacts = workspace.artifacts
    locks = Locks.take(artifacts.locks, ["again"])
    if locks is None:
        raise WorkError("another command builds rows of this folder a second time", path=artifacts.root)
    with locks:
        try:
            yield workspace.apart(artifacts.apart(artifacts.again))
        except OSError as error:
            raise WorkError(f"cannot make a folder: {error.strerror or error}", path=artifacts.again) from error
        finally:
            remove(artifacts.again)


def phases(result: BuildResult, rows: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Some rows in groups, to be built a second time one after the other.

    An output that rows share keeps traces of the row that built it: the name of its folder, and in its rendered recipe
    the other outputs of the row. So a row of a later group gets what one of an earlier group has built.
    """
    needed: dict[str, set[str]] = {}
    for outcome in result.outcomes:
        if outcome.record is not None and outcome.row.name in rows:
            needed.setdefault(outcome.row.name, set()).add(outcome.record.row)
    left, found = list(rows), []
    while left:
        ready = [row for row in left if needed.get(row, set()).isdisjoint(set(left) - {row})] or left
        found.append(tuple(ready))
        left = [row for row in left if row not in ready]
    return tuple(found)


def second_agenda(
    second: Workspace,
    chosen: Sequence[PlannedConfiguration],
    result: BuildResult,
    rows: Sequence[str],
    built_on: Mapping[str, str],
    capacity: Capacity,
    jobs: int,
) -> Agenda:
    """The work of building some rows a second time, each with the outputs that it built the first time.

    Args:
        rows: a phase of `phases`; the rows of earlier ones have been built.
        second: as `second_workspace` gives it.
        chosen: the configurations of the rows, with their outputs; `result` is that of their first builds.
        built_on: row → the host of a fleet that built it and must not build it again; empty on one machine.
    """
    named = [each for each in chosen if any(row.name in rows for row in each.rows)]
    _bring(second.artifacts, result, rows)
    planned = agenda(second, named, capacity, jobs)
    return planned.only([_elsewhere(row, built_on) for row in planned.todo if row.name in rows])


def _bring(artifacts: Artifacts, result: BuildResult, rows: Sequence[str]) -> None:
    """Put the packages that other rows have built for some rows into the channel and the ledger of the second builds,
    unless they were built a second time.
    """
    needed = [outcome.record for outcome in result.outcomes if outcome.row.name in rows and outcome.record]
    foreign = {record.id: record for record in needed if record.row not in rows}
    channels = set()
    with Ledger(artifacts.ledger) as ledger:
        for record in foreign.values():
            if ledger.done(record.identity) is not None:
                continue
            for package in record.packages:
                _copy(
                    result.artifacts.root / package.channel / package.file,
                    artifacts.root / package.channel / package.file,
                )
                channels.add(artifacts.root / package.channel)
            packages = tuple(
                replace(each, mtime_ns=(artifacts.root / each.channel / each.file).stat().st_mtime_ns)
                for each in record.packages
            )
            ledger.finish(replace(ledger.begin(record), result="done", packages=packages))
    for channel in channels:
        index_channel(channel)


def _elsewhere(row: Row, built_on: Mapping[str, str]) -> Row:
    host = built_on.get(row.name)
    if host is None:
        return row
    needs = replace(row.wanted.needs, labels=row.wanted.needs.labels | {other_than(host)})
    return replace(row, wanted=replace(row.wanted, needs=needs))


def compared(result: BuildResult, second: BuildResult, rows: Sequence[str]) -> tuple[ComparisonRecord, ...]:
    """Compare the packages of some rows with those of their second builds, and record that beside the first.

    Args:
        result: of the first builds; `second` is that of the second ones, whose folder still exists.
    """
    artifacts = result.artifacts
    logs: dict[str, str] = {}
    with Ledger(artifacts.ledger) as ledger:
        records = []
        for pair in _pairs(result, second, rows):
            record = _compared(pair, artifacts, second.artifacts)
            if pair.second is not None:
                log = _kept_log(pair.second.log, artifacts, second.artifacts, logs)
                record = replace(record, log=log)
            records.append(ledger.record_comparison(record))
        return tuple(records)


def _pairs(result: BuildResult, second: BuildResult, rows: Sequence[str]) -> Iterator[_Pair]:
    """Each package that these rows have built."""
    again = {(each.output.subdir, each.output.stem): each.record for each in second.outcomes if each.new}
    places = {outcome.record.id: outcome.output.package_id for outcome in result.outcomes if outcome.record}
    for record in _records(result):
        if record.row in rows:
            for package in record.packages:
                yield _Pair(package, record, again.get(places[record.id]))


def _compared(pair: _Pair, artifacts: Artifacts, others: Artifacts) -> ComparisonRecord:
    package, second = pair.package, pair.second
    found = ComparisonRecord(
        sha256=package.sha256,
        channel=package.channel,
        file=package.file,
        started=second.started if second else pair.first.started,
        result="failed",
        log="",
        machine=second.machine if second else "",
        reason=(second.reason if second else "") or _HOW,
        ended=second.ended if second else None,
        seconds=second.seconds if second else None,
    )
    if second is None or second.result != "done" or not second.packages:
        return found
    (other, *_) = second.packages
    found = replace(found, reason="", again=other.sha256, result="same")
    if other.sha256 == package.sha256:
        return found
    second_file = others.root / other.channel / other.file
    comparison = compare_packages(artifacts.root / package.channel / package.file, second_file)
    if comparison.differences:
        _copy(second_file, artifacts.compared / other.file)  # for `diff`
    differences = {each.path: each.what for each in comparison.differences[:_MOST_FILES]}
    result = "different" if differences else "repacked"
    return replace(found, result=result, files=comparison.files, differences=differences)


def _copy(package: Path, place: Path) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(package, place)
    except OSError as error:
        raise WorkError(f"cannot copy a package: {error.strerror or error}", path=place) from error


def _kept_log(log: str, artifacts: Artifacts, others: Artifacts, kept: dict[str, str]) -> str:
    """The path of a second build's log among those of the first builds; empty if it cannot be kept."""
    if log and log not in kept:
        place = artifacts.logs / f"again-{Path(log).name}"
        try:
            shutil.copyfile(others.root / log, place)
            kept[log] = place.relative_to(artifacts.root).as_posix()
        except OSError:
            kept[log] = ""
    return kept.get(log, "")
