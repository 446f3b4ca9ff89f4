"""The pin graph as a table, one CUDA version a row, and as a picture: versions that go with the same CUDA are one box.

Drawn are, for each CUDA version, the newest host gcc and the least driver on Linux, and the libraries that go with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from feedstock_tools.pins.answer_sheet import Entry
from feedstock_tools.pins.graph.kinds import kind_named, newest_first
from feedstock_tools.pins.graph.model import PinGraph, Release
from feedstock_tools.wording import table

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


#: The columns that a narrow terminal has no room for, the least needed first.
_SPARE = ("platforms", "cuTENSOR", "NCCL", "Visual Studio", "clang")


def text_table(headings: Sequence[str], rows: Sequence[Row], width: int | None) -> str:
    """For a terminal of some width; None: any."""
    return table(headings, [(row.cuda, *row.cells) for row in rows], width=width, spare=_SPARE)


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


_LEFT = ("driver", "gcc")
_RIGHT = ("cudnn", "nccl", "cutensor")
_COLORS = {
    "driver": "#8a6d3b",
    "gcc": "#7b5ea7",
    "cuda": "#3f7d20",
    "cudnn": "#20639b",
    "nccl": "#b23a48",
    "cutensor": "#2a7f7f",
}
#: The sizes in pixels of the picture for a page, which fits a window of 1280 pixels: widths of boxes, their height, and
#: the gaps between boxes and between columns.
_WIDTHS = {"driver": 115, "gcc": 56, "cuda": 76, "cudnn": 180, "nccl": 165, "cutensor": 175}
_HEIGHT, _GAP, _AISLE = 24, 8, 70


@dataclass(frozen=True, slots=True)
class Box:
    """Versions of one kind, oldest first, that go with the same CUDA versions."""

    kind: str
    versions: tuple[str, ...]

    @property
    def label(self) -> str:
        """`cuDNN 8.1.0.77 to 8.4.1.50`."""
        title, first, last = kind_named(self.kind).title, self.versions[0], self.versions[-1]
        if self.kind == "driver":
            return f"{title} {first} or later"
        return f"{title} {first}" if first == last else f"{title} {first} to {last}"

    @property
    def name(self) -> str:
        """A word for it that DOT and Mermaid take."""
        return "".join(c if c.isalnum() else "_" for c in f"{self.kind}_{self.versions[0]}_{self.versions[-1]}")


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes, those of CUDA first, and edges from a CUDA version to what goes with it."""

    boxes: tuple[Box, ...]
    edges: tuple[tuple[Box, Box], ...]

    def beside(self, cuda: str) -> list[Box]:
        """What goes with a CUDA version."""
        return [box for first, box in self.edges if first.versions == (cuda,)]


def picture(graph: PinGraph, cudas: Sequence[str]) -> Picture:
    """The picture of some CUDA versions; edges are in their order."""
    boxes = {cuda: Box("cuda", (cuda,)) for cuda in cudas}
    others = [group for kind in (*_LEFT, *_RIGHT) for group in _grouped(graph, kind, cudas)]
    edges = ((boxes[cuda], box) for cuda in cudas for box, partners in others if cuda in partners)
    return Picture((*boxes.values(), *(box for box, partners in others if partners)), tuple(edges))


def as_tree(graph: PinGraph, cudas: Sequence[str]) -> str:
    """For a terminal: each CUDA version with the versions that go with it."""
    drawn = picture(graph, cudas)
    lines = []
    for cuda in cudas:
        lines.append(f"CUDA {cuda}")
        labels = [
            box.label + (f" ({len(box.versions)} versions)" if len(box.versions) > 1 else "")
            for box in drawn.beside(cuda)
        ]
        lines += [f"{'└─' if number == len(labels) else '├─'} {label}" for number, label in enumerate(labels, 1)]
    return "\n".join(lines)


def as_mermaid(graph: PinGraph, cudas: Sequence[str]) -> str:
    """A flowchart for Mermaid, which GitHub draws in Markdown."""
    drawn = picture(graph, cudas)
    lines = ["flowchart LR"]
    lines += [f'  {box.name}["{box.label}"]:::{_css(box.kind)}' for box in drawn.boxes]
    for cuda, box in drawn.edges:
        lines.append(f"  {box.name} --- {cuda.name}" if box.kind in _LEFT else f"  {cuda.name} --- {box.name}")
    lines += [f"  classDef {_css(kind)} stroke:{color},stroke-width:2px" for kind, color in _COLORS.items()]
    return "\n".join(lines)


def as_dot(graph: PinGraph, cudas: Sequence[str]) -> str:
    """For Graphviz."""
    drawn = picture(graph, cudas)
    lines = ["graph pins {", '  rankdir="LR"; node [shape=box, style=rounded, fontname="sans-serif"];']
    lines += [f'  {box.name} [label="{box.label}", color="{_COLORS[box.kind]}"];' for box in drawn.boxes]
    for cuda, box in drawn.edges:
        first, second = (box, cuda) if box.kind in _LEFT else (cuda, box)
        lines.append(f'  {first.name} -- {second.name} [color="{_COLORS[box.kind]}"];')
    return "\n".join([*lines, "}"])


