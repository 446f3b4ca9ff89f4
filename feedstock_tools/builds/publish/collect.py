"""Merging the ledgers and channels of several machines, such as the jobs of a CI service.

Every part is checked before anything of it is imported (`builds.publish.parts`). A part with anything wrong is refused
as a whole, and the others are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from feedstock_tools.builds.ledger import (
    BuildRecord,
    ComparisonRecord,
    EnvironmentRecord,
    Ledger,
    PackageRecord,
    TestRecord,
)
from feedstock_tools.builds.publish.parts import (
    Part,
    copied_log,
    find_parts,
    is_plain_log,
    mistakes_of,
    parts_of_other_feedstocks,
    read_part,
)
from feedstock_tools.channel.folder import add_packages, complete_index
from feedstock_tools.errors import FeedstockError, InputError, Mistake, WorkError
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.files.temporary import temporary_folder


@dataclass(frozen=True, slots=True)
class Collected:
    """The imported items: folders read, builds and tests recorded, packages added, and known builds.

    `again` counts skipped packages that an earlier build from the same inputs has made. `refused` lists what is wrong
    with folders that were not merged; `folders` does not count them.
    """

    folders: int
    builds: int
    tests: int
    packages: int
    known: int
    again: int = 0
    refused: tuple[Mistake, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    """A build of another ledger, as it is recorded here: with its final state, without packages that were replaced.

    `number` is its number in that ledger.
    """

    part: Part
    number: int
    record: BuildRecord

    @property
    def environments(self) -> tuple[EnvironmentRecord, ...]:
        return self.part.environments(self.number)


@dataclass(frozen=True, slots=True)
class _Refusals:
    """What is wrong with parts, by their folders; `bad_input` if it is not a matter of their contents."""

    of_parts: dict[Path, list[Mistake]]
    bad_input: set[Path]

    def add(self, root: Path, mistakes: Iterable[Mistake], *, bad_input: bool = False) -> None:
        for mistake in mistakes:
            self.of_parts.setdefault(root, []).append(mistake)
            if bad_input:
                self.bad_input.add(root)

    def error(self) -> FeedstockError:
        kind = InputError if self.of_parts.keys() <= self.bad_input else WorkError
        return kind.of(list(self.mistakes))

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        return tuple(mistake for mistakes in self.of_parts.values() for mistake in mistakes)


def collect(folders: Sequence[Path], artifacts: Artifacts, feedstock: Feedstock | None = None) -> Collected:
    """Import the builds, packages, logs and tests of other artifacts folders.

    A folder is refused as a whole if its ledger is damaged or of another feedstock, if a log is not in its folder of
    logs, or if a package is missing, differs from its record, is not what the build was to make, or would replace
    another. The others are merged.

    Args:
        folders: artifacts folders, or folders with such folders in them.
        artifacts: the target; known builds are skipped.
        feedstock: the feedstock to which the builds must belong; None: any.

    Raises:
        InputError: no folder holds a readable ledger of this feedstock.
        WorkError: every folder is refused; every reason at once. Or the target cannot be written, or a package changes
            while it is copied.

    >>> other = open_workspace(workspace.feedstock.folder, Path("elsewhere"), [], os.environ)
    >>> collect([workspace.artifacts.root], other.artifacts, other.feedstock).packages
    4
    """
    refusals = _Refusals({}, set())
    with ExitStack() as stack:
        parts = list(_read(folders, artifacts.root, refusals, stack))
        if not parts:
            raise refusals.error()
        ledger = stack.enter_context(Ledger(artifacts.ledger))
        recorded = tuple(record for record in ledger.builds() if ledger.counts(record))
        if feedstock is not None:
            outputs_of_ledgers = {part.root: {record.output for record in part.builds} for part in parts}
            for root, mistake in parts_of_other_feedstocks(
                outputs_of_ledgers, {record.output for record in recorded}, feedstock
            ).items():
                refusals.add(root, [mistake], bad_input=True)
        total, again, new = _new(parts, recorded, ledger, artifacts, refusals)
        merged = [part for part in parts if part.root not in refusals.of_parts]
        if not merged:
            raise refusals.error()
        tests = _import_tests(merged, ledger, artifacts)
        added = _import_builds(new, recorded, ledger, artifacts)
    return Collected(len(merged), len(new), tests, added, total - len(new), again, refusals.mistakes)


def _read(folders: Sequence[Path], target: Path, refusals: _Refusals, stack: ExitStack) -> Iterator[Part]:
    """The parts in some folders whose ledgers can be read; their copies stay open as long as the stack."""
    seen: set[Path] = set()
    for folder in folders:
        try:
            roots = find_parts(folder, target)
        except InputError as error:
            refusals.add(folder, error.mistakes, bad_input=True)
            continue
        for root in roots:
            if root.resolve() in seen:
                continue
            seen.add(root.resolve())
            try:
                part = read_part(root, stack.enter_context(temporary_folder()))
            except FeedstockError as error:
                refusals.add(root, error.mistakes, bad_input=isinstance(error, InputError))
                continue
            stack.callback(part.ledger.close)
            yield part


def _new(
    parts: Sequence[Part], recorded: Sequence[BuildRecord], ledger: Ledger, artifacts: Artifacts, refusals: _Refusals
) -> tuple[int, int, list[_Found]]:
    """The number of builds in the parts that are not refused, the number of packages that were made before, and the new
    builds, without those packages.

    Refuses the parts in which something is wrong, until nothing is: without them others may be the first to have made
    a package.
    """
    settled = {_key(record) for record in recorded if record.result != "running"}
    present = [record for record in recorded if ledger.holds(record)]
    checked: set[tuple[Path, int]] = set()
    while True:
        good = [part for part in parts if part.root not in refusals.of_parts]
        found = [each for part in good for each in _builds(part)]
        offered = [each for each in _unique(found) if _key(each.record) not in settled]
        new = _first_of_twins(offered, present)
        for each in new:
            if (each.part.root, each.number) not in checked:
                checked.add((each.part.root, each.number))
                refusals.add(each.part.root, mistakes_of(each.part, each.number, each.record, artifacts.root))
        for root, mistake in _conflicts([each for each in new if each.part.root not in refusals.of_parts]):
            refusals.add(root, [mistake])
        if all(part.root not in refusals.of_parts for part in good):
            again = sum(len(each.record.packages) for each in offered) - sum(len(each.record.packages) for each in new)
            return len(found), again, new


def _builds(part: Part) -> Iterator[_Found]:
    """Every build in its final state; one whose package a later build replaced has no packages."""
    newest = {(each.channel, each.file): record.id for record in part.builds for each in record.packages}
    for record in part.builds:
        ended = _ended(record)
        kept = tuple(each for each in ended.packages if newest[each.channel, each.file] == record.id)
        yield _Found(part, record.id or 0, replace(ended, packages=kept))


def _first_of_twins(found: Sequence[_Found], present: Sequence[BuildRecord]) -> list[_Found]:
    """The builds, without packages that an earlier build of the same identity made, here or on another machine.

    Independent jobs each build an output that their rows share. Either package is fine, since packages that
    depend on it name its version and build string; as on a channel, the first one stays.
    """
    first = {(record.identity, each.channel, each.file): _key(record) for record in present for each in record.packages}
    done = [each.record for each in found if each.record.result == "done"]
    for record in sorted(done, key=lambda record: record.ended or record.started):
        for package in record.packages:
            first.setdefault((record.identity, package.channel, package.file), _key(record))

    def without_twins(record: BuildRecord) -> BuildRecord:
        own = _key(record)
        kept = (each for each in record.packages if first.get((record.identity, each.channel, each.file), own) == own)
        return replace(record, packages=tuple(kept))

    return [replace(each, record=without_twins(each.record)) for each in found]


def _ended(record: BuildRecord) -> BuildRecord:
    """A build that another machine left as running was cut off there, since its ledger is already here."""
    if record.result != "running":
        return record
    return replace(record, result="interrupted", reason="the machine that ran it was stopped", packages=())


def _key(record: BuildRecord) -> tuple[str, ...]:
    """The unique key of a build across machines, which may have the same name and begin in the same millisecond."""
    took = "" if record.seconds is None else repr(record.seconds)
    where = (record.started, record.machine, record.process, took, str(record.attempt))
    return record.identity, record.row, record.output, *where


def _test_key(record: TestRecord) -> tuple[str, ...]:
    took = "" if record.seconds is None else repr(record.seconds)
    return record.sha256, record.started, record.machine, record.gpu, record.result, took


def _unique(found: Sequence[_Found]) -> list[_Found]:
    """Each build once, even if several folders have it; two that differ in a package's hash are two."""
    hashes = (tuple(package.sha256 for package in each.record.packages) for each in found)
    return list({(_key(each.record), its): each for each, its in zip(found, hashes, strict=True)}.values())


