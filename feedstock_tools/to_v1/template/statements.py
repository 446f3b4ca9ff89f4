"""The statements of a `meta.yaml` as a tree: lines of text, `set`, and the blocks of `if` and `for`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from feedstock_tools.to_v1.template.expressions import quoted, text_parts
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
class Setting:
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


Statement = TextLine | Remark | Setting | Block | Loop | Macro


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
            yield Setting(match[1], match[2], mark.number, mark.selector, mark.remark)
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
    """The statements of a `meta.yaml`, and the problems with those that cannot be read.

    Raises:
        InputError: there are too many lines, or too long ones.
    """
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
