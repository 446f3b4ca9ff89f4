"""Templates of recipes cannot reach anything outside, nor work or grow without bound."""

from __future__ import annotations

import resource
import time
import warnings
from pathlib import Path

import pytest
from jinja2 import TemplateSyntaxError

from feedstock_tools.bounds.limits import BoundError
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.v0 import jinja
from feedstock_tools.recipe.v0.jinja import Sandbox

#: What each may take: processor time in seconds, memory in bytes.
#: Of processor time, on a machine that is busy with other tests and measures what they cover.
SECONDS = 8.0
MEMORY = 100 * 1024 * 1024

A = "{% set a = 'a' * 900000 %}"
L = "{% set l = range(99999)|list %}"
#: Templates that take gigabytes or minutes unless values are measured before use.
BOMBS = {
    "bytes": "{{ 'a'.encode() * 3000000000 }}",
    "to_bytes": "{{ (1).to_bytes(3000000000, 'big') }}",
    "ljust of bytes": "{{ 'a'.encode().ljust(3000000000) }}",
    "format": A + "{{ ('{0}' * 10000).format(a) }}",
    "format_map": A + "{{ ('{a}' * 10000).format_map({'a': a}) }}",
    "% with a mapping": A + "{{ ('%(a)s' * 100000) % {'a': a} }}",
    "% with a tuple": "{{ ('%s' * 1000) % ((('a' * 900000),) * 1000) }}",
    "% wide, of a mapping": "{{ '%(a)999999999d' % {'a': 1} }}",
    "% wide, of a key in brackets": "{{ '%((a))999999999d' % {'(a)': 1} }}",
    "format filter": A + "{{ ('%(a)s' * 100000)|format(a=a) }}",
    "precision": "{{ '%.999999999f' % 1 }}",
    "translate": A + "{{ a.translate({97: a}) }}",
    "nested products": "{{ [[[1] * 1000] * 1000] * 1000 }}",
    "nested products of text": "{{ ([[['a' * 1000] * 1000] * 1000] * 1000)|string }}",
    "nested products, joined": "{{ ([[['a' * 1000] * 1000] * 1000] * 1000)|join }}",
    "sum of lists": "{{ ([[1] * 1000] * 100000)|sum(start=[]) }}",
    "sum of texts as lists": "{{ (['a' * 1000] * 100000)|map('list')|sum(start=[]) }}",
    "linear calls": A + "{% for i in range(90000) %}{% set x = a.count('b') %}{% endfor %}",
    "linear calls on lists": "{% set l = [1] * 90000 %}{% for i in range(9000) %}{% set x = l.count(2) %}{% endfor %}",
    "in": A + "{% for i in range(90000) %}{% set x = 'ab' in a %}{% endfor %}",
    "in a list": L + "{% for i in range(90000) %}{{ 1 if -1 in l }}{% endfor %}",
    "equality": A + "{% for i in range(90000) %}{% if a == a ~ '' %}{% endif %}{% endfor %}",
    "slices": A + "{% for i in range(90000) %}{% set x = a[1:] %}{% endfor %}",
    "slices backwards": A + "{% for i in range(90000) %}{% set x = a[::-1]|length %}{% endfor %}",
    "max": L + "{% for i in range(90000) %}{% set x = l|max %}{% endfor %}",
    "sort": L + "{% for i in range(90000) %}{% set x = l|sort %}{% endfor %}",
    "wordcount": A + "{% for i in range(9000) %}{% set x = a|wordcount %}{% endfor %}",
    "title": "{% set a = 'a ' * 400000 %}{% for i in range(9000) %}{% set x = a|title %}{% endfor %}",
    "split": "{% set a = 'a,' * 400000 %}{% for i in range(9000) %}{% set x = a.split(',') %}{% endfor %}",
    "tests": A + "{% for i in range(90000) %}{{ 1 if a is eq(a ~ '') }}{% endfor %}",
    "mappings that hold themselves": "{% set d = {} %}{% for i in range(40) %}"
    "{% set x = d.update({i: d.copy()}) %}{% endfor %}{{ d }}",
    "lists that hold themselves": "{% set l = [] %}{% for i in range(60) %}"
    "{% set x = l.append([l.copy(), l.copy()]) %}{% endfor %}{{ l }}",
    "doubled lists": "{% set n = namespace(a=[]) %}{% for i in range(30) %}{% set n.a = [n.a, n.a] %}{% endfor %}"
    "{{ n.a }}",
    "doubled lists, concatenated": "{% set n = namespace(a=[]) %}{% for i in range(30) %}"
    "{% set n.a = [n.a, n.a] %}{% endfor %}{{ n.a ~ 'x' }}",
    "doubled lists, compared": "{% set n = namespace(a=[], b=[]) %}{% for i in range(30) %}"
    "{% set n.a = [n.a, n.a] %}{% set n.b = [n.b, n.b] %}{% endfor %}{{ n.a == n.b }}",
    "doubled tuples as keys": "{% set n = namespace(a=()) %}{% for i in range(30) %}"
    "{% set n.a = (n.a, n.a) %}{% endfor %}{{ {n.a: 1} }}",
    "output in a block": A + "{% set b %}{% for i in range(90000) %}{{ a }}{% endfor %}{% endset %}{{ b }}",
    "macros that call twice": "{% macro m(n) %}{{ m(n - 1) if n }}{{ m(n - 1) if n }}{% endmacro %}{{ m(60) }}",
}