def _conflicts(found: Sequence[_Found]) -> Iterator[tuple[Path, Mistake]]:
    """The folders whose packages have the same name but different contents: both, since neither is the right one."""
    seen: dict[tuple[str, str], tuple[str, Path]] = {}
    for each in found:
        for package in each.record.packages:
            digest, root = seen.setdefault((package.channel, package.file), (package.sha256, each.part.root))
            if digest != package.sha256:
                hint = f"{root} and {each.part.root} have different ones. Collect from one of them."
                mistake = Mistake(f"{package.file} was built twice, with different contents", hint=hint)
                yield root, mistake
                if each.part.root != root:
                    yield each.part.root, replace(mistake, path=each.part.root)


def _import_builds(new: Sequence[_Found], recorded: Sequence[BuildRecord], ledger: Ledger, artifacts: Artifacts) -> int:
    """Record the builds as running with their packages, add these to the channels, then record their results.

    Wherever a call is cut off, each record of a package is either a promise or belongs to a file on disk.
    """
    named = dict.fromkeys((each.part.root, each.record.log) for each in new)
    logs = {(root, log): copied_log(root, log, artifacts) for root, log in named}
    cut_off: dict[tuple[str, ...], list[BuildRecord]] = {}
    for record in recorded:
        if record.result == "running":
            cut_off.setdefault(_key(record), []).append(record)
    begun: list[tuple[_Found, BuildRecord]] = []
    with ledger.at_once():
        for each in new:
            copied = replace(each.record, log=logs[each.part.root, each.record.log])
            olds = cut_off.get(_key(copied))
            record = olds.pop(0) if olds else ledger.begin(replace(copied, packages=()))
            ledger.promise(replace(copied, id=record.id, result="running"), each.environments)
            begun.append((each, replace(copied, id=record.id)))
    by_channel: dict[str, dict[str, Path]] = {}
    hashes: dict[Path, str] = {}
    for found, record in begun:
        if record.result == "done":
            for package in record.packages:
                path = found.part.root / package.channel / package.file
                by_channel.setdefault(package.channel, {})[package.file] = path
                hashes[path] = package.sha256
    for channel, packages in by_channel.items():
        missing = [path for file, path in packages.items() if not (artifacts.root / channel / file).is_file()]
        if missing:
            add_packages(artifacts.root / channel, missing, hashes=hashes)
        else:  # a run that was cut off may have copied the last one, and not indexed it
            complete_index(artifacts.root / channel)
    ended = [
        replace(each, packages=tuple(_entered(member, artifacts) for member in each.packages)) for _, each in begun
    ]
    with ledger.at_once():
        for record in ended:
            ledger.finish(record)
    return sum(map(len, by_channel.values()))


