"""Feedstocks whose recipes are imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.importing import CONFIG, FORGE, META, RECIPE, feedstock


@pytest.fixture
def v0(tmp_path: Path) -> Path:
    return feedstock(
        tmp_path,
        {
            "solver-feedstock/recipe/meta.yaml": META,
            "solver-feedstock/recipe/conda_build_config.yaml": CONFIG,
            "solver-feedstock/conda-forge.yml": FORGE,
            **{f"solver-feedstock/recipe/{name}": "" for name in ("build-lib.sh", "build-lib.bat", "patches/a.patch")},
            "solver-feedstock/recipe/patches/b.patch": "",
        },
    )


@pytest.fixture
def v1(tmp_path: Path) -> Path:
    forge = f"{FORGE}conda_build_tool: rattler-build\n"
    return feedstock(
        tmp_path, {"solver-feedstock/recipe/recipe.yaml": RECIPE, "solver-feedstock/conda-forge.yml": forge}
    )
