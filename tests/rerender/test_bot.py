"""A rerender as conda-forge's bot calls it: what it returns, stages and raises."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.bot import RerenderMessage, rerender_feedstock
from feedstock_tools.errors import InputError, WorkError
from tests.support.git import committed, git


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    folder = tmp_path / "demo-feedstock"
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe/meta.yaml").write_text("package: {name: demo, version: '1'}\nrequirements: {host: [zlib]}\n")
    (folder / "conda-forge.yml").write_text("provider: {linux_64: azure, osx_64: null, win_64: null}\n")
    (folder / "pinning.yaml").write_text("zlib:\n- 1\n")
    committed(folder)
    return folder


def test_what_changes_is_staged_and_the_message_returned(feedstock: Path) -> None:
    message = rerender_feedstock(str(feedstock), timeout=60, exclusive_config_file="pinning.yaml")
    assert message is not None and message.startswith("MNT: Re-rendered with conda-smithy ")
    assert message.changed == (".ci_support/linux_64_.yaml",) and message.is_nontrivial
    assert git(feedstock, "diff", "--cached", "--name-only").split() == list(message.changed)
    git(feedstock, "commit", "--quiet", "--message", message)
    assert rerender_feedstock(feedstock, exclusive_config_file="pinning.yaml") is None


def test_recipe_and_readme_are_trivial() -> None:
    assert not RerenderMessage("", ("README.md", "recipe/meta.yaml")).is_nontrivial
    assert RerenderMessage("", ("README.md", ".azure-pipelines/azure-pipelines-linux.yml")).is_nontrivial


def test_errors_are_raised_and_nothing_is_written(feedstock: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.yaml"):
        rerender_feedstock(feedstock, exclusive_config_file="nowhere.yaml")
    with pytest.raises(WorkError, match=r"did not end within 0.001 s"):
        rerender_feedstock(feedstock, timeout=0.001, exclusive_config_file="pinning.yaml")
    assert git(feedstock, "status", "--porcelain") == ""
