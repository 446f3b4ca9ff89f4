"""Reading and combining variant files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.variants.files import defaults, load
from feedstock_tools.variants.model import VariantConfig, combine, explode

LINUX = Platform("linux", "64")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def read(folder: Path, content: str | dict[str, Any], platform: Platform = LINUX, **environ: str) -> VariantConfig:
    """The variants of a file; mappings are written a value a line, since `[a, b]` at a line's end is a selector."""
    path = folder / "conda_build_config.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return load(path, platform, environ=environ)


ZIPPED = {
    "python": ["3.12.* *_cpython", "3.13.* *_cp313"],
    "numpy": ["2.0", "2.1"],
    "zip_keys": [["python", "numpy"]],
}


def test_every_value_is_text_and_empty_keys_vanish(folder: Path) -> None:
    config = read(folder, "a:\n  - 1.10\n  - None\n  - true\nb:\n  - x  # [win]\nc: 2\n")

    assert dict(config.values) == {"a": ("1.10", "None", "true"), "c": ("2",)}


def test_where_values_come_from_is_known(folder: Path) -> None:
    config = read(folder, "# comment\na:  # [linux]\n  - 1\nb: 2  # [win]\nc: 3\n")

    assert {key: origin.line for key, (origin,) in config.origins.items()} == {"a": 2, "c": 5}


def test_later_files_win_and_lists_that_extend_grow(folder: Path) -> None:
    pins = {"p": {"max_pin": "x"}, "q": {"max_pin": "x"}}
    first = read(folder, {"a": [1], "b": [1], "ignore_version": ["x"], "pin_run_as_build": pins})
    second = read(folder, {"a": [2, 3], "ignore_version": ["y"], "pin_run_as_build": {"p": {"max_pin": "x.x"}}})

    both = combine([first, second])

    assert both.values == {"a": ("2", "3"), "b": ("1",)}
    assert both.extended["ignore_version"] == ("x", "y")
    assert both.pin_run_as_build == {"p": {"max_pin": "x.x"}, "q": {"max_pin": "x"}}


def test_a_pin_that_is_one_text_holds_for_both_ends(folder: Path) -> None:
    assert read(folder, {"pin_run_as_build": {"p": "x.x"}}).pin_run_as_build == {
        "p": {"min_pin": "x.x", "max_pin": "x.x"}
    }


def test_a_whole_zip_group_is_replaced(folder: Path) -> None:
    both = combine([read(folder, ZIPPED), read(folder, {"python": ["3.14"], "numpy": ["2.3"]})])

    assert (both.values["python"], both.values["numpy"]) == (("3.14",), ("2.3",))


def test_a_part_of_a_zip_group_replaces_what_is_as_long(folder: Path) -> None:
    both = combine([read(folder, ZIPPED), read(folder, {"numpy": ["2.2", "2.3"]})])

    assert both.values["numpy"] == ("2.2", "2.3")


def test_a_shorter_part_of_a_zip_group_with_known_values_changes_nothing(folder: Path) -> None:
    both = combine([read(folder, ZIPPED), read(folder, {"numpy": ["2.1"]})])

    assert both.values["numpy"] == ("2.0", "2.1")


def test_a_shorter_part_with_new_values_is_refused_where_it_stands(folder: Path) -> None:
    with pytest.raises(InputError, match=r"'numpy' is zipped with python") as caught:
        combine([read(folder, ZIPPED), read(folder, "x: 1\nnumpy: 9\n")])

    assert caught.value.mistakes[0].line == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ({"a-b": [1]}, "has a '-'"),
        ({"a": [1], "zip_keys": [["a", "b"]]}, "'b' of the zip group"),
        ({"a": [1], "zip_keys": [["a"] * 101]}, "more than 100 keys"),
        ({"a": [1], "b": [1, 2], "zip_keys": [["a", "b"]]}, "different numbers of values"),
        ({"a": [1], "b": [1], "c": [1], "zip_keys": [["a", "b"], ["b", "c"]]}, "more than one zip group"),
        ("a:\n  - 1\nzip_keys:\n  -\n    - a  # [win]\n  -\n    - a\n", "leave a zip group without keys"),
        ({"a": [{"b": "c"}]}, "list of plain values"),
        ("- a\n", "mapping of keys"),
        ("a: {1\n", "is not YAML"),
        ("a: &x\n  - *x\n", "that contains it"),
        ({"pin_run_as_build": ["a"]}, "mapping of mappings"),
    ],
)
def test_files_that_conda_build_refuses(folder: Path, text: str | dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(folder, text)


def test_the_same_group_in_another_order_is_the_same_group(folder: Path) -> None:
    config = read(folder, {"a": [1, 2], "b": [3, 4], "zip_keys": [["a", "b"], ["b", "a"]]})

    assert explode(config).count == 2


def test_a_group_within_one_of_another_file_adds_nothing_to_it(folder: Path) -> None:
    three = read(folder, {"a": [1, 2], "b": [3, 4], "c": [5, 6], "zip_keys": [["a", "b", "c"]]})
    part = read(folder, {"a": [1], "b": [3], "zip_keys": [["a", "b"]]})

    assert explode(combine([three, part])).count == 2


def test_defaults_name_the_platform_and_its_compilers() -> None:
    assert defaults(Platform("osx", "arm64")).values["target_platform"] == ("osx-arm64",)
    assert defaults(Platform("win", "64")).values["vc"] == ("14",)
