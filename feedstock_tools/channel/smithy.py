"""Releases of conda-smithy on this machine: of its conda package, the files that a rerender reads, and its license."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from feedstock_tools.channel.kept.packages import PackageKind
from feedstock_tools.data import cache_root

_PACKAGE = "site-packages/conda_smithy"
SMITHY = PackageKind(
    package="conda-smithy",
    noun="release of conda-smithy",
    needed=("info/index.json", f"{_PACKAGE}/configure_feedstock.py", f"{_PACKAGE}/templates/README.md.tmpl"),
    kept=(
        f"{_PACKAGE}/templates/",
        f"{_PACKAGE}/feedstock_content/",
        f"{_PACKAGE}/data/conda-forge.yml",
        "info/licenses/",
    ),
    origin="smithy.json",
    example="3.50.1",
)


def smithy_cache(environment: Mapping[str, str]) -> Path:
    """The folder of releases of conda-smithy in the user's cache."""
    return cache_root(environment) / SMITHY.package
