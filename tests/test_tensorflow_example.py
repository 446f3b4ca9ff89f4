"""The TensorFlow example compared with the real feedstock: its configurations of that day and its packages' names."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from feedstock_tools.data import data_folder
from feedstock_tools.generate.generating import apply
from feedstock_tools.generate.spec.reading import read_spec
from feedstock_tools.generate.texts.rendering import render
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.v0 import recipe as v0
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.variants.files import defaults, load
from feedstock_tools.variants.model import combine
from tests.support.needs import needs
from tests.support.paths import CORPUS

RERENDER = CORPUS / "tensorflow-2.6.0"
RULES = Rules.parse("3.14.1+3.21.4")

pytestmark = needs("fetched", RERENDER.is_dir(), f"the recorded rerender of TensorFlow 2.6.0 in {CORPUS}")


@pytest.fixture(scope="module")
def feedstock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, generated again from its spec."""
    source = data_folder("examples") / "tensorflow"
    generated = ("meta.yaml", "conda_build_config.yaml", "conda-forge.yml", ".feedstock-tools", ".ci_support")
    folder = tmp_path_factory.mktemp("feedstock") / "tensorflow"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(*generated))
    apply(folder, render(read_spec(folder)), force=True)
    return folder


def test_it_rerenders_to_the_twenty_files_byte_for_byte(feedstock: Path) -> None:
    expected = {path.name: path.read_bytes() for path in (RERENDER / "expected").glob("*.yaml")}

    found = rerender(feedstock, pinning=RERENDER / "pinning", rules=RULES)

    assert len(expected) == 20
    assert dict(found.files) == expected


def test_its_packages_have_the_names_of_those_that_were_built(feedstock: Path) -> None:
    named = (RERENDER / "artifacts.txt").read_text().split()
    expected = {name.removesuffix(".tar.bz2") for name in named if name.endswith(".tar.bz2")}
    (configuration,) = (RERENDER / "expected").glob("linux_64_cuda_compiler_version10.2*python3.8*.yaml")
    platform = Platform.parse("linux-64")
    rules = RULES.conda_build
    config = combine([defaults(platform, rules), load(configuration, platform, rules=rules)])

    outputs = v0.render_recipe(v0.read_recipe(feedstock / "recipe", rules), config, platform).outputs

    assert len(expected) == 6
    assert {output.file_stem for output in outputs} == expected
