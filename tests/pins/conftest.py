"""The graph of the facts that ship with the package, made once."""

from __future__ import annotations

import pytest

from feedstock_tools.facts import load_cuda
from feedstock_tools.facts.gpus import GpuFacts, load_gpus
from feedstock_tools.facts.libraries import load_libraries
from feedstock_tools.pins.from_facts import graph_of_facts
from feedstock_tools.pins.model import PinGraph


@pytest.fixture(scope="session")
def facts_graph() -> PinGraph:
    return graph_of_facts(load_cuda(), load_libraries(), pythons=("3.8", "3.9", "3.12"))


@pytest.fixture(scope="session")
def gpus() -> GpuFacts:
    return load_gpus()
