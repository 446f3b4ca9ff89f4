"""The recipe as people wrote it: its text with places in it, read for linting, explaining, converting and editing.

- `document`: the files that people write, of which edits make a draft; each is a tree of parts that know the characters
  they come from, with selectors and comments.
- `owners`: the recipe itself, its outputs and stages: their names, sections, requirements and compilers; and
  its sources.
- `variables`: what a recipe computes itself, and texts expanded from it as far as the recipe alone tells.
- `sites`: the texts of a `recipe.yaml` below their keys and conditions, without the parts of a document.

Nothing here changes a file: `edit/` and the products above it do, with replacements of these parts.
"""
