"""The facts about conda-forge's packages compared with a real channel: each disagreement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from feedstock_tools.channel.metadata import Record
from feedstock_tools.facts.cuda import CudaFacts
from feedstock_tools.pins.graph.from_channel import graph_of_channel
from feedstock_tools.pins.graph.from_facts import graph_of_facts
from feedstock_tools.pins.graph.kinds import newest_first
from feedstock_tools.pins.graph.model import PinGraph, Release

#: The platforms that conda-forge has, or had, CUDA for.
PLATFORMS = ("linux-64", "linux-aarch64", "linux-ppc64le", "win-64")


@dataclass(frozen=True, slots=True, order=True)
class Disagreement:
    """One disagreement: the platform, the release, the facts, and the channel's contents."""

    platform: str
    kind: str
    version: str
    facts: str
    channel: str


#: By platform and kind of release the disagreements; None where the channel has no such release.
Audit = Mapping[tuple[str, str], tuple[Disagreement, ...] | None]


def audit(facts: CudaFacts, records: Sequence[Record], origin: str, platforms: Iterable[str]) -> Audit:
    """The disagreements between facts and a channel on toolkits and libraries: which exist, and their CUDA versions.

    CUDA versions that only one side knows count for toolkits, not again for libraries.

    Args:
        records: the channel's packages, for all requested platforms.
        platforms: subdirs.
    """
    recorded = graph_of_facts(facts)
    channel = graph_of_channel(records, origin, virtual={"__cuda": facts.toolkits})
    return {
        (platform, kind): (
            tuple(_of_kind(recorded, channel, kind, platform)) if _releases(channel, kind, platform) else None
        )
        for platform in platforms
        for kind in ("cuda", *facts.libraries)
    }


def _of_kind(recorded: PinGraph, channel: PinGraph, kind: str, platform: str) -> Iterator[Disagreement]:
    in_facts, in_channel = _releases(recorded, kind, platform), _releases(channel, kind, platform)
    for version in newest_first(kind, {*in_facts, *in_channel}):
        if version not in in_channel:
            yield Disagreement(platform, kind, version, "in the facts", "not in the channel")
        elif version not in in_facts:
            yield Disagreement(platform, kind, version, "not in the facts", "in the channel")
        elif kind != "cuda":
            yield from _of_partners(recorded, channel, Release(kind, version), platform)


def _of_partners(recorded: PinGraph, channel: PinGraph, release: Release, platform: str) -> Iterator[Disagreement]:
    both = _releases(recorded, "cuda", platform) & _releases(channel, "cuda", platform)
    in_facts, in_channel = (_cudas(graph, release, platform) & both for graph in (recorded, channel))
    if in_facts != in_channel:
        words = [", ".join(newest_first("cuda", cudas)[::-1]) or "none" for cudas in (in_facts, in_channel)]
        yield Disagreement(
            platform,
            release.kind,
            release.version,
            f"by the facts for CUDA {words[0]}",
            f"in the channel for CUDA {words[1]}",
        )


def _releases(graph: PinGraph, kind: str, platform: str) -> set[str]:
    chosen = {"platform": platform}
    return {version for version in graph.versions.get(kind, ()) if graph.open_to(chosen, Release(kind, version))}


def _cudas(graph: PinGraph, release: Release, platform: str) -> set[str]:
    chosen = {"platform": platform, release.kind: release.version}
    return {cuda for cuda in graph.versions.get("cuda", ()) if graph.open_to(chosen, Release("cuda", cuda))}
