"""The statements of a `meta.yaml`, read as a tree and followed: lines with the conditions under which they exist.

Loops are unrolled, and variables replaced by the versions that apply at their place; templates in the lines are written
for rattler-build.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import nodes

from feedstock_tools.to_v1.conditions import NEVER, When, joined, literals, negated
from feedstock_tools.to_v1.expressions import Names, UntranslatableError, names_in, parsed, quoted, text_parts
from feedstock_tools.to_v1.variables import Variables
from feedstock_tools.variants.selectors import split_lines

_STATEMENT = re.compile(r"\{%[-+]?\s*(.*?)\s*[-+]?%\}", re.DOTALL)
_SET = re.compile(r"set\s+(\w+)\s*=\s*(.*)", re.DOTALL)
_FOR = re.compile(r"for\s+(\w+(?:\s*,\s*\w+)*)\s+in\s+(.*)", re.DOTALL)
_MACRO = re.compile(r"macro\s+(\w+)\s*\(([\w\s,]*)\)")
#: An item or key that is there under a condition, in one line.
_LINE_IF = re.compile(
    r"(\s*)\{%[-+]?\s*(if\s(?:(?!%\}).)*?)\s*[-+]?%\}((?:- |\w+: )(?:(?!\{%).)*)\{%[-+]?\s*endif\s*[-+]?%\}\s*"
)
_INLINE_IF = re.compile(
    r"\{%[-+]?\s*if\s((?:(?!%\}).)*?)[-+]?%\}((?:(?!\{%).)*)"
    r"(?:\{%[-+]?\s*else\s*[-+]?%\}((?:(?!\{%).)*))?\{%[-+]?\s*endif\s*[-+]?%\}"
)
_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_TRAILING = re.compile(r"(?:^|\s)#\s*(.*)$")
_SELECTOR_PART = re.compile(r"#(.*?)\[[^\[\]]+\](.*)$")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be converted: the line, counted from 1, and the reason."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text with its templates, without selector; `remark` is the text of a comment after it."""

    text: str
    number: int
    selector: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Remark:
    """A line that is a comment; an empty text is an empty line."""

    text: str
    number: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """`{% set name = expression %}`."""

    name: str
    expression: str
    number: int
    selector: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch of an `if`: its condition, '' for `else`."""

    condition: str
    body: tuple[Statement, ...]
    number: int


@dataclass(frozen=True, slots=True)
class Block:
    """`{% if … %}` to `{% endif %}`."""

    branches: tuple[Branch, ...]
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Loop:
    """`{% for names in expression %}` to `{% endfor %}`."""

    names: tuple[str, ...]
    expression: str
    body: tuple[Statement, ...]
    number: int


@dataclass(frozen=True, slots=True)
class Macro:
    """`{% macro name(parameters) %}` to `{% endmacro %}`."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[Statement, ...]


Statement = TextLine | Remark | Assignment | Block | Loop | Macro


@dataclass(frozen=True, slots=True)
class _Mark:
    """A statement before blocks are put together."""

    words: str
    number: int
    selector: str
    remark: str


@dataclass
class _Reader:
    problems: list[Problem] = field(default_factory=list)

    def tree(self, pieces: Sequence[_Mark | TextLine | Remark]) -> tuple[Statement, ...]:
        self.pieces = list(pieces)
        self.at = 0
        body, end = self._body()
        while end is not None:
            self.problems.append(Problem(end.number, f"'{end.words.split()[0]}' without a beginning"))
            more, end = self._body()
            body += more
        return body

    def _body(self) -> tuple[tuple[Statement, ...], _Mark | None]:
        """Statements up to the one that ends the block."""
        statements: list[Statement] = []
        while self.at < len(self.pieces):
            piece = self.pieces[self.at]
            self.at += 1
            if not isinstance(piece, _Mark):
                statements.append(piece)
                continue
            word = piece.words.partition(" ")[0]
            if word in {"elif", "else", "endif", "endfor", "endmacro", "endset", "endraw"}:
                return tuple(statements), piece
            statements += self._statement(word, piece)
        return tuple(statements), None

    def _statement(self, word: str, mark: _Mark) -> Iterator[Statement]:
        if word == "set" and (match := _SET.fullmatch(mark.words)):
            yield Assignment(match[1], match[2], mark.number, mark.selector, mark.remark)
        elif word == "if":
            yield self._if(mark)
        elif word == "for" and (match := _FOR.fullmatch(mark.words)):
            body, _ = self._body()
            yield Loop(tuple(name.strip() for name in match[1].split(",")), match[2], body, mark.number)
        elif word == "macro" and (match := _MACRO.fullmatch(mark.words)):
            body, _ = self._body()
            yield Macro(match[1], tuple(filter(None, (name.strip() for name in match[2].split(",")))), body)
        else:
            self.problems.append(Problem(mark.number, f"'{{% {word} %}}' has no equivalent in a recipe.yaml"))
            if word in {"macro", "raw"} or (word == "set" and "=" not in mark.words):
                self._body()

    def _if(self, mark: _Mark) -> Block:
        branches = []
        condition, number = mark.words[2:].strip(), mark.number
        while True:
            body, end = self._body()
            branches.append(Branch(condition, body, number))
            if end is None or end.words == "endif":
                return Block(tuple(branches), mark.selector)
            condition, number = end.words[4:].strip() if end.words.startswith("elif") else "", end.number


def read_statements(text: str) -> tuple[tuple[Statement, ...], tuple[Problem, ...]]:
    """The statements of a `meta.yaml`, and the problems with those that cannot be read."""
    reader = _Reader()
    body = reader.tree(list(_pieces(text, reader.problems)))
    return body, tuple(reader.problems)


