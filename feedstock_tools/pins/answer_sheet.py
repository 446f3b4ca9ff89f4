"""The judge's answers to all that a page may ask, as data that a page filters, with bounds for a typed driver.

A question names a GPU, a driver, a package or compiler, a platform and a CUDA version, or some of them. An answer says
of each place, a CUDA version on a platform, whether all of these go together there, as `cuda resolve` does; it is not
known where only missing facts stand against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.facts.gpus import Gpu, find_gpu, load_gpus
from feedstock_tools.pins.graph.from_facts import with_gpus
from feedstock_tools.pins.graph.kinds import kind_named
from feedstock_tools.pins.graph.model import Bound, PinGraph, Release

#: The kinds that a page asks for by version.
_PACKAGES = ("cudnn", "nccl", "cutensor", "gcc", "clang", "visual-studio", "python")


@dataclass(frozen=True, slots=True)
class Entry:
    """Something to ask for, by its label, with the number of its answer, which others may share."""

    label: str
    answer: int


@dataclass(frozen=True, slots=True)
class AnswerSheet:
    """What can be asked, and the answers.

    A place has the number of its CUDA version in `cudas` plus, for each platform before its own, their count.

    Attributes:
        platforms: the last one, "", is none: some Jetson modules have their CUDA from their system alone.
        gpus, packages: by label, with the number of their answer in `of_gpus` and `of_packages`.
        of_gpus: of a GPU its `places`, its architecture (`sm`), and for Linux and for Windows the `drivers` that know
            it: from which one on, the first that no longer does, and the one before which none does (None: no bound).
        of_packages: places by architecture; under "" those without a GPU, and for all other architectures.
        everywhere: the places of CUDA versions alone.
        drivers: of each CUDA version the least driver on Linux and on Windows; "" for any, None if it is not known.
        places: the different answers, places as spans (`0-5 8`); those after a `?` are not known.
    """

    cudas: tuple[str, ...]
    platforms: tuple[str, ...]
    gpus: tuple[Entry, ...]
    packages: Mapping[Release, Entry]
    of_gpus: tuple[Mapping[str, object], ...]
    of_packages: tuple[Mapping[str, int], ...]
    everywhere: int
    drivers: tuple[tuple[str | None, str | None], ...]
    places: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """The answers for a page's script, to which the lists of entries refer by number."""
        return {
            "cudas": self.cudas,
            "platforms": self.platforms,
            "gpus": self.of_gpus,
            "packages": self.of_packages,
            "everywhere": self.everywhere,
            "drivers": self.drivers,
            "places": self.places,
        }


def answer_sheet(graph: PinGraph, cudas: Sequence[str]) -> AnswerSheet:
    """The answers of a graph for some CUDA versions; without architectures in the graph there are none about GPUs."""
    gpus = _known_gpus(graph)
    alike: dict[tuple[object, ...], Gpu] = {}
    for gpu in gpus.values():
        alike.setdefault(_likeness(gpu), replace(gpu, name=f"{gpu.name}, {len(alike)}"))
    asked = _Asked(with_gpus(graph, alike.values()), cudas)
    of_gpus, gpu_entries = _gpus(asked, gpus, alike)
    of_packages, packages = _packages(asked, sorted({str(answer["sm"]) for answer in of_gpus}))
    return AnswerSheet(
        cudas=tuple(cudas),
        platforms=asked.platforms,
        gpus=tuple(gpu_entries),
        packages=packages,
        of_gpus=tuple(of_gpus),
        of_packages=tuple(of_packages),
        everywhere=asked.number(asked.everywhere()),
        drivers=tuple(_least_drivers(graph, cuda) for cuda in cudas),
        places=tuple(asked.numbers),
    )


class _Asked:
    """A graph that is asked about each place; `numbers` are those of the different answers."""

    def __init__(self, graph: PinGraph, cudas: Sequence[str]) -> None:
        self.graph = graph
        self.platforms = (*graph.versions.get("platform", ()), "")
        self.numbers: dict[str, int] = {}
        self._lenient = graph.without_unknown()
        self._places: tuple[dict[str, str | None], ...] = tuple(
            {"platform": platform or None, "cuda": cuda} for platform in self.platforms for cuda in cudas
        )

    def going(self, kind: str, versions: Iterable[str]) -> dict[str, _Going]:
        """Where each version of a kind goes, and where it may go for all that is known."""
        found = {version: _Going(set(), set()) for version in versions}
        for number, place in enumerate(self._places):
            known = frozenset(self.graph.open_versions(place, kind, found))
            for version in known:
                found[version].known.add(number)
            for version in (*known, *self._lenient.open_versions(place, kind, found.keys() - known)):
                found[version].possible.add(number)
        return found

    def everywhere(self) -> _Going:
        """Where CUDA itself goes; on no platform only if there are none."""
        some = len(self.platforms) > 1
        places = [
            (number, place, Release("cuda", str(place["cuda"])))
            for number, place in enumerate(self._places)
            if place["platform"] or not some
        ]
        return _Going(
            {number for number, place, cuda in places if self.graph.open_to(place, cuda)},
            {number for number, place, cuda in places if self._lenient.open_to(place, cuda)},
        )

    def by_architecture(self, release: Release, going: _Going, architectures: Iterable[str]) -> dict[str, _Going]:
        """Where a release goes with each architecture, if that matters to its builds."""
        bounds = [bound for bound in self.graph.bounds_of(release) if bound.restricts("sm")]
        allowed = [way.allowed["sm"] for bound in bounds for way in bound.ways if "sm" in way.allowed]
        found: dict[tuple[bool, ...], _Going] = {}
        answers = {}
        for name in architectures if bounds else ():
            alike = tuple(name in names for names in allowed)
            if alike not in found:
                chosen = ((number, {**self._places[number], "sm": name}) for number in going.possible)
                places = {number for number, here in chosen if all(bound.open_to(here) for bound in bounds)}
                found[alike] = going & _Going(places, places)
            answers[name] = found[alike]
        return answers

    def number(self, going: _Going) -> int:
        doubtful = spans(sorted(going.possible - going.known))
        text = spans(sorted(going.known)) + (f"?{doubtful}" if doubtful else "")
        return self.numbers.setdefault(text, len(self.numbers))


