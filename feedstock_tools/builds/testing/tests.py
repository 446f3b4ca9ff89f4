"""From packages to recorded test results: the packages, their channels, and the result of each."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import ClassVar, Protocol

from feedstock_tools.builds.ledger import BuildRecord, Ledger, TestRecord, now
from feedstock_tools.builds.plan.workspace import Workspace
from feedstock_tools.builds.runs.logs import LogFile
from feedstock_tools.builds.testing.running import (
    Conditions,
    Gpus,
    Subject,
    clear_cache,
    find_gpus,
    one_by_one,
    run_benchmark,
    run_own_tests,
    subject_of,
)
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.planned import PlannedConfiguration
from feedstock_tools.processes import this_machine
from feedstock_tools.redaction import Redaction, known_secrets
from feedstock_tools.versions import parse_version

_LAST_LINES = 20
#: The number of builds of an output, the newest first, that are searched for one whose package exists.
_REBUILT = 100


@dataclass(frozen=True, slots=True)
class TestOptions:
    """How to test: whether on a GPU, with the benchmark, and the channels of dependencies.

    `jobs` is the maximum number of parallel tests, at most one per GPU; `seconds` the time limit for the tests of one,
    or for a command of its benchmark (None: no limit).
    """

    #: Otherwise pytest would collect a class of this name as tests.
    __test__: ClassVar[bool] = False
    gpu: bool = False
    benchmark: bool = False
    channels: tuple[str, ...] = ()
    jobs: int = 1
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TestedPackage:
    """A package file, the folder of artifacts whose ledger knows it, and the channels that it was built with.

    `artifacts` is None for a package that no ledger knows: its tests are not recorded. `channels` is empty if they
    are unknown, and for a build on the stand-in channel, which is created again for the test.
    """

    #: pytest would take a class of this name for a class of tests.
    __test__: ClassVar[bool] = False
    path: Path
    artifacts: Artifacts | None
    channels: tuple[str, ...] = ()


class TestWatcher(Protocol):
    """An observer of tests; called from several threads if several packages are tested in parallel."""

    def begin(self, package: str, gpus: Gpus | None) -> None:
        """A package (the name of its file) is about to be tested, with or without GPUs."""

    def line(self, package: str, text: str) -> None:
        """Some lines of the log of a package that no ledger knows, whose log is not stored."""

    def failed(self, package: str, reason: str, last_lines: Sequence[str]) -> None:
        """A test failed, with the end of the log if that is stored in a file."""


class _Unwatched:
    """A watcher that does nothing."""

    def begin(self, package: str, gpus: Gpus | None) -> None: ...
    def line(self, package: str, text: str) -> None: ...
    def failed(self, package: str, reason: str, last_lines: Sequence[str]) -> None: ...


_UNWATCHED = _Unwatched()


def packages_in_files(paths: Sequence[Path], nearby: Sequence[Path] = ()) -> tuple[TestedPackage, ...]:
    """Package files with the ledgers that know them: in their own folders, else in other given folders.

    Args:
        paths: the files of packages.
        nearby: folders of artifacts.

    Raises:
        InputError: a file is missing.
        WorkError: a ledger cannot be read.

    >>> path = built_packages(workspace, workspace.chosen()[:1])[0].path
    >>> packages_in_files([path])[0].artifacts == workspace.artifacts
    True
    """
    channels: dict[Path, Mapping[str, tuple[str, ...]]] = {}
    places = []
    for path in paths:
        if not path.is_file():
            raise InputError("there is no such package", path=path)
        roots = (root for root in (*path.parents[1:3], *nearby) if Artifacts(root).ledger.is_file())
        root = next(roots, None)
        if root is None:
            places.append(TestedPackage(path, None))
            continue
        artifacts = Artifacts(root.resolve())
        if artifacts.root not in channels:
            channels[artifacts.root] = _channels_of_packages(artifacts)
        places.append(TestedPackage(path, artifacts, channels[artifacts.root].get(path.name, ())))
    return tuple(places)


def built_packages(workspace: Workspace, chosen: Sequence[PlannedConfiguration]) -> tuple[TestedPackage, ...]:
    """The newest package of each output of some configurations that the ledger records as done and that still exists.

    Args:
        chosen: with their outputs.

    Raises:
        WorkError: the ledger cannot be read.

    >>> len(built_packages(workspace, workspace.chosen()[:1]))
    4
    """
    outputs = [(row.name, output) for configuration in chosen for row in configuration.rows for output in row.outputs]
    wanted = {f"{output.subdir}/{output.file_name}" for _, output in outputs}
    # Packages whose full name no plan knows, such as conda-build's, are found by row and output.
    by_row = {(row, output.name) for row, output in outputs if not output.whole}
    return tuple(_built(workspace.artifacts, wanted, by_row))


def _built(artifacts: Artifacts, wanted: set[str], by_row: set[tuple[str, str]]) -> Iterator[TestedPackage]:
    if not artifacts.ledger.is_file():
        return
    with Ledger(artifacts.ledger) as ledger:
        seen: set[str | tuple[str, str]] = set()
        done = {record.id: record for record in (*ledger.done_as(wanted), *ledger.done_in(by_row, _REBUILT))}
        for record in sorted(done.values(), key=lambda record: record.id or 0, reverse=True):
            for package in record.packages:
                name = package.file
                key = (record.row, record.output) if (record.row, record.output) in by_row else name
                is_wanted = key != name or name in wanted
                if is_wanted and key not in seen and ledger.is_intact(package):
                    seen.add(key)
                    yield TestedPackage(
                        artifacts.root / package.channel / package.file, artifacts, _channels_of(record)
                    )


def _channels_of_packages(artifacts: Artifacts) -> Mapping[str, tuple[str, ...]]:
    """Name of a package's file → the channels that it was built with, by the newest finished build that made one."""
    channels: dict[str, tuple[str, ...]] = {}
    with Ledger(artifacts.ledger) as ledger:
        for record in ledger.builds():
            if record.result == "done" and _channels_of(record):
                channels.update({package.file.rpartition("/")[2]: record.channels for package in record.packages})
    return channels


