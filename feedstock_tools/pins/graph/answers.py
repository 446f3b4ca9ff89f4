"""A question to the pin graph, from the words of a command line to an answer; and the graph that answers it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.repodata import listed_run_exports, read_records
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import CudaFacts, load_cuda
from feedstock_tools.facts.frameworks import load_frameworks
from feedstock_tools.facts.gpus import find_gpu, find_gpus, is_of_device_manager, load_gpus
from feedstock_tools.facts.packages import known_pythons
from feedstock_tools.pins.channels import channel_title, channel_urls
from feedstock_tools.pins.graph.explain import Conflict, explain
from feedstock_tools.pins.graph.from_channel import graph_of_channel
from feedstock_tools.pins.graph.from_facts import graph_of_facts, in_wsl
from feedstock_tools.pins.graph.kinds import FRAMEWORKS, KINDS, Demand, parse_demands
from feedstock_tools.pins.graph.model import PinGraph, merged
from feedstock_tools.pins.graph.resolve import all_sets, asked_kinds
from feedstock_tools.platforms import Platform
from feedstock_tools.wording import nearest


@dataclass(frozen=True, slots=True)
class Answer:
    """The sets that meet the demands, or the conflict; `more` if there are more sets than the maximum."""

    graph: PinGraph
    facts: CudaFacts
    demands: tuple[Demand, ...]
    sets: tuple[dict[str, str], ...]
    conflict: Conflict | None
    most: int
    more: bool


def resolve(
    demands: Sequence[str],
    *,
    channels: Sequence[str] = (),
    platform: str | None = None,
    facts: bool = True,
    kinds: Sequence[str] = (),
    most: int = 1,
) -> Answer:
    """Find releases that go together, newest first, or the demands that contradict each other.

    Args:
        demands: such as `cuda=11.2`, `gcc<=10`, `cudnn` (any), `platform=win-64`, `gpu=RTX 3080`; with channels any
            package: `pytorch=2.1`.
        channels: names, URLs or folders that packages are taken from; none: what the facts say of conda-forge.
        platform: whose packages of the channels; default: what a demand names, else linux-64.
        facts: whether the facts count in addition to the channels.
        kinds: the kinds of release in the answer besides those demanded; none: the usual ones.
        most: the largest number of sets in the answer.

    Raises:
        InputError: a demand, channel, platform or kind is not one, or there are neither facts nor channels.
        WorkError: a channel cannot be read.

    >>> answer = resolve(["cuda=11.2", "gcc"])
    >>> answer.sets[0]["gcc"], answer.conflict
    ('10', None)
    >>> [str(demand) for demand in resolve(["cuda=11.2", "gcc=11"]).conflict.demands]
    ['cuda=11.2', 'gcc=11']
    """
    cuda_facts = load_cuda()
    demanded = _with_platform(_with_cuda(parse_demands(demands)))
    if not facts and not channels:
        raise InputError("--no-facts requires a channel", hint="Add --channel.")
    records, origin = None, ""
    if channels:
        named = [demand.spec for demand in demanded if demand.kind == "platform"]
        records = records_of(channels, platform or (named[0] if named else "linux-64"))
        origin = " and ".join(channel_title(channel) for channel in channels)
    elif platform:
        raise InputError("--platform is for --channel", hint=f"Demand platform={platform}.")
    graph = pin_graph(cuda_facts if facts else None, demands=demanded, records=records, origin=origin)
    if not channels:
        _refuse_misspelt(demanded, graph)
    if _is_wsl(demanded):
        graph = in_wsl(graph)
    conflict = explain(graph, demanded)
    if conflict is not None:
        return Answer(graph, cuda_facts, demanded, (), conflict, most, False)
    to_choose = tuple(kind for kind in asked_kinds(graph, demanded, kinds) if kind not in _kinds_of_system(demanded))
    sets = list(islice(all_sets(graph, demanded, to_choose), most + 1))
    return Answer(graph, cuda_facts, demanded, tuple(sets[:most]), None, most, len(sets) > most)


def _refuse_misspelt(demands: Iterable[Demand], graph: PinGraph) -> None:
    """Refuse kinds that the facts do not have, where they have one that is spelt almost so."""
    names = {name for kind in KINDS.values() for name in (kind.name, *kind.aliases)} | {*FRAMEWORKS}
    known = names | {*graph.versions, *load_frameworks().without_wheels}
    for demand in demands:
        near = None if demand.kind in known else nearest(demand.kind, names, None, cutoff=0.7)
        if near is not None:
            hint = f"{near} A package of a channel needs --channel."
            raise InputError(f"there is no '{demand.kind}' in {graph.name}", hint=hint)


def for_each_gpu(demands: Sequence[str]) -> list[tuple[str, ...]]:
    """The demands for each GPU that a name in them may mean.

    >>> for_each_gpu(["gpu=Titan X", "torch"])
    [('gpu=GeForce GTX TITAN X (GM200)', 'torch'), ('gpu=TITAN X Pascal (GP102)', 'torch')]
    """
    asked: list[tuple[str, ...]] = [()]
    for text in demands:
        kind, _, name = text.partition("=")
        gpus = find_gpus(name.lstrip("="), load_gpus()) if kind.strip() == "gpu" else ()
        texts = [f"gpu={gpu.name} ({gpu.chip})" for gpu in gpus] if len(gpus) > 1 else [text]
        asked = [(*before, each) for before in asked for each in texts]
    return asked


def _is_wsl(demands: tuple[Demand, ...]) -> bool:
    texts = [demand.text.rpartition("=")[2].strip().lower() for demand in demands if demand.kind == "platform"]
    return not {"wsl", "wsl2"}.isdisjoint(texts)


def _with_cuda(demands: tuple[Demand, ...]) -> tuple[Demand, ...]:
    """The demands, with one for any CUDA toolkit if they name a GPU, architecture, driver or framework alone."""
    kinds = {demand.kind for demand in demands}
    if "cuda" in kinds or not kinds & {"gpu", "sm", "driver", "__cuda", *FRAMEWORKS}:
        return demands
    return (*demands, Demand("cuda", "*", "cuda"))


def _with_platform(demands: tuple[Demand, ...]) -> tuple[Demand, ...]:
    """The demands, with Windows as platform for a driver as its device manager shows it (32.0.15.6614)."""
    if any(demand.kind == "platform" for demand in demands):
        return demands
    texts = [demand.text.rpartition("=")[2] for demand in demands if demand.kind == "driver"]
    return (*demands, *parse_demands(["platform=win-64"])) if any(map(is_of_device_manager, texts)) else demands


def _kinds_of_system(demands: tuple[Demand, ...]) -> frozenset[str]:
    """Kinds that an answer leaves out: the driver of a Jetson module is part of its system."""
    gpus = (find_gpu(demand.spec, load_gpus()) for demand in demands if demand.kind == "gpu")
    named = {demand.kind for demand in demands}
    return frozenset({"driver", "__cuda"} - named) if any(gpu.tegra for gpu in gpus) else frozenset()


def records_of(channels: Sequence[str], *platforms: str) -> tuple[Record, ...]:
    """All packages of some channels for some platforms, including noarch ones."""
    subdirs = (*(Platform.parse(platform).subdir for platform in platforms), "noarch")
    return tuple(
        record for channel in channels for url in channel_urls(channel) for record in read_records(url, subdirs)
    )


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
        named = _versions_named(demanded, graph)
        return graph_of_facts(facts, also=named, pythons=pythons) if named else graph
    packages = [demand.kind for demand in demanded if demand.kind not in KINDS]
    exports = listed_run_exports(record.url for record in records if record.name in packages)
    virtual = {"__cuda": tuple(facts.toolkits)} if facts else {}
    channel = graph_of_channel(records, origin, packages=packages, virtual=virtual, exports=exports)
    if facts is None:
        return channel
    cudas = channel.versions.get("cuda") or tuple(facts.toolkits)
    from_facts = graph_of_facts(facts, cuda_versions=cudas)
    named = _versions_named(demanded, from_facts)
    from_facts = graph_of_facts(facts, cuda_versions=cudas, also=named)
    return merged([channel, _without(from_facts, channel, facts.libraries)])


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


def _versions_named(demands: Iterable[Demand], graph: PinGraph) -> Mapping[str, frozenset[str]]:
    """Versions in demands that no release has: `driver=535` where the graph has none of that branch; and GPUs.

    A demanded driver counts too where it is known: the facts may name it for another system than the demand means.
    """
    named: dict[str, set[str]] = {}
    for demand in demands:
        if demand.kind == "gpu" or demand.kind in FRAMEWORKS:
            named.setdefault(demand.kind, set()).add(demand.spec)
        admitted = [version for version in graph.versions.get(demand.kind, ()) if demand.admits(version)]
        if admitted:
            if demand.kind == "driver" and demand.spec.removesuffix(".*").replace(".", "").isdigit():
                named.setdefault("driver", set()).update(admitted)  # on whatever system it is
            continue
        version = re.fullmatch(r"(?:==)?([0-9][0-9.]*?)(?:\.\*)?", demand.spec)
        if version:
            named.setdefault(demand.kind, set()).add(version[1])
    return {kind: frozenset(versions) for kind, versions in named.items()}
