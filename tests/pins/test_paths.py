"""Kinds without a common bound are joined by paths of bounds; networkx finds them, and is loaded only for that."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

from feedstock_tools.facts import load_cuda
from feedstock_tools.pins.graph.explain import explain
from feedstock_tools.pins.graph.from_facts import graph_of_facts
from feedstock_tools.pins.graph.kinds import Demand
from feedstock_tools.pins.graph.model import Bound, PinGraph, Release, Way
from feedstock_tools.pins.graph.network import kinds_between


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


def test_networkx_loads_for_a_path_alone() -> None:
    code = """
import sys
from feedstock_tools.facts import load_cuda
from feedstock_tools.pins.graph.from_facts import graph_of_facts
from feedstock_tools.pins.graph.network import kinds_between
from feedstock_tools.report.pins.show import show
show((), (), None, facts=True, form="html")
assert "networkx" not in sys.modules
kinds_between(graph_of_facts(load_cuda()), "cudnn", "gcc")
assert "networkx" in sys.modules
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
