"""A `meta.yaml` without statements: each line with the conditions under which it exists, loops unrolled.

Statements that set variables are followed; templates in the lines are written for rattler-build, and name the versions
of variables that apply at their place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import nodes

from feedstock_tools.to_v1.template.conditions import NEVER, When, joined, literals, negated
from feedstock_tools.to_v1.template.expressions import UntranslatableError, parsed, text_parts
from feedstock_tools.to_v1.template.names import Names
from feedstock_tools.to_v1.template.statements import (
    Block,
    Loop,
    Macro,
    Problem,
    Remark,
    Setting,
    Statement,
    TextLine,
    read_statements,
)
from feedstock_tools.to_v1.template.variables import Variables

#: More lines than any recipe has once its loops are unrolled.
_MOST_LINES = 20_000
#: A line that is a call of a macro.
_CALL = re.compile(r"\s*\{\{-?\s*(\w+)\((.*)\)\s*-?\}\}\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FlatLine:
    """A line of text, its conditions, the line of the file it comes from, and the comments above and after it."""

    text: str
    when: When
    number: int
    comments: tuple[str, ...] = ()
    remark: str = ""


@dataclass
class FlatRecipe:
    """The lines of a recipe, its variables, and what could not be converted."""

    lines: list[FlatLine]
    variables: Variables
    problems: list[Problem]
    head: tuple[str, ...] = ()


def flattened(text: str, path: Path, names: Names) -> FlatRecipe:
    """Follow the statements of a `meta.yaml`.

    Raises:
        InputError: it has too many lines, or too long ones.
    """
    statements, problems = read_statements(text)
    follower = _Follower(Variables(path, names), names, list(problems))
    follower.follow(statements, (), first=True)
    if follower.pending:
        follower.lines.append(FlatLine("", (), len(text.splitlines()), tuple(follower.pending)))
    return FlatRecipe(follower.lines, follower.variables, follower.problems, tuple(follower.head))


@dataclass
class _Follower:
    variables: Variables
    names: Names
    problems: list[Problem]
    lines: list[FlatLine] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    head: list[str] = field(default_factory=list)
    repetitions: int = 0
    macros: dict[str, Macro] = field(default_factory=dict)

    def follow(self, statements: Sequence[Statement], when: When, *, first: bool) -> None:
        """Follow statements under conditions; `first` is false for the repetitions of a loop, without comments."""
        for statement in statements:
            match statement:
                case Remark():
                    if first:
                        self._remark(statement)
                    if not statement.text and self.lines:
                        self.lines.append(FlatLine("", when, statement.number))
                case TextLine():
                    self._text(statement, when)
                case Setting():
                    self._set(statement, when)
                case Block():
                    self._block(statement, when, first=first)
                case Loop():
                    self._loop(statement, when, first=first)
                case Macro():
                    self.macros[statement.name] = statement

    def _remark(self, remark: Remark) -> None:
        if remark.text:
            self.pending.append(remark.text)
        elif self.pending and not self.lines and not self.variables.versions:
            self.head += [*self.pending, ""]
            self.pending.clear()

    def _taken(self) -> tuple[str, ...]:
        taken = tuple(self.pending)
        self.pending.clear()
        return taken

    def _conditions(self, expression: str, number: int, when: When = (), *, selector: bool) -> When:
        """The conditions in an expression; one without an equivalent is a problem, and never holds."""
        try:
            if selector:
                return literals(expression, self.names, selector=True)
            text = self.variables.translated(expression, when)
            return literals(text, self.names, frozenset(self.variables.versions))
        except UntranslatableError as error:
            kind = "selector" if selector else "condition"
            self.problems.append(Problem(number, f"the {kind} '{expression}': {error}"))
            return NEVER

    def _selected(self, when: When, selector: str, number: int) -> When:
        return joined(when, self._conditions(selector, number, selector=True)) if selector else when

    def _text(self, line: TextLine, when: When) -> None:
        selected = self._selected(when, line.selector, line.number)
        if selected == NEVER:
            return
        call = _CALL.fullmatch(line.text)
        if call and call[1] in self.macros:
            self._call(self.macros[call[1]], call[2], selected)
            return
        if len(self.lines) >= _MOST_LINES:
            raise UntranslatableError(f"the recipe has more than {_MOST_LINES} lines with its loops unrolled")
        text = self._translated(line, selected)
        self.lines.append(FlatLine(text, selected, line.number, self._taken(), line.remark))

    def _call(self, macro: Macro, argument_text: str, when: When) -> None:
        """The lines of a macro in place of its call."""
        self._repeat()
        values = self.variables.resolved(f"[{argument_text}]", when)
        arguments = values.items if isinstance(values, nodes.List) else []
        kept = dict(self.variables.loop)
        self.variables.loop = {**kept, **dict(zip(macro.parameters, arguments, strict=False))}
        self.follow(macro.body, when, first=False)
        self.variables.loop = kept

    def _repeat(self) -> None:
        self.repetitions += 1
        if self.repetitions > _MOST_LINES:
            raise UntranslatableError(f"its loops and macros repeat more than {_MOST_LINES} times")

    def _translated(self, line: TextLine, when: When) -> str:
        parts = []
        for is_template, piece in text_parts(line.text):
            if not is_template:
                parts.append(piece)
                continue
            try:
                expression = self.variables.translated(piece, when)
            except UntranslatableError as error:
                self.problems.append(Problem(line.number, f"'{{{{ {piece} }}}}': {error}"))
                parts.append("UNCONVERTED")
                continue
            node = parsed(expression)
            parts.append(str(node.value) if isinstance(node, nodes.Const) else f"{{{{ {expression} }}}}")
        return "".join(parts)

    def _set(self, setting: Setting, when: When) -> None:
        selected = self._selected(when, setting.selector, setting.number)
        comments = self._taken()
        if selected == NEVER:
            return
        try:
            self.variables.assign(setting.name, setting.expression, selected, setting.number, comments, setting.remark)
        except UntranslatableError as error:
            self.problems.append(Problem(setting.number, f"'{{% set {setting.name} %}}': {error}"))

    def _block(self, block: Block, when: When, *, first: bool) -> None:
        before: When = ()
        if block.selector:
            self.problems.append(Problem(block.branches[0].number, "a selector on a line with 'if'"))
        for branch in block.branches:
            own = self._conditions(branch.condition, branch.number, when, selector=False) if branch.condition else ()
            inner = joined(when, before, own)
            if inner != NEVER:
                self.follow(branch.body, inner, first=first)
            before = joined(before, negated(own))

    def _loop(self, loop: Loop, when: When, *, first: bool) -> None:
        try:
            items = list(self.variables.items(self.variables.resolved(loop.expression, when), loop.expression))
        except UntranslatableError as error:
            self.problems.append(Problem(loop.number, f"'{{% for %}}': {error}"))
            return
        kept = dict(self.variables.loop)
        for index, (own, item) in enumerate(items):
            inner = joined(when, own)
            self._repeat()
            if inner == NEVER:
                continue
            self.variables.loop = {**kept, **_bound(loop.names, item)}
            self.follow(loop.body, inner, first=first and index == 0)
        self.variables.loop = kept


def _bound(names: Sequence[str], item: nodes.Expr) -> dict[str, nodes.Expr]:
    if len(names) == 1:
        return {names[0]: item}
    if isinstance(item, nodes.Tuple | nodes.List) and len(item.items) == len(names):
        return dict(zip(names, item.items, strict=True))
    return {}