def _channels_of(record: BuildRecord) -> tuple[str, ...]:
    return () if record.built_on.made_here else record.channels


def run_tests(
    places: Sequence[TestedPackage],
    options: TestOptions,
    machine: Mapping[str, str],
    observer: TestWatcher = _UNWATCHED,
) -> tuple[TestRecord, ...]:
    """Test packages, and record each one that a ledger knows; the records are in the order of the packages.

    Every package is inspected before the first is tested.

    Args:
        places: the packages, as `built_packages` and `packages_in_files` give them.
        options: whether on a GPU, with the benchmark, and within which time.
        machine: the environment of this machine, such as `os.environ`.
        observer: called with every event of the tests.

    Raises:
        WorkError: a GPU is requested and there is none, or a package cannot be read.
        InputError: a package is for another platform, or has no benchmark.

    >>> packages = built_packages(workspace, workspace.chosen()[:1])
    >>> [record.result for record in run_tests(packages[:1], TestOptions(), os.environ)]
    ['passed']
    """
    gpus = find_gpus() if options.gpu else None
    subjects = _apart([subject_of(place.path, options.channels or place.channels, machine) for place in places])
    _refuse(subjects, gpus, options)
    clear_cache(subjects)
    conditions = Conditions(gpus, machine, options.seconds)
    seats = one_by_one(gpus, machine) if gpus and options.jobs > 1 else (gpus,) * options.jobs
    at_once = [replace(conditions, gpus=seat) for seat in seats[: options.jobs]]

    def test(number: int, conditions: Conditions) -> TestRecord:
        return _tested(subjects[number], places[number], conditions, options, observer)

    records: dict[int, TestRecord] = {}
    with ExitStack() as stack:
        roots = {place.artifacts.root: place.artifacts for place in places if place.artifacts}
        ledgers = {root: stack.enter_context(Ledger(artifacts.ledger)) for root, artifacts in roots.items()}
        for number, record in _side_by_side(range(len(places)), at_once, test):
            artifacts = places[number].artifacts
            records[number] = ledgers[artifacts.root].record_test(record) if artifacts else record
    return tuple(records[number] for number in sorted(records))


def _apart(subjects: Sequence[Subject]) -> list[Subject]:
    """The subjects; those with the same file name but different contents do not share a cache, which is keyed by
    name."""
    contents: dict[str, set[str]] = {}
    for subject in subjects:
        contents.setdefault(subject.path.name, set()).add(subject.sha256)
    return [subject if len(contents[subject.path.name]) == 1 else replace(subject, cache=None) for subject in subjects]


def _refuse(subjects: Sequence[Subject], gpus: Gpus | None, options: TestOptions) -> None:
    """Refuse impossible requests; among several packages, not all need to have a benchmark."""
    if options.benchmark and not any(subject.benchmark for subject in subjects):
        hint = "Add `benchmark` to the output in feedstock.yaml and build the package again."
        reason = "the package has no benchmark" if len(subjects) == 1 else "none of the packages has a benchmark"
        raise InputError(reason, path=subjects[0].path if len(subjects) == 1 else None, hint=hint)
    for subject in subjects:
        if options.benchmark and subject.benchmark and subject.emulator:
            raise InputError(f"a benchmark under {subject.emulator.program} has no meaning", path=subject.path)
        if gpus and subject.cuda and parse_version(subject.cuda) > parse_version(gpus.cuda):
            raise WorkError(
                f"{subject.path.name} needs a driver for CUDA {subject.cuda}, but this machine's runs up to {gpus.cuda}"
            )


