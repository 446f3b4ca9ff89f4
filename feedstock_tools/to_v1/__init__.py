"""A `meta.yaml` made into a `recipe.yaml` that renders to the same packages.

The door of this product: everybody else imports from here. Import it where it is used, not at the top of a module that
every command loads.
"""

from feedstock_tools.to_v1.converting import Difference, compare_recipes, convert_recipe, to_v1, without_hash
from feedstock_tools.to_v1.recipe import Converted

__all__ = ["Converted", "Difference", "compare_recipes", "convert_recipe", "to_v1", "without_hash"]
