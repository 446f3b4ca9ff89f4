"""Expressions of Jinja as trees, texts with such expressions in them, and the names that both formats know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from jinja2 import nodes

from feedstock_tools.recipe.v1.expressions import node_of

#: conda-build's names for platforms that rattler-build has too.
PLATFORMS = frozenset(
    {"linux", "osx", "win", "unix", "linux64", "linux32", "win64", "win32"}
    | {"x86_64", "aarch64", "arm64", "ppc64le", "s390x", "riscv64", "target_platform", "build_platform"}
)
#: Names of conda-build and what they are in rattler-build.
RENAMED = {
    "PKG_HASH": "hash",
    "PKG_BUILDNUM": "build_number",
    "PKG_VERSION": "version",
    "PKG_NAME": "name",
    "CONDA_PY": "python | version_to_buildstring",
    "PY_VER": '(python | split("."))[:2] | join(".")',
    "CONDA_NPY": '(numpy | split("."))[:2] | join("")',
    "NPY_VER": '(numpy | split("."))[:2] | join(".")',
    "x86": "x86_64",
    "py3k": 'match(python, ">=3")',
    "py2k": 'match(python, "<3")',
    "ARCH": '(target_platform | split("-"))[1]',
    "SUBDIR": "target_platform",
}
#: Names that are defined while scripts and tests run.
OF_SCRIPTS = frozenset({"PYTHON", "PREFIX", "BUILD_PREFIX", "RECIPE_DIR", "SRC_DIR", "SP_DIR", "SHLIB_EXT", "R"})


@dataclass(frozen=True)
class Names:
    """The keys of a feedstock's variants with all their values.

    `always` are those that every configuration sets: only these can be read without a default, since rattler-build
    refuses what is undefined. `looping` have several values in one configuration: whatever reads such a key is built
    once for each value.
    """

    values: Mapping[str, frozenset[str]] = field(default_factory=dict)
    always: frozenset[str] = frozenset()
    looping: frozenset[str] = frozenset({"python", "numpy"})

    def truth_of(self, key: str) -> frozenset[str]:
        """The values of a key that conda-build takes for false although they are text."""
        return frozenset(value for value in self.values.get(key, ()) if value.lower() in {"false", "0"})

    def are_numbers(self, key: str) -> bool:
        values = self.values.get(key)
        return bool(values) and all(value.isdecimal() for value in values or ())


def names_of(configurations: Iterable[Mapping[str, tuple[str, ...]]]) -> Names:
    """The keys in the values of some configurations.

    >>> sorted(names_of([{"mpi": ("nompi",)}, {"mpi": ("openmpi",), "python": ("3.12",)}]).always)
    ['mpi']
    """
    values: dict[str, set[str]] = {}
    always: set[str] | None = None
    looping = {"python", "numpy"}
    for configuration in configurations:
        for key, texts in configuration.items():
            values.setdefault(key, set()).update(texts)
        looping |= {key for key, texts in configuration.items() if len(set(texts)) > 1}
        always = set(configuration) if always is None else always & set(configuration)
    return Names({key: frozenset(texts) for key, texts in values.items()}, frozenset(always or ()), frozenset(looping))


_LOOSE = nodes.CondExpr | nodes.And | nodes.Or | nodes.Not | nodes.Compare | nodes.Concat


class Level(IntEnum):
    """How strongly expressions bind, the loosest first."""

    CONDITIONAL = 1
    OR = 2
    AND = 3
    NOT = 4
    COMPARE = 5
    CONCAT = 6
    ADD = 7
    MULTIPLY = 8
    FILTER = 9
    ATOM = 10


class UntranslatableError(Exception):
    """rattler-build has no equivalent of an expression; the message names the part."""


def parsed(expression: str) -> nodes.Expr:
    """The tree of an expression, which callers must not change."""
    node = node_of(expression)
    if node is None:
        raise UntranslatableError(f"'{expression[:100]}' is not an expression of Jinja")
    return node


def quoted(text: str) -> str:
    """A text as a literal of an expression.

    >>> quoted('say "a"')
    '\\'say "a"\\''
    """
    if '"' in text and "'" not in text and "\\" not in text:
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_TEMPLATE = re.compile(r"\{\{-?(.*?)-?\}\}", re.DOTALL)


def text_parts(text: str) -> tuple[tuple[bool, str], ...]:
    """A text with templates in pieces: whether a piece is an expression, and the expression or the text."""
    pieces = _TEMPLATE.split(text)
    return tuple((index % 2 == 1, piece.strip() if index % 2 else piece) for index, piece in enumerate(pieces) if piece)


def is_text(node: nodes.Node) -> bool:
    """Whether a value is certainly a text, so that adding to it joins texts."""
    match node:
        case nodes.Const():
            return isinstance(node.value, str)
        case nodes.Concat():
            return True
        case nodes.Add():
            return is_text(node.left) or is_text(node.right)
        case nodes.CondExpr():
            return is_text(node.expr1) or (node.expr2 is not None and is_text(node.expr2))
        case nodes.Filter():
            return node.name in {"replace", "join", "string", "lower", "upper", "trim"}
        case nodes.Call() if isinstance(node.node, nodes.Getattr):
            return node.node.attr in {"replace", "join", "lower", "upper", "strip"}
    return False


def names_in(node: nodes.Node) -> list[nodes.Name]:
    """The names in an expression, with repetitions."""
    return [node] if isinstance(node, nodes.Name) else list(node.find_all(nodes.Name))


def constant(value: object) -> str:
    """A literal for a value."""
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value)


def bare_text(node: nodes.Expr) -> nodes.Expr:
    """A part of a joined text without the filter that makes it a text."""
    return node.node if isinstance(node, nodes.Filter) and node.name == "string" and node.node is not None else node


def is_nothing(node: nodes.Node) -> bool:
    return (isinstance(node, nodes.Const) and node.value is None) or (
        isinstance(node, nodes.Name) and node.name in {"undefined", "None", "none"}
    )


def is_environment(node: nodes.Node) -> bool:
    """Whether an expression is the environment of the build."""
    if isinstance(node, nodes.Getattr):
        return node.attr == "environ"
    return isinstance(node, nodes.Name) and node.name in {"environ", "os"}


def expression_of(text: str) -> str:
    """A text with templates as one expression.

    >>> expression_of("h{{ hash }}_{{ build }}")
    '"h" ~ hash ~ "_" ~ build'
    """
    parts = text_parts(text)
    if len(parts) == 1 and parts[0][0]:
        return parts[0][1]
    return " ~ ".join(_operand(piece) if is_template else quoted(piece) for is_template, piece in parts) or '""'


def _operand(expression: str) -> str:
    return f"({expression})" if isinstance(parsed(expression), _LOOSE) else expression
