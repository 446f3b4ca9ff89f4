"""The examples are feedstocks without CI files: those are conda-smithy's text, and stay out of this repository."""

from __future__ import annotations

from tests.support.tracked import tracked_files

_OF_CONDA_SMITHY = {
    *(".azure-pipelines", ".circleci", ".drone", ".github", ".scripts", ".travis", ".travis.yml", ".appveyor.yml"),
    *(".drone.yml", ".woodpecker.yml", "azure-pipelines.yml", "build-locally.py", "pixi.toml", "LICENSE.txt"),
}


def test_the_examples_have_no_files_of_conda_smithy() -> None:
    files = tracked_files("examples")
    assert files
    assert not [path for path in files if path.parts[2] in _OF_CONDA_SMITHY]
    assert not [path for path in files if path.parts[2:] == (".ci_support", "README")]
