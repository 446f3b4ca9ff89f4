"""Mistakes of a feedstock: the rules of conda-forge's linter, and of ours those that it does not see.

conda-forge's stand in `conda_forge` and `feedstock_files`, each a function with its identifier. One of ours is a
function in the module of its family (`packages`: what jobs build, `selectors`, `variant_files`), is described in
`subject.OWN_RULES`, and is called from `lint`.
"""
