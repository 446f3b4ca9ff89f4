"""A `meta.yaml` made into a `recipe.yaml` that renders to the same packages."""
