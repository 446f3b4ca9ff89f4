"""The configurations of a feedstock against the pin graph: mistakes that would fail a build, or break packages for
users, only after hours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.check.cuda_guards import missing_guards, wrong_guards
from feedstock_tools.check.dropped_cuda import named_by_feedstock, next_cuda, why_dropped
from feedstock_tools.check.findings import Complaint, Finding
from feedstock_tools.check.list_checks import (
    complaints_of_lists,
    complaints_of_next,
    findings_of_spec,
    lists_for_jetson,
)
from feedstock_tools.check.renderings import Built, Renderings, rendered
from feedstock_tools.check.row_checks import complaints_of_row
from feedstock_tools.check.rows import Row, never_released, rows_of, zips_out_of_step
from feedstock_tools.check.scripts.architectures import ScriptList, lists_in_scripts
from feedstock_tools.errors import InputError
from feedstock_tools.facts import CudaFacts, load_cuda
from feedstock_tools.pins.graph.from_facts import graph_of_facts
from feedstock_tools.pins.graph.model import PinGraph
from feedstock_tools.rerender.configurations.configuration import Configuration
from feedstock_tools.rerender.source import find_pinning
from feedstock_tools.stages import stage
from feedstock_tools.wording import counted


@dataclass(frozen=True, slots=True)
class _Looked:
    """A configuration with its rows, the outputs that it builds, and the lists of architectures of each row."""

    configuration: Configuration
    rows: tuple[Row, ...]
    outputs: tuple[Built, ...]
    lists: tuple[tuple[ScriptList, ...], ...]


@dataclass(frozen=True, slots=True)
class _View:
    """What all looks at one feedstock share: the facts, their graph, what its jobs render to, its recipe's folder."""

    facts: CudaFacts
    graph: PinGraph
    renderings: Renderings
    recipe: Path


def check(facts: CudaFacts, configurations: Sequence[Configuration]) -> tuple[Finding, ...]:
    """The mistakes in configurations by the facts alone; configurations without CUDA have none.

    Unknown values are skipped: a CUDA version without facts, or a value that is not a version.
    """
    return _by_facts_alone(facts, graph_of_facts(facts), configurations)


def _by_facts_alone(facts: CudaFacts, graph: PinGraph, configurations: Sequence[Configuration]) -> tuple[Finding, ...]:
    findings: dict[Finding, None] = {}
    for configuration in configurations:
        complaints = zips_out_of_step(configuration)
        if not complaints:
            complaints += never_released(facts, configuration)
            for row in rows_of(facts, graph, configuration):
                complaints += complaints_of_row(row)
        findings.update((Finding.of(configuration.name, complaint), None) for complaint in complaints)
    return tuple(findings)


def check_feedstock(
    feedstock: Path,
    configurations: Sequence[Configuration],
    *,
    pinning: Path | None = None,
    facts: CudaFacts | None = None,
    bounds: Bounds | None = None,
) -> tuple[Finding, ...]:
    """What contradicts the facts in configurations, and in the feedstock's spec, recipe and build scripts.

    Args:
        pinning: a folder laid out as the conda-forge-pinning package, or its variant file: it says which CUDA versions
            there still are; default: what the facts say of conda-forge's pinning.
        facts: the facts about CUDA; default: those that ship with the program.
        bounds: what the work may take, in a child process; None to do it in this process.

    Raises:
        InputError: the pinning, the recipe or conda-forge.yml cannot be read.

    >>> check(Path("solver-feedstock"), read_configurations(Path("solver-feedstock")))
    ()
    """
    if bounds is not None:
        return run_bounded(partial(check_feedstock, feedstock, configurations, pinning=pinning, facts=facts), bounds)
    return check_renderings(Renderings(feedstock), configurations, pinning, facts or load_cuda())


def check_renderings(
    renderings: Renderings, configurations: Sequence[Configuration], pinning: Path | None, facts: CudaFacts
) -> tuple[Finding, ...]:
    """As `check_feedstock`, for a state that others look at, too."""
    stage(f"checking {counted(len(configurations), 'configuration')} against the facts")
    feedstock = renderings.feedstock
    against = find_pinning(pinning) if pinning else None
    view = _View(facts, graph_of_facts(facts), renderings, _recipe_folder(renderings))
    decided = named_by_feedstock(feedstock, view.recipe, against)
    findings = dict.fromkeys(findings_of_spec(facts, feedstock / "feedstock.yaml"))
    findings.update(dict.fromkeys(_by_facts_alone(facts, view.graph, configurations)))
    looked = [_looked(view, configuration) for configuration in configurations if not zips_out_of_step(configuration)]
    for_jetson = frozenset(
        place
        for item in looked
        for row, lists in zip(item.rows, item.lists, strict=True)
        for place in lists_for_jetson(row, lists)
    )
    for item in looked:
        complaints: list[Complaint] = []
        for row, lists in zip(item.rows, item.lists, strict=True):
            complaints += complaints_of_lists(row, lists, for_jetson)
        for version in dict.fromkeys(version for row in item.rows for version in row.values["cuda_compiler_version"]):
            dropped = None if version in decided else why_dropped(version, item.configuration.platform, facts, against)
            complaints += [Complaint("cuda_compiler_version", *dropped)] if dropped else []
        complaints += wrong_guards(item.outputs, facts)
        findings.update((Finding.of(item.configuration.name, complaint), None) for complaint in complaints)
    built = [(item.configuration.name, output) for item in looked for output in item.outputs]
    findings.update((Finding.of(name, complaint), None) for name, complaint in missing_guards(built, facts))
    findings.update((finding, None) for finding in _of_next(view, looked))
    return tuple(findings)


def _recipe_folder(renderings: Renderings) -> Path:
    """The recipe's folder; without a readable recipe, its default place."""
    try:
        return renderings.recipe_folder
    except InputError:
        return renderings.feedstock / "recipe"


def _looked(view: _View, configuration: Configuration) -> _Looked:
    rows = tuple(rows_of(view.facts, view.graph, configuration))
    has_cuda = configuration.values.get("cuda_compiler_version")
    outputs = rendered(view.renderings, configuration) if has_cuda else ()
    return _Looked(configuration, rows, outputs, tuple(_lists(row, view, outputs) for row in rows))


def _lists(row: Row, view: _View, outputs: Sequence[Built]) -> tuple[ScriptList, ...]:
    values = {**row.values, **dict.fromkeys(("target_platform", "host_platform"), (row.subdir,))}
    cuda = row.values["cuda_compiler_version"][0]
    of_row = [built for built in outputs if built.output.variant.get("cuda_compiler_version", cuda) == cuda]
    return tuple(lists_in_scripts(view.recipe, view.renderings.feedstock, values, of_row))


def _of_next(view: _View, looked: Sequence[_Looked]) -> Iterator[Finding]:
    """Remarks on the lists that the next CUDA version of the pinning would find, for the newest of each platform."""
    cudas = {(item.configuration.platform, row.toolkit.version) for item in looked for row in item.rows}
    for item in looked:
        platform = item.configuration.platform
        newer = next_cuda({version for where, version in cudas if where == platform}, platform, view.facts)
        if len(item.rows) != 1 or newer is None:
            continue
        values = {**item.configuration.values, "cuda_compiler_version": (newer,)}
        then = _looked(view, replace(item.configuration, values=values))
        for row, lists in zip(then.rows, then.lists, strict=True):
            complaints = complaints_of_next(row.toolkit, lists)
            yield from (Finding.of(item.configuration.name, complaint) for complaint in complaints)
