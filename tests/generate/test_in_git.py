"""A spec in a feedstock whose `.gitignore` admits only what conda-smithy knows: git must keep it all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import command
from tests.support.git import git

SPEC = """\
name: demo
version: 1.0
platforms: {linux-64: }
outputs:
  - name: demo
    kind: library
    script: {commands: ["true"]}
    test: {commands: ["true"]}
about: {license: MIT, license_file: LICENSE, homepage: https://example.org/, summary: For tests.}
maintainers: [someone]
"""
#: Ignores all but some folders and one file.
IGNORED = "*\n!/conda-forge.yml\n!/**/\n!/recipe/**\n!/.ci_support/**\n"


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    git(tmp_path, "init")
    git(tmp_path, "config", "user.name", "a")
    git(tmp_path, "config", "user.email", "a@example.org")
    (tmp_path / ".gitignore").write_text(IGNORED)
    (tmp_path / "feedstock.yaml").write_text(SPEC)
    return tmp_path


def run(feedstock: Path, *words: str) -> tuple[int, str]:
    ended = command.here(*words, folder=feedstock)
    return ended.returncode, ended.stdout + ended.stderr


def test_what_git_ignores_is_said_found_and_committed(feedstock: Path) -> None:
    hidden = "feedstock.yaml, .feedstock-tools/generated.json"

    status, said = run(feedstock, "generate")
    assert status == 0
    assert f"git ignores {hidden}" in said
    assert "feedstock.yaml:1:1: git ignores this file" in run(feedstock, "lint", "--rule", "ignored-spec")[1]

    assert run(feedstock, "generate", "--commit")[0] == 0
    kept = set(git(feedstock, "ls-tree", "-r", "--name-only", "HEAD").split())
    assert kept == {"feedstock.yaml", ".feedstock-tools/generated.json", "conda-forge.yml", "recipe/recipe.yaml"}
    assert git(feedstock, "log", "-1", "--format=%s") == "Generate from feedstock.yaml\n"

    assert "git ignores" not in run(feedstock, "generate")[1]
    assert run(feedstock, "lint", "--rule", "ignored-spec")[0] == 0


def test_a_file_that_is_no_longer_generated_leaves_the_commit_too(feedstock: Path) -> None:
    cuda = "cuda: {versions: [12.9], script: {file: arch.sh, variable: ARCH, style: list}, architectures: [sm_90]}\n"
    (feedstock / "feedstock.yaml").write_text(SPEC + cuda)
    assert run(feedstock, "generate", "--commit", "With CUDA")[0] == 0
    assert "recipe/arch.sh" in git(feedstock, "ls-files")
    (feedstock / "feedstock.yaml").write_text(SPEC)

    assert run(feedstock, "generate", "--commit")[0] == 0

    assert "recipe/arch.sh" not in git(feedstock, "ls-files")
    assert git(feedstock, "log", "--format=%s").split("\n")[:2] == ["Generate from feedstock.yaml", "With CUDA"]


def test_a_folder_outside_git_has_nothing_to_say(tmp_path: Path) -> None:
    (tmp_path / "feedstock.yaml").write_text(SPEC)

    status, said = run(tmp_path, "generate")

    assert (status, "git" in said) == (0, False)
    status, said = run(tmp_path, "generate", "--commit")
    assert (status, "is not the top of a git repository" in said) == (2, True)
