"""The configurations of a feedstock against the pin graph: mistakes that would fail a build, or break packages for
users, only after hours."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.check.cuda_guards import missing_guards, wrong_guards
from feedstock_tools.check.findings import Finding
from feedstock_tools.check.renderings import Job, Renderings
from feedstock_tools.check.row_checks import (
    CudaRow,
    cuda_rows,
    findings_of_lists,
    findings_of_next,
    findings_of_row,
    findings_of_spec,
    lists_for_jetson,
    never_released,
    zips_out_of_step,
)
from feedstock_tools.check.scripts.architectures import ScriptList, lists_in_scripts
from feedstock_tools.errors import InputError
from feedstock_tools.facts import CudaFacts, load_cuda
from feedstock_tools.pins.graph.from_facts import graph_of_facts
from feedstock_tools.pins.graph.model import PinGraph
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import CI_SUPPORT, read_text
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.source import Pinning, find_pinning
from feedstock_tools.stages import stage
from feedstock_tools.versions import parse_version
from feedstock_tools.wording import counted


@dataclass(frozen=True, slots=True)
class _CudaJob:
    """A job, which builds nothing if it has no CUDA, with its rows and the lists of architectures of each."""

    job: Job
    rows: tuple[tuple[CudaRow, tuple[ScriptList, ...]], ...]


@dataclass(frozen=True, slots=True)
class _View:
    """What the checks of one feedstock share: the facts, their graph, what its jobs render to, its recipe's folder."""

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
    findings: list[Finding] = []
    for configuration in configurations:
        out_of_step = zips_out_of_step(configuration)
        findings += out_of_step or never_released(facts, configuration)
        for row in cuda_rows(facts, graph, configuration) if not out_of_step else ():
            findings += findings_of_row(row)
    return tuple(dict.fromkeys(findings))


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
    """As `check_feedstock`, for an opened state."""
    stage(f"checking {counted(len(configurations), 'configuration')} against the facts")
    feedstock = renderings.feedstock
    against = find_pinning(pinning) if pinning else None
    view = _View(facts, graph_of_facts(facts), renderings, _recipe_folder(renderings))
    decided = named_by_feedstock(feedstock, view.recipe, against)
    findings = [*findings_of_spec(facts, feedstock / "feedstock.yaml")]
    findings += _by_facts_alone(facts, view.graph, configurations)
    jobs = [_job(view, configuration) for configuration in configurations if not zips_out_of_step(configuration)]
    for_jetson = frozenset(place for item in jobs for row, lists in item.rows for place in lists_for_jetson(row, lists))
    for item in jobs:
        for row, lists in item.rows:
            findings += findings_of_lists(row, lists, for_jetson)
        for row, _ in item.rows:
            version = row.values["cuda_compiler_version"][0]
            dropped = None if version in decided else why_dropped(version, item.job.platform, facts, against)
            findings += [row.finding("cuda_compiler_version", *dropped)] if dropped else []
        findings += wrong_guards(item.job, facts)
    findings += (finding for _, finding in missing_guards([item.job for item in jobs], facts))
    return tuple(dict.fromkeys([*findings, *_of_next(view, jobs)]))


def _recipe_folder(renderings: Renderings) -> Path:
    """The recipe's folder; without a readable recipe, its default place."""
    try:
        return renderings.recipe_folder
    except InputError:
        return renderings.feedstock / "recipe"


def _job(view: _View, configuration: Configuration) -> _CudaJob:
    has_cuda = configuration.values.get("cuda_compiler_version")
    job = view.renderings.job(configuration) if has_cuda else Job(configuration)
    rows = cuda_rows(view.facts, view.graph, configuration)
    return _CudaJob(job, tuple((row, _lists(row, view, job)) for row in rows))


def _lists(row: CudaRow, view: _View, job: Job) -> tuple[ScriptList, ...]:
    values = {**row.values, **dict.fromkeys(("target_platform", "host_platform"), (row.subdir,))}
    cuda = row.values["cuda_compiler_version"][0]
    of_row = [each for each in job.packages if each.output.variant.get("cuda_compiler_version", cuda) == cuda]
    return tuple(lists_in_scripts(view.recipe, view.renderings.feedstock, values, of_row))


