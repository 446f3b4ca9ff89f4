"""Random templates that try to grow, to loop, to escape: for a meta.yaml (Jinja) and for a recipe.yaml (minijinja)."""

from __future__ import annotations

import json
import random
import re

#: Each line has forms of a symbol, separated by two spaces; ` x3` makes a form three times as likely, and `<name>`
#: stands for a form of another symbol, `<name!>` for one in quotes. Most expressions fail, some are costly. Where a
#: text is deep enough, the first form of a symbol is taken that contains itself.
_GRAMMAR = """
name: a  b  c  l  d  n.x  python  loop.index  nothing  version  self  environ  range
variable: a  b  c  l  d
number: 0  1  2  9  64  1000  -1  0.1
text: ''  'a'  'aa'  a  b  'a' * 1000  '%s' * 9  'a b'  version  '1.2.3'
huge: 99999  10 ** 9  9 ** 9 ** 9  1e308  'a' * 900000  '%s' * 1000  '{0}' * 9999  '%(a)999999d'  '{:999999999}'
operator: +  -  *  **  /  //  %  ~  ==  <  in  and  or  if a else
method: <known> x19  <refused>
known: ljust  center  zfill  replace  split  join  format  format_map  expandtabs  count  find  partition  splitlines
known: title  upper  strip  startswith  rsplit  casefold  index  rjust  append  extend  insert  copy  pop  sort  reverse
known: update  items  keys  values  get  setdefault  bit_length
refused: fromkeys  hex  encode  translate  to_bytes  __class__  __mul__  __add__
filter: <usual> x19  <strange>
usual: replace('a', 'aaaaaaaa')  join('aaaa')  list  string  length  sort  sum  reverse  trim  map('upper')  map('list')
usual: map('string')  map('length')  format(a, b)  unique  dictsort  first  last  int  float  round(9)  abs  max  min
usual: wordcount  truncate(9)  title  default('x')  select  items  escape  selectattr('x')  reject('defined')
usual: capitalize  lower  upper|lower
strange: sum(start=[])  batch(2)  center(99999)  indent(9999)  tojson  pprint  groupby('x')  wordwrap(1)  urlize
strange: xmlattr  attr('__class__')  slice(9)  random  forceescape  striptags  filesizeformat
test: defined  eq(a)  sameas(a)  iterable  in(l)  divisibleby(0)
slice: 0  1:  ::-1  :-1  <expression>
plain: <name> x10  <number> x10  <text> x10  <huge>
expression: <plain>  (<expression> <operator> <expression>) x3  <expression>.<method>()  <expression>[<slice>]
expression: <expression>.<method>(<expression>)  <expression>.<method>(<expression>, <expression>)
expression: (<expression>|<filter>) x2  [<expression>, <expression>]  {<expression>: <expression>}
expression: (<expression> is <test>)  range(<end>)|list
end: 9  99  999  9999  0, 99999, 7
doubled: {% set a = a ~ a %}
nine: <doubled><doubled><doubled><doubled><doubled><doubled><doubled><doubled><doubled>
path: meta.yaml  part  ../outside  /etc/passwd
statement: {{ <expression> }}  {% set <variable> = <expression> %}  {% set n.x = [n.x, <expression>] %}  <doubled>
statement: <nine>  <nine><nine><nine><nine>  {% set <variable> %}<statement><statement>{% endset %}
statement: {% for i in range(<end>) %}<statement>{% endfor %}
statement: {% for i in range(<end>) %}<statement><statement>{% endfor %}
statement: {% for i in <expression> recursive %}<statement>{{ loop(<variable>) }}{% endfor %}
statement: {% if <expression> %}<statement><statement>{% else %}<statement>{% endif %}
statement: {% macro ma(x) %}<statement>{{ ma(x) if x }}{% endmacro %}{{ ma(<expression>) }}
statement: {% set u = l.append(<expression>) %}  {% set u = d.update({<expression>: d}) %}  {% include '<path>' %}
statement: {% import 'part' as p %}{{ p.<variable> }}  {% filter <filter> %}<statement>{% endfilter %}
statement: {# <expression> #}  {% raw %}<expression>{% endraw %}
value: ${{ <expression> }}  {% set b = <expression> %}${{ b }}  <statement>
inline: 1 x17  {{ <expression> }} x3
host: python  zlib  <inline>
selector: <condition> x9  <bad>
condition: linux  py<3  win  unix and not osx  python  cuda_compiler_version != 'None'
bad: __import__('os')  [x for x in y]  'a' * 10 ** 9  python * 99999  environ.get('A')
step: X ~ X  [X, X]  X|replace('a', 'aaa')  X * 3  X|join(X)  X ~ X ~ python  [X] * 9  X + X  X|list|string
step: (X, X)|string  X|replace('a', X)  X|batch(2)|list|string  X|tojson  X|upper ~ X|lower  X|split('a')|join('aaa')
step: X|indent(9)  '%s%s'|format(X, X)  X[1:] ~ X  X if X == X else 0  X is in(X)
"""
_SYMBOL = re.compile(r"<(\w+)(!?)>")
_FORMS: dict[str, list[str]] = {}
for _line in _GRAMMAR.strip().splitlines():
    _name, _, _forms = _line.partition(": ")
    for _form in _forms.split("  "):
        _weighed = re.fullmatch(r"(.*?)(?: x(\d+))?", _form)
        assert _weighed is not None  # noqa: S101 - any text has this form
        _FORMS.setdefault(_name, []).extend([_weighed[1]] * int(_weighed[2] or 1))


