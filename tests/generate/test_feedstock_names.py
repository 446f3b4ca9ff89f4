"""What a feedstock is called, and that what was built in it stays out of git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import Artifacts


@pytest.mark.parametrize(
    ("file", "text", "name"),
    [
        ("feedstock.yaml", "# name: no\nversion: 1\nname: demo\n", "demo"),
        ("recipe/recipe.yaml", "recipe:\n  name: demo-split\n  version: 1\n", "demo"),
        ("recipe/recipe.yaml", "recipe:\n  name: other\nextra:\n  feedstock-name: demo\n", "demo"),
        ("recipe/meta.yaml", 'package:\n  name: "demo"\n', "demo"),
        ("recipe/meta.yaml", "package:\n  name: {{ name }}\n", "folder"),
    ],
)
def test_a_feedstock_is_named_by_its_spec_or_recipe_and_else_by_its_folder(
    file: str, text: str, name: str, tmp_path: Path
) -> None:
    feedstock = Feedstock(tmp_path / "folder-feedstock")
    (feedstock.folder / file).parent.mkdir(parents=True)
    (feedstock.folder / file).write_text(text)

    assert feedstock.name == name


def test_git_passes_over_what_was_built(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    artifacts = Artifacts(tmp_path / "build_artifacts")

    artifacts.remember("plan", {})
    artifacts.fresh_private("linux_64_")

    status = ["git", "-C", str(tmp_path), "status", "--porcelain", "--untracked-files=all"]
    assert subprocess.run(status, capture_output=True, text=True, check=True).stdout == ""
