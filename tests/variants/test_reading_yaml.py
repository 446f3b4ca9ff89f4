"""YAML that people wrote is read with bounds; what exceeds them is one message."""

from __future__ import annotations

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.variants.read import parse_plain_yaml, parse_settings

ALIASES = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 20))


def test_variant_files_hold_texts_and_settings_hold_types() -> None:
    text = "a: true\nb: 3.10\nc: [1, ~]\n"
    assert parse_plain_yaml(text) == {"a": "true", "b": "3.10", "c": ["1", "~"]}
    assert parse_settings(text) == {"a": True, "b": 3.1, "c": [1, None]}


def test_settings_are_the_first_document() -> None:
    assert parse_settings("a: 1\n---\nb: 2\n") == {"a": 1}
    assert parse_settings("") is None
    with pytest.raises(InputError, match="more than one document"):
        parse_plain_yaml("a: 1\n---\nb: 2\n")


@pytest.mark.parametrize("parse", [parse_plain_yaml, parse_settings])
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
        parse_settings("a: !!python/object/apply:os.getcwd []")
    with pytest.raises(InputError, match="month"):
        parse_settings("a: 2026-99-45")


def test_merge_keys_cannot_grow_without_bound() -> None:
    lines = ["a0: &a0 {k: v, l: w}"]
    lines += [f"a{number}: &a{number} {{<<: [{', '.join([f'*a{number - 1}'] * 9)}]}}" for number in range(1, 30)]
    with pytest.raises(InputError, match="merge keys"):
        parse_settings("\n".join(lines))
    assert parse_settings("a: &a {k: v}\nb: {<<: *a, l: w}")["b"] == {"k": "v", "l": "w"}
