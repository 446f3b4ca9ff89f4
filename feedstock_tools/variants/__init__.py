"""Variant files: load, select, combine, zip, migrate, explode.

>>> from feedstock_tools.variants import combine, defaults, explode, load  # doctest: +SKIP
"""

from feedstock_tools.variants.algebra import combine, explode, squash
from feedstock_tools.variants.files import defaults, load
from feedstock_tools.variants.migration import Migration, load_migration, migrate
from feedstock_tools.variants.model import Axis, Origin, Variant, VariantConfig, VariantSpace
from feedstock_tools.variants.rules import CondaBuildRules, MigrationRules

__all__ = [
    "Axis",
    "CondaBuildRules",
    "Migration",
    "MigrationRules",
    "Origin",
    "Variant",
    "VariantConfig",
    "VariantSpace",
    "combine",
    "defaults",
    "explode",
    "load",
    "load_migration",
    "migrate",
    "squash",
]
