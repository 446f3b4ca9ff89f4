"""Simple scalars of a rendered meta.yaml, which are read without YAML's reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.recipe.v0.meta import parse_rendered
from feedstock_tools.yaml_reading.nodes import Schema, parse_types


@pytest.mark.parametrize(
    "scalar",
    [
        *("a", "yes", "Yes", "on", "OFF", "true", "null", "Null", "~", "y", "n", "None", "nan", "a:b", "a b", "e1"),
        *("1", "1.10", "1.2.3", "010", "0x1f", "1_000", "1e5", "2026-01-01", "12:30", ".5", "1.", "0.1.0rc1", "py_0"),
        *("'1.10'", '"yes"', "''", '""', "'a b'", '"2026-01-01"', "https://example.org/a"),
    ],
)
def test_a_scalar_has_the_value_that_yaml_gives_it(scalar: str) -> None:
    text = f"extra:\n  value: {scalar}\n"
    assert parse_rendered(text, Path("meta.yaml")) == parse_types(text, None, Schema.TEXT_NUMBERS)
