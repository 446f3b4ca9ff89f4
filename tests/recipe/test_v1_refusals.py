"""Recipes in forms that other releases of rattler-build took."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.recipe.v1_engine import parse_v1


@pytest.mark.parametrize(
    ("recipe", "hint"),
    [
        (
            "recipe: {name: a, version: '1'}\ncache: {}\noutputs:\n- package: {name: a}\n",
            "write an output `- staging:`",
        ),
        ("package: {name: a, version: '1'}\nrequirements: {run: ['zlib ==1.2.*']}\n", "write `1.2.*`"),
        ("package: {name: a, version: '1'}\nrequirements: {run: ['cuda-version 12.9']}\n", "write `==1.2`"),
        ("package: {name: a, version: '1'}\nbuild: {novelty: 1}\n", "py-rattler-build 0.73.0 reads the recipe"),
    ],
)
def test_a_refusal_says_what_to_write_and_which_release_is_known_to_work(recipe: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_v1(recipe, Path("recipe.yaml"))
    assert hint in str(caught.value)
    assert "the oldest and the newest release known to work" in str(caught.value)
