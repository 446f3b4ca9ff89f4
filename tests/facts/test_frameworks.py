"""The facts on frameworks are consistent and name their sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from feedstock_tools.channel.specs import admits
from feedstock_tools.errors import InputError
from feedstock_tools.facts.content import checked
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.facts.frameworks import Framework, NoWay, Setup, load_frameworks, load_wheels
from feedstock_tools.facts.models import FrameworksFile
from feedstock_tools.platforms import KNOWN_SUBDIRS

FACTS = load_frameworks()
FRAMEWORKS = pytest.mark.parametrize("framework", FACTS.frameworks.values(), ids=lambda framework: framework.name)


def _entries(framework: Framework) -> list[Setup | NoWay]:
    return [*framework.ways, *framework.unavailable]


@FRAMEWORKS
def test_each_way_gives_something_and_names_its_sources(framework: Framework) -> None:
    for way in framework.ways:
        assert way.package or way.pip
        assert not (way.package and way.pip)
        assert way.python or way.wheels or not way.pip
        assert way.wheels is None or way.wheels in load_wheels()
    for entry in _entries(framework):
        assert set(entry.platforms) <= set(KNOWN_SUBDIRS)
        assert set(entry.sources) <= FACTS.sources.keys()


@FRAMEWORKS
def test_words_in_braces_are_known(framework: Framework) -> None:
    for way in framework.ways:
        plain = " ".join(filter(None, (way.package, way.builds, way.exact, *way.conda, *way.pip)))
        assert set(re.findall(r"\{(\w*)\}", plain)) <= {"cuda", "major", "digits", "minor"}
        assert set(re.findall(r"\{(\w*)\}", " ".join(way.variables.values()))) <= {"prefix"}
        # Without braces, the pattern of builds for one CUDA version is one of those for any.
        if way.exact:
            assert way.builds
            assert re.sub(r"cuda\{(?:digits|cuda)\}\*", "cuda*", way.exact).replace("*cuda*_", "*_") == way.builds


@FRAMEWORKS
def test_ways_are_for_toolkits_that_are_known(framework: Framework) -> None:
    toolkits = load_cuda().toolkits
    for way in framework.ways:
        assert way.cuda is None or any(admits(way.cuda, version) for version in toolkits)


@FRAMEWORKS
def test_where_cuda_runs_there_is_a_way_or_a_reason(framework: Framework) -> None:
    for accelerator in ("gpu", "cpu"):
        said = {
            subdir for entry in _entries(framework) if entry.accelerator == accelerator for subdir in entry.platforms
        }
        assert {"linux-64", "linux-aarch64", "win-64"} <= said
    assert not any(
        way.accelerator == "gpu" and set(way.platforms) & FACTS.without_cuda.keys() for way in framework.ways
    )


def test_names_that_people_use() -> None:
    names = [name for framework in FACTS.frameworks.values() for name in (framework.name, *framework.also)]
    assert len(names) == len(set(names))
    torch = FACTS.find("torch")
    assert torch is not None
    assert torch.name == "pytorch"
    assert FACTS.find("numpy") is None


def test_a_mistake_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "frameworks.yaml"
    path.write_text(
        "sources: {}\nwithout_cuda: {}\nframeworks:\n  x:\n    check: x\n    ways: [{accelerator: tpu}]\n",
        encoding="utf-8",
    )
    with pytest.raises(InputError) as caught:
        checked(path, FrameworksFile)
    assert {mistake.line for mistake in caught.value.mistakes} == {6}
    assert any("'tpu' is not one of 'gpu', 'cpu'" in mistake.message for mistake in caught.value.mistakes)