def grown(text: str, chance: random.Random, depth: int = 3) -> str:
    """A text with its symbols replaced by forms of them, up to a depth of those that contain themselves."""

    def form(found: re.Match[str]) -> str:
        forms = _FORMS[found[1]]
        nests = any(f"<{found[1]}>" in each for each in forms)
        chosen = forms[0] if nests and depth <= 0 else chance.choice(forms)
        made = grown(chosen, chance, depth - chance.choice((1, 1, 2)) if nests else depth)
        return json.dumps(made) if found[2] else made

    return _SYMBOL.sub(form, text)


_META = """\
package:
  name: p<inline>
  version: <inline>
build:
  number: <inline>  # [{selector}]
  string: <inline>
  script: <inline>
requirements:
  host:
    - <host>  # [{selector}]
    - <host>  # [<selector>]
    - <host>  # [<selector>]
"""
#: Selectors that are long or deep.
_SELECTORS = (*("<selector>",) * 9, "not " * 50 + "win", "(" * 90 + "linux" + ")" * 90, " or ".join(["osx"] * 200))


def meta_yaml(chance: random.Random) -> str:
    """The text of a meta.yaml."""
    begin = "{% set a = 'a' * 1000 %}{% set l = [] %}{% set d = {} %}{% set n = namespace(x=[]) %}\n"
    body = "<statement>\n" * chance.choice((1, 1, 1, 2, 3, 5))
    return grown(begin + body + _META.format(selector=chance.choice(_SELECTORS)), chance)


def recipe_yaml(chance: random.Random) -> str:
    """The text of a recipe.yaml."""

    def some(plain: str) -> str:
        return "<value!>" if chance.random() < 0.15 else plain

    context = [f"  {name}: <value!>" for name in "abcd"[: chance.choice((0, 1, 1, 2, 4))]]
    if chance.random() < 0.3:
        step = grown("<step>", chance)
        context += [f"  e{n}: ${{{{ {step.replace('X', f'e{n - 1}')} }}}}" for n in range(1, chance.choice((4, 9, 40)))]
    lines = [
        *("context:", "  e0: aaaaaaaa", *context),
        f"package: {{name: {some('p')}, version: {some('1')}}}",
        "build:",
        f"  number: {some('0')}",
        f"  string: {some('x')}",
        "  skip: [<expression!>]" if chance.random() < 0.2 else "  noarch: generic",
        "requirements:",
        "  host:",
        f"    - {some('python')}",
        *(["    - if: <expression!>", "      then: zlib"] if chance.random() < 0.2 else []),
        *(["tests: [{script: [<value!>]}]"] if chance.random() < 0.2 else []),
    ]
    return grown("\n".join(lines) + "\n", chance)
