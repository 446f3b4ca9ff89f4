"""Expressions of Jinja as trees, and texts with such expressions in them."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import Protocol

from jinja2 import Environment, TemplateSyntaxError, nodes

from feedstock_tools.to_v1.template.names import Names

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


class Writing(Protocol):
    """A writer of expressions: the parts of `writing.Writer` that others call."""

    names: Names
    own: frozenset[str]
    selector: bool
    is_done: bool

    def text(self, node: nodes.Node | None, level: int) -> str:
        """The text of a node, in brackets if it binds more loosely than `level`."""

    def name(self, name: str) -> tuple[str, int]:
        """A name, and how strongly its text binds."""

    def is_variant(self, name: str) -> bool:
        """Whether a name is that of a key of variants."""


class UntranslatableError(Exception):
    """rattler-build has no equivalent of an expression; the message names the part."""


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(autoescape=True)


@lru_cache(maxsize=8192)
def parsed(expression: str) -> nodes.Expr:
    """The tree of an expression, which callers must not change.

    Raises:
        UntranslatableError: it is not an expression.
    """
    try:
        body = _environment().parse("{{ (" + expression + ") }}").body
    except (TemplateSyntaxError, RecursionError) as error:
        raise UntranslatableError(f"'{expression[:100]}' is not an expression of Jinja") from error
    if len(body) != 1 or not isinstance(body[0], nodes.Output) or len(body[0].nodes) != 1:
        raise UntranslatableError(f"'{expression[:100]}' is not an expression of Jinja")
    return body[0].nodes[0]


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
    """Whether an expression is None or undefined."""
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