@dataclass(frozen=True, slots=True)
class _Going:
    """The places where something goes, and those where it may go if all that is not known is possible."""

    known: set[int]
    possible: set[int]

    def __and__(self, other: _Going) -> _Going:
        return _Going(self.known & other.known, self.possible & other.possible)


def _gpus(
    asked: _Asked, gpus: Mapping[str, Gpu], alike: Mapping[tuple[object, ...], Gpu]
) -> tuple[list[dict[str, object]], list[Entry]]:
    of_architectures = asked.going("sm", {_number(gpu) for gpu in alike.values()})
    of_alike = asked.going("gpu", [gpu.name for gpu in alike.values()])
    answers: list[dict[str, object]] = []
    entries = []
    for label, gpu in gpus.items():
        going = of_alike[alike[_likeness(gpu)].name] & of_architectures[_number(gpu)]
        drivers = [drivers_of(gpu, windows=windows) for windows in (False, True)]
        answer = {"places": asked.number(going), "sm": _number(gpu), "drivers": drivers}
        if answer not in answers:
            answers.append(answer)
        entries.append(Entry(label, answers.index(answer)))
    return answers, entries


def _packages(asked: _Asked, architectures: Sequence[str]) -> tuple[list[dict[str, int]], dict[Release, Entry]]:
    answers: list[dict[str, int]] = []
    entries = {}
    for kind in _PACKAGES:
        for version, going in asked.going(kind, asked.graph.versions.get(kind, ())).items():
            release = Release(kind, version)
            places = {"": going, **asked.by_architecture(release, going, architectures)}
            answer = {name: asked.number(here) for name, here in places.items() if not name or here != going}
            if answer not in answers:
                answers.append(answer)
            entries[release] = Entry(f"{kind_named(kind).title} {version}", answers.index(answer))
    return answers, entries


def _likeness(gpu: Gpu) -> tuple[object, ...]:
    return (gpu.architecture, gpu.tegra, gpu.grace, *gpu.jetson_cuda.items())


def _number(gpu: Gpu) -> str:
    return gpu.architecture.removeprefix("sm_")


def _known_gpus(graph: PinGraph) -> dict[str, Gpu]:
    """GPUs by label, newest first: each is the one that the command line takes for its name."""
    if "sm" not in graph.versions:
        return {}
    known = load_gpus()
    labelled: dict[str, Gpu] = {}
    for gpu in reversed(known.gpus):
        label = f"{gpu.name} ({gpu.capability}, {gpu.architecture})"
        if label not in labelled:
            try:
                meant = find_gpu(gpu.name, known)
            except InputError:  # several of different capabilities have the name
                meant = gpu
            labelled[label] = meant if meant.capability == gpu.capability else gpu
    return labelled


def drivers_of(gpu: Gpu, *, windows: bool) -> list[str | None]:
    if gpu.tegra:  # its driver is part of its system
        return [None, None, None]
    drivers = gpu.drivers(windows=windows)
    return [drivers.sure, drivers.below, drivers.least]


def _least_drivers(graph: PinGraph, cuda: str) -> tuple[str | None, str | None]:
    bounds = [bound for bound in graph.bounds_of(Release("cuda", cuda)) if bound.restricts("driver")]
    on_linux, on_windows = (_least_driver(graph, bounds, platform) for platform in ("linux-64", "win-64"))
    return on_linux, on_windows


def _least_driver(graph: PinGraph, bounds: Sequence[Bound], platform: str) -> str | None:
    if not bounds:
        return None
    for driver in ("", *graph.versions["driver"][::-1]):  # a bound that lets no driver at all in has none
        if all(bound.open_to({"platform": platform, "driver": driver}) for bound in bounds):
            return driver
    return None


def spans(places: Iterable[int]) -> str:
    """Rising numbers as spans.

    >>> spans([0, 1, 2, 5])
    '0-2 5'
    """
    found: list[list[int]] = []
    for place in places:
        if found and found[-1][-1] == place - 1:
            found[-1][1:] = [place]
        else:
            found.append([place])
    return " ".join("-".join(map(str, span)) for span in found)
