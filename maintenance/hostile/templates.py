"""Random templates that try to grow, to loop, to escape: for a meta.yaml (Jinja) and for a recipe.yaml (minijinja)."""

from __future__ import annotations

import random
from collections.abc import Callable

_NAMES = ("a", "b", "c", "l", "d", "n.x", "python", "loop.index", "nothing", "version", "self", "environ", "range")
_METHODS = (
    *("ljust", "center", "zfill", "replace", "split", "join", "format", "format_map", "expandtabs", "count", "find"),
    *("partition", "splitlines", "title", "upper", "strip", "startswith", "rsplit", "casefold", "index", "rjust"),
    *("append", "extend", "insert", "copy", "pop", "sort", "reverse", "update", "items", "keys", "values", "get"),
    *("setdefault", "bit_length"),
)
#: Refused whatever their arguments, so a case with one of them tries little else.
_REFUSED = ("fromkeys", "hex", "encode", "translate", "to_bytes", "__class__", "__mul__", "__add__")
_FILTERS = (
    *("replace('a', 'aaaaaaaa')", "join('aaaa')", "list", "string", "length", "sort", "sum", "reverse", "trim"),
    *("map('upper')", "map('list')", "map('string')", "map('length')", "format(a, b)", "unique", "dictsort", "first"),
    *("last", "int", "float", "round(9)", "abs", "max", "min", "wordcount", "truncate(9)", "title", "default('x')"),
    *("select", "items", "escape", "selectattr('x')", "reject('defined')", "capitalize", "lower", "upper|lower"),
)
#: Known to one of the two formats at most.
_STRANGE_FILTERS = (
    *("sum(start=[])", "batch(2)", "center(99999)", "indent(9999)", "tojson", "pprint", "groupby('x')", "wordwrap(1)"),
    *("urlize", "xmlattr", "attr('__class__')", "slice(9)", "random", "forceescape", "striptags", "filesizeformat"),
)
_OPERATORS = ("+", "-", "*", "**", "/", "//", "%", "~", "==", "<", "in", "and", "or", "if a else")
_NUMBERS = ("0", "1", "2", "9", "64", "1000", "-1", "0.1")
_TEXTS = ("''", "'a'", "'aa'", "a", "b", "'a' * 1000", "'%s' * 9", "'a b'", "version", "'1.2.3'")
#: What the counting guards refuse at once in most places.
_HUGE = (
    *("99999", "10 ** 9", "9 ** 9 ** 9", "1e308", "'a' * 900000", "'%s' * 1000", "'{0}' * 9999"),
    *("'%(a)999999d'", "'{:999999999}'"),
)


def _expression(chance: random.Random, depth: int) -> str:
    """A random expression; most of them fail, some are costly."""
    if depth <= 0:
        if chance.random() < 0.03:
            return chance.choice(_HUGE)
        return chance.choice((chance.choice(_NAMES), chance.choice(_NUMBERS), chance.choice(_TEXTS)))

    def inner() -> str:
        return _expression(chance, depth - chance.choice((1, 1, 2)))

    kind = chance.randrange(10)
    if kind < 3:
        return f"({inner()} {chance.choice(_OPERATORS)} {inner()})"
    if kind == 3:
        method = chance.choice(_METHODS if chance.random() < 0.95 else _REFUSED)
        return f"{inner()}.{method}({', '.join(inner() for _ in range(chance.randrange(3)))})"
    if kind == 4:
        return f"({inner()}|{chance.choice(_FILTERS if chance.random() < 0.95 else _STRANGE_FILTERS)})"
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
    return f"range({chance.choice(('9', '99', '999', '9999', '0, 99999, 7'))})|list"


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
        lambda: f"{{% for i in range({chance.choice((9, 99, 999, 9999))}) %}}{inner()}{{% endfor %}}",
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
    body = "".join(f"{_statement(chance, 3)}\n" for _ in range(chance.choice((1, 1, 1, 2, 3, 5))))
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
    return f"{{{{ {_expression(chance, 3)} }}}}" if chance.random() < 0.15 else "1"


def _selector(chance: random.Random) -> str:
    if chance.random() < 0.9:
        return chance.choice(("linux", "py<3", "win", "unix and not osx", "python", "cuda_compiler_version != 'None'"))
    kinds = ("not " * 50 + "win", "(" * 90 + "linux" + ")" * 90, "python * 99999", "environ.get('A')")
    return chance.choice((*kinds, " or ".join(["osx"] * 200), "__import__('os')", "[x for x in y]", "'a' * 10 ** 9"))


#: How a context grows from one value to the next.
_STEPS = (
    *("X ~ X", "[X, X]", "X|replace('a', 'aaa')", "X * 3", "X|join(X)", "X ~ X ~ python", "[X] * 9", "X + X"),
    *("X|list|string", "(X, X)|string", "X|replace('a', X)", "X|batch(2)|list|string", "X|tojson", "X|upper ~ X|lower"),
    *(
        "X|split('a')|join('aaa')",
        "X|indent(9)",
        "'%s%s'|format(X, X)",
        "X[1:] ~ X",
        "X if X == X else 0",
        "X is in(X)",
    ),
)


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

    def some(plain: str) -> str:
        return value() if chance.random() < 0.15 else plain

    context = [f"  {name}: {value()}" for name in "abcd"[: chance.choice((0, 1, 1, 2, 4))]]
    if chance.random() < 0.3:
        step = chance.choice(_STEPS)
        context += [f"  e{n}: ${{{{ {step.replace('X', f'e{n - 1}')} }}}}" for n in range(1, chance.choice((4, 9, 40)))]
    lines = [
        *("context:", "  e0: aaaaaaaa", *context),
        f"package: {{name: {some('p')}, version: {some('1')}}}",
        "build:",
        f"  number: {some('0')}",
        f"  string: {some('x')}",
        f"  skip: [{condition()}]" if chance.random() < 0.2 else "  noarch: generic",
        "requirements:",
        "  host:",
        f"    - {some('python')}",
        *(["    - if: " + condition(), "      then: zlib"] if chance.random() < 0.2 else []),
        *(["tests: [{script: [" + value() + "]}]"] if chance.random() < 0.2 else []),
    ]
    return "\n".join(lines) + "\n"
