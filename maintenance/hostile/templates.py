"""Random templates that try to grow, to loop, to escape: for a meta.yaml (Jinja) and for a recipe.yaml (minijinja)."""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["meta_yaml", "recipe_yaml"]

_NAMES = ("a", "b", "c", "l", "d", "n.x", "python", "loop.index", "nothing", "version", "self", "environ", "range")
_METHODS = (
    *(
        "encode",
        "ljust",
        "center",
        "zfill",
        "replace",
        "split",
        "join",
        "format",
        "format_map",
        "translate",
        "expandtabs",
    ),
    *(
        "count",
        "find",
        "partition",
        "splitlines",
        "title",
        "upper",
        "strip",
        "startswith",
        "rsplit",
        "casefold",
        "index",
    ),
    *("append", "extend", "insert", "copy", "pop", "sort", "reverse", "update", "items", "keys", "values", "get"),
    *("setdefault", "fromkeys", "to_bytes", "bit_length", "hex", "as_integer_ratio", "__class__", "__mul__", "__add__"),
)
_FILTERS = (
    *(
        "replace('a', 'aaaaaaaa')",
        "join('aaaa')",
        "list",
        "string",
        "length",
        "sort",
        "sum",
        "sum(start=[])",
        "reverse",
    ),
    *("map('upper')", "map('list')", "batch(2)", "center(99999)", "indent(9999)", "format(a, b)", "tojson", "pprint"),
    *("unique", "dictsort", "groupby('x')", "wordwrap(1)", "urlize", "xmlattr", "attr('__class__')", "first", "last"),
    *("int", "float", "round(9)", "abs", "max", "min", "wordcount", "truncate(9)", "title", "default('x')", "select"),
    *("items", "slice(9)", "random", "escape", "forceescape", "striptags", "filesizeformat", "selectattr('x')"),
)
_OPERATORS = ("+", "-", "*", "**", "/", "//", "%", "~", "==", "<", "in", "and", "or", "if a else")
_NUMBERS = ("0", "1", "2", "9", "64", "1000", "99999", "10 ** 9", "9 ** 9 ** 9", "-1", "1e308", "0.1")
_TEXTS = ("''", "'a'", "'a' * 1000", "'a' * 900000", "'%s' * 1000", "'{0}' * 9999", "'%(a)999999d'", "'{:999999999}'")


def _expression(chance: random.Random, depth: int) -> str:
    """A random expression; most of them fail, some are costly."""
    if depth <= 0:
        return chance.choice((chance.choice(_NAMES), chance.choice(_NUMBERS), chance.choice(_TEXTS)))

    def inner() -> str:
        return _expression(chance, depth - chance.choice((1, 1, 2)))

    kind = chance.randrange(10)
    if kind < 3:
        return f"({inner()} {chance.choice(_OPERATORS)} {inner()})"
    if kind == 3:
        return f"{inner()}.{chance.choice(_METHODS)}({', '.join(inner() for _ in range(chance.randrange(3)))})"
    if kind == 4:
        return f"({inner()}|{chance.choice(_FILTERS)})"
    if kind == 5:
        return f"[{', '.join(inner() for _ in range(chance.randrange(4)))}]"
    if kind == 6:
        return f"{{{inner()}: {inner()}}}"
    if kind == 7:
        return f"{inner()}[{chance.choice(('0', '1:', '::-1', ':-1', inner()))}]"
    if kind == 8:
        return (
            f"({inner()} is {chance.choice(('defined', 'eq(a)', 'sameas(a)', 'iterable', 'in(l)', 'divisibleby(0)'))})"
        )
    return f"range({chance.choice(('9', '999', '99999', '10 ** 9', '0, 99999, 0'))})|list"