def _tested(
    subject: Subject, place: TestedPackage, conditions: Conditions, options: TestOptions, observer: TestWatcher
) -> TestRecord:
    observer.begin(subject.path.name, conditions.gpus)
    record = _begun(subject, place, conditions.gpus)
    redaction = Redaction(known_secrets(conditions.machine).values())
    with ExitStack() as stack:
        file = None
        if place.artifacts:
            file = stack.enter_context(LogFile(place.artifacts.logs, f"test-{place.path.resolve().name}"))
            record = replace(record, log=file.path.relative_to(place.artifacts.root).as_posix())

        def log(output: bytes) -> None:
            _write(redaction.feed(output), file, subject, observer)

        try:
            record = replace(record, seconds=round(run_own_tests(subject, conditions, log), 3))
            if options.benchmark and subject.benchmark:
                record = replace(record, benchmark=run_benchmark(subject, conditions, log))
        except WorkError as error:
            _write(redaction.flush(), file, subject, observer)
            record = replace(record, result="failed", reason=redaction.text(str(error)))
            last_lines = [*file.last][-_LAST_LINES:] if file else []
            observer.failed(subject.path.name, record.reason, last_lines)
        _write(redaction.flush(), file, subject, observer)
    return replace(record, ended=now())


def _begun(subject: Subject, place: TestedPackage, gpus: Gpus | None) -> TestRecord:
    """The record of a test that begins now, as it will be if the test passes."""
    path = place.path.resolve()
    root = place.artifacts.root if place.artifacts else None
    is_inside = root is not None and path.is_relative_to(root)
    return TestRecord(
        sha256=subject.sha256,
        channel=path.parents[1].relative_to(root).as_posix() if is_inside and root else "",
        file=f"{subject.metadata.subdir}/{path.name}",
        started=now(),
        result="passed",
        log="",
        machine=this_machine(),
        gpu=str(gpus) if gpus else "",
        driver=gpus.driver if gpus else "",
    )


def _write(output: bytes, file: LogFile | None, subject: Subject, observer: TestWatcher) -> None:
    """Put output into the log file; without one, the observer gets it."""
    if file is not None:
        file.output(output)
    elif output:
        observer.line(subject.path.name, output.decode(errors="replace").removesuffix("\n"))


def _side_by_side(
    numbers: Iterable[int], seats: Sequence[Conditions], test: Callable[[int, Conditions], TestRecord]
) -> Iterator[tuple[int, TestRecord]]:
    """Run tests in parallel, one per seat, and yield each with its record as it ends.

    If the caller leaves by Ctrl-C or an error, running tests are ended first.

    Args:
        numbers: the numbers of the tests, in starting order.
        seats: the conditions for tests; no two tests share one at a time.
    """
    stop, stopping = os.pipe()
    free: queue.SimpleQueue[Conditions] = queue.SimpleQueue()
    for seat in seats:
        free.put(replace(seat, stop=stop))

    def seated(number: int) -> TestRecord:
        seat = free.get()
        try:
            return test(number, seat)
        finally:
            free.put(seat)

    pool = ThreadPoolExecutor(len(seats))
    try:
        running = {pool.submit(seated, number): number for number in numbers}
        for ended in as_completed(running):
            yield running[ended], ended.result()
    finally:
        os.close(stopping)
        pool.shutdown(cancel_futures=True)
        os.close(stop)


@dataclass(frozen=True, slots=True)
class Figure:
    """The newest value of one figure for one package on one machine.

    `ratio` is to the first package that has the figure in the same unit on such a machine, which is 1.
    """

    name: str
    unit: str
    where: str
    package: str
    value: float
    ratio: float | None
    started: str


def figures_of(artifacts: Artifacts) -> tuple[Figure, ...]:
    """The figures in the ledger of a folder of artifacts; none without a ledger."""
    if not artifacts.ledger.is_file():
        return ()
    with Ledger(artifacts.ledger) as ledger:
        return compared([*filter(ledger.counts, ledger.tests())])


def compared(tests: Sequence[TestRecord]) -> tuple[Figure, ...]:
    """The figures of passed tests, with comparable ones next to each other.

    Args:
        tests: the ledger's tests, the oldest first.
    """
    newest: dict[tuple[str, str, str, str], tuple[float, str]] = {}
    for test in tests:
        if test.result != "passed":
            continue
        where = test.gpu or test.machine
        package = PurePosixPath(test.file).name
        for name, figure in test.benchmark.items():
            newest[name, str(figure["unit"]), where, package] = (float(figure["value"]), test.started)
    first: dict[tuple[str, str, str], float] = {}
    figures = []
    for (name, unit, where, package), (value, started) in sorted(newest.items()):
        base = first.setdefault((name, unit, where), value)
        figures.append(Figure(name, unit, where, package, value, value / base if base else None, started))
    return tuple(figures)
