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

__all__ = ["known_pythons", "pin_graph"]


def pin_graph(
    facts: CudaFacts | None,
    *,
    demands: Iterable[Demand] = (),
    records: Sequence[Record] | None = None,
    origin: str = "the channel",
) -> PinGraph:
    """The graph to put demands to.

    A channel says what there is of CUDA, its libraries, Python and any other package that is demanded, and what goes
    with what among them; the facts say the rest: compilers, architectures, drivers.

    Args:
        facts: None for what the channel says alone (`records` must be given then).
        demands: what will be demanded: versions of drivers and compilers that no fact names get a place in the graph.
        records: what a channel has; None for what the facts say of conda-forge.
        origin: the channel's name.

    Raises:
        WorkError: the run exports of packages that are demanded cannot be read.
    """
    demanded = tuple(demands)
    if records is None:
        if facts is None:
            raise ValueError("a graph is made of facts, of a channel, or of both")
        # The facts bound Python with nothing, so that it is there only for those who name it.
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
    known = graph_of_facts(facts, cuda_versions=cudas)
    named = versions_named(demanded, known)
    known = graph_of_facts(facts, cuda_versions=cudas, also=named)
    return merged([channel, _without(known, channel, facts.libraries)])


def known_pythons() -> tuple[str, ...]:
    """The minor versions of Python that the facts know packages of, oldest first."""
    versions = (package.version for package in read_packages() if package.name == "python")
    return tuple(dict.fromkeys(".".join(version.split(".")[:2]) for version in versions))


def _without(known: PinGraph, channel: PinGraph, libraries: Iterable[str]) -> PinGraph:
    """What the facts say beside a channel: nothing of what packages are there, as the channel knows that itself."""
    own = frozenset(channel.origins)
    of_packages = {*libraries, "python", "glibc"} | (own - {"cuda"})
    bounds = tuple(
        bound
        for bound in known.bounds
        if not (bound.kinds | {bound.release.kind}) & of_packages
        and not ("cuda" in own and bound.release.kind == "cuda" and bound.kinds == {"platform"})
    )
    releases = frozenset(release for release in known.releases if release.kind not in of_packages)
    origins: Mapping[str, str] = {kind: text for kind, text in known.origins.items() if kind not in own | of_packages}
    return replace(known, releases=releases, bounds=bounds, origins=origins)
