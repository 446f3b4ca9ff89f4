"""The pin graph as a table, one CUDA version a row: for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from feedstock_tools.pins.graph.kinds import newest_first
from feedstock_tools.pins.graph.model import PinGraph, Release
from feedstock_tools.wording import aligned

#: Heading and kind of each column after the version; for the kinds in `_NEWEST` only the newest version matters, for
#: those in `_LEAST` only the lowest, for the others the oldest and the newest.
COLUMNS = (
    ("gcc", "gcc"),
    ("clang", "clang"),
    ("Visual Studio", "visual-studio"),
    ("architectures", "sm"),
    ("driver", "driver"),
    ("cuDNN", "cudnn"),
    ("NCCL", "nccl"),
    ("cuTENSOR", "cutensor"),
    ("platforms", "platform"),
)
_NEWEST = frozenset({"gcc", "clang"})
_LEAST = frozenset({"driver"})
_SHORT = {"linux-64": "linux-64", "linux-aarch64": "aarch64", "linux-ppc64le": "ppc64le", "win-64": "win-64"}


@dataclass(frozen=True, slots=True)
class Row:
    """A CUDA version, and the versions that go with it in the order of the table's columns."""

    cuda: str
    cells: tuple[str, ...]


def table_rows(graph: PinGraph, cudas: Iterable[str]) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    """The headings (for the graph's kinds) and a row for each CUDA version."""
    columns = [(heading, kind) for heading, kind in COLUMNS if kind in graph.versions]
    rows = tuple(Row(cuda, tuple(_cell(graph, cuda, kind) for _, kind in columns)) for cuda in cudas)
    return ("CUDA", *(heading for heading, _ in columns)), rows


def span(kind: str, versions: Sequence[str]) -> str:
    """Versions (newest first) in a few words: `8.1.0.77 to 9.10.1.4`, `10`, `sm_35 to sm_86`."""
    if not versions:
        return "-"
    if kind == "platform":
        return ", ".join(_SHORT.get(version, version) for version in versions)
    prefix = "sm_" if kind == "sm" else ""
    if kind in _NEWEST:
        return f"up to {versions[0]}"
    if kind in _LEAST:
        return f"from {versions[-1]}"
    if len(versions) == 1:
        return f"{prefix}{versions[0]}"
    return f"{prefix}{versions[-1]} to {prefix}{versions[0]}"


def text_table(headings: Sequence[str], rows: Sequence[Row]) -> str:
    """For a terminal: columns padded with blanks."""
    lines = [tuple(headings), *((row.cuda, *row.cells) for row in rows)]
    return "\n".join(aligned(lines))


def markdown_table(headings: Sequence[str], rows: Sequence[Row]) -> str:
    """For a page or an issue."""
    lines = [headings, ["---"] * len(headings), *((row.cuda, *row.cells) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def runs_on_linux(graph: PinGraph, cuda: str, driver: str) -> bool:
    """Whether a driver on Linux runs what a toolkit compiles, whether there are packages of the toolkit or not."""
    bounds = [bound for bound in graph.bounds_of(Release("cuda", cuda)) if "driver" in bound.kinds]
    return bool(bounds) and all(bound.open_to({"platform": "linux-64", "driver": driver}) for bound in bounds)


def _cell(graph: PinGraph, cuda: str, kind: str) -> str:
    versions = graph.partners(Release("cuda", cuda), kind)
    if kind == "driver":
        # The bound has a way for each system; the table shows Linux's, which the page's heading names.
        versions = tuple(version for version in versions if runs_on_linux(graph, cuda, version))
    if kind == "sm":
        versions = newest_first(kind, (version for version in versions if version.isdigit()))
    return span(kind, versions)
