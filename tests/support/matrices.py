"""Made-up matrices in every state, with logs on disk, with as many configurations as a test needs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from feedstock_tools.builds.ledger.records import BuildRecord, PackageRecord
from feedstock_tools.builds.matrix.matrix import Matrix, Surroundings, states
from feedstock_tools.builds.plan.identity import Candidate
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput, PlannedRow, with_short_names

#: The outcomes of the configurations, in turn.
KINDS = ("done", "done", "done", "failed", "done", "stale", "missing", "interrupted", "done", "running", "refused")
#: The output of a hostile build script.
HOSTILE = '</pre><script>document.title = "taken over"</script><img src=x onerror=alert(1)> \x1b[31mred\x1b[0m'


def made_up_matrix(artifacts: Path, count: int) -> Matrix:
    """A matrix with a number of configurations, each with two Pythons and three packages."""
    configurations = with_short_names([_configuration(number) for number in range(count)])
    (artifacts / "logs").mkdir(parents=True)
    builds = tuple(record for number, each in enumerate(configurations) for record in _builds(artifacts, number, each))
    around = Surroundings(
        candidates={
            (each.name, output.identity): (
                Candidate(output.identity, {"recipe": "2", "engine": "rattler-build 0.73.0"}),
            )
            for each in configurations
            for row in each.rows
            for output in row.outputs
        },
        alive={(record.process, record.machine): record.result == "running" for record in builds},
        intact={record.id for record in builds if record.packages},
        refused={each.name: "packages for win-64 need Windows" for each in configurations if each.platform == "win-64"},
        at=(datetime(2026, 3, 4, 9, 5, tzinfo=UTC) + timedelta(seconds=40 * count)).isoformat(),
    )
    return Matrix("hello", artifacts, around.at, states(configurations, builds, around), builds)


def kind_of(number: int) -> str:
    """The outcome of a configuration."""
    return KINDS[number % len(KINDS)]


def _configuration(number: int) -> PlannedConfiguration:
    platform = "win-64" if kind_of(number) == "refused" else "linux-64"
    name = f"{platform.replace('-', '_')}_cuda_compiler_version{10 + number // 10}.{number % 10}"
    rows = tuple(_row(name, number, python) for python in ("3.12", "3.13"))
    return PlannedConfiguration(name, platform, rows, rendered=True)


def _row(name: str, number: int, python: str) -> PlannedRow:
    cuda = f"{10 + number // 10}.{number % 10}"
    library = PlannedOutput("libhello", "1.0", f"cuda{number}_0", 0, "linux-64", f"lib {number}")
    binding = PlannedOutput("hello", "1.0", f"cuda{number}py{python}_0", 0, "linux-64", f"py {number} {python}")
    return PlannedRow(f"{name}_py{python}", {"python": python}, python, cuda, (library, binding))


def _builds(artifacts: Path, number: int, configuration: PlannedConfiguration) -> Iterator[BuildRecord]:
    kind = kind_of(number)
    if kind in ("missing", "refused"):
        return
    # Two days of work with a night between, on two machines.
    begin = datetime(2026, 3, 3 + number % 2, 9, tzinfo=UTC) + timedelta(seconds=40 * number)
    for at, row in enumerate(configuration.rows):
        log = f"logs/{row.name}.log"
        (artifacts / log).write_text(f"begin\n{HOSTILE}\nlast line of {row.name}\n", encoding="utf-8")
        for output in row.outputs[at:]:
            result = kind if kind in ("failed", "interrupted", "running") and output.name == "hello" else "done"
            yield BuildRecord(
                identity=output.identity if kind != "stale" else f"{output.identity} before",
                configuration=configuration.name,
                row=row.name,
                output=output.name,
                result=result,
                started=(begin + timedelta(seconds=at * 45)).isoformat(timespec="milliseconds"),
                log=log,
                engine="rattler-build 0.72.0" if kind == "stale" else "rattler-build 0.73.0",
                channels=("https://example.org/channel",),
                reason=f"the script failed: {HOSTILE}" if result == "failed" else "",
                ended=None if result == "running" else (begin + timedelta(seconds=at * 45 + 41)).isoformat(),
                seconds=None if result == "running" else 41.5,
                machine="workstation" if number % 3 else "build-server",
                inputs={"recipe": "2", "engine": "rattler-build 0.72.0"},
                packages=_packages(output, result),
                id=100 * number + 10 * at + len(output.name),
            )


def _packages(output: PlannedOutput, result: str) -> tuple[PackageRecord, ...]:
    if result != "done":
        return ()
    return (PackageRecord(".", f"{output.subdir}/{output.file_name}", 123456, "ab" * 32, 1),)
