"""The matrix of a feedstock: every configuration with its state, from the plan and the ledger.

`states` is a pure function over values. Showing, running and publishing a matrix all use it to decide what is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from feedstock_tools.builds.ledger import BuildRecord, ComparisonRecord, Ledger, TestRecord, now
from feedstock_tools.builds.ledger.records import moment_of
from feedstock_tools.builds.plan.identity import PARTS, Candidate, Candidates, candidates_of
from feedstock_tools.builds.plan.refusals import refused
from feedstock_tools.builds.plan.workspace import Workspace
from feedstock_tools.channel.properties import properties_of
from feedstock_tools.errors import FeedstockError
from feedstock_tools.feedstock.planned import PackageId, PlannedConfiguration, PlannedOutput, PlannedRow
from feedstock_tools.processes import process_lives

#: The number of builds in the picture of a matrix.
_LAST = 1000
#: The states, the most urgent first: a configuration has the first that any of its outputs has. `done`: built from
#: exactly these inputs, and its packages exist; `running`: by a process that lives; `failed`, `interrupted`: the last
#: attempt ended so; `stale`: built, from other inputs; `missing`: never built; `refused`: not built and cannot be built
#: here; `nothing`: a configuration without outputs.
STATES = ("running", "failed", "interrupted", "stale", "missing", "refused", "done", "nothing")
_BROUGHT = "brought, not built by this user: move the artifacts away and `collect` them, or build it"
#: A run on another machine without a sign of life for this long counts as dead.
SILENT = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Matrix:
    """The planned builds of a feedstock and their states.

    Attributes:
        feedstock: its name.
        artifacts: the folder of the ledger; paths of logs and packages in records are below it.
        at: when the ledger was read, in its form of time.
        configurations: with the state of each output.
        builds: the last 1,000 builds of these configurations in the ledger, the oldest first, whatever their result.
        tests: every test of the packages of these configurations, the oldest first; `comparisons` likewise are those
            with second builds.
        brought: the number of those left out, since nothing shows that this user made them.
    """

    feedstock: str
    artifacts: Path
    at: str
    configurations: tuple[ConfigurationState, ...]
    builds: tuple[BuildRecord, ...]
    tests: tuple[TestRecord, ...] = ()
    comparisons: tuple[ComparisonRecord, ...] = ()
    brought: int = 0

    def compared(self, record: BuildRecord) -> tuple[ComparisonRecord, ...]:
        hashes = {package.sha256 for package in record.packages}
        return tuple(each for each in self.comparisons if each.sha256 in hashes)


def read_matrix(workspace: Workspace, chosen: Sequence[PlannedConfiguration]) -> Matrix:
    """The matrix of some configurations. Of a ledger of years only what decides it is read.

    Args:
        chosen: with their outputs.

    Raises:
        WorkError: the ledger cannot be read.

    >>> matrix = read_matrix(workspace, workspace.chosen()[:1])
    >>> [(each.output.name, each.state) for each in matrix.configurations[0].outputs][:2]
    [('libtiny', 'done'), ('tiny-base', 'done')]
    """
    candidates = candidates_of(chosen, workspace.channels, workspace.machine)
    deciding: tuple[BuildRecord, ...] = ()
    last: tuple[BuildRecord, ...] = ()
    tests: tuple[TestRecord, ...] = ()
    comparisons: tuple[ComparisonRecord, ...] = ()
    intact: frozenset[int | None] = frozenset()
    brought = 0
    if workspace.artifacts.ledger.is_file():
        with Ledger(workspace.artifacts.ledger) as ledger:
            deciding = _deciding(ledger, chosen, candidates)
            last = ledger.last_builds((configuration.name for configuration in chosen), _LAST)
            packages = [package.sha256 for record in deciding for package in record.packages]
            all_tests, all_comparisons = ledger.tests(packages), ledger.comparisons(packages)
            tests = tuple(filter(ledger.counts, all_tests))
            comparisons = tuple(filter(ledger.counts, all_comparisons))
            brought = len(all_tests) + len(all_comparisons) - len(tests) - len(comparisons)
            intact = _intact(ledger, deciding, candidates)
    around = Surroundings(candidates, _alive((*deciding, *last)), intact, refused(chosen, workspace.engines), now())
    found = states(chosen, deciding, around)
    if reasons := _lacking(workspace, found):
        found = states(chosen, deciding, replace(around, refused={**around.refused, **reasons}))
    return Matrix(
        feedstock=workspace.feedstock.name,
        artifacts=workspace.artifacts.root,
        at=around.at,
        configurations=found,
        builds=last,
        tests=tests,
        comparisons=comparisons,
        brought=brought,
    )


def _deciding(
    ledger: Ledger, chosen: Sequence[PlannedConfiguration], candidates: Candidates
) -> tuple[BuildRecord, ...]:
    """The builds that decide the states: those of the outputs' identities, and for an output that has none the last
    finished build in each of its places, which is stale."""
    records = ledger.builds_of(candidate.identity for choices in candidates.values() for candidate in choices)
    recorded = {record.identity for record in records}
    places = [
        (row.name, output.name)
        for configuration in chosen
        for row in configuration.rows
        for output in row.outputs
        if not any(
            candidate.identity in recorded for candidate in candidates.get((configuration.name, output.identity), ())
        )
    ]
    more = {record.id: record for record in (*records, *ledger.done_in(places, 1))}
    return tuple(sorted(more.values(), key=lambda record: record.id or 0))


def _intact(ledger: Ledger, builds: Sequence[BuildRecord], candidates: Candidates) -> frozenset[int | None]:
    """For each relevant identity, the newest finished build whose packages are unchanged."""
    wanted = {candidate.identity for choices in candidates.values() for candidate in choices}
    newest: dict[str, int | None] = {}
    for record in reversed(builds):
        counts = record.result == "done" and record.identity in wanted and record.identity not in newest
        if counts and ledger.counts(record) and ledger.holds(record):
            newest[record.identity] = record.id
    return frozenset(newest.values())


def _lacking(workspace: Workspace, found: Sequence[ConfigurationState]) -> Mapping[str, str]:
    """The configurations that `plan` refuses for what channels made on the spot lack: name → its reason.

    Nothing is asked unless a package is missing. Where it is unknown which channels builds would use, it stays missing.
    """
    if not any(output.state == "missing" for each in found for output in each.outputs):
        return {}
    from feedstock_tools.builds.plan.agenda import channels_for
    from feedstock_tools.builds.runs.site import Making, lacking

    possible = [each for each in found if workspace.engines.why_not(each.configuration) is None]
    try:
        channels = channels_for(workspace, [each.configuration for each in possible])
    except FeedstockError:
        return {}
    unfinished = [
        Making(each.configuration.name, each.configuration.platform, row, each.missing_in(row))
        for each in possible
        for row in each.configuration.rows
    ]
    return lacking(unfinished, channels, workspace.machine)


def _alive(builds: Sequence[BuildRecord]) -> dict[tuple[str, str], bool]:
    """Process and machine of each run with an unfinished build → whether it is alive, as far as known."""
    runs = {(record.process, record.machine) for record in builds if record.result in ("running", "interrupted")}
    states = {run: process_lives(*run) for run in runs}
    return {run: lives for run, lives in states.items() if lives is not None}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Facts that are neither in the plan nor in the builds of the ledger.

    Attributes:
        candidates: the identities of each output, one for each choice of channels that counts.
        alive: process and machine of a run → whether it is alive; a missing run is one whose state is
            unknown, as on another machine.
        intact: the `id` of finished builds whose packages are unchanged.
        refused: the configurations that cannot be built here, by name, with the reason.
        at: the time, in the ledger's form.
    """

    candidates: Candidates
    alive: Mapping[tuple[str, str], bool]
    intact: AbstractSet[int | None]
    refused: Mapping[str, str]
    at: str

    def lives(self, record: BuildRecord) -> bool | None:
        return self.alive.get((record.process, record.machine))


