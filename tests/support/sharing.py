"""A feedstock whose rows inherit from one shared build, and how often its scripts have run."""

from __future__ import annotations

from pathlib import Path

from feedstock_tools.channel.packages.reading import unpack_own
from tests.support.feedstocks import TinyFeedstock

#: Two Pythons, three heirs: two make the same package in both rows, one is a package of each Python.
RECIPE = """\
context: {version: "1.0"}
recipe: {name: counted, version: "${{ version }}"}
build: {number: 0}
outputs:
  - staging: {name: compiled}
    source: {path: ../src}
    build:
      script:
        - echo shared >> RUNS
        - mkdir -p $PREFIX/lib $PREFIX/share
        - echo "$PREFIX $SRC_DIR" > $PREFIX/lib/where.txt
        - cp part.txt $PREFIX/share/part.txt
        - echo "$PKG_VERSION $PKG_BUILDNUM" > $PREFIX/share/version.txt
        - mkdir objects && echo object > objects/one.o
    requirements: {build: [tiny-compiler]}
  - package: {name: libcounted}
    inherit: compiled
    build: {files: [lib/**]}
    tests: [{script: [test -f $PREFIX/lib/where.txt]}]
  - package: {name: counted-data}
    inherit: compiled
    build: {noarch: generic, files: [share/**]}
  - package: {name: py-counted}
    inherit: compiled
    build:
      script:
        - echo heir >> RUNS
        - test -f objects/one.o
        - mkdir -p $PREFIX/share
        - echo "$PKG_NAME $PKG_HASH $PKG_BUILD_STRING ${{ python }} $channel_sources" > $PREFIX/share/python.txt
      files: [share/python.txt]
      variant: {use_keys: [python]}
    requirements:
      run: ["${{ pin_subpackage('libcounted', exact=True) }}"]
"""
#: The files whose content depends on the folder of the build, or on how the engine was given the recipe.
BY_PLACE = {"info/recipe/rendered_recipe.yaml", "info/paths.json", "lib/where.txt"}


def with_shared_build(feedstock: TinyFeedstock) -> TinyFeedstock:
    """The feedstock with a recipe whose scripts add a line to a file each time that they run."""
    text = RECIPE.replace("RUNS", str(feedstock.folder / "runs.txt"))
    (feedstock.folder / "recipe" / "recipe.yaml").write_text(text)
    (feedstock.folder / "src" / "part.txt").write_text("a part\n")
    return feedstock


def runs(feedstock: TinyFeedstock) -> list[str]:
    return (feedstock.folder / "runs.txt").read_text().split()


def contents(package: Path, folder: Path) -> dict[str, bytes]:
    """The files in a package by their paths in it."""
    unpack_own(package, folder)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def differing(one: dict[str, bytes], other: dict[str, bytes]) -> set[str]:
    """The paths of the files that differ, or that one of two packages lacks."""
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
