"""One call of `test`: from names and files to tests that were run and recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from feedstock_tools.builds.ledger import Ledger, TestRecord, now, this_machine
from feedstock_tools.builds.plan.session import Session
from feedstock_tools.builds.stand_in.choice import STAND_IN
from feedstock_tools.builds.testing.gpu import Gpus, find_gpus, one_by_one
from feedstock_tools.builds.testing.running import Conditions, clear_cache, run_benchmark, run_tests
from feedstock_tools.builds.testing.side_by_side import side_by_side
from feedstock_tools.builds.testing.subject import Subject, subject_of
from feedstock_tools.channel.archive import PACKAGE_SUFFIXES
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.facts.cuda import version_key
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.names import select

__all__ = ["Place", "TestOptions", "places_of", "test_packages", "tested_json", "tested_text"]

_LAST_LINES = 20


@dataclass(frozen=True, slots=True)
class TestOptions:
    """How to test: whether on a GPU, with the benchmark, and where dependencies come from.

    `jobs` is how many packages are tested at once, on GPUs no more than there are; `seconds` how long the tests of one,
    or a command of its benchmark, may take (None for ever).
    """

    #: pytest would take a class of this name for a class of tests.
    __test__: ClassVar[bool] = False
    gpu: bool = False
    benchmark: bool = False
    channels: tuple[str, ...] = ()
    jobs: int = 1
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A package file, and the folder of artifacts whose ledger knows it; None: nothing is recorded."""

    path: Path
    artifacts: Artifacts | None


def places_of(
    targets: Sequence[str], feedstock: Path | None, output: Path | None, here: Path, machine: Mapping[str, str]
) -> tuple[Place, ...]:
    """The packages that targets mean: files, or the built packages of configurations, as `build` takes their names.

    Args:
        feedstock: its folder; None for the one here. `output` is its folder of artifacts, if not its own.

    Raises:
        InputError: a file is missing, a name means nothing, or nothing was built of what it means.
    """
    files = [target for target in targets if target.endswith(PACKAGE_SUFFIXES)]
    names = [target for target in targets if target not in files]
    places = [_place_of_file((here / name).resolve(), feedstock, output) for name in files]
    if names:
        session = Session.open(feedstock, output, (), here, machine, as_json=True)
        chosen = session.plan.complete(select(names, session.plan.configurations))
        wanted = {planned.file_name for each in chosen for row in each.rows for planned in row.outputs}
        rows = {
            (row.name, planned.name)
            for each in chosen
            for row in each.rows
            for planned in row.outputs
            if not planned.whole
        }
        built = list(_built(session.setting.artifacts, wanted, rows))
        if not built:
            raise InputError(f"nothing is built of {', '.join(names)}", hint="Build it first: feedstock-tools build")
        places += built
    return tuple(places)


def _place_of_file(path: Path, feedstock: Path | None, output: Path | None) -> Place:
    if not path.is_file():
        raise InputError("there is no such package", path=path)
    for root in (*path.parents[1:3], *filter(None, (output, feedstock and feedstock / "build_artifacts"))):
        if Artifacts(root).ledger.is_file():
            return Place(path, Artifacts(root.resolve()))
    return Place(path, None)


def _built(artifacts: Artifacts, wanted: set[str], rows: set[tuple[str, str]]) -> Iterator[Place]:
    """The newest file of each package name that the ledger has as done and that is still there.

    Args:
        wanted: the names; `rows` are rows and outputs whose packages may have another, which no plan knows.
    """
    if not artifacts.ledger.is_file():
        return
    with Ledger(artifacts.ledger) as ledger:
        seen: set[str | tuple[str, str]] = set()
        for record in reversed(ledger.builds()):
            for package in record.packages:
                name = package.file.rpartition("/")[2]
                key = (record.row, record.output) if (record.row, record.output) in rows else name
                meant = key != name or name in wanted
                if record.result == "done" and meant and key not in seen and ledger.is_intact(package):
                    seen.add(key)
                    yield Place(artifacts.root / package.channel / package.file, artifacts)


def test_packages(
    places: Sequence[Place], options: TestOptions, machine: Mapping[str, str], say: Callable[[str], None]
) -> tuple[TestRecord, ...]:
    """Test packages, and record each where a ledger knows it; the records are in the order of the packages.

    Every package is looked at before the first is tested.

    Args:
        say: told what is done; of a test without a ledger the log, of another the end of a failed one's.

    Raises:
        WorkError: a GPU is asked for and there is none, or a package cannot be read.
        InputError: a package is for another platform, or has no benchmark that could be run.
    """
    gpus = find_gpus() if options.gpu else None
    subjects = _apart([subject_of(place.path, options.channels or _built_with(place), machine) for place in places])
    _refuse(subjects, gpus, options)
    clear_cache(subjects)
    conditions = Conditions(gpus, machine, options.seconds)
    seats = one_by_one(gpus, machine) if gpus and options.jobs > 1 else (gpus,) * options.jobs
    at_once = [replace(conditions, gpus=seat) for seat in seats[: options.jobs]]

    def test(number: int, conditions: Conditions) -> TestRecord:
        return _tested(subjects[number], places[number], conditions, options, say)

    records: dict[int, TestRecord] = {}
    with ExitStack() as stack:
        ledgers = {
            place.artifacts.root: stack.enter_context(Ledger(place.artifacts.ledger))
            for place in places
            if place.artifacts
        }
        for number, record in side_by_side(range(len(places)), at_once, test):
            artifacts = places[number].artifacts
            records[number] = ledgers[artifacts.root].record_test(record) if artifacts else record
    return tuple(records[number] for number in sorted(records))