#: Bombs that only the bounds of a whole template end, after seconds; they meet narrow ones.
BURNING = {
    "in a list",
    "linear calls on lists",
    "lists that hold themselves",
    "macros that call twice",
    "mappings that hold themselves",
    "max",
    "title",
}


def rendered(folder: Path, template: str, **context: object) -> str:
    return jinja.render(folder / "meta.yaml", None, template, context)


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
def test_what_templates_may_not_do(tmp_path: Path, template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "append" in template:  # as those of `BURNING`
        monkeypatch.setattr(jinja, "_LARGEST_TOTAL", jinja._LARGEST_TOTAL // 20)
    with pytest.raises(InputError):
        rendered(tmp_path, template, f=lambda: None)


@pytest.mark.parametrize("name", BOMBS)
def test_what_would_grow_takes_little_time_and_memory(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name in BURNING or name == "sort":
        monkeypatch.setattr(jinja, "_LARGEST_TOTAL", jinja._LARGEST_TOTAL // (20 if name in BURNING else 10))
    if name in BURNING:  # a list to sort has more entries than the narrow bound leaves
        monkeypatch.setattr(jinja, "_MOST_STEPS", jinja._MOST_STEPS // 20)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    with pytest.raises(InputError):
        rendered(tmp_path, BOMBS[name], f=lambda: None)
    assert time.process_time() - began < SECONDS
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) * 1024 < MEMORY


def test_a_refusal_names_the_line_the_template_and_how_to_lift_it(tmp_path: Path) -> None:
    text = "package:\n  name: p\n  version: {{ 'a' * 1000 * 10000 }}\n"
    (tmp_path / "meta.yaml").write_text(text)
    with pytest.raises(BoundError) as caught:
        rendered(tmp_path, text)
    (mistake,) = caught.value.mistakes
    assert mistake.line == 3
    assert "version: {{ 'a' * 1000 * 10000 }}" in mistake.message
    assert "FEEDSTOCK_TOOLS_BOUNDS" in (mistake.hint or "")


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


def test_python_does_not_warn_of_code_that_jinja_makes(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        rendered(tmp_path, "{{ (1)[f:2] }}", f=None)
    assert "perhaps you missed a comma" not in str(caught.value)


@pytest.mark.parametrize(
    ("part", "refusal"), [("{{ (1)[f:2] }}", "cannot be rendered"), ("{{ f(a=1, a=2) }}", "repeated: a")]
)
def test_nor_of_a_file_that_is_included(tmp_path: Path, part: str, refusal: str) -> None:
    (tmp_path / "part").write_text(part)
    with warnings.catch_warnings(record=True) as warned, pytest.raises(InputError, match=refusal):
        warnings.simplefilter("always")
        rendered(tmp_path, "{% include 'part' %}", f=None)
    assert not warned


def test_an_invalid_file_that_is_imported_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "macros").write_text("{% macro number() %}\n\n{{ a b }}\n{% endmacro %}\n")
    with pytest.raises(InputError) as caught:
        rendered(tmp_path, "package:\n{% import 'macros' as m %}\n")
    (mistake,) = caught.value.mistakes
    assert (mistake.path, mistake.line) == (tmp_path / "macros", 3)


def test_the_sandbox_compiles_without_warnings_and_ends_in_errors_of_jinja() -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        Sandbox().from_string("{{ (1)[f:2] }}")
        with pytest.raises(TemplateSyntaxError, match="repeated: a"):
            Sandbox().from_string("{{ f(a=1, a=2) }}")
    assert not warned
