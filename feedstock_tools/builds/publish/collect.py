"""Merging the ledgers and channels of several machines, such as the jobs of a CI service.

Every package is checked against its hash in the ledger that it came with before anything is imported.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path

from feedstock_tools.builds.ledger import BuildRecord, EnvironmentRecord, Ledger, PackageRecord, TestRecord
from feedstock_tools.builds.publish.strangers import refuse_strangers
from feedstock_tools.channel.folder import add_packages
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import InputError, Mistake, WorkError
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import LEDGER, Artifacts
from feedstock_tools.writing import replacing

__all__ = ["Collected", "collect"]


@dataclass(frozen=True, slots=True)
class Collected:
    """The imported items: folders read, builds and tests recorded, packages added, and known builds.

    `again` counts skipped packages that an earlier build from the same inputs has made.
    """

    folders: int
    builds: int
    tests: int
    packages: int
    known: int
    again: int = 0


@dataclass(frozen=True, slots=True)
class _Found:
    """A build of another ledger, with the folder of its paths."""

    root: Path
    record: BuildRecord
    environments: tuple[EnvironmentRecord, ...]


def collect(folders: Sequence[Path], artifacts: Artifacts, feedstock: Feedstock | None = None) -> Collected:
    """Import the builds, packages, logs and tests of other artifacts folders.

    Args:
        folders: artifacts folders, or folders with such folders in them.
        artifacts: the target; known builds are skipped.
        feedstock: the feedstock to which the builds must belong; None: any.

    Raises:
        InputError: a folder contains no ledger, or one of another feedstock.
        WorkError: a package or log is missing, differs from its ledger's record, or would replace another; every reason
            at once, and nothing is imported then.

    >>> other = open_workspace(workspace.feedstock.folder, Path("elsewhere"), [], os.environ)
    >>> collect([workspace.artifacts.root], other.artifacts, other.feedstock).packages
    4
    """
    roots = [root for folder in folders for root in _roots(folder, artifacts.root)]
    with Ledger(artifacts.ledger) as ledger:
        known = {_key(record): record for record in ledger.builds()}
        settled = {key for key, record in known.items() if record.result != "running"}
        found: list[_Found] = []
        tests: list[tuple[Path, TestRecord]] = []
        made: dict[Path, set[str]] = {}
        for root in roots:
            builds, tested = _read(root, settled)
            found += builds
            made[root] = {each.record.output for each in builds}
            tests += [(root, each) for each in tested]
        if feedstock is not None:
            refuse_strangers(made, {record.output for record in known.values()}, feedstock)
        offered = [each for each in _unique(found) if _key(each.record) not in settled]
        new = _first_of_twins(offered, [record for record in known.values() if ledger.holds(record)])
        known_tests = set(map(_test_key, ledger.tests()))
        new_tests = [(root, each) for root, each in tests if _test_key(each) not in known_tests]
        mistakes = [mistake for each in new for mistake in _mistakes(each, artifacts)]
        mistakes += _conflicts(new)
        if mistakes:
            raise WorkError.of(mistakes)
        for root, log in {(each.root, each.record.log) for each in new} | {
            (root, each.log) for root, each in new_tests
        }:
            _copy_log(root / log, artifacts.root / log)
        added = _take_over(new, known, ledger, artifacts)
        with ledger.at_once():
            for _, test in new_tests:
                ledger.record_test(replace(test, id=None))
    again = sum(len(each.record.packages) for each in offered) - sum(len(each.record.packages) for each in new)
    return Collected(len(roots), len(new), len(new_tests), added, len(found) - len(new), again)


def _roots(folder: Path, target: Path) -> list[Path]:
    """The artifacts folders in a folder, itself included, except the target."""
    found = [folder / LEDGER] if (folder / LEDGER).is_file() else sorted(folder.glob(f"*/**/{LEDGER}"))
    roots = [path.parent for path in found if path.parent.resolve() != target.resolve()]
    if not roots:
        hint = f"An artifacts folder has a {LEDGER}."
        raise InputError("there is no artifacts folder to collect from", path=folder, hint=hint)
    return roots


def _read(root: Path, settled: AbstractSet[tuple[str, ...]]) -> tuple[list[_Found], tuple[TestRecord, ...]]:
    """The builds and tests of a ledger, read from a copy, since opening one of an older form would upgrade it.

    The environments of settled builds (by their `_key`) are not read.
    """
    with tempfile.TemporaryDirectory() as folder:
        for path in root.glob(f"{LEDGER}*"):
            shutil.copyfile(path, Path(folder, path.name))
        with Ledger(Path(folder, LEDGER)) as ledger:
            builds = [
                _Found(root, record, ledger.environments(record.id or 0) if _key(record) not in settled else ())
                for record in _without_replaced(ledger.builds())
            ]
            return builds, ledger.tests()


def _without_replaced(builds: Sequence[BuildRecord]) -> Iterator[BuildRecord]:
    """Every build in its final state; one whose package a later build replaced has no packages."""
    newest = {(each.channel, each.file): record.id for record in builds for each in record.packages}
    for record in map(_ended, builds):
        kept = tuple(each for each in record.packages if newest[each.channel, each.file] == record.id)
        yield replace(record, packages=kept)


def _first_of_twins(found: Sequence[_Found], present: Sequence[BuildRecord]) -> list[_Found]:
    """The builds, without packages that an earlier build of the same identity made, here or on another machine.

    Independent jobs each build an output that their rows share. Either package is fine, since packages that
    depend on it name its version and build string; as on a channel, the first one stays.
    """
    first = {(record.identity, each.channel, each.file): each.sha256 for record in present for each in record.packages}
    done = [each.record for each in found if each.record.result == "done"]
    for record in sorted(done, key=lambda record: record.ended or record.started):
        for package in record.packages:
            first.setdefault((record.identity, package.channel, package.file), package.sha256)

    def without_twins(record: BuildRecord) -> BuildRecord:
        known = [first.get((record.identity, each.channel, each.file), each.sha256) for each in record.packages]
        kept = (each for each, sha256 in zip(record.packages, known, strict=True) if each.sha256 == sha256)
        return replace(record, packages=tuple(kept))

    return [replace(each, record=without_twins(each.record)) for each in found]


def _ended(record: BuildRecord) -> BuildRecord:
    """A build that another machine left as running was cut off there, since its ledger is already here."""
    if record.result != "running":
        return record
    return replace(record, result="interrupted", reason="the machine that ran it was stopped", packages=())


def _key(record: BuildRecord) -> tuple[str, ...]:
    """The unique key of a build across machines."""
    return record.identity, record.row, record.output, record.started, record.machine


def _test_key(record: TestRecord) -> tuple[str, ...]:
    return record.sha256, record.started, record.machine


def _unique(found: Sequence[_Found]) -> list[_Found]:
    return list({_key(each.record): each for each in found}.values())


def _mistakes(found: _Found, artifacts: Artifacts) -> Iterator[Mistake]:
    for package in found.record.packages:
        source = _below(found.root, f"{package.channel}/{package.file}")
        if source is None or not source.is_file():
            if found.record.result == "done":
                path = found.root / package.channel / package.file
                yield Mistake("a package in the ledger is missing", path=path)
            continue
        if sha256_of(source) != package.sha256:
            yield Mistake("the package has changed since it was built: its sha256 differs", path=source)
        present = artifacts.root / package.channel / package.file
        if present.is_file() and sha256_of(present) != package.sha256:
            hint = f"It would replace {present}. Remove one of the two."
            yield Mistake("there is a different package of this name", path=source, hint=hint)
    if _below(found.root, found.record.log) is None:
        yield Mistake(f"a log in the ledger is outside of its folder: {found.record.log}", path=found.root)


def _conflicts(found: Sequence[_Found]) -> Iterator[Mistake]:
    """Collected packages with the same name but different contents."""
    seen: dict[tuple[str, str], tuple[str, Path]] = {}
    for each in found:
        for package in each.record.packages:
            digest, root = seen.setdefault((package.channel, package.file), (package.sha256, each.root))
            if digest != package.sha256:
                hint = f"{root} and {each.root} have different ones. Collect from one of them."
                yield Mistake(f"{package.file} was built twice, with different contents", hint=hint)


def _below(root: Path, path: str) -> Path | None:
    """A path of a ledger; None if it leads out of the ledger's folder."""
    found = (root / path).resolve()
    return found if found.is_relative_to(root.resolve()) else None


