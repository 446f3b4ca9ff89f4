"""The graph of the facts that ship with the package, and a channel as Anaconda's defaults are, each made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.facts.cuda import CudaFacts, load_cuda
from feedstock_tools.pins.graph.from_facts import graph_of_facts
from feedstock_tools.pins.graph.model import PinGraph


@pytest.fixture(scope="session")
def facts() -> CudaFacts:
    return load_cuda()


@pytest.fixture(scope="session")
def facts_graph(facts: CudaFacts) -> PinGraph:
    return graph_of_facts(facts, pythons=("3.8", "3.9", "3.12"))


#: The builds of Anaconda's defaults channel (pkgs/main, linux-64): what `conda search cudatoolkit` and `cudnn` list.
CUDATOOLKITS = (
    ("9.0", "h13b8566_0"),
    ("9.2", "0"),
    ("10.0.130", "0"),
    ("10.1.168", "0"),
    ("10.1.243", "h6bb024c_0"),
    ("10.2.89", "hfd86e86_0"),
    ("10.2.89", "hfd86e86_1"),
    ("11.0.221", "h6bb024c_0"),
    ("11.3.1", "h2bc3f7f_2"),
)
CUDNNS = (
    ("7.0.5", ("8.0",)),
    ("7.1.2", ("9.0",)),
    ("7.1.3", ("8.0",)),
    ("7.2.1", ("9.2",)),
    ("7.3.1", ("10.0", "9.0", "9.2")),
    ("7.6.0", ("10.0", "10.1", "9.0", "9.2")),
    ("7.6.4", ("10.0", "10.1", "9.0", "9.2")),
    ("7.6.5", ("10.0", "10.1", "10.2", "9.0", "9.2")),
    ("8.2.1", ("11.3",)),
)


@pytest.fixture(scope="session")
def defaults_channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A channel of packages with the metadata of Anaconda's, made here."""
    folder = tmp_path_factory.mktemp("anaconda") / "pkgs" / "main"
    for version, build in reversed(CUDATOOLKITS):
        number = int(build.rpartition("_")[2])
        write_package(folder, PackageMetadata("cudatoolkit", version, build, number, "linux-64"))
    for version, toolkits in CUDNNS:
        for toolkit in toolkits:
            depends = (f"cudatoolkit {toolkit}.*",)
            write_package(folder, PackageMetadata("cudnn", version, f"cuda{toolkit}_0", 0, "linux-64", depends=depends))
    index_channel(folder)
    return folder
