"""Recipes of both formats (v0 `meta.yaml`, v1 `recipe.yaml`): outputs, used variables, hashes."""
