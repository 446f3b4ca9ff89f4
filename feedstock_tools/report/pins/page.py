"""The page of the pin graph: what it can be asked, the table and the picture, with the judge's answers as data."""

from __future__ import annotations

from collections.abc import Sequence

from feedstock_tools.pins.answer_sheet import answer_sheet
from feedstock_tools.pins.graph.model import PinGraph
from feedstock_tools.report.html_pages import html_page
from feedstock_tools.report.pins.picture import as_svg, table_rows


def page(graph: PinGraph, cudas: Sequence[str], origin: str) -> str:
    """One HTML page, which needs no network: questions, the table and the picture."""
    headings, rows = table_rows(graph, cudas)
    sheet = answer_sheet(graph, cudas)
    return html_page(
        "pins",
        styles=("pins",),
        scripts=("pins",),
        origin=origin,
        headings=headings,
        rows=[{"cuda": row.cuda, "named": tuple(zip(headings[1:], row.cells, strict=True))} for row in rows],
        gpus=sheet.gpus,
        packages=tuple(sheet.packages.values()),
        platforms=tuple(filter(None, sheet.platforms)),
        drivers="driver" in graph.versions,
        answers=sheet.document(),
        picture=as_svg(graph, cudas, sheet.packages) if cudas else "",
    ).rstrip()
