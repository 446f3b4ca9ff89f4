"""The files of facts agree with their models; all mistakes in a file are reported at once, with line and column."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.facts.content import _frozen, checked, content_of
from feedstock_tools.facts.models import FILES, CudaFile, json_schema
from feedstock_tools.facts.packages import checked_packages, read_packages
from maintenance.facts.__main__ import program

GOOD = """\
sources:
  page: {title: A page, url: https://example.org}
toolkits:
  "11.2":
    era: cudatoolkit
    architectures: ["75", "86"]
    newest_gcc: 10
    least_driver: {linux: "450.80.02", windows: null}
    sources: {era: [page]}
presets: {}
pinning: {repository: https://example.org, rows: []}
libraries: {}
"""


def mistakes(tmp_path: Path, text: str) -> tuple[Mistake, ...]:
    path = tmp_path / "cuda.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        checked(path, CudaFile)
    assert all(mistake.path == path for mistake in caught.value.mistakes)
    return caught.value.mistakes


def test_a_good_file_is_read_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "cuda.yaml"
    path.write_text(GOOD, encoding="utf-8")
    toolkit = checked(path, CudaFile)["toolkits"]["11.2"]
    assert toolkit["architectures"] == ["75", "86"]
    assert toolkit["newest_gcc"] == 10
    assert toolkit["least_driver"] == {"linux": "450.80.02", "windows": None}


def test_the_files_that_ship_agree_with_their_models() -> None:
    """At run time they are read without a check."""
    folder = data_folder("variants")
    for name in FILES.keys() - {"packages.yaml", "tools.yaml"}:
        assert _frozen(checked(folder / name, FILES[name])) == content_of(name)
    assert checked_packages(folder / "packages.yaml") == read_packages()


def test_the_files_that_ship_are_read_without_pydantic() -> None:
    code = """
import sys
from feedstock_tools.facts.cuda import CudaFacts, load_cuda
from feedstock_tools.facts.gpus import load_gpus
from feedstock_tools.facts.frameworks import load_frameworks
from feedstock_tools.facts.packages import checked_packages, read_packages
load_cuda(), load_frameworks(), read_packages()
sys.exit("pydantic" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", FILES)
def test_the_schemas_for_editors_are_made_from_the_models(name: str) -> None:
    """`python -m maintenance.facts schemas` writes them."""
    written = (data_folder("variants") / name).with_suffix(".schema.json").read_text(encoding="utf-8")
    assert json.loads(written) == json_schema(FILES[name])


@pytest.mark.parametrize(
    ("before", "after", "message", "line", "column"),
    [
        ('"11.2":', "11.2:", "expected a string, not '11.2'", 4, 3),
        ('"11.2":', '"eleven":', "'eleven' has the wrong form", 4, 3),
        ("era: cudatoolkit", "era: stone", "'stone' is not one of 'cudatoolkit', 'cuda-version'", 5, 10),
        ('["75", "86"]', "[]", "expected at least one entry", 6, 20),
        ('["75", "86"]', '["75", "75"]', "'75' is listed twice", 6, 20),
        ('["75", "86"]', '["75", "sm_86"]', "'sm_86' has the wrong form", 6, 27),
        ('["75", "86"]', "75", "expected a list, not '75'", 6, 20),
        ("newest_gcc: 10", "newest_gcc: ten", "expected a whole number, not 'ten'", 7, 17),
        ("newest_gcc: 10", "newest_gcc: null", "expected a whole number, not nothing", 7, 17),
        ("newest_gcc", "newst_gcc", "unknown key 'newst_gcc' in '11.2'", 7, 5),
        ('"450.80.02"', "450.8", "expected a string, not '450.8'", 8, 27),
        ("    era: cudatoolkit\n", "", "'era' is missing", 5, 5),
        ("presets: {}", "presets: {}\npresets: {}", "'presets' is a duplicate key", 11, 1),
        (GOOD, "- a list", "expected a mapping, not a list", 1, 1),
    ],
)
def test_a_mistake_is_named_with_its_place(
    tmp_path: Path, before: str, after: str, message: str, line: int, column: int
) -> None:
    (mistake,) = mistakes(tmp_path, GOOD.replace(before, after, 1))
    assert message in mistake.message
    assert (mistake.line, mistake.column) == (line, column)


def test_all_mistakes_come_in_one_error(tmp_path: Path) -> None:
    text = GOOD.replace("era: cudatoolkit", "era: stone").replace(": 10", ": ten").replace('"75"', '"x"')
    assert [mistake.line for mistake in mistakes(tmp_path, text)] == [5, 6, 7]


@pytest.mark.parametrize(("text", "message"), [("", "is empty"), ("a: [", "is not YAML"), ("a: b: c", "is not YAML")])
def test_invalid_yaml_is_reported(tmp_path: Path, text: str, message: str) -> None:
    (mistake,) = mistakes(tmp_path, text)
    assert message in mistake.message


def test_binary_and_missing_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "cuda.yaml"
    with pytest.raises(InputError, match="there is no such file"):
        checked(path, CudaFile)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not a text file"):
        checked(path, CudaFile)


def test_the_files_that_ship_have_no_mistakes_and_one_of_yours_has_its_place(tmp_path: Path) -> None:
    assert CliRunner().invoke(program, ["check"]).output.count(": no mistakes\n") == len(FILES)
    path = tmp_path / "mine.yaml"
    path.write_text("toolkits: 12\n")
    found = CliRunner().invoke(program, ["check", "cuda.yaml", str(path)])
    assert (found.exit_code, f"{path}:1" in found.output) == (2, True)