@dataclass(frozen=True, slots=True)
class OutputState:
    """One output: its state, the build that determines it, and the reason why it is not done.

    `rows` are the rows that make it. `changed` lists the differing parts of a stale one.
    """

    output: PlannedOutput
    rows: tuple[PlannedRow, ...]
    state: str
    record: BuildRecord | None = None
    reason: str = ""
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigurationState:
    """A configuration and its outputs, each once.

    `shared` are the shared builds that are kept, run now, or could not be completed and still have heirs to build.
    """

    configuration: PlannedConfiguration
    outputs: tuple[OutputState, ...]
    reason: str = ""
    shared: tuple[OutputState, ...] = ()

    @property
    def builds(self) -> tuple[OutputState, ...]:
        """The shared builds and the outputs."""
        return (*self.shared, *self.outputs)

    @property
    def state(self) -> str:
        found_states = {output.state for output in self.builds}
        return next((state for state in STATES if state in found_states), "refused" if self.reason else "nothing")

    def missing_in(self, row: PlannedRow) -> tuple[PlannedOutput, ...]:
        """The outputs of a row that are not done."""
        done = {output.output.package_id for output in self.outputs if output.state == "done"}
        return tuple(output for output in row.outputs if output.package_id not in done)

    def of_row(self, row: str) -> str:
        """The most urgent state of the outputs that a row makes, and of the shared builds that it waits for."""
        found_states = {output.state for output in self.builds if any(maker.name == row for maker in output.rows)}
        return next((state for state in STATES if state in found_states), "nothing")


