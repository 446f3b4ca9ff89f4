"""What edits do to build scripts: branches for a dropped version go, scripts that fail for a new one are a doubt."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.edit.draft import Draft, open_draft
from feedstock_tools.edit.platforms import add_platform
from feedstock_tools.edit.scripts import lines_naming
from feedstock_tools.edit.variants.lists import CUDA
from feedstock_tools.edit.variants.versions import add_version, drop_version

VARIANTS = 'cuda_compiler_version:\n  - None\n  - "11.8"\n  - "12.9"\n'
SHELL = """\
if [[ "${cuda_compiler_version}" == "11.8" ]]; then
  if [[ $A ]]; then
    ARCHS=1
  fi
elif [ "$cuda_compiler_version" = "12.9" ]; then
  ARCHS=2
elif [[ ${cuda_compiler_version} != None ]]; then
  exit 1
fi
cmake -DA=$ARCHS
"""
BATCH = """\
if "%cuda_compiler_version%"=="11.8" (
  if defined A (
    set "ARCHS=1"
  )
) else if "%cuda_compiler_version%" == "12.9" (
  set "ARCHS=2"
) else if not "%cuda_compiler_version%"=="None" (
  exit 1
)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "recipe").mkdir()
    recipe = "package:\n  name: demo\n  version: 1.0\nbuild:\n  number: 0\nrequirements:\n  host:\n    - zlib\n"
    (tmp_path / "recipe/meta.yaml").write_text(recipe)
    (tmp_path / "recipe/conda_build_config.yaml").write_text(VARIANTS)
    (tmp_path / "conda-forge.yml").write_text("bot:\n  automerge: true\n")
    return tmp_path


def after(draft: Draft, name: str) -> str:
    document = draft.document(draft.recipe_path.parent / name)
    return (draft.recipe_path.parent / name).read_text() if document is None else document.text


@pytest.mark.parametrize(
    ("name", "text", "version", "expected"),
    [
        ("build.sh", SHELL, "11.8", SHELL[SHELL.index("elif") + len("el") :]),
        ("build.sh", SHELL, "12.9", SHELL.replace(SHELL[SHELL.index("elif") : SHELL.index("elif [[")], "")),
        ("bld.bat", BATCH, "11.8", BATCH[BATCH.index(") else if") + len(") else ") :]),
        ("bld.bat", BATCH, "12.9", BATCH.replace(BATCH[BATCH.index(") else") : BATCH.index(") else if not")], "")),
        ("build.sh", "a=1\nif [[ $cuda_compiler_version == 11.8 ]]; then\n  b=2\nfi\nc=3\n", "11.8", "a=1\nc=3\n"),
    ],
)
def test_the_branch_for_a_dropped_version_goes(folder: Path, name: str, text: str, version: str, expected: str) -> None:
    (folder / "recipe" / name).write_text(text)
    dropped = drop_version(open_draft(folder), CUDA, version)
    assert after(dropped, name) == expected
    assert f"{name} has no branch for cuda_compiler_version {version} any more" in dropped.remarks
    assert not any("mentions" in remark for remark in dropped.remarks)


@pytest.mark.parametrize(
    "text",
    [
        "if [[ $cuda_compiler_version == 11.8 ]]; then\n  a=1\nelse\n  a=2\nfi\n",
        "if [[ $cuda_compiler_version == 11.8 || $A ]]; then\n  a=1\nfi\n",
        "if [[ $cuda_compiler_version == 11.8 ]]; then\n  cat > x <<EOF\nfi\nEOF\nfi\n",
    ],
    ids=["else", "or", "here"],
)
def test_lines_that_may_count_otherwise_stay_and_are_named(folder: Path, text: str) -> None:
    (folder / "recipe/build.sh").write_text(text)
    dropped = drop_version(open_draft(folder), CUDA, "11.8")
    assert after(dropped, "build.sh") == text
    assert any(remark.startswith("build.sh:1 mentions CUDA 11.8") for remark in dropped.remarks)


@pytest.mark.parametrize(("name", "text"), [("build.sh", SHELL), ("bld.bat", BATCH)])
def test_a_script_that_fails_for_an_added_version_is_a_doubt(folder: Path, name: str, text: str) -> None:
    (folder / "recipe" / name).write_text(text)
    (doubt, *_) = add_version(open_draft(folder), CUDA, "13.0", None).doubts
    assert doubt.startswith(f"{name} fails on ")
    assert "for cuda_compiler_version 13.0" in doubt
    (folder / "recipe" / name).write_text(text.replace("exit 1", "echo new"))
    assert add_version(open_draft(folder), CUDA, "13.0", None).doubts == ()


def test_a_script_that_fails_on_an_added_platform_is_a_doubt(folder: Path) -> None:
    text = 'if [[ "$target_platform" == linux-64 ]]; then\n  A=1\nelse\n  exit 1\nfi\n'
    (folder / "recipe/build.sh").write_text(text)
    (doubt,) = add_platform(open_draft(folder), "linux-aarch64").doubts
    assert doubt == "build.sh fails on linux-aarch64: give it a branch for that"


def test_a_recipe_without_a_script_for_windows_is_a_doubt(folder: Path) -> None:
    (folder / "recipe/build.sh").write_text("make\n")
    for platform in ("win-64", "win-arm64"):
        (doubt,) = add_platform(open_draft(folder), platform).doubts
        assert doubt.endswith("there is no bld.bat: nothing would build it on Windows")
    (folder / "recipe/bld.bat").write_text("nmake\n")
    assert add_platform(open_draft(folder), "win-64").doubts == ()


@pytest.mark.parametrize(
    ("platform", "origin"), [("linux-riscv64", "linux_64"), ("win-arm64", "win_64"), ("osx-arm64", "osx_64")]
)
def test_a_platform_is_crossed_from_that_of_conda_forge(folder: Path, platform: str, origin: str) -> None:
    edited = add_platform(open_draft(folder), platform)
    name = platform.replace("-", "_")
    forge = edited.file("conda-forge.yml")
    assert forge is not None
    assert f"build_platform:\n  {name}: {origin}\n" in forge.text


def test_lines_with_the_old_version_are_named(folder: Path) -> None:
    (folder / "recipe/build.sh").write_text("# 1.0\ntar xf demo-1.0.tar\ntar xf demo-1.0.1.tar\necho 21.0\n")
    draft = open_draft(folder)
    assert lines_naming(draft, "1.0") == ["build.sh:2 mentions version 1.0: tar xf demo-1.0.tar"]
