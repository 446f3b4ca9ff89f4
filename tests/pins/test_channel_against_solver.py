"""The sets that the graph of a channel calls compatible, compared with a solver's answers in random channels."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest

from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.repodata import read_records
from feedstock_tools.channel.solving import SolveError, solve
from feedstock_tools.pins.graph.from_channel import graph_of_channel
from feedstock_tools.pins.graph.kinds import parse_demands
from feedstock_tools.pins.graph.resolve import is_satisfiable
from feedstock_tools.platforms import Platform

LINUX = Platform.parse("linux-64")
CUDAS = ("11.2", "11.8", "12.4")
PYTHONS = ("3.11", "3.12")


def make_channel(folder: Path, chance: random.Random) -> None:
    """`top` needs `mid`, `mid` needs `base`, each in some builds, which need some CUDA or Python."""

    def package(name: str, version: str, build: str, *depends: str, constrains: tuple[str, ...] = ()) -> None:
        metadata = PackageMetadata(name, version, build, 0, "linux-64", depends=depends, constrains=constrains)
        write_package(folder, metadata)

    def some() -> list[str]:
        of_cuda = [f"cudatoolkit {chance.choice(CUDAS)}.*", f"cudatoolkit >={chance.choice(CUDAS)}"]
        of_python = f"python {chance.choice(PYTHONS)}.*"
        return [spec for spec in (chance.choice(of_cuda), of_python) if chance.random() < 0.4]

    for cuda in CUDAS:
        package("cudatoolkit", f"{cuda}.1", "h_0")
    for python in PYTHONS:
        package("python", f"{python}.1", "h_0")
    for name, below in (("base", None), ("mid", "base"), ("top", "mid")):
        for version, build in product(("1.0", "2.0"), ("a_0", "b_0")):
            on = f"{below} {chance.choice(('1.0', '2.0', '>=1'))} {chance.choice(('*', 'a_*', 'b_0'))}" if below else ""
            limits = (f"cudatoolkit <{chance.choice(CUDAS)}",) if chance.random() < 0.2 else ()
            package(name, version, build, *([on] if on else ["cudatoolkit"]), *some(), constrains=limits)
    index_channel(folder)


@pytest.mark.parametrize("seed", range(8))
def test_just_what_a_solver_can_install_goes_together(tmp_path: Path, seed: int) -> None:
    make_channel(tmp_path, random.Random(seed))  # noqa: S311 - the same channel every time
    graph = graph_of_channel(read_records(str(tmp_path), ("linux-64", "noarch")), "it", packages=["top"])
    for version, cuda, python in product(("1.0", "2.0"), CUDAS, PYTHONS):
        demands = parse_demands([f"top={version}", f"cuda={cuda}", f"python={python}"])
        specs = [f"top {version}", f"cudatoolkit {cuda}.*", f"python {python}.*"]
        try:
            solved = bool(solve(specs, [str(tmp_path)], LINUX))
        except SolveError:
            solved = False
        assert is_satisfiable(graph, demands) is solved, specs
