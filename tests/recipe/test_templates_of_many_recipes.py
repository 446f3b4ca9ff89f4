"""Templates of many recipes in one process: the bound on steps is one of each rendering."""

from __future__ import annotations

from pathlib import Path

from feedstock_tools.recipe.v0.jinja import render

LOOP = "{% for x in range(30000) %}{% endfor %}done"


def test_steps_are_counted_from_zero_when_a_recipe_comes_back_after_others(tmp_path: Path) -> None:
    for _ in range(5):
        assert render(tmp_path / "meta.yaml", None, LOOP, {}) == "done"
        for other in range(20):
            render(tmp_path / str(other) / "meta.yaml", None, "x", {})
