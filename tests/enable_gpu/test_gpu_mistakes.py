"""What enable-gpu refuses: with a line and a way out, and nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from feedstock_tools.generate.generating import generate
from tests.support import command

RECIPE = """\
package:
  name: demo
  version: "1.2"
build:
  number: 0
requirements:
  build:
    - {{ compiler('cxx') }}
"""
OUTPUTS = """\
package:
  name: demo
  version: "1.2"
outputs:
  - name: libdemo
    requirements:
      build:
        - {{ compiler('cxx') }}
"""


@pytest.mark.parametrize(
    ("recipe", "words", "message"),
    [
        (RECIPE + "    - {{ compiler('cuda') }}\n", (), "meta.yaml:9: the recipe builds for CUDA already"),
        (RECIPE.replace("number: 0", "number: 0  # [cuda_compiler_version]"), (), "meta.yaml:5: the recipe builds for"),
        (RECIPE.replace("{{ compiler('cxx') }}", "cmake"), (), "the recipe has no compiler"),
        (RECIPE.replace("number: 0", "noarch: generic"), (), "'demo' is noarch"),
        (RECIPE, ("--library", "cublass"), "Did you mean 'cublas'?"),
        (RECIPE, ("--platform", "osx-64"), "conda-forge has no CUDA for the platform 'osx-64'"),
        (RECIPE, ("--architectures", "comon"), "Did you mean 'common'?"),
        (RECIPE, ("--architectures", "sm_20"), "nvcc of CUDA 12.9 does not know sm_20"),
        (RECIPE, ("--of", "libdemo"), "the recipe has no output 'libdemo'"),
        (RECIPE, ("--prefer", "tpu"), "'tpu' is not one of"),
        (RECIPE.replace("\n    - {{ compiler('cxx') }}", " [\"{{ compiler('cxx') }}\"]"), (), "a list in brackets"),
        (RECIPE.replace("build:\n  number: 0", "build: {number: 0}"), (), "a section in brackets"),
        (RECIPE.replace("package:", "{% if x %}\n<<<<<<< ours\npackage:"), (), "meta.yaml:3:8: is not YAML"),
        ("", (), "the recipe is empty"),
    ],
)
def test_a_mistake_writes_nothing(
    recipe: str, words: tuple[str, ...], message: str, feedstock: Callable[..., Path], pinning: Path
) -> None:
    folder = feedstock(meta_yaml=recipe)
    ended = command.here("edit", "enable-gpu", *words, "--pinning", str(pinning), "--write", folder=folder)
    assert message in ended.stderr
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert (folder / "recipe/meta.yaml").read_text() == recipe


def test_an_output_that_does_not_exist_is_refused(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=OUTPUTS)
    ended = command.here("edit", "enable-gpu", "--of", "libdem", "--pinning", str(pinning), folder=folder)
    assert (ended.returncode, "Did you mean 'libdemo'?" in ended.stderr) == (2, True)


def test_a_recipe_with_cuda_in_its_variant_file_is_refused(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=RECIPE, conda_build_config_yaml="# two\ncuda_compiler_version: [None, 12.9]\n")
    ended = command.here("edit", "enable-gpu", "--pinning", str(pinning), folder=folder)
    assert "conda_build_config.yaml:2: the recipe builds for CUDA already" in ended.stderr
    assert ended.returncode == 2


def test_a_comment_about_cuda_is_no_gpu_recipe(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml="# without compiler('cuda') so far\n" + RECIPE)
    ended = command.here("edit", "enable-gpu", "--pinning", str(pinning), folder=folder)
    assert ended.returncode == 0, ended.stderr


def test_it_works_together_with_other_edits(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=RECIPE)
    words = ["add-cuda", "13.0", "--pinning", str(pinning), "enable-gpu", "--library", "cublas", "--guard", "none"]
    words += ["--pinning", str(pinning), "build-number", "+1", "requirement", "add", "zlib", "--section", "host"]
    ended = command.here("edit", *words, "--write", folder=folder)
    assert ended.returncode == 0, ended.stderr
    text = (folder / "recipe/meta.yaml").read_text()
    assert text.startswith("{% set build = 1 %}\n{% set build = build + 100 * ")
    assert "libcublas-dev" in text and "    - zlib\n" in text and "__cuda" not in text
    assert (folder / ".ci_support/migrations/cuda130.yaml").is_file()


def test_keys_that_the_pinning_zips_with_cuda_are_named(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=RECIPE, conda_build_config_yaml="c_compiler_version:\n  - 12\n")
    ended = command.here("edit", "enable-gpu", "--pinning", str(pinning), folder=folder)
    assert "note: conda_build_config.yaml:1 sets c_compiler_version, which the pinning zips" in ended.stderr


SPEC = """\
name: demo
version: 1.2.0
format: v1
platforms: {linux-64: }
outputs:
  - name: demo
    kind: library
    script: {template: cmake}
    requirements: {build: [compiler: cxx, stdlib: c, cmake, ninja]}
    run_exports: [{pin: demo, max: x.x}]
    test: {commands: [test -f x]}
about: {homepage: https://example.org, license: MIT, license_file: LICENSE, summary: Demo}
maintainers: [anna]
"""


def generated(folder: Path, spec: str) -> Path:
    (folder / "recipe").mkdir(parents=True)
    (folder / "feedstock.yaml").write_text(spec)
    generate(folder).apply()
    return folder


@pytest.mark.parametrize("more", ["", "pinning: self-contained\n"])
def test_a_spec_gets_gpu_builds_by_its_section(more: str, tmp_path: Path, pinning: Path) -> None:
    folder = generated(tmp_path / "demo-feedstock", SPEC + more)
    requested = ("--pinning", str(pinning)) if not more else ()
    ended = command.here("edit", "enable-gpu", *requested, folder=folder)
    assert ended.returncode == 2
    assert "feedstock.yaml: this spec makes GPU builds by its section `cuda`, not by an edit\n" in ended.stderr
    assert "docs/spec.md" in ended.stderr


def test_a_spec_to_which_nothing_is_added_takes_the_edit(tmp_path: Path, pinning: Path) -> None:
    folder = generated(tmp_path / "demo-feedstock", SPEC + "automatic: false\n")
    ended = command.here("edit", "enable-gpu", "--pinning", str(pinning), folder=folder)
    assert ended.returncode == 0, ended.stderr
    assert "would change feedstock.yaml and generate" in ended.stderr


def test_without_a_pinning_no_version_of_cuda_is_known(feedstock: Callable[..., Path]) -> None:
    folder = feedstock(meta_yaml=RECIPE)
    ended = command.here("edit", "enable-gpu", "--pinning", "none", "--write", folder=folder)
    assert ended.returncode == 2
    assert "meta.yaml: without a pinning no version of CUDA is known\n" in ended.stderr
    assert (folder / "recipe/meta.yaml").read_text() == RECIPE