def _of_next(view: _View, jobs: Sequence[_CudaJob]) -> Iterator[Finding]:
    """Remarks on the lists that the next CUDA version of the pinning would find, for the newest of each platform."""
    cudas = {(item.job.platform, row.toolkit.version) for item in jobs for row, _ in item.rows}
    for item in jobs:
        configuration, platform = item.job.configuration, item.job.platform
        newer = next_cuda({version for where, version in cudas if where == platform}, platform, view.facts)
        if len(item.rows) != 1 or newer is None:
            continue
        values = {**configuration.values, "cuda_compiler_version": (newer,)}
        for row, lists in _job(view, replace(configuration, values=values)).rows:
            yield from findings_of_next(row, lists)


_KEY = re.compile(r"^cuda_compiler_version\s*:\s*(?P<inline>.*)$")
_USE_LOCAL = re.compile(r"^[ \t]*use_local:[ \t]*true", re.IGNORECASE | re.MULTILINE)
_VERSION = re.compile(r"(?<![\d.])(\d+\.\d+)(?![\d.])")


def named_by_feedstock(feedstock: Path, recipe: Path, pinning: Pinning | None) -> frozenset[str]:
    """The CUDA versions that a feedstock itself chooses: in its recipe's variant files, and in its migrations.

    A migration without `use_local` is a copy of the pinning's, and is over when the pinning no longer has it; without a
    pinning to compare with, it counts.
    """
    files = [recipe / "conda_build_config.yaml", recipe / "variants.yaml"]
    upstream = pinning.migrations if pinning else None
    for path in sorted((feedstock / CI_SUPPORT / "migrations").glob("*.y*ml")):
        own = _USE_LOCAL.search(read_text(path, within=feedstock)) is not None
        if own or pinning is None or (upstream is not None and (upstream / path.name).is_file()):
            files.append(path)
    return frozenset(version for path in files if path.is_file() for version in _named_in(path, feedstock))


def why_dropped(version: str, platform: Platform, facts: CudaFacts, pinning: Pinning | None) -> tuple[str, str] | None:
    """The mistake of building for a CUDA version, with its source; None if the pinning has the version.

    Args:
        pinning: the pinning to compare with; default: conda-forge's according to the facts.
    """
    if pinning is not None:
        if version in _named_in(pinning.config, None):
            return None
        return f"the pinning has no CUDA {version}, and nothing in the feedstock sets it", str(pinning.config)
    newest = max((row.date for row in facts.rows), default="")
    row = next((row for row in facts.rows if row.platform == platform and row.cuda == version), None)
    if row is None or row.date == newest:
        return None
    where = f"{facts.pinning_repository}/tree/{row.commit}"
    if row.origin == "ordering":
        return (
            f"conda-forge's pinning never had CUDA {version} for {platform}: only a migration's ordering named it",
            where,
        )
    return f"conda-forge's pinning dropped CUDA {version} for {platform} after {row.date}", where


def next_cuda(versions: Collection[str], platform: Platform, facts: CudaFacts) -> str | None:
    """The CUDA version that conda-forge's newest pinning, or a migration of it, has next for a platform; None if none.

    Args:
        versions: those that a feedstock builds for the platform.
    """
    newest = max((row.date for row in facts.rows), default="")
    built = max(versions, key=parse_version, default=None)
    later = [
        row.cuda
        for row in facts.rows
        if row.platform == platform and row.cuda and row.date == newest and built is not None
        if parse_version(row.cuda) > parse_version(built)
    ]
    return min(later, key=parse_version, default=None)


def _named_in(path: Path, within: Path | None) -> Iterator[str]:
    """The versions under `cuda_compiler_version` in a variant file, regardless of selectors."""
    inside = False
    for line in read_text(path, within=within).splitlines():
        text = line.split("#", 1)[0].rstrip()
        match = _KEY.match(text)  # indented, it is the ordering of a migration
        if match:
            inside = True
            yield from _VERSION.findall(match["inline"])
        elif inside and re.match(r"^\s*-\s", text):
            yield from _VERSION.findall(text)
        elif inside and text.strip():
            inside = bool(re.match(r"^\s*(if|then|else)\b", text))
