"""The library as docs/library.md describes it: its examples run unchanged, and its import is light."""

from __future__ import annotations

import doctest
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from feedstock_tools import api
from tests.support.library import make_library_folder
from tests.support.paths import ROOT

FUNCTIONS = {name: getattr(api, name) for name in api.__all__ if inspect.isfunction(getattr(api, name))}


@pytest.fixture
def folder(tmp_path: Path, tiny_channel: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the examples use, as the current one."""
    make_library_folder(tmp_path)
    (tmp_path / "tiny-channel").symlink_to(tiny_channel)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder", "gpu_feedstock")
def test_the_examples_give_what_they_show() -> None:
    shown = doctest.testfile(str(ROOT / "docs" / "library.md"), module_relative=False, encoding="utf-8")

    assert shown.attempted > 30
    assert not shown.failed


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_goes_in_what_comes_out_and_how_it_fails(name: str) -> None:
    function = FUNCTIONS[name]
    signature, text = inspect.signature(function), inspect.getdoc(function) or ""
    unexplained = set(signature.parameters) - {"feedstock", "configurations", *re.findall(r"\w+", text)}
    assert unexplained == set()
    assert signature.return_annotation is not inspect.Signature.empty
    assert all(one.annotation is not inspect.Parameter.empty for one in signature.parameters.values())
    assert "Raises:" in text


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_function_gives_what_it_shows(
    name: str, folder: Path, tiny_channel: Path, request: pytest.FixtureRequest
) -> None:
    known: dict[str, object] = {"Path": Path, "os": os, **{each: getattr(api, each) for each in api.__all__}}
    if re.search("workspace|tiny", inspect.getdoc(FUNCTIONS[name]) or ""):
        built = request.getfixturevalue("gpu_feedstock").folder
        known["workspace"] = api.open_workspace(built, None, [str(tiny_channel)], os.environ)
    (example,) = doctest.DocTestFinder(recurse=False).find(FUNCTIONS[name], name, globs=known)
    assert example.examples, "the docstring has no example"
    lines: list[str] = []
    assert doctest.DocTestRunner().run(example, out=lines.append).failed == 0, "".join(lines)


def test_importing_the_library_brings_in_nothing_that_reads_solves_or_builds() -> None:
    code = (
        "import sys, feedstock_tools.api; print([name for name in sys.modules if name.startswith('feedstock_tools')])"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout == "['feedstock_tools', 'feedstock_tools.api']\n"


def test_every_name_of_the_library_exists() -> None:
    assert {name for name in api.__all__ if getattr(api, name, None) is None} == set()
    assert set(api.__all__) <= set(dir(api))
    assert set(api._NAMES) == set(api.__all__)


def test_an_unknown_name_of_the_library_is_reported() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'rerendr'"):
        getattr(api, "rerendr")  # noqa: B009 - mypy would complain of it


@pytest.mark.parametrize("name", sorted(set(api.__all__) - {"CUDA", "PYTHON", "SOLVING"}))
def test_every_name_says_what_it_is(name: str) -> None:
    text = inspect.getdoc(getattr(api, name)) or ""
    assert text
    assert not text.startswith(f"{name}("), "a dataclass without a docstring"
