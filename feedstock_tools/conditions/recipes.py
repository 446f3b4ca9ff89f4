"""Conditions of recipes: selectors of a `meta.yaml` (Python) and expressions of a `recipe.yaml` (Jinja).

Python parses both. Of Jinja it is given `@` for `|` and `^` for `~`, operators that bind as closely; they stand only in
parts that a condition does not look into.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from feedstock_tools.conditions import tree

Language = Literal["selector", "expression"]
#: Longer conditions are not read, and deeper ones.
_LONGEST, _DEEPEST = 10_000, 20
#: Texts in quotes, and what Python reads in another way than Jinja.
_FOREIGN = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[|~@#\r\n]", re.DOTALL)
_CONSTANTS: dict[Language, dict[str, tree.Scalar]] = {
    "selector": {},
    "expression": {"true": True, "false": False, "none": None},
}
_SIGNS: dict[type[ast.cmpop], str] = {
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.In: "in", ast.NotIn: "not in"},
}


@lru_cache(maxsize=8192)
def parse(text: str, language: Language) -> tree.Condition | None:
    """A condition of a recipe as a tree; None if it is not an expression.

    >>> parse("linux and py >= 310", "selector")
    And(parts=(Name(name='linux'), Compare(left=Name(name='py'), operator='>=', right=Constant(value=310))))
    >>> parse("linux and", "selector") is None
    True
    """
    try:
        return _Reader(text, language).condition()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def unbracketed(text: str) -> str:
    """An expression without the brackets around all of it.

    >>> unbracketed("(a or b)"), unbracketed("(a) or (b)")
    ('a or b', '(a) or (b)')
    """
    try:
        reader = _Reader(text, "expression")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    return text[slice(*reader.own_span(reader.root))]


class _Reader:
    """Reads the part of both languages that makes a condition; anything else is a leaf."""

    def __init__(self, text: str, language: Language) -> None:
        """Parse a text.

        Raises:
            ValueError: it is no expression; the same for SyntaxError, RecursionError and MemoryError.
        """
        self.text, self.language = text, language
        if len(text) > _LONGEST:
            raise ValueError("too long")
        written = _FOREIGN.sub(self._in_python, text)
        self._start = len(written) - len(written.lstrip())
        with warnings.catch_warnings():  # of Python, about comparisons and escapes
            warnings.simplefilter("ignore")
            self.root = self._parsed(written.strip())

    def condition(self) -> tree.Condition:
        return self._condition(self.root)

    def own_span(self, node: ast.expr) -> tree.Span:
        """The characters of a node, without brackets around it."""
        ends = (node.col_offset, node.end_col_offset or 0)
        if not self.text.isascii():
            encoded = self.text[self._start :].encode()
            ends = (len(encoded[: ends[0]].decode()), len(encoded[: ends[1]].decode()))
        return self._start + ends[0], min(self._start + ends[1], len(self.text.rstrip()))

    def _in_python(self, match: re.Match[str]) -> str:
        if match[0] in ("\r", "\n"):
            return " "
        if match[0] == "#" or (match[0] == "@" and self.language == "expression"):
            raise ValueError("no part of an expression")
        return {"|": "@", "~": "^"}.get(match[0], match[0]) if self.language == "expression" else match[0]

    def _parsed(self, text: str) -> ast.expr:
        try:
            return ast.parse(text, mode="eval").body
        except SyntaxError:
            if self.language == "expression" and " if " in text:  # without `else`
                return ast.parse(f"{text} else None", mode="eval").body
            raise

    def _span(self, node: ast.expr) -> tree.Span:
        """The characters of a node, with brackets around it."""
        start, end = self.own_span(node)
        before, after = self.text[:start].rstrip(), self.text[end:].lstrip()
        while before.endswith("(") and after.startswith(")"):
            start, end = len(before) - 1, len(self.text) - len(after) + 1
            before, after = self.text[:start].rstrip(), self.text[end:].lstrip()
        return start, end

    def _condition(self, node: ast.expr, depth: int = 0) -> tree.Condition:
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        match node:
            case ast.BoolOp(operator, values):
                parts = tuple(self._condition(value, depth + 1) for value in values)
                return (tree.And if isinstance(operator, ast.And) else tree.Or)(parts, span=self._span(node))
            case ast.UnaryOp(ast.Not(), operand):
                return tree.Not(self._condition(operand, depth + 1), span=self._span(node))
            case ast.Compare(first, operators, others) if all(type(each) in _SIGNS for each in operators):
                sides = [self._operand(side) for side in (first, *others)]
                compared = tuple(
                    tree.Compare(left, _SIGNS[type(each)], right, span=(left.span[0], right.span[1]))
                    for left, each, right in zip(sides, operators, sides[1:], strict=False)
                )
                span = self._span(node)
                return replace(compared[0], span=span) if len(compared) == 1 else tree.And(compared, span=span)
        return self._operand(node)

    def _operand(self, node: ast.expr) -> tree.Name | tree.Constant | tree.Items | tree.Match | tree.Other:
        span = self._span(node)
        match node:
            case ast.Name(name) if name not in _CONSTANTS[self.language]:
                return tree.Name(name, span=span)
            case ast.Tuple(items) | ast.List(items):
                parts = [self._operand(item) for item in items]
                values = tuple(part.value for part in parts if isinstance(part, tree.Constant))
                if len(values) == len(parts):
                    return tree.Items(values, span=span)
            case ast.Call(ast.Name("match"), [ast.Name(name), ast.Constant(str(spec))], []):
                return tree.Match(name, spec, span=span)
            case ast.Name(name):
                return tree.Constant(_CONSTANTS[self.language][name], span=span)
            case ast.Constant(None | str() | bool() | int() | float() as value):
                return tree.Constant(value, span=span)
        text = self.text[slice(*self.own_span(node))]
        is_loose = isinstance(node, ast.IfExp | ast.Lambda) or (isinstance(node, ast.Tuple) and text[:1] != "(")
        return tree.Other(text, frozenset(self._names(node)), is_loose, span=span)

    def _names(self, node: ast.AST) -> Iterator[str]:
        """The names that a part reads: no functions, attributes, keywords of calls, filters or tests."""
        skipped: tuple[ast.AST, ...] = ()
        match node:
            case ast.Name(name) if name not in _CONSTANTS[self.language]:
                yield name
            case ast.Call(ast.Name() as function):
                skipped = (function,)
            case ast.BinOp(op=ast.MatMult(), right=ast.Name() as function):
                skipped = (function,)
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=tests) if self.language == "expression":
                skipped = tuple(test for test in tests if isinstance(test, ast.Name))
        for child in ast.iter_child_nodes(node):
            if child not in skipped:
                yield from self._names(child)
