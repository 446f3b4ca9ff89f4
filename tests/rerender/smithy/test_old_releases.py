"""The whole tree as releases until 3.7.4 wrote it, with a small release of our own in their layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.old_smithy_release import write_old_release
from tests.support.whole_tree import contents, render_tree, write_files

BOTH = "provider: {linux: circle, osx: circle}\n"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """The folder of the release."""
    return write_old_release(tmp_path / "release")


def scripts(feedstock: Path) -> list[str]:
    """The shell scripts of a feedstock but those that CircleCI always has."""
    return [name for name in contents(feedstock) if name.endswith("_build.sh") and "finish" not in name]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("3.5.0", [".circleci/run_docker_build.sh", ".travis/run_osx_build.sh"]),
        ("3.6.17", [".scripts/run_docker_build.sh", ".travis/run_osx_build.sh"]),
        ("3.7.0", [".scripts/run_docker_build.sh", ".scripts/run_osx_build.sh"]),
    ],
)
def test_scripts_moved_into_one_folder(feedstock: Path, release: Path, version: str, expected: list[str]) -> None:
    render_tree(feedstock, release, version)
    assert scripts(feedstock) == expected


def test_scripts_of_another_folder_go(feedstock: Path, release: Path) -> None:
    render_tree(feedstock, release, "3.5.0")
    render_tree(feedstock, release, "3.6.17")
    assert not (feedstock / ".circleci" / "run_docker_build.sh").exists()


def test_travis_had_no_scripts_before_3_3_3(feedstock: Path, tmp_path: Path) -> None:
    release = write_old_release(tmp_path / "apart", shared_setup=False)
    render_tree(feedstock, release, "3.3.2")
    assert scripts(feedstock) == [".circleci/run_docker_build.sh"]


def test_platforms_are_named_by_the_keys_of_provider(feedstock: Path, release: Path) -> None:
    (feedstock / "conda-forge.yml").write_text("provider: {linux: circle, linux_aarch64: circle, osx: azure}\n")
    render_tree(feedstock, release, "3.7.0")
    assert (feedstock / "README.md").read_text().startswith("Linux True, Linux,Linux at CircleCI, by ['beta'")


@pytest.mark.parametrize(
    ("version", "word", "service"),
    [("3.4.5", "default", ".azure-pipelines"), ("3.4.6", "default", ".drone"), ("3.4.5", "native", ".drone")],
)
def test_words_for_providers(feedstock: Path, release: Path, version: str, word: str, service: str) -> None:
    (feedstock / "conda-forge.yml").write_text(f"provider: {{linux: none, osx: none, linux_aarch64: {word}}}\n")
    render_tree(feedstock, release, version)
    assert [name for name in contents(feedstock) if name.endswith("/build_steps.sh")] == [f"{service}/build_steps.sh"]


@pytest.mark.parametrize(
    ("version", "job"),
    [
        ("3.3.4", "('osx_', 'osx-64', True)"),
        ("3.4.0", "('osx_', 'osx-64', True, {"),
        ("3.6.2", "{'config_name': 'osx_', 'platform': 'osx-64', 'upload': True, 'config': {"),
    ],
)
def test_jobs_were_tuples_that_grew(feedstock: Path, release: Path, version: str, job: str) -> None:
    (feedstock / "conda-forge.yml").write_text("provider: {linux: none, osx: azure}\n")
    render_tree(feedstock, release, version)
    assert (feedstock / "azure-pipelines.yml").read_text().startswith(job)


def test_services_saw_each_others_values_once(feedstock: Path, release: Path) -> None:
    """Travis' scripts had the lines of the service before it, and AppVeyor's file later had none at all."""
    (feedstock / "recipe/meta.yaml").write_text("package: {name: demo, version: '1'}\n")
    write_files(feedstock, {"recipe/run_conda_forge_build_setup_osx": "own\n"})
    render_tree(feedstock, release, "3.5.0")
    assert (feedstock / ".travis/run_osx_build.sh").read_text() == "source prepare\n"
    assert "\n  # the recipe's\n      source run_conda_forge" in (feedstock / ".travis.yml").read_text()
    assert (feedstock / ".appveyor.yml").read_text() == "commands:\n    - cmd: prepare"
    render_tree(feedstock, release, "3.6.1")
    assert (feedstock / ".appveyor.yml").read_text() == "commands:\n    "
    render_tree(feedstock, release, "3.6.2")
    assert (feedstock / ".travis/run_osx_build.sh").read_text().startswith("# the recipe's\n      source")
    assert (feedstock / ".appveyor.yml").read_text() == "commands:\n    - cmd: prepare"


def test_each_service_had_a_text_of_its_own_before_3_3_5(feedstock: Path, tmp_path: Path) -> None:
    release = write_old_release(tmp_path / "apart", shared_setup=False)
    (feedstock / "recipe/meta.yaml").write_text("package: {name: demo, version: '1'}\n")
    write_files(feedstock, {"recipe/yum_requirements.txt": "mesa\n"})
    (feedstock / "conda-forge.yml").write_text("azure: {force: true}\n")
    render_tree(feedstock, release, "3.3.4")
    files = contents(feedstock)
    assert files[".circleci/build_steps.sh"] == "source prepare circle\nyum fetch mesa\n"
    assert files[".travis.yml"] == "travis\n  (curl finish/master) on ${TRAVIS}\n  source prepare travis\n      again"
    assert files[".appveyor.yml"] == "commands:\n    - cmd: prepare"
    assert files[".azure-pipelines/azure-pipelines-linux.yml"] == "azure False run_conda_forge_build_setup\n"


@pytest.mark.parametrize(
    ("version", "owners"),
    [
        ("3.3.6", None),
        ("3.4.0", "* @beta\n* @conda-forge/Alpha\n"),
        ("3.4.1", "* @beta @conda-forge/Alpha"),
        ("3.7.3", "* @beta @conda-forge/alpha"),
    ],
)
def test_code_owners_had_other_forms(feedstock: Path, release: Path, version: str, owners: str | None) -> None:
    recipe = feedstock / "recipe/meta.yaml"
    recipe.write_text(recipe.read_text().replace("alpha", "Alpha"))
    render_tree(feedstock, release, version)
    assert contents(feedstock).get(".github/CODEOWNERS") == owners


def test_skip_render_and_the_workflow_for_merging(feedstock: Path, release: Path) -> None:
    (feedstock / "conda-forge.yml").write_text(f"{BOTH}skip_render: [README.md]\n")
    render_tree(feedstock, release, "3.4.1")
    assert "README.md" in contents(feedstock)
    (feedstock / "README.md").unlink()
    render_tree(feedstock, release, "3.6.8")
    assert not {"README.md", ".github/workflows/main.yml"} & contents(feedstock).keys()
    (feedstock / "conda-forge.yml").write_text(f"{BOTH}bot: {{automerge: true}}\n")
    render_tree(feedstock, release, "3.6.8")
    assert {"README.md", ".github/workflows/main.yml"} <= contents(feedstock).keys()


def test_files_in_the_folder_of_azure_stayed_until_3_6_17(feedstock: Path, release: Path) -> None:
    write_files(feedstock, {".azure-pipelines/own.yml": "own\n"})
    render_tree(feedstock, release, "3.6.16")
    assert ".azure-pipelines/own.yml" in contents(feedstock)
    render_tree(feedstock, release, "3.6.17")
    assert ".azure-pipelines/own.yml" not in contents(feedstock)
