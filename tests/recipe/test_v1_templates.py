"""Templates of a recipe.yaml that the engine would follow until the process ends are refused before it sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.bounds.limits import BoundError
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
        "context: {a: '{% set b = x ~ x %}" + "{% set b = b ~ b ~ b ~ b %}" * 40 + "${{ b }}'}",
        "context: {a: '{% macro m(x) %}aa{% endmacro %}{% macro n(x) %}${{ m(1) }}{% endmacro %}${{ n(1) }}'}",
        'context: {a: "${{ (1 ~ 1) * 1000000000 }}"}',
        'context: {a: "${{ (1 | string) * 1000000000 }}"}',
        f'build: {{string: "${{{{ {"(" * 500}1{")" * 500} }}}}"}}',
        "context: {a: 'b', c: \"${{ a ~ (1 | int) }}\", d: '${{ (c * 1000000) + (c * 10000) }}'}",
        "context: {a: 3, d: \"{% set a = 'b' %}${{ (a * 1000000) + (a * 10000) }}\"}",
        "context: {a: '{% for x in range(9) %}${{ x }}{% endfor %}'}",
    ],
)
def test_what_grows_without_bound_is_refused(tmp_path: Path, lines: str) -> None:
    (tmp_path / "recipe.yaml").write_text(f"package: {{name: p, version: '1'}}\n{lines}\n")
    with pytest.raises(InputError, match=r"template|macro"):
        read_v1(tmp_path / "recipe.yaml")


@pytest.mark.parametrize(
    "lines",
    [
        'context: {a: 1}\nbuild: {string: "{%- if a == 1 -%}one_${{ hash }}{%- else -%}two{%- endif -%}"}',
        "build: {script: \"{% macro m(x) -%}set A=${{ x }}{%- endmacro %} ${{ m('b') }} ${{ m('c') }}\"}",
        "build: {script: '{% raw %}${{ 1 }}{% endraw %}'}",
        "context: {a: '2', b: 3}\nbuild: {number: '${{ (a | int) * 100000 + (b | int) * 1000 }}'}",
        "context: {v: 7.1.2, a: \"${{ (v | split('.'))[0] | int }}\", b: 3, c: '${{ a * 10 }}'}\n"
        "build: {number: '${{ (a * 1000000) + (b * 10000) + (c * 100) }}'}",
        "build: {skip: ['" + " or ".join(["linux"] * 400) + "']}",
        "context: {version: 1.2.3, build: 2}\nbuild: {number: '${{ build + 100 * 2 }}'}",
        "context: {version: 1.2.3}\nbuild: {string: \"x${{ version | replace('.', '') }}_${{ hash }}\"}",
        "context: {v: 1.2.3, m: \"${{ (v | split('.'))[:2] | join('.') }}\"}\nbuild: {string: '${{ m }}'}",
    ],
)
def test_what_recipes_do_is_read(tmp_path: Path, lines: str) -> None:
    (tmp_path / "recipe.yaml").write_text(f"package: {{name: p, version: '1'}}\n{lines}\n")
    assert read_v1(tmp_path / "recipe.yaml").text


def test_a_refusal_names_the_line_the_template_and_how_to_lift_it(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text("package:\n  name: p\n  version: \"${{ 'a' * 10 ** 9 }}\"\n")
    with pytest.raises(BoundError) as caught:
        read_v1(tmp_path / "recipe.yaml")
    (mistake,) = caught.value.mistakes
    assert mistake.line == 3
    assert "'a' * 10 ** 9" in mistake.message
    assert "FEEDSTOCK_TOOLS_BOUNDS" in (mistake.hint or "")
