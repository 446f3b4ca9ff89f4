"""Any spec leads to recipes in valid YAML or to reported mistakes, and to nothing else."""

from __future__ import annotations

import copy
import random
import re
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError
from feedstock_tools.generate.spec.reading import spec_from_text
from feedstock_tools.generate.texts.rendering import render

SPECS = [
    yaml.safe_load((data_folder("examples") / name / "feedstock.yaml").read_text())
    for name in ("gpuprobe", "tensorflow")
]
#: Texts with a special meaning in YAML, Jinja, a selector, a shell or a path.
ODD: list[Any] = [
    *(
        "",
        "~",
        "x",
        "11.2",
        "linux and",
        "{version}",
        "{{ x }}",
        "{%",
        "[",
        "]",
        "# [linux]",
        "a: b",
        "- x",
        "\n",
        "x\ny",
    ),
    *(
        "x ]",
        "true",
        "None",
        "../x",
        "/etc",
        "é",
        "\u2028",
        "0" * 50,
        "-1",
        "<% x %>",
        "$(x)",
        "'",
        '"',
        "!x",
        "&a",
        "x #y",
    ),
    *({}, [], {"a": "b"}, ["x"], {"package": "x"}, {"use": "libraries"}, [[]], None),
]


def _places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(found for key, part in parts for found in _places(part, (*place, key)))]


def _changed(spec: Any, choice: random.Random) -> Any:
    """The spec with one to four places replaced or removed."""
    spec = copy.deepcopy(spec)
    for _ in range(choice.choice((1, 1, 2, 4))):
        *way, last = choice.choice(_places(spec)[1:])
        owner = spec
        for key in way:
            owner = owner[key]
        if choice.random() < 0.8:
            owner[last] = copy.deepcopy(choice.choice(ODD))
        else:
            del owner[last]
    return spec


@pytest.mark.parametrize("seed", range(60))
def test_a_spec_with_odd_parts(seed: int) -> None:
    choice = random.Random(seed)  # noqa: S311 - chance for tests
    text = yaml.safe_dump(_changed(choice.choice(SPECS), choice), allow_unicode=True)

    try:
        spec = spec_from_text(text)
        texts = {**render(spec, "v0"), **render(spec, "v1")}
    except InputError as error:
        assert all(mistake.line and mistake.column for mistake in error.mistakes)
        return

    yaml.safe_load(texts[PurePosixPath("recipe/recipe.yaml")])
    plain = re.sub(r"\{%.*?%\}", "", texts[PurePosixPath("recipe/meta.yaml")])
    yaml.safe_load(re.sub(r"\{\{.*?\}\}", "x", plain))
