"""A question to the pin graph, from the words of a command line to an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.repodata import read_records
from feedstock_tools.errors import InputError
from feedstock_tools.facts import CudaFacts, load_cuda
from feedstock_tools.facts.gpus import find_gpu, is_of_device_manager, load_gpus
from feedstock_tools.pins.frameworks.wheel_bounds import FRAMEWORKS
from feedstock_tools.pins.graph.channels import channel_title, channel_urls
from feedstock_tools.pins.graph.demands import Demand, parse_demands
from feedstock_tools.pins.graph.explain import Conflict, explain
from feedstock_tools.pins.graph.model import PinGraph
from feedstock_tools.pins.graph.pin_graph import pin_graph
from feedstock_tools.pins.graph.resolve import all_sets, asked_kinds
from feedstock_tools.platforms import Platform


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
    conflict = explain(graph, demanded)
    if conflict is not None:
        return Answer(graph, cuda_facts, demanded, (), conflict, most, False)
    to_choose = tuple(kind for kind in asked_kinds(graph, demanded, kinds) if kind not in _of_their_system(demanded))
    sets = list(islice(all_sets(graph, demanded, to_choose), most + 1))
    return Answer(graph, cuda_facts, demanded, tuple(sets[:most]), None, most, len(sets) > most)


def _with_cuda(demands: tuple[Demand, ...]) -> tuple[Demand, ...]:
    """The demands; who names a GPU, an architecture or a driver also wants a CUDA toolkit."""
    kinds = {demand.kind for demand in demands}
    if "cuda" in kinds or not kinds & {"gpu", "sm", "driver", "__cuda", *FRAMEWORKS}:
        return demands
    return (*demands, Demand("cuda", "*", "cuda"))


def _with_platform(demands: tuple[Demand, ...]) -> tuple[Demand, ...]:
    """The demands; who gives a driver as Windows' device manager shows it (32.0.15.6614) asks for Windows."""
    if any(demand.kind == "platform" for demand in demands):
        return demands
    texts = [demand.text.rpartition("=")[2] for demand in demands if demand.kind == "driver"]
    return (*demands, *parse_demands(["platform=win-64"])) if any(map(is_of_device_manager, texts)) else demands


def _of_their_system(demands: tuple[Demand, ...]) -> frozenset[str]:
    """Kinds that are not of the answer: the driver of a Jetson module is a part of its system, and nobody's choice."""
    gpus = (find_gpu(demand.spec, load_gpus()) for demand in demands if demand.kind == "gpu")
    named = {demand.kind for demand in demands}
    return frozenset({"driver", "__cuda"} - named) if any(gpu.tegra for gpu in gpus) else frozenset()


def records_of(channels: Sequence[str], *platforms: str) -> tuple[Record, ...]:
    """All packages of some channels for some platforms, including noarch ones.

    Raises:
        InputError: a channel or platform is invalid.
        WorkError: a channel cannot be read.
    """
    subdirs = (*(Platform.parse(platform).subdir for platform in platforms), "noarch")
    return tuple(
        record for channel in channels for url in channel_urls(channel) for record in read_records(url, subdirs)
    )