def _copy_log(source: Path, target: Path) -> None:
    """Copy a log that is missing here; if a machine has lost it, the packages are still imported."""
    if not source.is_file() or target.exists():
        return
    with replacing(target, what="cannot copy the log") as part:
        shutil.copyfile(source, part)


def _take_over(
    new: Sequence[_Found], known: dict[tuple[str, ...], BuildRecord], ledger: Ledger, artifacts: Artifacts
) -> int:
    """Record the builds as running with their packages, add these to the channels, then record their results.

    Wherever a call is cut off, each record of a package is either a promise or belongs to a file on disk.
    """
    begun: list[tuple[_Found, BuildRecord]] = []
    with ledger.at_once():
        for each in new:
            old = known.get(_key(each.record))
            record = old if old is not None else ledger.begin(replace(each.record, packages=()))
            ledger.promise(replace(each.record, id=record.id, result="running"), each.environments)
            begun.append((each, replace(each.record, id=record.id)))
    by_channel: dict[str, dict[str, Path]] = {}
    for found, record in begun:
        if record.result == "done":
            for package in record.packages:
                by_channel.setdefault(package.channel, {})[package.file] = found.root / package.channel / package.file
    for channel, packages in by_channel.items():
        missing = [path for file, path in packages.items() if not (artifacts.root / channel / file).is_file()]
        if missing:
            add_packages(artifacts.root / channel, missing)
    ended = [replace(each, packages=tuple(_entered(one, artifacts) for one in each.packages)) for _, each in begun]
    with ledger.at_once():
        for record in ended:
            ledger.finish(record)
    return sum(map(len, by_channel.values()))


def _entered(package: PackageRecord, artifacts: Artifacts) -> PackageRecord:
    path = artifacts.root / package.channel / package.file
    return replace(package, mtime_ns=path.stat().st_mtime_ns) if path.is_file() else package
