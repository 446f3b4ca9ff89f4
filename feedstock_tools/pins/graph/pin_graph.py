"""The pin graph of the facts, of a channel, or of both together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.run_exports import listed_run_exports
from feedstock_tools.facts.cuda import CudaFacts
from feedstock_tools.facts.packages import read_packages
from feedstock_tools.pins.graph.demands import Demand, versions_named
from feedstock_tools.pins.graph.from_channel import graph_of_channel
from feedstock_tools.pins.graph.from_facts import graph_of_facts
from feedstock_tools.pins.graph.kinds import KINDS
from feedstock_tools.pins.graph.model import PinGraph, merged


def pin_graph(
    facts: CudaFacts | None,
    *,
    demands: Iterable[Demand] = (),
    records: Sequence[Record] | None = None,
    origin: str = "the channel",
) -> PinGraph:
    """The graph for demands.

    A channel provides CUDA, its libraries, Python and any other demanded package, and which of them go
    together; everything else comes from the facts: compilers, architectures, drivers.

    Args:
        facts: None to use only the channel (`records` must be given then).
        demands: the later demands: their versions of drivers and compilers are added to the graph.
        records: a channel's packages; None for conda-forge according to the facts.
        origin: the channel's name.

    Raises:
        WorkError: the run exports of demanded packages cannot be read.
    """
    demanded = tuple(demands)
    if records is None:
        if facts is None:
            raise ValueError("a graph needs facts, a channel, or both")
        # The facts do not restrict Python, so it is only added if a demand names it.
        pythons = known_pythons() if any(demand.kind == "python" for demand in demanded) else ()
        graph = graph_of_facts(facts, pythons=pythons)
        named = versions_named(demanded, graph)
        return graph_of_facts(facts, also=named, pythons=pythons) if named else graph
    packages = [demand.kind for demand in demanded if demand.kind not in KINDS]
    exports = listed_run_exports(record.url for record in records if record.name in packages)
    virtual = {"__cuda": tuple(facts.toolkits)} if facts else {}
    channel = graph_of_channel(records, origin, packages=packages, virtual=virtual, exports=exports)
    if facts is None:
        return channel
    cudas = channel.versions.get("cuda") or tuple(facts.toolkits)
    from_facts = graph_of_facts(facts, cuda_versions=cudas)
    named = versions_named(demanded, from_facts)
    from_facts = graph_of_facts(facts, cuda_versions=cudas, also=named)
    return merged([channel, _without(from_facts, channel, facts.libraries)])


def known_pythons() -> tuple[str, ...]:
    """The minor versions of Python with packages in the facts, oldest first."""
    versions = (package.version for package in read_packages() if package.name == "python")
    return tuple(dict.fromkeys(".".join(version.split(".")[:2]) for version in versions))


def _without(from_facts: PinGraph, channel: PinGraph, libraries: Iterable[str]) -> PinGraph:
    """The part of the facts that applies in addition to a channel: not its packages, which the channel knows itself."""
    own = frozenset(channel.origins)
    of_packages = {*libraries, "python", "glibc"} | (own - {"cuda"})
    bounds = tuple(
        bound
        for bound in from_facts.bounds
        if not (bound.kinds | {bound.release.kind}) & of_packages
        and not ("cuda" in own and bound.release.kind == "cuda" and bound.kinds == {"platform"})
    )
    releases = frozenset(release for release in from_facts.releases if release.kind not in of_packages)
    origins: Mapping[str, str] = {
        kind: text for kind, text in from_facts.origins.items() if kind not in own | of_packages
    }
    return replace(from_facts, releases=releases, bounds=bounds, origins=origins)