def _statement(chance: random.Random, depth: int) -> str:
    """A random statement, with others inside."""
    value = _expression(chance, 3)
    name = chance.choice("abcld")

    def inner() -> str:
        return "".join(_statement(chance, depth - 1) for _ in range(chance.randrange(1, 4))) if depth > 0 else "x"

    kinds: tuple[Callable[[], str], ...] = (
        lambda: f"{{% set {name} = {value} %}}",
        lambda: f"{{% set {name} = {name} ~ {name} %}}" * chance.choice((1, 9, 40)),
        lambda: f"{{% set n.x = [n.x, {value}] %}}",
        lambda: f"{{% set {name} %}}{inner()}{{% endset %}}",
        lambda: f"{{% for i in range({chance.choice((9, 999, 99999))}) %}}{inner()}{{% endfor %}}",
        lambda: f"{{% for i in {value} recursive %}}{inner()}{{{{ loop({name}) }}}}{{% endfor %}}",
        lambda: f"{{% if {value} %}}{inner()}{{% else %}}{inner()}{{% endif %}}",
        lambda: f"{{% macro m{name}(x) %}}{inner()}{{{{ m{name}(x) if x }}}}{{% endmacro %}}{{{{ m{name}({value}) }}}}",
        lambda: f"{{% set u = l.append({value}) %}}",
        lambda: f"{{% set u = d.update({{{value}: d}}) %}}",
        lambda: f"{{% include '{chance.choice(('meta.yaml', 'part', '../outside', '/etc/passwd'))}' %}}",
        lambda: f"{{% import 'part' as p %}}{{{{ p.{name} }}}}",
        lambda: f"{{% filter {chance.choice(_FILTERS)} %}}{inner()}{{% endfilter %}}",
        lambda: f"{{{{ {value} }}}}",
        lambda: f"{{# {value} #}}",
        lambda: f"{{% raw %}}{value}{{% endraw %}}",
    )
    return chance.choice(kinds)()


def meta_yaml(chance: random.Random) -> str:
    """The text of a meta.yaml."""
    begin = "{% set a = 'a' * 1000 %}{% set l = [] %}{% set d = {} %}{% set n = namespace(x=[]) %}\n"
    body = "".join(f"{_statement(chance, 3)}\n" for _ in range(chance.randrange(1, 6)))
    lines = [
        f"  name: p{_inline(chance)}",
        f"  version: {_inline(chance)}",
        "build:",
        f"  number: {_inline(chance)}  # [{_selector(chance)}]",
        f"  string: {_inline(chance)}",
        f"  script: {_inline(chance)}",
        "requirements:",
        "  host:",
        *(f"    - {chance.choice(('python', 'zlib', _inline(chance)))}  # [{_selector(chance)}]" for _ in range(3)),
    ]
    return f"{begin}{body}package:\n" + "\n".join(lines) + "\n"


def _inline(chance: random.Random) -> str:
    return f"{{{{ {_expression(chance, 3)} }}}}" if chance.random() < 0.4 else "1"


def _selector(chance: random.Random) -> str:
    kinds = ("linux", "py<3", "not " * 50 + "win", "(" * 90 + "linux" + ")" * 90, "python * 99999", "environ.get('A')")
    return chance.choice((*kinds, " or ".join(["osx"] * 200), "__import__('os')", "[x for x in y]", "'a' * 10 ** 9"))


def recipe_yaml(chance: random.Random) -> str:
    """The text of a recipe.yaml."""

    def value() -> str:
        template = _expression(chance, chance.choice((1, 2, 3))).replace(
            "'", "\\x27" if chance.random() < 0.05 else "'"
        )
        text = chance.choice(
            (f"${{{{ {template} }}}}", f"{{% set b = {template} %}}${{{{ b }}}}", _statement(chance, 2))
        )
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'

    def condition() -> str:
        return '"' + _expression(chance, 2).replace("\\", "\\\\").replace('"', '\\"') + '"'

    names = [f"c{number}" for number in range(chance.randrange(8))]
    context = [f"  {name}: {value()}" for name in names]
    if chance.random() < 0.3:
        context += [f"  e{n}: ${{{{ e{n - 1} ~ e{n - 1} }}}}" for n in range(1, 40)]
    lines = [
        *(["context:", "  e0: aaaaaaaa", *context] if context else []),
        f"package: {{name: {chance.choice(('p', value()))}, version: {chance.choice(('1', value()))}}}",
        "build:",
        f"  number: {chance.choice(('0', value()))}",
        f"  string: {chance.choice(('x', value()))}",
        f"  skip: [{condition()}]" if chance.random() < 0.5 else "  noarch: generic",
        "requirements:",
        "  host:",
        f"    - {chance.choice(('python', value()))}",
        *(["    - if: " + condition(), "      then: zlib"] if chance.random() < 0.5 else []),
        *(["tests: [{script: [" + value() + "]}]"] if chance.random() < 0.3 else []),
    ]
    return "\n".join(lines) + "\n"
