"""Templates of a recipe.yaml that the engine would follow until the process ends are refused before it sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.recipe.v1_engine import read_v1

DOUBLED = "context:\n  a0: 'aaaaaaaaaaaaaaaa'\n" + "".join(
    f"  a{number}: ${{{{ a{number - 1} ~ a{number - 1} }}}}\n" for number in range(1, 40)
)


@pytest.mark.parametrize(
    "lines",
    [
        "build: {string: \"x${{ 'a' * 10 ** 10 }}\"}",
        "build: {string: \"x${{ ['a'] * 1000000000 }}\"}",
        "build: {string: \"x${{ 'a' * 99999 * 99999 }}\"}",
        f"build: {{string: 'x${{{{ 1 {'+ 1' * 50_000} }}}}'}}",
        f"build: {{skip: '{'not ' * 20_000}linux'}}",
        f"requirements: {{host: [{{if: '1{' + 1' * 50_000}', then: zlib}}]}}",
        f"{DOUBLED}build: {{string: 'x${{{{ a39 }}}}'}}",
        f"context:\n  a: {'a' * 5000}\n  b: ${{{{ a|replace('a', a) }}}}\n",
        "context: {a: '{% for x in range(9) %}${{ x }}{% endfor %}'}",
    ],
)
def test_what_grows_without_bound_is_refused(tmp_path: Path, lines: str) -> None:
    (tmp_path / "recipe.yaml").write_text(f"package: {{name: p, version: '1'}}\n{lines}\n")
    with pytest.raises(InputError, match="template"):
        read_v1(tmp_path / "recipe.yaml")


@pytest.mark.parametrize(
    "lines",
    [
        "context: {version: 1.2.3, build: 2}\nbuild: {number: '${{ build + 100 * 2 }}'}",
        "context: {version: 1.2.3}\nbuild: {string: \"x${{ version | replace('.', '') }}_${{ hash }}\"}",
        "context: {v: 1.2.3, m: \"${{ (v | split('.'))[:2] | join('.') }}\"}\nbuild: {string: '${{ m }}'}",
    ],
)
def test_what_recipes_do_is_read(tmp_path: Path, lines: str) -> None:
    (tmp_path / "recipe.yaml").write_text(f"package: {{name: p, version: '1'}}\n{lines}\n")
    assert read_v1(tmp_path / "recipe.yaml").text