def states(
    configurations: Iterable[PlannedConfiguration], builds: Sequence[BuildRecord], around: Surroundings
) -> tuple[ConfigurationState, ...]:
    """The state of each configuration and of each of its outputs.

    Args:
        configurations: with their outputs.
        builds: the builds of the ledger that decide, the oldest first; others change nothing.
    """
    history = _History(builds)
    return tuple(_configuration_state(configuration, history, around) for configuration in configurations)


class _History:
    """The builds of a ledger, the newest first, indexed by their lookup keys."""

    def __init__(self, builds: Sequence[BuildRecord]) -> None:
        self.by_identity: dict[str, list[BuildRecord]] = {}
        self.by_place: dict[tuple[str, str], list[BuildRecord]] = {}
        for record in reversed(builds):
            self.by_identity.setdefault(record.identity, []).append(record)
            self.by_place.setdefault((record.row, record.output), []).append(record)


def _configuration_state(
    configuration: PlannedConfiguration, history: _History, around: Surroundings
) -> ConfigurationState:
    makers: dict[PackageId, list[PlannedRow]] = {}
    found: dict[PackageId, PlannedOutput] = {}
    for row in configuration.rows:
        for output in (*row.outputs, *row.shared):
            found.setdefault(output.package_id, output)
            makers.setdefault(output.package_id, []).append(row)
    refusal = around.refused.get(configuration.name, "")
    states = [
        _output_state(
            output,
            tuple(makers[package]),
            around.candidates.get((configuration.name, output.identity), ()),
            history,
            around,
            refusal,
        )
        for package, output in found.items()
    ]
    outputs = tuple(state for state in states if not state.output.is_shared)
    shared = (state for state in states if state.output.is_shared)
    shown = tuple(state for state in shared if _is_shown(state, outputs))
    return ConfigurationState(configuration, outputs, refusal, shown)


def _is_shown(shared: OutputState, outputs: Sequence[OutputState]) -> bool:
    """Whether a shared build is kept, runs, or could not be completed and still has heirs to build."""
    if shared.state in ("failed", "interrupted"):
        return any(output.state != "done" and shared.output.name in output.output.staging for output in outputs)
    return shared.state in ("running", "done")


