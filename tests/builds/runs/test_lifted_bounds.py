"""A recipe that passes a bound is refused, and builds in a run for which the user lifts the bounds."""

from __future__ import annotations

from tests.support.feedstocks import CPU, TinyFeedstock


def test_a_recipe_beyond_a_bound_builds_once_the_bound_is_lifted(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(1)
    feedstock.edit("recipe/recipe.yaml", 'version: "1.0.0"\n', 'version: "1.0.0"\n  long: ${{ "a" * 3000000 }}\n')
    refused = feedstock.build(f"{CPU}_py3.11")
    assert refused.returncode == 2, refused.stderr
    assert "recipe.yaml:5: the result of a template may be too large" in refused.stderr
    assert "FEEDSTOCK_TOOLS_BOUNDS=10" in refused.stderr
    built = feedstock.build(f"{CPU}_py3.11", environment={"FEEDSTOCK_TOOLS_BOUNDS": "10"})
    assert built.returncode == 0, built.stderr
    assert feedstock.packages()
