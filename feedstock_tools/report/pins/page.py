"""The page of the pin graph: what it can be asked, the table and the picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from feedstock_tools.facts.gpus import load_gpus
from feedstock_tools.pins.graph.kinds import kind_named
from feedstock_tools.pins.graph.model import PinGraph, Release
from feedstock_tools.report.html_pages import html_page
from feedstock_tools.report.pins.picture import as_svg, runs_on_linux, table_rows

_PACKAGES = ("cudnn", "nccl", "cutensor", "gcc", "clang", "visual-studio", "python")


@dataclass(frozen=True, slots=True)
class Choice:
    """A possible entry, and the CUDA versions that go with it: the places in the table, such as `0-5 8`."""

    label: str
    cudas: str


def gpus(graph: PinGraph, cudas: Sequence[str]) -> list[Choice]:
    """The GPUs by name with their architecture, newest first; none if the graph has no architectures."""
    known = graph.versions.get("sm", ())
    choices = []
    for gpu in reversed(load_gpus().gpus if known else ()):
        architecture = gpu.architecture.removeprefix("sm_")
        having = set(graph.partners(Release("sm", architecture), "cuda")) if architecture in known else set()
        places = [at for at, cuda in enumerate(cudas) if cuda in having and (not gpu.tegra or gpu.jetson_has(cuda))]
        choices.append(Choice(f"{gpu.name} ({gpu.capability}, {gpu.architecture})", _spans(places)))
    return list(dict.fromkeys(choices))


def packages(graph: PinGraph, cudas: Sequence[str]) -> list[Choice]:
    """The libraries and compilers of the graph by version, newest first."""
    return [
        choice
        for kind in _PACKAGES
        for choice in _choices(graph, cudas, kind, f"{kind_named(kind).title} ")
        if kind in graph.versions
    ]


def platforms(graph: PinGraph, cudas: Sequence[str]) -> list[Choice]:
    """The platforms of the graph."""
    return list(_choices(graph, cudas, "platform", ""))


def least_drivers(graph: PinGraph, cudas: Sequence[str]) -> dict[str, str]:
    """CUDA version → the lowest driver on Linux that runs what it compiles, as far as it is known."""
    drivers = graph.versions.get("driver", ())[::-1]
    least = {cuda: next((driver for driver in drivers if runs_on_linux(graph, cuda, driver)), "") for cuda in cudas}
    return {cuda: driver for cuda, driver in least.items() if driver}


def _choices(graph: PinGraph, cudas: Sequence[str], kind: str, title: str) -> Iterator[Choice]:
    for version in graph.versions.get(kind, ()):
        having = set(graph.partners(Release(kind, version), "cuda"))
        yield Choice(f"{title}{version}", _spans([at for at, cuda in enumerate(cudas) if cuda in having]))


def _spans(places: Sequence[int]) -> str:
    """Rising numbers as spans.

    >>> _spans([0, 1, 2, 5])
    '0-2 5'
    """
    spans: list[list[int]] = []
    for place in places:
        if spans and spans[-1][-1] == place - 1:
            spans[-1][1:] = [place]
        else:
            spans.append([place])
    return " ".join("-".join(map(str, span)) for span in spans)


def page(graph: PinGraph, cudas: Sequence[str], origin: str) -> str:
    """One HTML page, which needs no network: questions, the table and the picture."""
    headings, rows = table_rows(graph, cudas)
    return html_page(
        "pins",
        styles=("pins",),
        scripts=("pins",),
        origin=origin,
        headings=headings,
        rows=[{"cuda": row.cuda, "named": tuple(zip(headings[1:], row.cells, strict=True))} for row in rows],
        gpus=gpus(graph, cudas),
        packages=packages(graph, cudas),
        platforms=platforms(graph, cudas),
        drivers=least_drivers(graph, cudas),
        picture=as_svg(graph, cudas) if cudas else "",
    ).rstrip()