def _apart(subjects: Sequence[Subject]) -> list[Subject]:
    """The subjects; those that share a file name and not its content get no common cache, which goes by names."""
    contents: dict[str, set[str]] = {}
    for subject in subjects:
        contents.setdefault(subject.path.name, set()).add(subject.sha256)
    return [subject if len(contents[subject.path.name]) == 1 else replace(subject, cache=None) for subject in subjects]


test_packages.__test__ = False  # type: ignore[attr-defined]  # pytest would take its name for a test's


def _built_with(place: Place) -> tuple[str, ...]:
    """The channels that a package was built with, by the ledger; none for a stand-in build, whose channel is remade."""
    if place.artifacts is None:
        return ()
    with Ledger(place.artifacts.ledger) as ledger:
        for record in reversed(ledger.builds()):
            files = {package.file.rpartition("/")[2] for package in record.packages}
            if record.result == "done" and place.path.name in files and record.marks.get("channel") != STAND_IN:
                return record.channels
    return ()


def _refuse(subjects: Sequence[Subject], gpus: Gpus | None, options: TestOptions) -> None:
    """Refuse what cannot be done; of several packages not all need to have a benchmark."""
    if options.benchmark and not any(subject.benchmark for subject in subjects):
        hint = "`benchmark` of an output in feedstock.yaml names one; it comes into the package when that is built."
        said = "the package has no benchmark" if len(subjects) == 1 else "none of the packages has a benchmark"
        raise InputError(said, path=subjects[0].path if len(subjects) == 1 else None, hint=hint)
    for subject in subjects:
        if options.benchmark and subject.benchmark and subject.emulator:
            raise InputError(f"under {subject.emulator.program} a benchmark measures nothing", path=subject.path)
        if gpus and subject.cuda and version_key(subject.cuda) > version_key(gpus.cuda):
            raise WorkError(
                f"{subject.path.name} needs a driver for CUDA {subject.cuda}, and this machine's runs up to {gpus.cuda}"
            )


def _tested(
    subject: Subject, place: Place, conditions: Conditions, options: TestOptions, say: Callable[[str], None]
) -> TestRecord:
    """Test one package and tell how it ended."""
    gpus = conditions.gpus
    say(f"-- testing {subject.path.name}{f' on {gpus}' if gpus else ''}")
    path = place.path.resolve()
    root = place.artifacts.root if place.artifacts else None
    below = root is not None and path.is_relative_to(root)
    record = TestRecord(
        sha256=subject.sha256,
        channel=path.parents[1].relative_to(root).as_posix() if below and root else "",
        file=f"{subject.metadata.subdir}/{path.name}",
        started=now(),
        result="passed",
        log="",
        machine=this_machine(),
        gpu=str(gpus) if gpus else "",
        driver=gpus.driver if gpus else "",
    )
    lines: list[str] = []
    of_many = f"{subject.path.name}: " if options.jobs > 1 else ""

    def log(line: str) -> None:
        lines.append(f"{datetime.now(UTC):%H:%M:%S} {line}")
        if root is None:
            say(of_many + line)

    try:
        record = replace(record, seconds=round(run_tests(subject, conditions, log), 3))
        if options.benchmark and subject.benchmark:
            record = replace(record, benchmark=run_benchmark(subject, conditions, log))
    except WorkError as error:
        record = replace(record, result="failed", reason=str(error))
        last_lines = lines[-_LAST_LINES:] if root is not None else []
        say("\n".join([*last_lines, f"{of_many}{error}"]))
    if place.artifacts:
        record = replace(record, log=_kept(place.artifacts, path.name, lines))
    return replace(record, ended=now())


def _kept(artifacts: Artifacts, name: str, lines: Sequence[str]) -> str:
    """Write the log file; its path below the ledger's folder."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    path = artifacts.logs / f"test-{name[:200]}-{stamp}.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    except OSError as error:
        raise WorkError(f"cannot write the log: {error.strerror or error}", path=path) from error
    return path.relative_to(artifacts.root).as_posix()


def tested_text(records: Sequence[TestRecord]) -> str:
    """A line for each package, and one for each figure of its benchmark."""
    lines = []
    for record in records:
        seconds = f" in {record.seconds:.2f} s" if record.seconds is not None else ""
        lines.append(f"{record.result}  {record.file.rpartition('/')[2]}{seconds}")
        if record.gpu:
            lines.append(f"    on {record.gpu}, driver {record.driver or 'of unknown version'}")
        lines += [f"    {name} {figure['value']:.6g} {figure['unit']}" for name, figure in record.benchmark.items()]
        lines += [f"    log: {record.log}"] if record.log else []
    return "\n".join(lines)


def tested_json(records: Sequence[TestRecord]) -> list[dict[str, Any]]:
    """The same for programs: the ledger's record of each test."""
    return [{column: getattr(record, column) for column in record.COLUMNS} for record in records]
