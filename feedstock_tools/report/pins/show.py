"""The pin graph of facts or channels: `cuda show` as a text or a page for readers, `cuda graph` for other tools."""

from __future__ import annotations

import json
from collections.abc import Sequence

from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.pins.answer_sheet import answer_sheet
from feedstock_tools.pins.channels import channel_title
from feedstock_tools.pins.graph.answers import pin_graph, records_of
from feedstock_tools.pins.graph.kinds import parse_demand
from feedstock_tools.pins.graph.model import PinGraph, Release, written
from feedstock_tools.pins.wheel_sheet import SYSTEMS, wheel_sheet
from feedstock_tools.report.html_pages import html_page
from feedstock_tools.report.pins import picture

FORMS = ("text", "markdown", "json", "mermaid", "dot", "html")


def show(
    versions: Sequence[str],
    channels: Sequence[str],
    platform: str | None,
    *,
    facts: bool,
    form: str,
    width: int | None = None,
) -> str:
    """The pin graph in one of `FORMS`.

    Args:
        versions: the CUDA versions to show: `11.2`, `12`, `>=12.4`; none: all.
        channels: the channels whose packages are shown; default: conda-forge according to the facts.
        facts: whether the facts count in addition to the channels.
        width: the characters that a line of the text's table may have; None: any number.

    Raises:
        InputError: a version, channel, platform or form is invalid.
        WorkError: a channel cannot be read.
    """
    if form not in FORMS:
        raise InputError(f"'{form}' is not a form of the graph", hint=f"There are {', '.join(FORMS)}.")
    graph, origin = _graph(channels, platform, facts=facts)
    cudas = _shown(graph, versions)
    if form == "json":
        return as_json(graph, cudas)
    headings, rows = picture.table_rows(graph, cudas)
    if form == "text":
        text = picture.text_table(headings, rows, width)
        return f"{text}\n\n{picture.as_tree(graph, cudas)}" if versions else text
    if form == "markdown":
        lines = [headings, ["---"] * len(headings), *((row.cuda, *row.cells) for row in rows)]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"{table}\n\n```mermaid\n{picture.as_mermaid(graph, cudas)}\n```"
    if form == "mermaid":
        return picture.as_mermaid(graph, cudas)
    return picture.as_dot(graph, cudas) if form == "dot" else page(graph, cudas, origin)


def exported(channels: Sequence[str], platform: str | None, *, facts: bool, form: str) -> str:
    """The pin graph with its releases and bounds as nodes, in one of networkx's forms."""
    graph, _ = _graph(channels, platform, facts=facts)
    return written(graph, form)


def _graph(channels: Sequence[str], platform: str | None, *, facts: bool) -> tuple[PinGraph, str]:
    if not facts and not channels:
        raise InputError("--no-facts requires a channel", hint="Add --channel.")
    records = records_of(channels, platform or "linux-64") if channels else None
    origin = " and ".join(channel_title(channel) for channel in channels) or "conda-forge"
    return pin_graph(load_cuda() if facts else None, records=records, origin=origin), origin


def as_json(graph: PinGraph, cudas: Sequence[str]) -> str:
    """A list of CUDA versions, newest first, each with the versions of every kind that go with it."""
    entries = [
        {
            "cuda": cuda,
            "goes_with": {
                kind: list(graph.partners(Release("cuda", cuda), kind))
                for _, kind in picture.COLUMNS
                if kind in graph.versions
            },
        }
        for cuda in cudas
    ]
    return json.dumps(entries, indent=2)


def _shown(graph: PinGraph, versions: Sequence[str]) -> tuple[str, ...]:
    existing = graph.versions.get("cuda", ())
    demands = [parse_demand(f"cuda{text}" if text[:1] in "<>=!" else f"cuda={text}") for text in versions]
    for demand in demands:
        if not any(demand.admits(version) for version in existing):
            raise InputError(f"there is no {demand}", hint=f"There are {', '.join(existing) or 'none'}.")
    return tuple(version for version in existing if not demands or any(demand.admits(version) for demand in demands))


def page(graph: PinGraph, cudas: Sequence[str], origin: str) -> str:
    """One HTML page, which needs no network: questions, the table and the picture."""
    headings, rows = picture.table_rows(graph, cudas)
    sheet = answer_sheet(graph, cudas)
    return html_page(
        "pins",
        styles=("pins",),
        scripts=("asked", "pins"),
        origin=origin,
        headings=headings,
        rows=[{"cuda": row.cuda, "named": tuple(zip(headings[1:], row.cells, strict=True))} for row in rows],
        gpus=sheet.gpus,
        packages=tuple(sheet.packages.values()),
        platforms=tuple(filter(None, sheet.platforms)),
        drivers="driver" in graph.versions,
        answers=sheet.document(),
        picture=picture.as_svg(graph, cudas, sheet.packages) if cudas else "",
    ).rstrip()


def runs_page() -> str:
    """One HTML page, which needs no network: what of the wheels of frameworks runs on a GPU, and the line to type."""
    sheet = wheel_sheet(load_cuda())
    return html_page(
        "runs",
        styles=("pins",),
        scripts=("asked", "runs"),
        gpus=sheet.gpus,
        systems=[name for name, _, _ in SYSTEMS],
        frameworks=list(sheet.releases),
        answers=sheet.document(),
    ).rstrip()
