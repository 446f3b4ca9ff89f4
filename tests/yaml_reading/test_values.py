"""YAML that people wrote is read with bounds; exceeding one gives a single message."""

from __future__ import annotations

import time

import pytest
import yaml
from hypothesis import given, strategies

from feedstock_tools.errors import InputError
from feedstock_tools.yaml_reading.nodes import parse_first, parse_texts, parse_types

ALIASES = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 20))


def test_variant_files_hold_texts_and_settings_hold_types() -> None:
    text = "a: true\nb: 3.10\nc: [1, ~]\n"
    assert parse_texts(text) == {"a": "true", "b": "3.10", "c": ["1", "~"]}
    assert parse_first(text) == {"a": True, "b": 3.1, "c": [1, None]}


def test_settings_are_the_first_document() -> None:
    assert parse_first("a: 1\n---\nb: 2\n") == {"a": 1}
    assert parse_first("") is None
    with pytest.raises(InputError, match="more than one document"):
        parse_texts("a: 1\n---\nb: 2\n")


@pytest.mark.parametrize("parse", [parse_texts, parse_first])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="lists in one line"),
        pytest.param("- " * 100_000, id="items in one line"),
        pytest.param("? " * 100_000, id="keys in one line"),
        pytest.param("\n".join(" " * depth + "a:" for depth in range(3000)), id="mappings"),
        pytest.param("a: &a [*a]", id="itself"),
        pytest.param(ALIASES, id="aliases"),
        pytest.param("a: [1", id="unfinished"),
    ],
)
def test_what_would_grow_without_bound_is_an_error(parse: object, text: str) -> None:
    assert callable(parse)
    with pytest.raises(InputError):
        parse(text)


def test_settings_make_no_objects() -> None:
    with pytest.raises(InputError, match="is not YAML"):
        parse_first("a: !!python/object/apply:os.getcwd []")
    with pytest.raises(InputError, match="month"):
        parse_first("a: 2026-99-45")


def test_the_merges_of_a_file_are_bounded_together() -> None:
    keys = ", ".join(f"k{number}: v" for number in range(4_900))
    text = f"a: &a {{{keys}}}\n" + "".join(f"b{number}: {{<<: [*a, *a]}}\n" for number in range(3_000))
    began = time.process_time()
    with pytest.raises(InputError, match="merge keys") as caught:
        parse_first(text)
    assert time.process_time() - began < 4
    assert caught.value.mistakes[0].line == 3


def test_brackets_in_strings_do_not_count_as_depth() -> None:
    script = "echo [ {\n  " * 300
    assert parse_texts(f"script: |\n  {script}") == {"script": script.replace("\n  ", "\n")}


@given(
    strategies.recursive(
        strategies.none() | strategies.booleans() | strategies.floats(allow_nan=False) | strategies.text("ab: '[*&1"),
        lambda inside: strategies.lists(inside) | strategies.dictionaries(strategies.text("abc"), inside),
        max_leaves=12,
    )
)
def test_values_are_those_that_pyyaml_constructs(content: object) -> None:
    shared = [content, content]
    text = yaml.safe_dump({"first": shared, "again": [shared, "*"]})
    assert parse_texts(text) == yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - texts alone
    assert parse_types(text) == yaml.safe_load(text)


def test_a_key_must_be_one_value() -> None:
    with pytest.raises(InputError, match="a key must be a single value") as caught:
        parse_texts("a: 1\n? [b, c]\n: 2\n")
    assert (caught.value.mistakes[0].line, caught.value.mistakes[0].column) == (2, 3)


def test_merge_keys_cannot_grow_without_bound() -> None:
    lines = ["a0: &a0 {k: v, l: w}"]
    lines += [f"a{number}: &a{number} {{<<: [{', '.join([f'*a{number - 1}'] * 9)}]}}" for number in range(1, 30)]
    with pytest.raises(InputError, match="merge keys"):
        parse_first("\n".join(lines))
    assert parse_first("a: &a {k: v}\nb: {<<: *a, l: w}")["b"] == {"k": "v", "l": "w"}
