"""Recipes and variant files that people wrote: text that comes back byte for byte, and edits of single places in it."""
