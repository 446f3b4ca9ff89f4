"""The mark that packages built on the stand-in channel carry."""

from __future__ import annotations

import pytest
from ruamel.yaml import YAML

from feedstock_tools.builds.engines.embedded.worker import _with_extra


@pytest.mark.parametrize(
    ("recipe", "extra"),
    [
        ("package: {name: a}\n", {}),
        ("package: {name: a}\nextra:\n  recipe-maintainers:\n    - me\n", {"recipe-maintainers": ["me"]}),
        ("extra:  # who\n\n    recipe-maintainers: [me]\npackage: {name: a}", {"recipe-maintainers": ["me"]}),
        ("extra: ~\npackage: {name: a}\n", {}),
        ("extra:\npackage: {name: a}\n", {}),
        ("extra: {}\npackage: {name: a}\n", {}),
        ("extra: {recipe-maintainers: [me]}\npackage: {name: a}\n", {"recipe-maintainers": ["me"]}),
    ],
)
def test_a_mark_is_added_to_what_the_recipe_says(recipe: str, extra: dict[str, object]) -> None:
    marked = YAML(typ="safe").load(_with_extra(recipe, {"stand-in": "yes: it is"}))
    assert marked == {"package": {"name": "a"}, "extra": {**extra, "stand-in": "yes: it is"}}
