"""The names of files and folders in a feedstock that more than one room knows."""

from __future__ import annotations

#: What a person writes to have a recipe generated.
SPEC_NAME = "feedstock.yaml"
#: conda-smithy's settings.
FORGE_FILE = "conda-forge.yml"
#: The folder that holds the configurations, and the migrations in a folder of their own.
CI_SUPPORT = ".ci_support"
