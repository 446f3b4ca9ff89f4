"""Generated recipes mean the same in both formats."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from feedstock_tools.data import data_folder
from feedstock_tools.generate.generating import apply
from feedstock_tools.generate.spec.reading import read_spec, spec_from_text
from feedstock_tools.generate.texts.rendering import render
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.v0 import recipe as v0
from feedstock_tools.recipe.v1 import recipe as v1
from feedstock_tools.recipe.v1_engine import read_v1
from feedstock_tools.variants.files import defaults, load
from feedstock_tools.variants.model import combine

PINNING = Path(__file__).parent / "data" / "pinning.yaml"

#: Name, version, build number and build string without its hash; then the requirements, section by section.
Meaning = tuple[tuple[str, str, int, str], tuple[tuple[str, frozenset[str]], ...]]


def _outputs(
    feedstock: Path, recipe_format: str, subdir: str, pinning: Path | None, folder: Path
) -> list[RenderedOutput]:
    """The outputs on a platform of the recipe that `feedstock` generates in a format, made in `folder`."""
    shutil.copytree(feedstock / "recipe", folder / "recipe", ignore=shutil.ignore_patterns("meta.yaml", "recipe.yaml"))
    apply(folder, render(read_spec(feedstock), recipe_format), force=True)
    platform = Platform.parse(subdir)
    files = [path for path in (pinning, folder / "recipe" / "conda_build_config.yaml") if path and path.is_file()]
    config = combine([defaults(platform), *(load(path, platform) for path in files)])
    if recipe_format == "v0":
        return list(v0.render_recipe(v0.read_recipe(folder / "recipe"), config, platform).outputs)
    return list(v1.render_recipe_v1(read_v1(folder / "recipe" / "recipe.yaml"), config, platform).outputs)


def _meaning(output: RenderedOutput, siblings: frozenset[str]) -> Meaning:
    """An output without the parts that the formats write differently.

    The hashes have different inputs. Only one format writes out versions from the variant, and an exact pin is a bare
    name until the hashes are known.
    """
    requirements = {
        section: frozenset(_spec(text, output, siblings) for text in specs)
        for section, specs in output.requirements.items()
        if specs
    }
    build = re.sub(r"h[0-9a-f]{7}(?=_)", "", output.build_string)
    return (output.name, output.version, output.build_number, build), tuple(sorted(requirements.items()))


def _spec(text: str, output: RenderedOutput, siblings: frozenset[str]) -> str:
    name, _, rest = text.partition(" ")
    if name in siblings:
        return name
    pinned = output.variant.get(name.replace("-", "_"))
    return name if pinned is not None and rest in (pinned, f"{pinned}.*") else text


def _meanings(example: str, recipe_format: str, subdir: str, folder: Path) -> set[Meaning]:
    pinning = PINNING if example == "tensorflow" else None
    found = _outputs(data_folder("examples") / example, recipe_format, subdir, pinning, folder)
    siblings = frozenset(output.name for output in found)
    return {_meaning(output, siblings) for output in found}


@pytest.mark.parametrize(
    ("example", "subdir"),
    [
        ("gpukernel", "linux-64"),
        *(("gpuprobe", subdir) for subdir in ("linux-64", "linux-aarch64", "osx-64", "osx-arm64", "win-64")),
        *(("tensorflow", subdir) for subdir in ("linux-64", "osx-64")),
    ],
)
def test_outputs_versions_and_requirements_agree(example: str, subdir: str, tmp_path: Path) -> None:
    old = _meanings(example, "v0", subdir, tmp_path / "v0")
    new = _meanings(example, "v1", subdir, tmp_path / "v1")

    assert len(old) > 3
    assert old == new


def test_an_output_with_a_script_lists_what_it_adds_to_the_files_that_it_inherits() -> None:
    text = """\
name: demo
version: 1.0
platforms: {linux-64: }
build: {script: {commands: ['touch "${PREFIX}/shared"']}}
outputs:
  - {name: demo-shared, kind: library, files: [shared], test: {commands: ["true"]}}
  - {name: demo-own, kind: library, script: own.sh, test: {commands: ["true"]}}
about: {license: MIT, license_file: LICENSE, homepage: https://example.org/, summary: For tests.}
maintainers: [someone]
"""
    recipe = next(text for path, text in render(spec_from_text(text)).items() if path.name == "recipe.yaml")

    shared, own = recipe.split("      name: demo-shared")[1].split("      name: demo-own")
    assert "RATTLER_BUILD_PACKAGE_FILES" not in shared
    assert own.index(".before") < own.index('bash -e "${RECIPE_DIR}/own.sh"') < own.index("PACKAGE_FILES")