def _pieces(text: str, problems: list[Problem]) -> Iterator[_Mark | TextLine | Remark]:
    raw = text.splitlines()
    lines = split_lines(text)
    index = 0
    while index < len(lines):
        line, written = lines[index], raw[index].strip()
        index += 1
        if written.startswith("#") or not written:
            yield Remark(written, line.number)
            continue
        chunk, selector = line.text, line.selector or ""
        while index < len(lines) and (_is_open(chunk, "{%", "%}") or _is_open(chunk, "{{", "}}")):
            following = lines[index]
            index += 1
            chunk += f"\n{following.text}"
            if following.selector and not selector:
                problems.append(Problem(following.number, "a selector within a statement of several lines"))
        yield from _split(_COMMENT.sub("", chunk), line.number, selector, _remark(written, selector))


def _is_open(text: str, start: str, end: str) -> bool:
    return text.rfind(start) > text.rfind(end) or (text.count(start) > text.count(end) and end == "%}")


def _remark(written: str, selector: str) -> str:
    """The text of the comment after a line, without its selector."""
    if not selector:
        return ""
    match = _SELECTOR_PART.search(written)
    if match is None:
        return ""
    return " ".join(filter(None, (part.strip().strip("#").strip() for part in match.groups())))


def _split(chunk: str, number: int, selector: str, remark: str) -> Iterator[_Mark | TextLine]:
    """The statements of a line, and its text."""
    if "{%" not in chunk:
        yield TextLine(chunk, number, selector, remark)
        return
    if "\n" not in chunk and (line := _LINE_IF.fullmatch(chunk)):
        yield _Mark(line[2], number, "", "")
        yield TextLine(line[1] + line[3].rstrip(), number, selector, remark)
        yield _Mark("endif", number, "", "")
        return
    chunk = _INLINE_IF.sub(_as_expression, chunk) if "\n" not in chunk else chunk
    statements = [match[1] for match in _STATEMENT.finditer(chunk)]
    text = _STATEMENT.sub("", chunk)
    trailing = _TRAILING.match(text.strip()) if text.strip().startswith("#") else None
    if not text.strip() or trailing:
        for statement in statements:
            yield _Mark(statement, number, selector, remark or (trailing[1] if trailing else ""))
        return
    ends = [statement for statement in statements if statement.startswith("end")]
    before = [statement for statement in statements if statement not in ends]
    for statement in before:
        yield _Mark(statement, number, selector, remark)
    yield TextLine(text, number, selector, remark)
    for statement in ends:
        yield _Mark(statement, number, selector, remark)


def _as_expression(match: re.Match[str]) -> str:
    """`{% if a %}b{% else %}c{% endif %}` within a line, as an expression."""
    value, otherwise = _joined(match[2]), _joined(match[3] or "")
    return f"{{{{ ({value}) if ({match[1].strip()}) else ({otherwise}) }}}}"


def _joined(text: str) -> str:
    """A text with templates as one expression."""
    parts = [f"({piece})" if is_template else quoted(piece) for is_template, piece in text_parts(text)]
    return " ~ ".join(parts) or '""'


#: The most lines of a comment at the start of a file that is about the line after it.
_LONGEST_NOTE = 2
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
    notes: tuple[Problem, ...] = ()


def flattened(text: str, path: Path, names: Names) -> FlatRecipe:
    """Follow the statements of a `meta.yaml`."""
    statements, problems = read_statements(text)
    follower = _Follower(Variables(path, names), names, list(problems))
    follower.follow(statements, (), first=True)
    if follower.pending:
        follower.lines.append(FlatLine("", (), len(text.splitlines()), tuple(follower.pending)))
    return FlatRecipe(
        follower.lines, follower.variables, follower.problems, tuple(follower.head), tuple(follower.notes)
    )


@dataclass
class _Follower:
    variables: Variables
    names: Names
    problems: list[Problem]
    lines: list[FlatLine] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    head: list[str] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
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
                case Assignment():
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
        elif self._is_at_start():
            self.head += [*self.pending, ""]
            self.pending.clear()

    def _is_at_start(self) -> bool:
        return bool(self.pending) and not self.lines and not self.variables.versions

    def _pending_comments(self) -> tuple[str, ...]:
        if len(self.pending) > _LONGEST_NOTE and self._is_at_start():  # a license or what the whole recipe is for
            self._remark(Remark("", 0))
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
        self.lines.append(FlatLine(text, selected, line.number, self._pending_comments(), line.remark))

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
                self._note_date(piece, line.number)
            except UntranslatableError as error:
                self.problems.append(Problem(line.number, f"'{{{{ {piece} }}}}': {error}"))
                parts.append("UNCONVERTED")
                continue
            node = parsed(expression)
            parts.append(str(node.value) if isinstance(node, nodes.Const) else f"{{{{ {expression} }}}}")
        return "".join(parts)

    def _note_date(self, expression: str, number: int) -> None:
        if "datetime." in expression:
            reason = "rattler-build computes no dates: change the date that is written out with what it follows from"
            self.notes.append(Problem(number, reason))

    def _set(self, setting: Assignment, when: When) -> None:
        selected = self._selected(when, setting.selector, setting.number)
        comments = self._pending_comments()
        if selected == NEVER:
            return
        try:
            self.variables.assign(setting.name, setting.expression, selected, setting.number, comments, setting.remark)
            self._note_date(setting.expression, setting.number)
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
            node = parsed(loop.expression)
            if isinstance(node, nodes.CondExpr) and {name.name for name in names_in(node.test)} & {*loop.names}:
                raise UntranslatableError("a loop with a condition for its items has no equivalent in a recipe.yaml")
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
