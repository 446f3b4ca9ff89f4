"""The pin graph in networkx: written for other tools, searched for paths, and loaded for these two alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import networkx
import pytest
from click import BadParameter
from click.testing import CliRunner

from feedstock_tools.cli.cuda import cuda as command
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.pins.graph.explain import explain
from feedstock_tools.pins.graph.from_facts import graph_of_facts
from feedstock_tools.pins.graph.kinds import Demand
from feedstock_tools.pins.graph.model import Bound, PinGraph, Release, Way, kinds_between


def _bound(one: str, other: str) -> list[Bound]:
    """Version 1 of one kind goes with 1 of the other, 2 with 2."""
    return [
        Bound(
            Release(one, version), (Way({other: frozenset({version})}, frozenset({other})),), f"needs {other} {version}"
        )
        for version in "12"
    ]


def test_a_library_is_joined_to_a_compiler_by_cuda() -> None:
    graph = graph_of_facts(load_cuda())
    assert kinds_between(graph, "cudnn", "gcc") == ("cuda",)
    assert kinds_between(graph, "cuda", "gcc") == ()
    assert kinds_between(graph, "cudnn", "no-such-package") is None


def test_a_conflict_over_three_others_names_what_lies_between() -> None:
    kinds = ("cutensor", "gcc", "cudnn", "nccl")
    releases = frozenset(Release(kind, version) for kind in kinds for version in "12")
    bounds = tuple(bound for one, other in pairwise(kinds) for bound in _bound(one, other))
    graph = PinGraph(releases, bounds)
    assert kinds_between(graph, "cutensor", "nccl") == ("gcc", "cudnn")
    conflict = explain(graph, [Demand("cutensor", "==1", "cutensor=1"), Demand("nccl", "==2", "nccl=2")])
    assert conflict is not None
    assert conflict.sentences == (
        "cutensor=1 goes with NCCL 1 (by way of gcc and cuDNN).",
        "nccl=2 goes with cuTENSOR 2 (by way of cuDNN and gcc).",
    )


def drawn(*arguments: str) -> str:
    return CliRunner().invoke(command, ["graph", *arguments], catch_exceptions=False, standalone_mode=False).output


def read(form: str, tmp_path: Path) -> networkx.MultiDiGraph[str]:
    """The graph that `cuda graph` writes, as networkx reads it."""
    path = tmp_path / f"pins.{form}"
    assert drawn("--format", form, "--output", str(path)) == ""
    if form == "graphml":
        found = networkx.read_graphml(path)
    else:
        document, found = json.loads(path.read_text(encoding="utf-8")), networkx.MultiDiGraph()
        found.add_nodes_from((node.pop("id"), node) for node in document["nodes"])
        for edge in document["edges"]:
            found.add_edge(edge.pop("source"), edge.pop("target"), edge.pop("key"), **edge)
    assert isinstance(found, networkx.MultiDiGraph)
    return found


@pytest.mark.parametrize("form", ["graphml", "json"])
def test_releases_and_bounds_are_nodes_with_attributes(form: str, tmp_path: Path) -> None:
    graph, network = graph_of_facts(load_cuda()), read(form, tmp_path)
    types = Counter(type_ for _, type_ in network.nodes(data="type"))
    assert types == {"release": len(graph.releases), "bound": len(graph.bounds)}
    assert network.nodes["cuda=11.2"] == {"type": "release", "kind": "cuda", "version": "11.2", "origin": "cuda.yaml"}
    said = {network.nodes[bound]["said"] for bound in network["cuda=11.2"]}
    assert said == {bound.said for bound in graph.bounds_of(Release("cuda", "11.2"))}


def test_the_ways_of_a_bound_can_be_read_again(tmp_path: Path) -> None:
    graph, network = graph_of_facts(load_cuda()), read("json", tmp_path)
    for release in graph.releases:
        for number, bound in enumerate(graph.bounds_of(release), 1):
            name = f"{release.kind}={release.version}#{number}"
            ways: list[dict[str, set[str]]] = [{} for _ in bound.ways]
            for _, other, edge in network.edges(name, data=True):
                kind, _, version = other.partition("=")
                ways[edge["way"]].setdefault(kind, set()).add(version)
                assert edge["needed"] == (kind in bound.ways[edge["way"]].needed)
            for closed in network.nodes[name]["closed"].split():
                at, _, kind = closed.partition(":")
                ways[int(at)][kind] = set()
            known = [
                {
                    kind: {v for v in versions if Release(kind, v) in graph.releases}
                    for kind, versions in way.allowed.items()
                }
                for way in bound.ways
            ]
            assert ways == known


def test_json_is_a_form_and_others_are_refused() -> None:
    assert drawn("--json") == drawn("--format", "json")
    with pytest.raises(BadParameter, match="'svg' is not one of 'graphml', 'json'"):
        drawn("--format", "svg")


def test_networkx_loads_for_a_path_alone() -> None:
    code = """
import sys
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.pins.graph.from_facts import graph_of_facts
from feedstock_tools.pins.graph.model import kinds_between
from feedstock_tools.report.pins.show import show
show((), (), None, facts=True, form="html")
assert "networkx" not in sys.modules
kinds_between(graph_of_facts(load_cuda()), "cudnn", "gcc")
assert "networkx" in sys.modules
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
