"""Reading bld.bat: `set`, `if` with blocks, as far as they can be known without running anything."""

from __future__ import annotations

import re
from collections.abc import Iterator

from feedstock_tools.check.architecture_lists import argument_pattern
from feedstock_tools.check.scripts.tree import Assignment, Choice, Exit, Node, command_of_nvcc
from feedstock_tools.conditions.tree import Compare, Condition, Constant, Not, Other, Reference, Text

_SET = re.compile(r'^set\s+(?:"(?P<quoted>[^"]*)"|(?P<plain>.*))', re.IGNORECASE)
_IF = re.compile(r"^if\s+(?P<rest>.*)$", re.IGNORECASE)
_COMPARED = re.compile(
    r'^(?P<negated>not\s+)?(?:/i\s+)?(?P<left>"[^"]*"|\S+?)\s*==\s*(?P<right>"[^"]*"|[^\s("]+)\s*(?P<then>.*)$', re.I
)
_VARIABLE = re.compile(r"%(?P<name>\w+)(?::~0,(?P<length>\d+))?%|!(?P<late>\w+)!")
_ARGUMENT = argument_pattern(r'"[^"]*"|[^\s"^]+')


def read_batch(text: str) -> tuple[Node, ...]:
    """The tree of a batch script: `set`, `if`, `exit`, arguments with lists and calls of nvcc."""
    return _Reader(list(_lines(text))).block()


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, without comments, continued lines joined."""
    pending, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip().lstrip("@").strip()
        if not pending and (stripped.lower().split(" ")[0] in ("rem", "") or stripped.startswith("::")):
            continue
        start = number if not pending else start
        pending += stripped
        if pending.endswith("^"):
            pending = f"{pending[:-1]} "
            continue
        yield start, pending
        pending = ""


class _Reader:
    """Walks the lines once."""

    def __init__(self, lines: list[tuple[int, str]]) -> None:
        self._lines = lines
        self._at = 0

    def block(self) -> tuple[Node, ...]:
        """The nodes up to a line that begins with `)`, which is left to the caller."""
        nodes: list[Node] = []
        while self._at < len(self._lines):
            line, text = self._lines[self._at]
            if text.startswith(")"):
                break
            self._at += 1
            match = _IF.match(text)
            if match:
                nodes.append(self._choice(line, match["rest"]))
            elif text.endswith("(") and not text.lower().startswith("set"):
                nodes += self.block()  # the body of a loop
                self._at += 1
            else:
                nodes += _simple(line, text)
        return tuple(nodes)

    def _choice(self, line: int, rest: str) -> Node:
        branches: list[tuple[Condition, tuple[Node, ...]]] = []
        while True:
            condition, then = _condition(rest)
            if then != "(":
                branches.append((condition, tuple(_simple(line, then))))
                return Choice(tuple(branches))
            branches.append((condition, self.block()))
            if self._at >= len(self._lines):
                return Choice(tuple(branches))
            line, closing = self._lines[self._at]
            self._at += 1
            after = re.match(r"^\)\s*else\s*(?P<rest>.*)$", closing, re.IGNORECASE)
            if after is None:
                return Choice(tuple(branches))
            again = _IF.match(after["rest"])
            if again is None:
                one_line = after["rest"].strip() != "("
                branches.append((Constant(True), tuple(_simple(line, after["rest"])) if one_line else self.block()))
                self._at += 0 if one_line else 1
                return Choice(tuple(branches))
            rest = again["rest"]


def _condition(rest: str) -> tuple[Condition, str]:
    """A condition, and what follows it: `(` or a command."""
    match = _COMPARED.match(rest)
    if match is None:
        return Other(rest), "(" if rest.rstrip().endswith("(") else rest.split(None, 1)[-1]
    same = Compare(_text(match["left"]), "==", _text(match["right"]))
    return Not(same) if match["negated"] else same, match["then"].strip()


def _simple(line: int, text: str) -> Iterator[Node]:
    nested = _IF.match(text)
    if nested:
        condition, then = _condition(nested["rest"])
        yield Choice(((condition, tuple(_simple(line, then))),))
        return
    if text.lower().startswith("exit"):
        yield Exit()
        return
    match = _SET.match(text)
    if match:
        name, _, value = (match["quoted"] if match["quoted"] is not None else match["plain"]).partition("=")
        yield Assignment(line, name.strip(), _text(value))
    else:
        yield from command_of_nvcc(line, text, _text)
    for argument in _ARGUMENT.finditer(text):
        yield Assignment(line, argument["defined"] or argument["plain"], _text(argument["value"]))


def _text(written: str) -> Text:
    bare = written.replace('"', "")
    parts: list[str | Reference] = []
    end = 0
    for match in _VARIABLE.finditer(bare):
        length = int(match["length"]) if match["length"] else None
        parts += [bare[end : match.start()], Reference(match["name"] or match["late"], length=length)]
        end = match.end()
    return Text((*parts, bare[end:]))
