"""Which builds a GPU runs, and how: a table for this machine's GPUs or a named one, by toolkit or by package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.facts import CudaFacts, load_cuda
from feedstock_tools.pins.gpu.driver import Machine, probe
from feedstock_tools.pins.gpu.verdict import Card, Verdict, card_named, card_of_capability, judge
from feedstock_tools.pins.graph.search import Found, search
from feedstock_tools.platforms import Platform


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict on the named item: `CUDA 11.2`, or a build of a package."""

    what: str
    cuda: str | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Report:
    """The verdicts for each card; `machine` if this machine was queried."""

    machine: Machine | None
    cards: tuple[tuple[Card, tuple[Judged, ...]], ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A GPU, and what to judge for it: toolkits, or builds of packages.

    Attributes:
        name, capability: the GPU; with neither, those of this machine.
        driver: the driver of the named GPU's machine.
        cuda: only this toolkit, or builds of it.
        preset: judge builds by this list of architectures; default: all those of their toolkit.
        packages: match specifications; their builds are looked up in `channels` for `platform` (default: this one).
    """

    name: str | None = None
    capability: str | None = None
    driver: str | None = None
    cuda: str | None = None
    preset: str | None = None
    packages: Sequence[str] = ()
    channels: Sequence[str] = ("conda-forge",)
    platform: Platform | None = None


def report(question: Question) -> Report:
    """Judge toolkits, or builds of packages, for a GPU.

    Raises:
        InputError: a name, version or option is invalid, or contradicts another.
        WorkError: a channel cannot be read, or has no such package.
    """
    facts = load_cuda()
    machine, cards = _cards(question, facts)
    builds: list[Found] | None = None
    if question.packages and cards:
        builds = [build for spec in question.packages for build in _builds(spec, question)]
    judged = [(card, tuple(_judged(facts, card, question, builds))) for card in cards]
    return Report(machine, tuple(judged))


def _cards(question: Question, facts: CudaFacts) -> tuple[Machine | None, list[Card]]:
    """The named GPU; or this machine and its GPUs."""
    name, capability, driver = question.name, question.capability, question.driver
    if name and capability:
        raise InputError("name the GPU by --model or by --capability, not by both")
    windows = question.platform is not None and question.platform.os == "win"
    if name:
        return None, [card_named(facts, name, driver, windows=windows)]
    if capability:
        return None, [card_of_capability(facts, capability, driver, windows=windows)]
    if driver:
        raise InputError("--driver requires a named GPU", hint="Add --model or --capability.")
    machine = probe()
    return machine, [Card(device.name, device.capability, machine.driver, machine.cuda) for device in machine.devices]


def _builds(spec: str, question: Question) -> Iterable[Found]:
    cuda = question.cuda
    builds = search(spec, question.channels, question.platform or Platform.here())
    kept = [
        build for build in builds if cuda is None or build.toolkit is None or f"{build.toolkit}.".startswith(f"{cuda}.")
    ]
    if not kept:
        raise WorkError(f"there is no build of '{spec}' for CUDA {cuda}")
    return kept


def _judged(facts: CudaFacts, card: Card, question: Question, builds: Sequence[Found] | None) -> Iterable[Judged]:
    """The verdicts on builds; without builds, those on toolkits."""
    cuda, preset = question.cuda, question.preset
    if builds is None:
        for version in (facts.toolkit(cuda).version,) if cuda else tuple(facts.toolkits):
            architectures = _architectures(facts, preset, version)
            yield Judged(f"CUDA {version}", version, judge(facts, card, version, architectures))
        return
    for build in builds:
        yield Judged(build.record.distribution, build.toolkit, _verdict(facts, card, build, preset))


def _verdict(facts: CudaFacts, card: Card, build: Found, preset: str | None) -> Verdict:
    """The verdict on a build of a channel, by its guard on the driver and by its toolkit."""
    if build.toolkit is None:
        return Verdict("cpu", None, ("It uses no CUDA toolkit.",))
    guard = next((spec for spec in build.record.depends if spec.startswith("__cuda ")), None)
    if guard and card.driver_cuda is not None:
        from feedstock_tools.channel.specs import admits

        if not admits(guard.split(" ")[1], card.driver_cuda):
            return Verdict("no", None, (f"It requires {guard}, but the driver runs CUDA up to {card.driver_cuda}.",))
    # Metadata such as `cuda-version >=12` names only the major version; its first toolkit supports the least.
    version = build.toolkit if "." in build.toolkit else f"{build.toolkit}.0"
    if version not in facts.toolkits:
        return Verdict("no", None, (f"CUDA {version} is unknown.",))
    return judge(facts, card, version, _architectures(facts, preset, version))


def _architectures(facts: CudaFacts, preset: str | None, version: str) -> tuple[str, ...] | None:
    return facts.preset(preset, version) if preset else None