def as_svg(graph: PinGraph, cudas: Sequence[str], answers: Mapping[Release, Entry]) -> str:
    """An svg element: CUDA in the middle, its requirements on the left, libraries on the right.

    Boxes and lines carry their names (`data-box`, `data-of`), with which a page can highlight related ones; those of
    libraries also the numbers of the `answers` for their versions (`data-packages`).
    """
    drawn = picture(graph, cudas)
    columns = [[box for box in drawn.boxes if box.kind == kind] for kind in ("driver", "gcc", "cuda", *_RIGHT)]
    columns = [column for column in columns if column]
    tallest = max(len(column) for column in columns)
    height = tallest * (_HEIGHT + _GAP) + 60
    width = sum(_WIDTHS[column[0].kind] + _AISLE for column in columns) - _AISLE + 8
    places = dict(_placed(columns, height))
    parts = [
        f'<svg id="pins" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="group" '
        'aria-label="Pin graph">'
    ]
    parts += [_svg_edge(places, cuda, box) for cuda, box in drawn.edges]
    partners: dict[Box, list[str]] = {}
    for cuda, box in drawn.edges:
        partners.setdefault(box, []).append(cuda.versions[0])
    parts += [
        _svg_box(box, places[box], partners.get(box, box.versions), _of_libraries(box, answers)) for box in drawn.boxes
    ]
    return "\n".join([*parts, "</svg>"])


def _grouped(graph: PinGraph, kind: str, cudas: Sequence[str]) -> Iterator[tuple[Box, tuple[str, ...]]]:
    """Boxes of a kind with their CUDA versions; a box's versions are consecutive and go with the same CUDA versions."""
    versions = graph.versions.get(kind, ())[::-1]
    partners = {version: _partners(graph, kind, version, cudas) for version in versions}
    if kind in ("gcc", "driver"):
        partners = _decisive(kind, partners)
    run: list[str] = []
    for version in [*(version for version in versions if partners[version]), None]:
        if run and (version is None or partners[version] != partners[run[0]]):
            yield Box(kind, tuple(run)), partners[run[0]]
            run = []
        if version is not None:
            run.append(version)


def _partners(graph: PinGraph, kind: str, version: str, cudas: Sequence[str]) -> tuple[str, ...]:
    if kind == "driver":
        return tuple(cuda for cuda in cudas if runs_on_linux(graph, cuda, version))
    return tuple(cuda for cuda in cudas if graph.open_to({"cuda": cuda}, Release(kind, version)))


def _decisive(kind: str, partners: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Of gcc (oldest first) only the newest that a CUDA version accepts is drawn, of drivers only the lowest."""
    order = list(partners) if kind == "driver" else list(partners)[::-1]
    seen: set[str] = set()
    decisive: dict[str, tuple[str, ...]] = {}
    for version in order:
        decisive[version] = tuple(cuda for cuda in partners[version] if cuda not in seen)
        seen.update(partners[version])
    return {version: decisive[version] for version in partners}


def _css(kind: str) -> str:
    return kind.replace("-", "_").strip("_")


def _placed(columns: Sequence[Sequence[Box]], height: int) -> Iterator[tuple[Box, tuple[float, float]]]:
    x = 4
    for column in columns:
        step = (height - 40) / len(column)
        for place, box in enumerate(reversed(column) if column[0].kind != "cuda" else column):
            yield box, (x, 20 + (place + 0.5) * step - _HEIGHT / 2)
        x += _WIDTHS[column[0].kind] + _AISLE


def _of_libraries(box: Box, answers: Mapping[Release, Entry]) -> list[int]:
    releases = (Release(box.kind, version) for version in box.versions if box.kind in _RIGHT)
    return sorted({answers[release].answer for release in releases if release in answers})


def _svg_box(box: Box, place: tuple[float, float], cudas: Sequence[str], answers: Sequence[int]) -> str:
    name = escape(f"{box.label}, {len(box.versions)} versions" if len(box.versions) > 1 else box.label)
    (x, y), width = place, _WIDTHS[box.kind]
    packages = f' data-packages="{" ".join(map(str, answers))}"' if answers else ""
    return (
        f'<g class="box {box.kind}" data-box="{box.name}" data-cudas="{escape(" ".join(cudas))}"{packages} '
        f'tabindex="0" role="button" aria-label="{name}"><title>{name}</title>'
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width}" height="{_HEIGHT}" rx="5"/>'
        f'<text x="{x + width / 2:.0f}" y="{y + _HEIGHT - 8:.0f}" text-anchor="middle">'
        f"{escape(_shortened(box.label))}</text></g>"
    )


def _shortened(label: str) -> str:
    return label.replace(" or later", "+")


def _svg_edge(places: Mapping[Box, tuple[float, float]], cuda: Box, box: Box) -> str:
    left, right = (box, cuda) if places[box][0] < places[cuda][0] else (cuda, box)
    x1, y1 = places[left][0] + _WIDTHS[left.kind], places[left][1] + _HEIGHT / 2
    x2, y2 = places[right][0], places[right][1] + _HEIGHT / 2
    bend = (x2 - x1) / 2
    return (
        f'<path class="edge {box.kind}" data-of="{cuda.name} {box.name}" data-cuda="{escape(cuda.versions[0])}" '
        f'd="M{x1:.0f},{y1:.0f} C{x1 + bend:.0f},{y1:.0f} {x2 - bend:.0f},{y2:.0f} {x2:.0f},{y2:.0f}"/>'
    )
