"""Templates of recipes cannot reach out of themselves, nor work or grow without bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.recipe.v0.jinja import render


def rendered(folder: Path, template: str, **context: object) -> str:
    return render(folder / "meta.yaml", None, template, context)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ self.__init__.__globals__ }}",
        "{{ undefined.__class__ }}",
        "{{ cycler.__init__ }}",
        "{{ f.__globals__ }}",
        "{{ ''|attr('__class__') }}",
        "{% include '/etc/passwd' %}",
        "{% include '../secret' %}",
        "{% import 'os' as os %}",
        "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}",
        "{% for a in range(10 ** 9) %}{% endfor %}",
        "{{ range(99999999)|list }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ 1 }}" * 100_000,
        "{{ 'a' * 10000000000 }}",
        "{{ 10000000000 * [1] }}",
        "{{ '{:9999999999}'.format(1) }}",
        "{{ '{:{}}'.format(1, 9999999999) }}",
        "{{ '%9999999999d' % 1 }}",
        "{{ '%*d'|format(9999999999, 1) }}",
        "{{ 'a'.ljust(9999999999) }}",
        "{% set a = 'a' * 1000 %}{{ a.replace('a', a).replace('a', a).replace('a', a) }}",
        "{% set a = 'a' * 1000 %}{{ a|replace('a', a)|replace('a', a)|replace('a', a) }}",
        "{% set a = 'a' * 900000 %}" + "{% set a = a ~ a %}" * 9 + "{{ a }}",
        "{% set l = [] %}{% for i in range(90000) %}{% set x = l.append(range(9000)|list) %}{% endfor %}",
    ],
)
def test_what_templates_may_not_do(tmp_path: Path, template: str) -> None:
    with pytest.raises(InputError):
        rendered(tmp_path, template, f=lambda: None)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ 'cp{}{}'.format(v[0], v[2:]) }}", "cp310"),
        ("{{ '%02d' % 7 }}{{ '%s-%s'|format('a', 'b') }}", "07a-b"),
        ("{{ v.replace('.', '') }}{{ v|replace('.', '_') }}", "3103_10"),
        ("{{ v.split('.')[1]|int + 1 }}", "11"),
        ("{{ ['a', 'b']|join('+') }}{{ '+'.join(['a', 'b']) }}", "a+ba+b"),
        ("{% for i in range(3) if i %}{{ loop.index }}{{ i }},{% endfor %}", "11,22,"),
        ("{{ 'a' ~ 1 ~ v }}{{ 'ab' * 2 }}", "a13.10abab"),
        ("{{ nothing }}{{ nothing.at.all() }}{{ nothing[0] + 1 }}{% if nothing %}x{% endif %}", ""),
        ("{% set ns = namespace(n=1) %}{% set ns.n = ns.n + 1 %}{{ ns.n }}", "2"),
        ("{{ v if v.startswith('3') else '' }}{{ nothing|default('d') }}", "3.10d"),
    ],
)
def test_what_recipes_do_works(tmp_path: Path, template: str, text: str) -> None:
    assert rendered(tmp_path, template, v="3.10") == text
