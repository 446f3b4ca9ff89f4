"""The pin graph as tables and pictures: all forms agree about the graph."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from feedstock_tools.cli.cuda import cuda as command
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.pins.graph.answers import pin_graph
from feedstock_tools.pins.graph.model import Bound, PinGraph, Release, Way
from feedstock_tools.report.pins.picture import as_dot, as_mermaid, as_svg, picture, table_rows
from feedstock_tools.report.pins.show import page, show


@pytest.fixture(scope="module")
def graph() -> PinGraph:
    return pin_graph(load_cuda())


def shown(*arguments: str) -> str:
    return CliRunner().invoke(command, ["show", *arguments], catch_exceptions=False, standalone_mode=False).output


def test_the_table_and_the_tree_for_a_terminal() -> None:
    lines = shown("11.2").splitlines()
    assert lines[0].split()[:4] == ["CUDA", "gcc", "clang", "Visual"]
    assert lines[2].startswith("11.2  up to 10  up to 11")
    assert "sm_35 to sm_86" in lines[2]
    assert "from 450.80.02" in lines[2]
    assert "├─ gcc 10" in lines
    assert lines.count("CUDA 11.2") == 1


def test_markdown_has_a_table_and_a_flowchart() -> None:
    text = shown("12.9", "--format", "markdown")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in rows}) == 1
    assert "```mermaid\nflowchart LR\n" in text


def test_every_version_that_goes_with_a_toolkit_is_in_just_one_of_its_boxes(graph: PinGraph) -> None:
    cudas = graph.versions["cuda"]
    drawn = picture(graph, cudas)
    for cuda in cudas:
        for kind in ("cudnn", "nccl", "cutensor"):
            boxes = [box for box in drawn.beside(cuda) if box.kind == kind]
            assert sum(len(box.versions) for box in boxes) == len(graph.partners(Release("cuda", cuda), kind))


def test_dot_and_mermaid_draw_the_same_edges(graph: PinGraph) -> None:
    cudas = ("11.2", "12.9")
    dot = re.findall(r"^  (\w+) -- (\w+) ", as_dot(graph, cudas), re.MULTILINE)
    mermaid = re.findall(r"^  (\w+) --- (\w+)$", as_mermaid(graph, cudas), re.MULTILINE)
    assert dot == mermaid
    assert ("gcc_10_10", "cuda_11_2_11_2") in dot
    assert len(dot) == len(picture(graph, cudas).edges)


class Tags(HTMLParser):
    """Counts elements, and remembers addresses that would be fetched."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.count: dict[str, int] = {}
        self.fetched: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1
        addresses = [str(value) for name, value in attributes if name in ("src", "href")]
        self.fetched += [address for address in addresses if not address.startswith("#")]
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_fetches_nothing(graph: PinGraph) -> None:
    cudas = graph.versions["cuda"]
    text = page(graph, cudas, "conda-forge")
    tags = Tags(text)
    assert tags.fetched == []
    assert "http" not in text.replace("http-equiv", "")
    assert tags.open == []
    drawn = picture(graph, cudas)
    assert tags.count["g"] == len(drawn.boxes)
    assert tags.count["path"] == len(drawn.edges)
    assert tags.count["tr"] == len(cudas) + 1


def test_boxes_of_a_column_do_not_overlap(graph: PinGraph) -> None:
    places: dict[str, list[float]] = {}
    for x, y in re.findall(r'<rect x="(\d+)" y="(\d+)"', as_svg(graph, graph.versions["cuda"], {})):
        places.setdefault(x, []).append(float(y))
    assert len(places) == 6
    for column in places.values():
        ordered = sorted(column)
        assert all(after - before >= 24 for before, after in pairwise(ordered))


def test_names_from_a_channel_are_escaped() -> None:
    cuda, nasty = Release("cuda", "11.2"), Release("cudnn", "8.1")
    bound = Bound(nasty, (Way({"cuda": frozenset({"11.2"})}),), "")
    text = page(PinGraph(frozenset({cuda, nasty}), (bound,)), ("11.2",), "<script>alert(1)</script>")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_a_page_in_a_file(tmp_path: Path) -> None:
    target = tmp_path / "pins.html"
    assert shown("12", "--format", "html", "--output", str(target)) == ""
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir()] == ["pins.html"]


def test_what_cannot_be_shown() -> None:
    with pytest.raises(InputError, match=r"no cuda=12\.7"):
        show(["12.7"], [], None, facts=True, form="text")
    with pytest.raises(InputError, match="requires a channel"):
        show([], [], None, facts=False, form="text")
    with pytest.raises(InputError, match="is not a form"):
        show([], [], None, facts=True, form="png")


def test_columns_follow_what_the_graph_has() -> None:
    graph = PinGraph(frozenset({Release("cuda", "11.3"), Release("cudnn", "8.2.1")}), ())
    headings, (row,) = table_rows(graph, ["11.3"])
    assert headings == ("CUDA", "cuDNN")
    assert row.cells == ("8.2.1",)
