"""Mistakes in the lists of architectures that a feedstock's spec, recipe and scripts set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from feedstock_tools.check.architecture_lists import COMPANIONS
from feedstock_tools.check.coverage import NATIVE, Place, dropped_by, jetson_only, refused_by, unserved_by
from feedstock_tools.check.findings import Complaint, Finding, Weight
from feedstock_tools.check.rows import Row
from feedstock_tools.check.scripts.architectures import ScriptList
from feedstock_tools.errors import InputError
from feedstock_tools.facts import CudaFacts, Toolkit
from feedstock_tools.generate.spec.reading import read_spec
from feedstock_tools.generate.texts.cuda_facts import architectures_by_version
from feedstock_tools.gpu_code.architecture import Architecture, parse_architectures

_T = TypeVar("_T")
_MISTAKE: Weight = "mistake"


@dataclass(frozen=True, slots=True)
class _Variable:
    """A variable in a file: the lists that it may have, and the last place that sets it."""

    last: ScriptList
    readings: tuple[tuple[Architecture, ...], ...]

    @property
    def key(self) -> str:
        return f"{self.last.path}:{self.last.line}: {self.last.title}"


def findings_of_spec(facts: CudaFacts, path: Path) -> Iterator[Finding]:
    """The mistakes in the architectures of a spec; none without a spec."""
    if not path.is_file():
        return
    try:
        chosen = architectures_by_version(read_spec(path), facts)
    except InputError as error:
        for mistake in error.mistakes:
            yield Finding(path.name, f"line {mistake.line}" if mistake.line else path.name, mistake.message)
        return
    for version, names in chosen.items():
        toolkit = facts.toolkits.get(version)
        if toolkit is not None:
            listed = parse_architectures(names)
            faults = [(message, _MISTAKE) for message in refused_by(toolkit, listed)]
            for message, weight in (*faults, *unserved_by(toolkit, listed, Place("linux-64"))):
                yield Finding(path.name, "cuda.architectures", f"{message} (CUDA {version})", weight=weight)


def complaints_of_lists(
    row: Row, lists: Iterable[ScriptList], shared: frozenset[tuple[str, int]]
) -> Iterator[Complaint]:
    """The mistakes in the lists of one row.

    If a variable may have several values, only mistakes that all of them have are reported. Where a file sets several
    variables, it is not known which of them the build system uses, so GPUs count as left out only if every list leaves
    them out.

    Args:
        shared: lists (path, line) that the feedstock also uses for Jetson modules, which may name them therefore.
    """
    for variables in _by_file(lists).values():
        by_message: dict[tuple[str, Weight], Complaint] = {}  # names the first of variables that hold the same list
        for complaint in (mistake for variable in variables for mistake in _of_variable(row, variable, shared)):
            by_message.setdefault((complaint.message, complaint.weight), complaint)
        yield from by_message.values()
        yield from _left_out(row, [variable for variable in variables if not variable.last.is_command])


def _of_variable(row: Row, variable: _Variable, shared: frozenset[tuple[str, int]]) -> Iterator[Complaint]:
    """The mistakes of one variable, whatever else the build system is given."""
    source = row.source("architectures")
    if variable.last.is_native:
        yield Complaint(variable.key, NATIVE)
        return
    for message in _common(set(refused_by(row.toolkit, listed)) for listed in variable.readings):
        yield Complaint(variable.key, message, source)
    if not variable.last.is_command and (variable.last.path, variable.last.line) not in shared:
        place = Place(row.subdir, row.is_tegra)
        jetson = _common(set(jetson_only(row.toolkit, listed, place)) for listed in variable.readings)
        yield from (Complaint(variable.key, message, source, weight) for message, weight in jetson)


def _left_out(row: Row, variables: Sequence[_Variable]) -> Iterator[Complaint]:
    """The GPUs that all lists of a file leave out."""
    place = Place(row.subdir, row.is_tegra)
    lists = [listed for variable in variables if not variable.last.is_native for listed in variable.readings]
    for message, weight in _common(set(unserved_by(row.toolkit, listed, place)) for listed in lists):
        yield Complaint(variables[0].key, message, row.source("architectures"), weight)


def lists_for_jetson(row: Row, lists: Iterable[ScriptList]) -> Iterator[tuple[str, int]]:
    """The lists (path, line) of a row whose builds Jetson modules run."""
    if Place(row.subdir, row.is_tegra).serves_jetson(row.toolkit):
        yield from ((listed.path, listed.line) for listed in lists)


def complaints_of_next(toolkit: Toolkit, lists: Iterable[ScriptList]) -> Iterator[Complaint]:
    """Remarks on lists that would be set for a later toolkit as well, though its nvcc has dropped some of them."""
    for variables in _by_file(lists).values():
        by_message: dict[str, Complaint] = {}
        for variable in variables:
            dropped = _common(set(dropped_by(toolkit, listed)) for listed in variable.readings)
            message = f"nvcc of CUDA {toolkit.version}, which conda-forge's pinning has next, has dropped"
            message = f"{message} {', '.join(dropped)}"
            if dropped:
                by_message.setdefault(message, Complaint(variable.key, message, weight="remark"))
        yield from by_message.values()


def _by_file(lists: Iterable[ScriptList]) -> dict[str, list[_Variable]]:
    """The variables of each file; those that a build system adds up are one."""
    by_file: dict[str, dict[str, list[ScriptList]]] = {}
    for listed in lists:
        name = COMPANIONS.get(listed.name, listed.name)
        by_file.setdefault(listed.path, {}).setdefault(name, []).append(listed)
    return {
        path: sorted(map(_variable, variables.values()), key=lambda variable: variable.last.line)
        for path, variables in by_file.items()
    }


def _variable(values: Sequence[ScriptList]) -> _Variable:
    names = dict.fromkeys(value.name for value in values)
    readings: list[tuple[Architecture, ...]] = [()]
    for name in names:
        own = [value.architectures() for value in values if value.name == name]
        readings = [(*before, *more) for before in readings for more in own]
    return _Variable(values[-1], tuple(readings))


def _common(sets: Iterable[set[_T]]) -> list[_T]:
    """What all of some sets have, sorted."""
    every = list(sets)
    return sorted(set.intersection(*every), key=str) if every else []
