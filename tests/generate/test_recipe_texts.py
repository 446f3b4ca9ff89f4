"""The whole text generated from a small spec, as a maintainer reads and commits it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from feedstock_tools.generate.spec.reading import read_spec
from feedstock_tools.generate.texts.rendering import render

DATA = Path(__file__).parent / "data" / "demo"


@pytest.mark.parametrize("recipe_format", ["v0", "v1"])
def test_the_recipe_is_read_again_as_before(recipe_format: str) -> None:
    spec = read_spec(DATA / "feedstock.yaml")
    expected = {
        PurePosixPath(path.relative_to(DATA / recipe_format).as_posix()): path.read_text()
        for path in (DATA / recipe_format).rglob("*")
        if path.is_file()
    }

    texts = dict(render(spec, recipe_format))

    assert texts.keys() == expected.keys()
    for path, text in texts.items():
        assert text == expected[path], f"{path} differs"
