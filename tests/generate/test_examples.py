"""The examples match their specs, and the generated recipes have the intended meaning."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path, PurePosixPath

import pytest

from feedstock_tools.data import data_folder
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.generate.generating import compare
from feedstock_tools.generate.spec.reading import read_spec
from feedstock_tools.generate.texts.rendering import render
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.v1.recipe import render_recipe_v1
from feedstock_tools.recipe.v1_engine import read_v1
from feedstock_tools.variants.files import defaults, load
from feedstock_tools.variants.model import combine
from tests.support.needs import lacks

EXAMPLES = data_folder("examples")


@pytest.mark.parametrize("example", ["feedstock-tools", "gpukernel", "gpuprobe", "tensorflow", "tensorflow-2026"])
def test_an_example_is_as_its_spec_says(example: str) -> None:
    texts = render(read_spec(EXAMPLES / example))

    assert {change.kind for change in compare(EXAMPLES / example, texts)} == {"same"}


@pytest.mark.parametrize("example", ["feedstock-tools", "gpukernel", "gpuprobe", "tensorflow", "tensorflow-2026"])
@pytest.mark.parametrize("recipe_format", ["v0", "v1"])
def test_texts_are_tidy(example: str, recipe_format: str) -> None:
    for path, text in render(read_spec(EXAMPLES / example), recipe_format).items():
        assert text.endswith("\n") and not text.endswith("\n\n"), path
        assert not re.search(r"[ \t]+$", text, re.MULTILINE), path
        assert "\n\n\n" not in text, path


def test_gpuprobe_exists_for_every_cuda_version_of_the_pinnings() -> None:
    facts = load_cuda()
    recipe = EXAMPLES / "gpuprobe" / "recipe"
    for subdir in ("linux-64", "linux-aarch64", "win-64", "osx-64", "osx-arm64"):
        platform = Platform.parse(subdir)
        config = combine([defaults(platform), load(recipe / "conda_build_config.yaml", platform)])
        assert set(config.values["cuda_compiler_version"]) == {"None", *facts.versions(platform)}


def test_gpuprobe_prefers_newer_cuda_by_build_number_and_guards_the_driver() -> None:
    platform = Platform.parse("linux-64")
    recipe = EXAMPLES / "gpuprobe" / "recipe"
    config = combine([defaults(platform), load(recipe / "conda_build_config.yaml", platform)])
    outputs = render_recipe_v1(read_v1(recipe / "recipe.yaml"), config, platform).outputs
    libraries = {one.variant["cuda_compiler_version"]: one for one in outputs if one.name == "libgpuprobe"}

    numbers = [libraries[version].build_number for version in libraries if version != "None"]
    assert libraries["None"].build_number == 0
    assert libraries["11.2"].build_number == 11200
    assert all(older < newer for older, newer in pairwise(sorted(numbers)))
    assert "__cuda >=11.2" in libraries["11.2"].requirements["run"]
    assert not any("__cuda" in spec for spec in libraries["None"].requirements.get("run", ()))
    assert re.fullmatch(r"cuda112h[0-9a-f]{7}_11200", libraries["11.2"].build_string)
    assert re.fullmatch(r"cpu_h[0-9a-f]{7}_0", libraries["None"].build_string)


def test_tensorflow_gets_its_architectures_by_cuda_version() -> None:
    texts = render(read_spec(EXAMPLES / "tensorflow"))

    script = texts[PurePosixPath("recipe/cuda_architectures.sh")]
    chosen = dict(re.findall(r'^ +([\d.|]+)\) export TF_CUDA_COMPUTE_CAPABILITIES="([^"]+)"', script, re.MULTILINE))
    assert list(chosen) == ["10.2", "11.0", "11.1|11.2"]
    assert chosen["11.0"].endswith("sm_75,sm_80,compute_80")
    assert chosen["11.1|11.2"].endswith("sm_86,compute_86")


def test_every_script_of_the_examples_is_one_that_a_shell_reads(tmp_path: Path) -> None:
    import shutil
    import subprocess

    bash = shutil.which("bash")
    if bash is None:
        lacks("system", "bash")
    for script in EXAMPLES.glob("*/recipe/*.sh"):
        subprocess.run([bash, "-n", str(script)], check=True, cwd=tmp_path)


def test_a_version_of_the_stdlib_is_not_taken_for_that_of_macos() -> None:
    """conda-forge's linter takes every value without a selector of another system for one of macOS."""
    text = (EXAMPLES / "gpukernel" / "recipe" / "conda_build_config.yaml").read_text(encoding="utf-8")
    block = re.search(r"^c_stdlib_version:\n((?:  - .*\n)+)", text, re.MULTILINE)
    assert block is not None
    assert all(line.endswith("  # [linux]") for line in block[1].splitlines())
