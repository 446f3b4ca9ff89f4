"""A rendered output as a recipe of its own builds the same package as the whole recipe does."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.builds.engines.embedded.crossing import alone
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.packages.reading import read_package
from feedstock_tools.recipe.v1_engine import Rendering, read_v1, render_row
from tests.support.feedstocks import HERE

RECIPE = """
context: {version: "1.4.2"}
recipe: {name: pinning-split, version: "${{ version }}"}
build: {number: 3}
about: {license: MIT, summary: Pins in many ways}
outputs:
  - package: {name: libpinned}
    requirements:
      run_exports:
        - ${{ pin_subpackage('libpinned', upper_bound='x.x') }}
  - package: {name: pinned}
    requirements:
      host: [shared, "${{ pin_subpackage('libpinned', exact=True) }}"]
      run:
        - SPEC
  - staging: {name: staged-build}
    build: {script: [mkdir -p $PREFIX/share, touch $PREFIX/share/staged]}
    requirements: {host: [shared]}
  - package: {name: pinned-data}
    inherit: staged-build
    requirements:
      run: ["${{ pin_subpackage('pinned', upper_bound=None) }}"]
"""


@pytest.mark.parametrize(
    "spec",
    [
        "${{ pin_subpackage('libpinned') }}",
        "${{ pin_subpackage('libpinned', lower_bound='x.x', upper_bound='x.x') }}",
        "${{ pin_subpackage('libpinned', lower_bound='1.0', upper_bound='3.0') }}",
        "${{ pin_compatible('shared') }}",
        "${{ pin_compatible('shared', lower_bound='x.x', upper_bound=None) }}",
        "${{ pin_compatible('shared', exact=True) }}",
    ],
)
def test_it_depends_on_the_same(spec: str, tmp_path: Path) -> None:
    channel = tmp_path / "channel"
    write_package(channel, PackageMetadata("shared", "2.1", "h1_0", 0, HERE.subdir))
    index_channel(channel)
    recipe = tmp_path / "recipe" / "recipe.yaml"
    recipe.parent.mkdir()
    recipe.write_text(RECIPE.replace("SPEC", spec))
    rendered = render_row(read_v1(recipe), "only", {}, HERE, HERE)

    def built(variant: Rendering, output: Path) -> PackageMetadata:
        result = variant.run_build(output_dir=output, channels=[channel.as_uri()])
        return read_package(Path(result.packages[0]))

    for variant in rendered:
        single = alone(variant, rendered, recipe)
        (again,) = render_row(single, "only", {}, HERE, HERE)
        whole, made = built(variant, tmp_path / "whole"), built(again, tmp_path / "out")
        assert (made.file_name, made.depends, made.run_exports) == (whole.file_name, whole.depends, whole.run_exports)
        assert made.summary == whole.summary == "Pins in many ways"
