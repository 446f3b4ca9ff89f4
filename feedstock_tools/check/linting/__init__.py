"""Mistakes of a recipe that conda-forge's linter does not see: a module for each family of rules."""
