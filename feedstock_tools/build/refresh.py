"""Bring what is generated up to date before a build: the recipe from the spec, the configurations from the recipe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from feedstock_tools.build.artifacts import Artifacts
from feedstock_tools.build.feedstock import Feedstock

__all__ = ["recipe_to_build", "refresh"]


def refresh(feedstock: Feedstock, artifacts: Artifacts, say: Callable[[str], None]) -> Path:
    """Regenerate and rerender what is stale; the folder of the recipe to build."""
    return recipe_to_build(feedstock, artifacts).parent


def recipe_to_build(feedstock: Feedstock, artifacts: Artifacts) -> Path:
    """The `recipe.yaml` that is built: the feedstock's own, or the one made from the spec of one with a `meta.yaml`."""
    own = feedstock.recipe / "recipe.yaml"
    made = artifacts.root / ".cache" / "recipe" / "recipe.yaml"
    return made if made.is_file() and not own.is_file() else own
