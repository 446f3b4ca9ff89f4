"""More attacks by templates: bounded work ends each in little time and memory, and nothing gets out of the sandbox."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.errors import FeedstockError
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.v0.jinja import render
from feedstock_tools.recipe.v1_engine import parse_v1
from feedstock_tools.recipe.v1_engine import render as render_v1
from feedstock_tools.rerender.smithy.readme import about_of_text
from tests.support.limits import refusal_of

A = "{% set a = 'a' * 900000 %}"
N = "{% set n = namespace(a='a') %}"
#: Templates of a meta.yaml that must be refused.
V0 = {
    "a macro with a growing default": "{% macro m(x=[1] * 9999) %}{{ m(x + x) }}{% endmacro %}{{ m() }}",
    "a recursive loop": "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "a recursive include": "{% include 'meta.yaml' %}",
    "a recursive import": "{% import 'meta.yaml' as m %}",
    "blocks in blocks": "{% set x %}" * 400 + "a" + "{% endset %}" * 400,
    "brackets": "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    "signs": "{{ " + "-" * 9000 + "1 }}",
    "a namespace that grows": N + "{% for i in range(64) %}{% set n.a = n.a ~ n.a %}{% endfor %}{{ n.a }}",
    "values of all widths": "{{ '%s %s' % (('a' * 900000,) * 2) * 99 }}",
    "translated to long texts": "{{ ('a' * 900)|map('replace', 'a', 'a' * 900)|map('replace', 'a', 'a' * 900)|join }}",
    "long integers": "{% set n = namespace(a=9) %}{% for i in range(64) %}{% set n.a = n.a * n.a %}"
    "{% endfor %}{{ n.a }}",
    "digits of long integers": "{{ ('9' * 900000)|int }}{{ 1 // 0 }}",
    "shifted bytes": "{{ (1).to_bytes(900000000, 'little').hex() }}",
    "tabs": A + "{{ a.replace('a', '\\t').expandtabs(9999999) }}",
    "ranges in ranges": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "an attribute by a filter": "{{ [1]|map(attribute='__class__')|list }}{{ ''|attr('__class__') }}",
    "a format that looks inside": "{{ '{0.__class__.__mro__}'.format(1) }}",
    "a format mapping that looks inside": "{{ '{a.__init__.__globals__}'.format_map({'a': cycler}) }}",
    "frames of a generator": "{{ (range(3)|map('string')).gi_frame }}",
    "code of a macro": "{% macro m() %}{% endmacro %}{{ m.__call__.__func__.__code__ }}",
    "the environment of a template": "{{ self._TemplateReference__context.environment }}",
}


def _meta(folder: Path, text: str) -> str:
    (folder / "meta.yaml").write_text(text)
    return render(folder / "meta.yaml", None, text, {})


@pytest.mark.parametrize("template", V0.values(), ids=V0)
def test_a_hostile_template_of_a_meta_yaml_is_refused(tmp_path: Path, template: str) -> None:
    assert refusal_of(lambda: run_bounded(partial(_meta, tmp_path, template)))


HEAD = "package: {name: p, version: '1'}\n"


def _string(template: str) -> str:
    return HEAD + f'build: {{string: "x{template}"}}\n'


DOUBLED = "".join(f"  a{n}: ${{{{ a{n - 1} | replace('a', a{n - 1}) }}}}\n" for n in range(1, 20))
#: Recipes of the v1 format that must be refused.
V1 = {
    "a range": _string("${{ range(10 ** 9) | list | length }}"),
    "a list that is repeated": _string("${{ ([1] * 10 ** 9) | length }}"),
    "a text that is centred": _string("${{ 'a' | center(10 ** 9) }}"),
    "an indent": _string("${{ 'a\\nb' | indent(1000000000) }}"),
    "a format": _string("${{ '%999999999d' | format(1) }}"),
    "replacements of replacements": f"context:\n  a0: aaaaaaaaaaaa\n{DOUBLED}{_string('${{ a19 }}')}",
    "a joined list": "context:\n  l: [" + "aaaaaaaa, " * 9000 + "a]\n" + _string("${{ l | join(l | join('a')) }}"),
    "a loop over a loop": _string("{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}"),
    "a recursive macro": _string("{% macro m(x) %}${{ m(x) }}{% endmacro %}${{ m(1) }}"),
    "a recursive include": _string("{% include 'recipe.yaml' %}"),
    "an extended template": _string("{% extends '/etc/passwd' %}"),
    "a call block": _string("{% call range(9) %}x{% endcall %}"),
    "a deep list": _string("${{ " + "[" * 900 + "]" * 900 + " }}"),
    "deep conditions": HEAD + "build:\n  skip: ['" + "(" * 900 + "linux" + ")" * 900 + "']\n",
    "ifs in ifs": _string("{% if 1 %}" * 3000 + "{% endif %}" * 3000),
    "nested YAML ifs": HEAD + "requirements:\n  host: " + "[{if: linux, then: " * 300 + "zlib" + "}]" * 300 + "\n",
    "a power": _string("${{ 9 ** 9 ** 9 }}"),
    "a file": _string("${{ load_from_file('/etc/passwd') }}"),
    "git": _string("${{ git.head_rev('.') }}"),
}


def _v1(folder: Path, text: str) -> None:
    platform = Platform.parse("linux-64")
    render_v1(parse_v1(text, folder / "recipe.yaml"), {}, (), platform, platform)


@pytest.mark.parametrize("recipe", V1.values(), ids=V1)
def test_a_hostile_recipe_yaml_is_refused(tmp_path: Path, recipe: str) -> None:
    assert refusal_of(lambda: run_bounded(partial(_v1, tmp_path, recipe)))


#: Texts whose `about` a complete rerender reads on its own.
ABOUT = {
    "a growing template": A + "{% for i in range(90000) %}{% set x = a ~ a %}{% endfor %}about:\n  home: x\n",
    "an endless loop": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}about: {}\n",
    "a way out": "about:\n  home: {{ compiler.__globals__ }}\n",
    "the machine": "about:\n  home: {{ datetime.__class__.__mro__[1].__subclasses__() }}\n",
    "aliases": "about:\n  g0: &g0 [a]\n"
    + "".join(f"  g{n}: &g{n} [{', '.join([f'*g{n - 1}'] * 9)}]\n" for n in range(1, 9)),
    "merges": "about:\n  g: &g {" + ", ".join(f"k{n}: v" for n in range(900)) + "}\n" + "  h: {<<: [*g, *g]}\n" * 100,
    "depth": "about: " + "[" * 5000 + "]" * 5000 + "\n",
    "length": "about:\n" + "".join(f"  k{n}: v\n" for n in range(30_000)),
}


@pytest.mark.parametrize("text", ABOUT.values(), ids=ABOUT)
def test_the_about_of_a_text_is_read_within_bounds(tmp_path: Path, text: str) -> None:
    assert refusal_of(lambda: about_of_text(text, tmp_path / "meta.yaml"))


def test_no_attack_leaves_a_file(tmp_path: Path) -> None:
    before = {path.name for path in tmp_path.iterdir()}
    for template in (*list(V0.values())[:3], *list(V0.values())[-3:]):
        with pytest.raises(FeedstockError):
            run_bounded(partial(_meta, tmp_path, template))
    assert {path.name for path in tmp_path.iterdir()} - before <= {"meta.yaml"}
