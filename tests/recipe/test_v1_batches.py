"""A recipe is rendered in parts that together stand for all variants."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.v1.recipe import render_recipe_v1
from feedstock_tools.recipe.v1.variants import batches
from feedstock_tools.recipe.v1_engine import read_v1
from feedstock_tools.variants.files import defaults, parse
from feedstock_tools.variants.model import combine

LINUX = Platform.parse("linux-64")


def test_parts_stand_for_all_variants_in_their_order() -> None:
    values = {"a": ("1", "2", "3"), "b": ("x", "y", "z"), "c": ("k", "l", "m"), "unused": ("0", "1")}
    parts = list(batches("- a\n- c", values, [("a", "b")]))
    assert [(part["a"], part["b"], part["c"]) for part in parts] == [
        ((a,), (b,), (c,)) for (a, b), c in product(zip("123", "xyz", strict=True), "klm")
    ]
    assert all(part["unused"] == ("0", "1") for part in parts)


def test_few_variants_are_rendered_at_once() -> None:
    assert list(batches("- a", {"a": ("1", "2")}, [])) == [{"a": ("1", "2")}]


def test_a_billion_variants_are_refused() -> None:
    values = {f"k{number}": tuple("0123456789") for number in range(9)}
    with pytest.raises(InputError, match="more than 20000 variants"):
        list(batches(" ".join(values), values, []))


def test_many_outputs_of_many_variants_take_little_time(tmp_path: Path) -> None:
    outputs = "".join(
        f"  - package: {{name: lib{number}}}\n    inherit: all\n    requirements:\n      host: [{key}]\n"
        f"      run: ['${{{{ pin_subpackage(\"lib0\", exact=True) }}}}']\n"
        for number, key in enumerate(["zlib", *("alpha", "beta", "python") * 5])
    )
    (tmp_path / "recipe.yaml").write_text(
        "schema_version: 1\nrecipe: {name: many, version: '1'}\noutputs:\n  - staging: {name: all}\n"
        f"    requirements:\n      host: [alpha, beta]\n{outputs}"
    )
    lists = {"alpha": range(4), "beta": range(3), "python": range(9, 14), "zlib": (1,)}
    text = "".join(f"{key}:\n" + "".join(f"  - 3.{value}\n" for value in items) for key, items in lists.items())
    config = combine([defaults(LINUX), parse(text, None, LINUX)])
    start = time.process_time()
    rendered = render_recipe_v1(read_v1(tmp_path / "recipe.yaml"), config, LINUX)
    assert time.process_time() - start < 8  # 1 s where nothing else runs; at once it takes minutes
    names = [output.name for output in rendered.outputs]
    assert (names.count("lib0"), names.count("lib1"), names.count("lib3")) == (12, 12, 60)


def test_zipped_keys_with_different_numbers_of_values_are_refused() -> None:
    values = {"a": [str(number) for number in range(20)], "b": ["1"]}
    with pytest.raises(InputError, match="a, b have different numbers of values"):
        list(batches("a b", values, [["a", "b"]]))