def _output_state(
    output: PlannedOutput,
    rows: tuple[PlannedRow, ...],
    candidates: Sequence[Candidate],
    history: _History,
    around: Surroundings,
    refusal: str,
) -> OutputState:
    tried = [record for candidate in candidates for record in history.by_identity.get(candidate.identity, ())]
    running = next((record for record in tried if _runs(record, around)), None)
    if running:
        elsewhere = around.lives(running) is None
        return OutputState(output, rows, "running", running, _last_sign(running) if elsewhere else "")
    done = next((record for record in tried if record.result == "done" and record.id in around.intact), None)
    if done:
        return OutputState(output, rows, "done", done)
    if tried and tried[0].result == "done" and tried[0].brought:
        return OutputState(output, rows, "missing", tried[0], _BROUGHT)
    if tried and tried[0].result == "done":
        return OutputState(output, rows, "missing", tried[0], "its package was removed or changed since it was built")
    earlier = _newest_done(output, rows, history)
    changed = _what_changed(earlier, candidates, rows) if earlier else ()
    others = f"built from other inputs: {'; '.join(changed)}"
    if tried:
        newest = tried[0]
        state = "failed" if newest.result == "failed" else "interrupted"
        reason = newest.reason or ("" if state == "failed" else _how_it_died(newest, around))
        return OutputState(
            output, rows, state, newest, f"{reason}\nA package of it was {others}" if changed else reason
        )
    if earlier:
        return OutputState(output, rows, "stale", earlier, others, changed)
    return OutputState(output, rows, "refused" if refusal else "missing", None, refusal)


def _runs(record: BuildRecord, around: Surroundings) -> bool:
    """A run on another machine counts as alive as long as it gives signs of life."""
    if record.result != "running":
        return False
    lives = around.lives(record)
    if lives is not None:
        return lives
    sign, at = moment_of(record.seen or record.started), moment_of(around.at)
    if not record.machine or sign is None or at is None:
        return False
    return at - sign < SILENT  # clocks of two machines differ: a sign from the future counts as recent


def _last_sign(record: BuildRecord) -> str:
    sign = moment_of(record.seen or record.started)
    return f"on {record.machine}, last sign of life {f'{sign:%Y-%m-%d %H:%M} UTC' if sign else 'unknown'}"


def _how_it_died(record: BuildRecord, around: Surroundings) -> str:
    silent = record.machine and around.lives(record) is None
    return f"no sign of life any more: it ran {_last_sign(record)}" if silent else "the run that made it has died"


def _newest_done(output: PlannedOutput, rows: Sequence[PlannedRow], history: _History) -> BuildRecord | None:
    places = [record for row in rows for record in history.by_place.get((row.name, output.name), ())]
    done = [record for record in places if record.result == "done"]
    return max(done, key=lambda record: record.id or 0, default=None)  # clocks jump, numbers do not


def _what_changed(record: BuildRecord, candidates: Sequence[Candidate], rows: Sequence[PlannedRow]) -> tuple[str, ...]:
    """The differences to the nearest choice of channels."""
    differences = (
        [part for part in PARTS if record.inputs.get(part) != candidate.inputs.get(part)] for candidate in candidates
    )
    nearest: list[str] = min(differences, key=len, default=[])
    return tuple(text for part in nearest for text in _in_words(part, record, candidates, rows))


def _in_words(part: str, record: BuildRecord, candidates: Sequence[Candidate], rows: Sequence[PlannedRow]) -> list[str]:
    if part == "engine":
        return [f"{PARTS[part]}, {record.inputs.get(part, '?')} → {candidates[0].inputs.get(part, '?')}"]
    if part == "variant":
        values = next((row.values for row in rows if row.name == record.row), rows[0].values)
        keys = sorted(key for key in {*values, *record.values} if values.get(key) != record.values.get(key))
        differences = [f"{key} {record.values.get(key, '(none)')} → {values.get(key, '(none)')}" for key in keys]
        return [f"{PARTS[part]}: {', '.join(differences)}"] if record.values and differences else [PARTS[part]]
    if part == "channels" and properties_of(record.marks.get("channel", "")).made_here:
        return [f"{PARTS[part]}, or the compiler of this machine"]
    return [PARTS[part]]
