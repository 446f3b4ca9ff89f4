"""Recipes that people wrote, as specs.

The door of this product: everybody else imports from here. Import it where it is used, not at the top of a module that
every command loads.
"""

from feedstock_tools.importing.importing import Imported, VerbatimBlock, import_recipe, refuse_spec
from feedstock_tools.importing.updating import Updated, edited_spec, update_spec
from feedstock_tools.importing.verification import Difference

__all__ = [
    "Difference",
    "Imported",
    "Updated",
    "VerbatimBlock",
    "edited_spec",
    "import_recipe",
    "refuse_spec",
    "update_spec",
]
