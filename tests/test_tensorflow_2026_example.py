"""The example of today's TensorFlow compared with the real feedstock: its configurations, and what they render to."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from feedstock_tools.data import data_folder
from feedstock_tools.generate.generating import apply
from feedstock_tools.generate.spec.reading import read_spec
from feedstock_tools.generate.texts.rendering import render
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.rerender.configuration import Configuration, read_configurations
from feedstock_tools.rerender.outputs import packages_with_conda_build
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.rules import Rules
from tests.support.needs import the_clone

#: The configurations of the feedstock at its commit of 2026-01-30.
NAMES = (
    "linux_64_cuda_compiler_version12.8microarch_level1",
    "linux_64_cuda_compiler_version12.8microarch_level3",
    "linux_64_cuda_compiler_versionNonemicroarch_level1",
    "linux_64_cuda_compiler_versionNonemicroarch_level3",
    "linux_aarch64_cuda_compiler_versionNone",
)
FEEDSTOCK_COMMIT = "2cc3b12"
PINNING_COMMIT = "cabf951717465074f052c4e80f45412f56a56376"
#: A pinning with a row for the CPU and one for CUDA.
PINNING = """
c_compiler:
  - gcc
cxx_compiler:
  - gxx
cuda_compiler:
  - cuda-nvcc
c_stdlib:
  - sysroot
c_stdlib_version:
  - 2.17
c_compiler_version:
  - 14
  - 13           # [linux or win]
cxx_compiler_version:
  - 14
  - 13           # [linux or win]
cuda_compiler_version:
  - None
  - 12.9         # [linux or win]
python:
  - 3.11.* *_cpython
  - 3.12.* *_cpython
zip_keys:
  -
    - c_compiler_version
    - cxx_compiler_version
    - cuda_compiler_version
"""


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, generated again from its spec."""
    folder = tmp_path_factory.mktemp("example") / "tensorflow"
    generated = shutil.ignore_patterns("meta.yaml", "conda_build_config.yaml", "conda-forge.yml", ".feedstock-tools")
    shutil.copytree(data_folder("examples") / "tensorflow-2026", folder, ignore=generated)
    apply(folder, render(read_spec(folder)), force=True)
    return folder


def test_it_rerenders_to_the_configurations_of_the_feedstock(example: Path, tmp_path: Path) -> None:
    alone = tmp_path / "tensorflow"
    shutil.copytree(example, alone, ignore=shutil.ignore_patterns(".ci_support"))
    (tmp_path / "pinning").mkdir()
    (tmp_path / "pinning" / "conda_build_config.yaml").write_text(PINNING)

    found = rerender(alone, pinning=tmp_path / "pinning")

    assert tuple(configuration.name for configuration in found.configurations) == NAMES


def test_it_is_the_feedstock_of_its_day(example: Path, tmp_path: Path) -> None:
    feedstock = _laid_out(the_clone("tensorflow-feedstock"), FEEDSTOCK_COMMIT, tmp_path / "tensorflow-feedstock")
    pinning = _laid_out(the_clone("conda-forge-pinning-feedstock"), PINNING_COMMIT, tmp_path / "pinning")

    assert rerender(example, pinning=pinning).files == rerender(feedstock, pinning=pinning).files


@pytest.mark.parametrize("name", NAMES)
def test_its_outputs_have_the_requirements_of_the_feedstock(name: str, example: Path, tmp_path: Path) -> None:
    feedstock = _laid_out(the_clone("tensorflow-feedstock"), FEEDSTOCK_COMMIT, tmp_path / "tensorflow-feedstock")
    (configuration,) = (each for each in read_configurations(feedstock) if each.name == name)

    meaning = {_meaning(output) for output in _outputs(example, configuration)}

    assert len(meaning) > 8
    assert meaning == {_meaning(output) for output in _outputs(feedstock, configuration)}


def _outputs(feedstock: Path, configuration: Configuration) -> list[RenderedOutput]:
    rendered = packages_with_conda_build(
        feedstock / "recipe", configuration, Platform.parse("linux-64"), Rules.newest(), keep_pins=True
    )
    return [output for _, output in rendered]


def _meaning(output: RenderedOutput) -> tuple[object, ...]:
    """An output without the hash in its build string."""
    requirements = {
        section: frozenset(" ".join(spec.split()) for spec in specs) for section, specs in output.requirements.items()
    }
    build = re.sub(r"h[0-9a-f]{7}(?=_)", "h", output.build_string)
    named = frozenset((section, specs) for section, specs in requirements.items() if specs)
    return output.name, output.version, output.build_number, build, named


def _laid_out(clone: Path, commit: str, folder: Path) -> Path:
    """The files of a commit."""
    archive = subprocess.run(["git", "-C", str(clone), "archive", commit], capture_output=True, check=True).stdout
    folder.mkdir(exist_ok=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)  # Python 3.11.2 has no `filter=`
    return folder
