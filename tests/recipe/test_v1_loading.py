"""A recipe.yaml as conda-smithy loads it without variants: the values are those of rattler-build-conda-compat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.recipe.v1.loading import load_without_variants

PATH = Path("recipe.yaml")


@pytest.mark.parametrize(
    ("context", "used", "value"),
    [
        ("version: 1.10", "${{ version }}", "1.10"),
        ("number: 3", "${{ number + 1 }}", 4),
        ("number: '3'", "v${{ number }}", "v3"),
        ("cuda: ${{ cuda_version | default('None') }}", "${{ cuda }}", None),
        ("major: ${{ (cuda_version | default('12.9')).split('.')[0] }}", "${{ major }}", 12),
        ("is_cpu: ${{ cuda_version == 'None' }}", "${{ is_cpu }}", False),
        ("build: ${{ 'a' if linux else 'b' }}", "${{ build }}-${{ unknown }}", "a-${{ unknown }}"),
        ("version: 3.12.1", "${{ version | version_to_buildstring }}", 312),
        ("name: x", "${{ compiler('c') }}", "c_compiler_stub"),
        ("name: x", "${{ pin_subpackage(name, exact=True) }}", "subpackage_pin x"),
    ],
)
def test_values(context: str, used: str, value: Any) -> None:
    loaded = load_without_variants(f"context:\n  {context}\nbuild:\n  script: {used}\n", PATH)
    assert loaded["build"]["script"] == ("None" if value is None else value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("context:\n  name: x\n  major: ${{ cuda_version.split('.')[0] }}\n", 3),
        ("context:\n  major: ${{ (cuda_version | split('.'))[0] }}\n", 2),
        ("context:\n  name: x\npackage:\n  name: ${{ name }}\nbuild:\n  string: ${{ python | int + 'a' }}\n", 6),
    ],
)
def test_what_it_cannot_load_is_an_error_with_the_line(text: str, line: int) -> None:
    with pytest.raises(InputError, match="conda-smithy cannot load it") as caught:
        load_without_variants(text, PATH)
    assert caught.value.mistakes[0].line == line
