"""Variant files: load, select, combine, zip, migrate, explode."""
