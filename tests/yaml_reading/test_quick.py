"""Variant files read key by key: the same as PyYAML reads them as a whole."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedstock_tools.errors import InputError
from feedstock_tools.yaml_reading.nodes import parse_texts
from feedstock_tools.yaml_reading.quick import may_have_anchors, parse_variant_yaml

_VALUES = st.text("ab1 .-_*&!|>%@`[]{},:#'\"?\\~=+$\t", max_size=6)
_WRITTEN = st.one_of(_VALUES, _VALUES.map("'{}'".format), _VALUES.map('"{}"'.format))
_KEYS = st.builds(
    lambda key, value, items, indent: f"{key}:{value}\n" + "".join(f"{indent}- {item}\n" for item in items),
    st.sampled_from(["a", "b_c", "key"]),
    st.one_of(st.just(""), _WRITTEN.map(" {}".format)),
    st.lists(_WRITTEN, max_size=3),
    st.sampled_from(["", "  "]),
)


@given(st.lists(_KEYS, min_size=1, max_size=3).map("".join))
def test_any_file_means_what_pyyaml_says(text: str) -> None:
    def read(parse: object) -> object:
        assert callable(parse)
        try:
            return parse(text, None)
        except InputError:
            return InputError

    assert read(parse_variant_yaml) == read(parse_texts)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("- 3.9.* *netlib\n", False),
        ("x264:\n  - '1!164.*'\n", False),
        ("a: b && c\n", False),
        ("a: &b c\n", True),
        ("- *b\n", True),
        ("[a,*b]\n", True),
        ("a: !!str &b c\n", True),
        ("*a : b\n", True),
    ],
)
def test_a_mark_stands_where_a_node_begins(text: str, marked: bool) -> None:
    assert may_have_anchors(text) is marked


@pytest.mark.parametrize("line", ["x" + " *a" * 3000, "x" * 9000 + " *a", "x" + " " * 9000 + "*a", "x" + "*a" * 4000])
def test_many_stars_take_no_time(line: str) -> None:
    text = (line + "\n") * 100
    start = time.process_time()
    assert not may_have_anchors(text)
    assert time.process_time() - start < 4