def _import_tests(parts: Sequence[Part], ledger: Ledger, artifacts: Artifacts) -> int:
    """Record the new tests and comparisons of other machines, without a log that is not among the logs."""
    recorded = set(map(_test_key, filter(ledger.counts, ledger.tests())))
    new: list[TestRecord] = []
    for part in parts:
        for test in part.tests:
            if _test_key(test) not in recorded:
                recorded.add(_test_key(test))
                log = copied_log(part.root, test.log, artifacts) if is_plain_log(part.root, test.log) else ""
                new.append(replace(test, id=None, log=log))
    comparisons = list(_new_comparisons(parts, ledger, artifacts))
    with ledger.at_once():
        for test in new:
            ledger.record_test(test)
        for comparison in comparisons:
            ledger.record_comparison(comparison)
    return len(new)


def _new_comparisons(parts: Sequence[Part], ledger: Ledger, artifacts: Artifacts) -> Iterator[ComparisonRecord]:
    """The comparisons with second builds of other machines that are not known, without logs that are not among logs."""
    known = set(map(_comparison_key, filter(ledger.counts, ledger.comparisons())))
    for part in parts:
        for comparison in part.comparisons:
            if _comparison_key(comparison) not in known:
                known.add(_comparison_key(comparison))
                log = (
                    copied_log(part.root, comparison.log, artifacts) if is_plain_log(part.root, comparison.log) else ""
                )
                yield replace(comparison, id=None, log=log)


def _comparison_key(record: ComparisonRecord) -> tuple[str, ...]:
    return record.sha256, record.again, record.started, record.machine, record.result


def _entered(package: PackageRecord, artifacts: Artifacts) -> PackageRecord:
    path = artifacts.root / package.channel / package.file
    return replace(package, mtime_ns=path.stat().st_mtime_ns) if path.is_file() else package
