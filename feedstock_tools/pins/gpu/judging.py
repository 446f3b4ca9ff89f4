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

__all__ = ["Judged", "Report", "report"]


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


def report(
    *,
    name: str | None = None,
    capability: str | None = None,
    driver: str | None = None,
    cuda: str | None = None,
    preset: str | None = None,
    packages: Sequence[str] = (),
    channels: Sequence[str] = ("conda-forge",),
    platform: Platform | None = None,
) -> Report:
    """Judge toolkits, or builds of packages, for a GPU.

    Args:
        name, capability: the GPU; with neither, those of this machine.
        driver: the driver of the named GPU's machine.
        cuda: only this toolkit, or builds of it.
        preset: judge builds by this list of architectures; default: all those of their toolkit.
        packages: match specifications; their builds are looked up in `channels` for `platform` (default: this one).

    Raises:
        InputError: a name, version or option is invalid, or contradicts another.
        WorkError: a channel cannot be read, or has no such package.
    """
    facts = load_cuda()
    if name and capability:
        raise InputError("name the GPU by --model or by --capability, not by both")
    machine = None
    if name or capability:
        cards = [card_named(facts, name, driver) if name else card_of_capability(facts, str(capability), driver)]
    else:
        if driver:
            raise InputError("--driver requires a named GPU", hint="Add --model or --capability.")
        machine = probe()
        cards = [Card(device.name, device.capability, machine.driver, machine.cuda) for device in machine.devices]
    builds: list[Found] | None = None
    if packages and cards:
        builds = [one for spec in packages for one in _builds(spec, channels, platform, cuda)]
    judged = [(card, tuple(_judged(facts, card, cuda, preset, builds))) for card in cards]
    return Report(machine, tuple(judged))


def _builds(spec: str, channels: Sequence[str], platform: Platform | None, cuda: str | None) -> Iterable[Found]:
    found = search(spec, channels, platform or Platform.here())
    kept = [one for one in found if cuda is None or one.toolkit is None or f"{one.toolkit}.".startswith(f"{cuda}.")]
    if not kept:
        raise WorkError(f"there is no build of '{spec}' for CUDA {cuda}")
    return kept


def _judged(
    facts: CudaFacts, card: Card, cuda: str | None, preset: str | None, builds: Sequence[Found] | None
) -> Iterable[Judged]:
    if builds is None:
        for version in (facts.toolkit(cuda).version,) if cuda else tuple(facts.toolkits):
            yield Judged(
                f"CUDA {version}", version, judge(facts, card, version, _architectures(facts, preset, version))
            )
        return
    for found in builds:
        yield Judged(found.record.distribution, found.toolkit, _verdict(facts, card, found, preset))


def _verdict(facts: CudaFacts, card: Card, found: Found, preset: str | None) -> Verdict:
    """The verdict on a build of a channel, by its guard on the driver and by its toolkit."""
    if found.toolkit is None:
        return Verdict("cpu", None, ("It uses no CUDA toolkit.",))
    guard = next((spec for spec in found.record.depends if spec.startswith("__cuda ")), None)
    if guard and card.driver_cuda is not None:
        from feedstock_tools.channel.specs import admits

        if not admits(guard.split(" ")[1], card.driver_cuda):
            return Verdict("no", None, (f"It requires {guard}, but the driver runs CUDA up to {card.driver_cuda}.",))
    # Metadata such as `cuda-version >=12` names only the major version; its first toolkit supports the least.
    version = found.toolkit if "." in found.toolkit else f"{found.toolkit}.0"
    if version not in facts.toolkits:
        return Verdict("no", None, (f"CUDA {version} is unknown.",))
    return judge(facts, card, version, _architectures(facts, preset, version))


def _architectures(facts: CudaFacts, preset: str | None, version: str) -> tuple[str, ...] | None:
    return facts.preset(preset, version) if preset else None
