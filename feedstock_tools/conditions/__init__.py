"""Conditions, in whatever language they are written: one tree, one evaluator, and the texts that the tree becomes.

`tree` is the algebra, `recipes` reads the selectors of a `meta.yaml` and the conditions of a `recipe.yaml`, `spec`
reads and writes those of a feedstock.yaml. A condition is true, false or unknown.

What the leaves of a condition are worth is for those who have the values: `variants.selectors.holds` for selectors,
`recipe.v1.expressions.holds` for recipe.yaml, where a new function of that language goes.

The one exception: whether a line with a selector stays in a file is decided as conda-build decides it, by evaluating
the selector as Python, with unknown names replaced in its text (`variants.selectors.evaluate`).
"""
