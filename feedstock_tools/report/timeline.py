"""Builds over time as a picture: a lane for each parallel job of a machine, without idle time."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from feedstock_tools.builds.ledger.records import BuildRecord, moment_of

_WIDTH = 1160.0
_LEFT = 130.0
_GAP = 26.0
_MOST_SEGMENTS = 10
#: Results, the worst first: a job has the worst result of its builds.
_RESULTS = ("running", "failed", "interrupted", "done")
_STEPS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400)


@dataclass(frozen=True, slots=True)
class Job:
    """A row as a run built it: the builds that wrote one log file on one machine."""

    configuration: str
    row: str
    machine: str
    result: str
    begin: datetime
    end: datetime
    packages: int


@dataclass(frozen=True, slots=True)
class Bar:
    """A job in the picture; all in pixels of the picture."""

    job: Job
    x: float
    y: float
    width: float


@dataclass(frozen=True, slots=True)
class Segment:
    """A time without longer breaks, from `x` to `x + width`."""

    begin: datetime
    end: datetime
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on the time axis; `anchor` is the alignment of its text, `major` begins a segment."""

    x: float
    text: str
    major: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """The whole picture: `lanes` are the machines' names with the `y` and height of their lanes."""

    width: float
    height: float
    lane: float
    lanes: tuple[tuple[str, float, float], ...]
    segments: tuple[Segment, ...]
    ticks: tuple[Tick, ...]
    bars: tuple[Bar, ...]


def jobs_of(builds: Iterable[BuildRecord], alive: Container[int | None], at: str) -> tuple[Job, ...]:
    """The jobs of some builds, ordered by start; a running one ends `at` that time.

    `alive` are the `id`s of the builds that run; others that are recorded as running were cut off at an unknown time.

    A build with invalid times is left out.
    """
    grouped: dict[tuple[str, str], list[BuildRecord]] = {}
    for record in builds:
        if record.result == "running":
            result, ended = ("running", at) if record.id in alive else ("interrupted", record.started)
            record = replace(record, result=result, ended=ended)
        grouped.setdefault((record.machine, record.log), []).append(record)
    jobs = [job for records in grouped.values() if (job := _job(records)) is not None]
    return tuple(sorted(jobs, key=lambda job: job.begin))


def _job(records: Sequence[BuildRecord]) -> Job | None:
    begins = [moment for record in records if (moment := moment_of(record.started)) is not None]
    ends = [moment for record in records if (moment := moment_of(record.ended or record.started)) is not None]
    if not begins or not ends:
        return None
    results = {record.result for record in records}
    return Job(
        configuration=records[0].configuration,
        row=records[0].row,
        machine=records[0].machine,
        result=next(result for result in _RESULTS if result in results),
        begin=min(begins),
        end=max(min(begins), *ends),
        packages=sum(len(record.packages) for record in records),
    )


def draw(jobs: Sequence[Job]) -> Picture | None:
    """The picture of some jobs; None without any."""
    if not jobs:
        return None
    segments = _segments(jobs)
    by_machine: dict[str, list[list[Job]]] = {}
    for job in jobs:
        _put(job, by_machine.setdefault(job.machine, []))
    count = sum(map(len, by_machine.values()))
    lane = 20.0 if count <= 12 else 12.0 if count <= 40 else 6.0
    y, lanes, bars = 6.0, [], []
    for machine, rows in sorted(by_machine.items()):
        lanes.append((machine or "not recorded", y, lane * len(rows)))
        for row in rows:
            bars += [_bar(job, segments, y) for job in row]
            y += lane
        y += 8.0
    return Picture(_WIDTH, y + 30.0, lane, tuple(lanes), segments, tuple(_ticks(segments)), tuple(bars))


def _put(job: Job, rows: list[list[Job]]) -> None:
    """Place a job into the first free row, else into a new one."""
    free = next((row for row in rows if row[-1].end <= job.begin), None)
    if free is None:
        rows.append([job])
    else:
        free.append(job)


def _segments(jobs: Sequence[Job]) -> tuple[Segment, ...]:
    """The times with work; breaks are removed, except the shortest if there are too many."""
    busy = _merged(jobs, timedelta(0))
    total = sum((end - begin for begin, end in busy), timedelta(0))
    shortest = max(total / 20, timedelta(seconds=1))
    while len(busy := _merged(jobs, shortest)) > _MOST_SEGMENTS:
        shortest *= 2
    room = _WIDTH - _LEFT - 10 - _GAP * (len(busy) - 1) - 30.0 * len(busy)
    seconds = sum(((end - begin).total_seconds() for begin, end in busy)) or 1.0
    x, segments = _LEFT, []
    for begin, end in busy:
        width = 30.0 + room * (end - begin).total_seconds() / seconds
        segments.append(Segment(begin, end, x, width))
        x += width + _GAP
    return tuple(segments)


def _merged(jobs: Sequence[Job], tolerance: timedelta) -> list[tuple[datetime, datetime]]:
    merged: list[tuple[datetime, datetime]] = []
    for job in jobs:
        if merged and job.begin - merged[-1][1] <= tolerance:
            merged[-1] = (merged[-1][0], max(merged[-1][1], job.end))
        else:
            merged.append((job.begin, job.end))
    return merged


def _bar(job: Job, segments: Sequence[Segment], y: float) -> Bar:
    x = _place(job.begin, segments)
    return Bar(job, round(x, 1), y, round(max(_place(job.end, segments) - x, 2.0), 1))


def _place(moment: datetime, segments: Sequence[Segment]) -> float:
    within = next((segment for segment in segments if segment.begin <= moment <= segment.end), segments[-1])
    length = (within.end - within.begin).total_seconds() or 1.0
    return within.x + within.width * (moment - within.begin).total_seconds() / length


def _ticks(segments: Sequence[Segment]) -> Iterable[Tick]:
    """The beginning of each segment, with its date if that is new, and round times between.

    A beginning has priority over round times to its left; without room for two beginnings the second is left out.
    """
    day, free = None, 0.0
    for segment, end in zip(segments, [*(later.x for later in segments[1:]), _WIDTH], strict=True):
        if segment.x >= free:
            text = segment.begin.strftime("%Y-%m-%d %H:%M:%S" if segment.begin.date() != day else "%H:%M:%S")
            yield Tick(round(segment.x, 1), text, True)
            day, free = segment.begin.date(), segment.x + 7.0 * len(text) + 8
        length = (segment.end - segment.begin).total_seconds()
        step = next((step for step in _STEPS if length / step * 90 <= segment.width), _STEPS[-1])
        first = int(segment.begin.timestamp() // step + 1) * step
        for second in range(first, int(segment.end.timestamp()) + 1, step):
            moment = datetime.fromtimestamp(second, UTC)
            x = _place(moment, segments)
            if free <= x <= end - 70:
                yield Tick(round(x, 1), moment.strftime("%H:%M:%S" if step < 60 else "%H:%M"), False)
                free = x + 70
