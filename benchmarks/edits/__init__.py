"""Edits, conversions and imports of recipes, measured on commits of real feedstocks."""
