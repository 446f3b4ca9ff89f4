"""The recipe as people wrote it: its text with places in it, read for linting, explaining, converting and editing.

`document` gives a file as a tree of parts that know the characters they come from, `variables` what a recipe computes
itself, `outputs` its owners of keys (the recipe, its outputs, its stages) and their requirements. Nothing here changes
a file: edits are made in `edit/`, from these parts.
"""
