"""Which builds a GPU runs, and how: a table for this machine's GPUs or a named one, by toolkit or by package."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.facts import CudaFacts, load_cuda
from feedstock_tools.pins.gpu.driver import Machine, probe
from feedstock_tools.pins.gpu.verdict import HOW, Card, Verdict, card_named, card_of_capability, judge
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

    def as_text(self, *, single: bool) -> str:
        """The cards with a table each; with `single`, one verdict with all its reasons."""
        lines = _about(self.machine) if self.machine else []
        for card, judged in self.cards:
            lines.append(_heading(card))
            lines += _in_full(judged) if single else _in_a_table(judged)
        return "\n".join(lines)

    def as_json(self) -> str:
        """The same for programs."""
        machine = self.machine
        document: dict[str, Any] = {} if machine is None else {"driver": machine.driver, "driver_cuda": machine.cuda}
        if machine is not None and machine.problem:
            document["problem"] = machine.problem
        document["gpus"] = [
            {
                "name": card.name,
                "capability": card.capability,
                "driver": card.driver,
                "driver_cuda": card.driver_cuda,
                "builds": [
                    {
                        "what": one.what,
                        "cuda": one.cuda,
                        "runs": one.verdict.how,
                        "by": one.verdict.by,
                        "reasons": list(one.verdict.reasons),
                    }
                    for one in judged
                ],
            }
            for card, judged in self.cards
        ]
        return json.dumps(document, indent=2)


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


def _about(machine: Machine) -> list[str]:
    lines = []
    if machine.driver or machine.cuda:
        lines.append(f"Driver {machine.driver or 'of unknown version'}, which runs CUDA up to {machine.cuda or '?'}.")
    if machine.problem:
        problem = f"{machine.problem[0].upper()}{machine.problem[1:]}"
        lines.append(f"{problem}. Name a GPU with --gpu or --capability to ask about another machine.")
    return lines


def _heading(card: Card) -> str:
    driver = f", driver {card.driver} (CUDA up to {card.driver_cuda})" if card.driver_cuda else ""
    return f"{card.name}, compute capability {card.capability}{driver}"


def _in_full(judged: Sequence[Judged]) -> list[str]:
    lines = []
    for one in judged:
        by = f" ({one.verdict.by})" if one.verdict.by else ""
        lines.append(f"  {one.what}: {one.verdict.words}{by}")
        lines += [f"    {reason}" for reason in one.verdict.reasons]
    return lines


def _in_a_table(judged: Sequence[Judged]) -> list[str]:
    if not judged:
        return []
    wide = max(len(one.what) for one in judged)
    how = max(map(len, HOW.values()))
    rows = ((one.what, one.verdict.words, one.verdict.by or "", _shortly(one.verdict)) for one in judged)
    return [f"  {what:<{wide}}  {words:<{how}}  {by:<12}  {reason}".rstrip() for what, words, by, reason in rows]


def _shortly(verdict: Verdict) -> str:
    """The decisive reason."""
    return verdict.reasons[-1 if verdict.how == "no" else 0]
