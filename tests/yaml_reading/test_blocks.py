"""Blocks of simple values, read without PyYAML: the result equals PyYAML's, and everything else is left to it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from feedstock_tools.yaml_reading.quick import NotSimpleError, parse_block


def by_pyyaml(text: str) -> Any:
    return yaml.load(text, yaml.SafeLoader)


_VALUES = st.one_of(
    st.sampled_from(["1", "1.0", "true", "no", "2020-01-01", "null", "'a b'", '"1"', "a >=1,<2", "http://x/y", "a: b"]),
    st.text("ab1 .-_*&!|>%@[]{},:#'\"?\\~=\t", max_size=5),
)
_LINES = st.builds(
    "{}{}{}{}".format,
    st.integers(0, 4).map(lambda number: " " * number),
    st.sampled_from(["", "- ", "-   ", "- - "]),
    st.sampled_from(["", "a:", "b-c: ", "true: ", "a.b: ", "<<: "]),
    st.one_of(st.just(""), _VALUES),
)


@settings(max_examples=500)
@given(st.lists(_LINES, min_size=1, max_size=7).map("\n".join))
def test_what_is_read_is_what_pyyaml_says(text: str) -> None:
    try:
        found = parse_block(text, by_pyyaml)
    except (NotSimpleError, yaml.YAMLError):
        return
    assert repr(found) == repr(by_pyyaml(text))


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\n\nb:\n  c: yes\n  d:\n    - x\n    - y >=1.2,<2.0a0\n",
        "a:\n- x\n- 'y'\nb: z\n",
        "- name: x\n  requirements:\n    host:\n      - python 3.12.* *_cpython\n  test:\n    commands: \n    - x -h\n",
        "- x\n-   y: 1\n    z:\n    - 1\n",
        "skip: True\nstring: py312h1234567_0\nnothing:\n",
    ],
)
def test_recipes_are_read(text: str) -> None:
    assert parse_block(text, by_pyyaml) == by_pyyaml(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: b\n  c\n",  # a value over two lines
        "a: b\n  - c\n",  # the same
        "- a\n  - b\n",
        "a: |\n  b\n",
        "a: {b: c}\n",
        "a: [b]\n",
        "a: &b c\n",
        "a: *b\n",
        "a: b  # c\n",
        'a: "\\n"\n',
        "? a\n",
        "a\n",
        "a:\n    b: c\n  d: e\n",
        "a: b\n- c\n",
        "- - a\n",
        "---\na: b\n",
        "a: b\n...\n",
        "a:\tb\n",
        "ä: b\n",
        "  a: b\nc: d\n",
        "".join(f"{' ' * depth}a:\n" for depth in range(400)),
        "a: " + "b" * 2000 + "\n",
    ],
)
def test_the_rest_is_left(text: str) -> None:
    with pytest.raises(NotSimpleError):
        parse_block(text, by_pyyaml)
