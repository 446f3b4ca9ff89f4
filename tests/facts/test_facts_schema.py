"""Every mistake in a file of facts is named, with its line and column, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.facts.schema import read_document

SCHEMA = data_folder("variants") / "cuda.schema.json"
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
gpus: {}
"""


def mistakes(tmp_path: Path, text: str) -> tuple[Mistake, ...]:
    path = tmp_path / "cuda.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_document(path, SCHEMA)
    assert all(mistake.path == path for mistake in caught.value.mistakes)
    return caught.value.mistakes


def test_a_good_file_is_read_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "cuda.yaml"
    path.write_text(GOOD, encoding="utf-8")
    toolkit = read_document(path, SCHEMA)["toolkits"]["11.2"]
    assert toolkit["architectures"] == ["75", "86"]
    assert toolkit["newest_gcc"] == 10
    assert toolkit["least_driver"] == {"linux": "450.80.02", "windows": None}


@pytest.mark.parametrize(
    ("before", "after", "message", "line", "column"),
    [
        ('"11.2":', "11.2:", "the key 11.2 under toolkits is to be in quotes", 4, 3),
        ('"11.2":', '"eleven":', "toolkits.eleven is not named as expected", 4, 3),
        ("era: cudatoolkit", "era: stone", "'stone'; it is to be one of cudatoolkit, cuda-version", 5, 10),
        ('["75", "86"]', "[]", "architectures is to have 1 items or more", 6, 20),
        ('["75", "86"]', '["75", "75"]', "architectures names something twice", 6, 20),
        ('["75", "86"]', '["75", "sm_86"]', "architectures[1] is 'sm_86', which is not written as expected", 6, 27),
        ('["75", "86"]', "75", "architectures is to be array, not integer", 6, 20),
        ("newest_gcc: 10", "newest_gcc: ten", "newest_gcc is to be integer, not string", 7, 17),
        ("newest_gcc", "newst_gcc", "newst_gcc is not known; known are era, architectures", 7, 5),
        ('"450.80.02"', "450.8", "linux is to be string or null, not number", 8, 27),
        ("    era: cudatoolkit\n", "", "toolkits.11.2 has no era", 5, 5),
        ("presets: {}", "presets: {}\npresets: {}", "presets is there twice", 11, 1),
        (GOOD, "- a list", "the file is to be object, not array", 1, 1),
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
def test_what_is_no_yaml_is_named(tmp_path: Path, text: str, message: str) -> None:
    (mistake,) = mistakes(tmp_path, text)
    assert message in mistake.message


def test_binary_and_missing_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "cuda.yaml"
    with pytest.raises(InputError, match="there is no such file"):
        read_document(path, SCHEMA)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not a text file"):
        read_document(path, SCHEMA)
