"""The `about` of a meta.yaml for the README: which lines of a recipe it can depend on, and how its YAML is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.rerender.smithy import readme
from feedstock_tools.rerender.smithy.readme import about_of_text, lines_for_about

RECIPE = """\
{% set name = "Solver" %}
{% set libraries = [
  "a",
  "b",
] %}
package:
  name: {{ name|lower }}
  version: {{ version }}
requirements:
  build:
    - {{ compiler('c') }}
    - cmake ${WITH}  # [unix]
  {% if cuda %}
    - {{ pin_subpackage(name, exact=True) }}
  {% endif %}
about:
  home: https://example.org/{{ name }}
  summary: It solves  # [linux]

  description: |
    Uses {{ libraries|join(", ") }}.
extra:
  recipe-maintainers:
    - me
"""


def test_lines_that_cannot_matter_to_about_are_left_out() -> None:
    kept = "".join(lines_for_about(RECIPE.splitlines(keepends=True)))
    assert "libraries = [" in kept and '"b",' in kept and "{% if cuda %}" in kept and "description: |" in kept
    assert "compiler" not in kept and "WITH" not in kept and "recipe-maintainers" not in kept


@pytest.mark.parametrize(
    "line",
    [
        "{%- set x = 1 %}",
        "{% macro m() %}{% endmacro %}",
        "{% set text %}a{% endset %}",
        "{# a comment",
        "    - {{ 1",
        "    - ${x%}",
    ],
)
def test_all_lines_count_where_a_template_reaches_across_them(line: str) -> None:
    lines = [*RECIPE.splitlines(keepends=True), f"{line}\n"]
    assert lines_for_about(lines) is lines


@pytest.mark.parametrize(
    "line",
    ["    - {{ others.append('c') }}", "    - {{ a }} {{ b() }}", "{{ x }}:", "  {% set y = z %}", "top:"],
)
def test_a_line_that_can_have_an_effect_stays(line: str) -> None:
    assert f"{line}\n" in lines_for_about([*RECIPE.splitlines(keepends=True), f"{line}\n"])


def test_about_is_that_of_the_whole_text() -> None:
    assert about_of_text(RECIPE, Path("meta.yaml")) == {
        "home": "https://example.org/Solver",
        "summary": "It solves",
        "description": "Uses a, b.\n",
    }


@pytest.mark.parametrize(
    "block",
    [
        "  license: MIT\n  license: BSD\n",
        "  version: 1.10\n",
        "  date: 2026-01-01\n",
        "  works: yes\n",
        "  mode: 010\n",
        "  home:\n  summary: 'a: b'\n",
        "  tags: [a, b]\n",
        "  tags:\n    - a\n    - on\n    - https://x.org\n",
        "  summary: >\n    folded\n    text\n\n    more\n  license: &l MIT\n  other: *l\n",
        "  summary: |-\n    literal\n      text\n",
        "  summary: a\n    continued  # a comment\n",
        '  summary: "\\u00e9 \\x41"\n',
        "  summary: é\u2028x\n",
        "  set: !!set {a, b}\n",
    ],
)
def test_both_readers_agree(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"package:\n  name: x\nabout:\n{block}"
    quick = about_of_text(text, Path("meta.yaml"))
    monkeypatch.setattr(readme, "_common_value", _refuse)
    assert _types(quick) == _types(about_of_text(text, Path("meta.yaml")))


def _refuse(_node: object) -> object:
    raise readme._DiffersError


def _types(value: object) -> object:
    """A value with the types of its parts, all kinds of strings being one."""
    if isinstance(value, dict):
        return {_types(key): _types(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_types(item) for item in value]
    return str(value) if isinstance(value, str) else (type(value).__name__, str(value))
