"""Reading build.sh: assignments, `if` and `case`, as far as they can be known without running anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from feedstock_tools.check.architecture_lists import argument_pattern
from feedstock_tools.check.scripts.tree import Assignment, Choice, Exit, Node, command_of_nvcc
from feedstock_tools.conditions.tree import And, Compare, Condition, Constant, Edit, Not, Or, Other, Reference, Text

_ASSIGNMENT = re.compile(
    r"(?:(?:export|local|readonly|declare(?:\s+-\w+)?)\s+)?(?P<name>[A-Za-z_]\w*)(?P<more>\+?)=(?P<value>\"[^\"]*\"|'[^']*'|[^\s;&|]*)"
)
_ARGUMENT = argument_pattern(r"\"[^\"]*\"|'[^']*'|[^\s\"')]+")
_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)(?P<rest>[^}]*)\}|(?P<plain>\w+))")
_PATTERN = re.compile(r"^\s*\(?(?P<patterns>[^()]+)\)\s*(?P<rest>.*)$")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(?P<end>\w+)['\"]?\s*$")
#: What follows a variable's name in braces, and its meaning.
_EDITS: Mapping[str, Edit] = {
    "": "none",
    ":-": "none",
    "-": "none",
    "%%.*": "first part",
    "/./": "without first dot",
    "//./": "without dots",
}
_UNKNOWN = Text(None)


def read_shell(text: str) -> tuple[Node, ...]:
    """The tree of a shell script: assignments, `if`, `case`, `exit`, arguments with lists and calls of nvcc."""
    return _Reader(_statements(text)).block()


def _statements(text: str) -> list[tuple[int, str]]:
    """Lines with their numbers, without comments and here-documents, continued lines joined, cut at `;` outside
    quotes."""
    statements: list[tuple[int, str]] = []
    ending, pending, start = None, "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if ending is not None:
            ending = None if line.strip() == ending else ending
            continue
        start = number if not pending else start
        pending += line
        if pending.endswith("\\"):
            pending = pending[:-1] + " "
            continue
        heredoc = _HEREDOC.search(pending)
        ending = heredoc["end"] if heredoc else None
        statements += [(start, part) for part in _parts(pending)]
        pending = ""
    return statements


def _parts(line: str) -> Iterator[str]:
    """The commands of a line; `;;` stays a part of its own."""
    part, quote = "", ""
    for at, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "#" and (not part or part[-1].isspace()):
            break
        elif character == ";":
            if line[at - 1 : at] == ";" and not part.strip():
                yield ";;"
            elif part.strip():
                yield part.strip()
            part = ""
            continue
        part += character
    if part.strip():
        yield part.strip()


class _Reader:
    """Walks the statements once."""

    def __init__(self, statements: list[tuple[int, str]]) -> None:
        self._statements = statements
        self._at = 0

    def block(self, *ends: str) -> tuple[Node, ...]:
        """The nodes up to one of the words in `ends`, which is left to the caller."""
        nodes: list[Node] = []
        while self._at < len(self._statements):
            line, text = self._statements[self._at]
            word = text.split(None, 1)[0]
            if word in ends:
                break
            self._at += 1
            if word in ("if", "elif"):
                nodes.append(self._choice(text[len(word) :]))
            elif word == "case":
                nodes.append(self._case(text))
            elif word in ("then", "else", "do"):
                self._statements[self._at - 1 : self._at] = [(line, text[len(word) :].strip() or ":")]
                self._at -= 1
            else:
                nodes += _simple(line, text)
        return tuple(nodes)

    def _choice(self, condition: str) -> Node:
        branches = []
        test = self._whole(condition)
        while True:
            branches.append((_condition(test), self.block("elif", "else", "fi")))
            if self._at >= len(self._statements):
                break
            word = self._statements[self._at][1].split(None, 1)[0]
            rest = self._statements[self._at][1][len(word) :].strip()
            self._at += 1
            if word == "elif":
                test = self._whole(rest)
            elif word == "else":
                if rest:
                    self._statements.insert(self._at, (self._statements[self._at - 1][0], rest))
                branches.append((Constant(True), self.block("fi")))
                self._at += 1
                break
            else:
                break
        return Choice(tuple(branches))

    def _whole(self, condition: str) -> str:
        """A condition that spans several lines, up to its `then`."""
        while self._at < len(self._statements):
            text = self._statements[self._at][1]
            if text.split(None, 1)[0] == "then":
                break
            condition = f"{condition} {text}"
            self._at += 1
        return condition.strip()

    def _case(self, text: str) -> Node:
        match = re.match(r"case\s+(?P<word>.+?)\s+in\b\s*(?P<rest>.*)$", text)
        subject = _text(match["word"]) if match else _UNKNOWN
        if match and match["rest"]:
            self._statements.insert(self._at, (self._statements[self._at - 1][0], match["rest"]))
        branches = []
        while self._at < len(self._statements) and self._statements[self._at][1] != "esac":
            line, first = self._statements[self._at]
            pattern = _PATTERN.match(first)
            self._at += 1
            if pattern is None:
                continue
            if pattern["rest"]:
                self._statements.insert(self._at, (line, pattern["rest"]))
            branches.append((_matches(subject, pattern["patterns"]), self.block(";;", "esac")))
        self._at += 1
        return Choice(tuple(branches))


def _simple(line: int, text: str) -> Iterator[Node]:
    """One command: an assignment, an exit, arguments of cmake, a call of nvcc, or `condition && command`."""
    test, operator, command = text.partition("&&")
    if operator and test.strip().startswith("["):
        yield Choice(((_condition(test), tuple(_simple(line, command.strip()))),))
        return
    if text.split(None, 1)[0] == "exit":
        yield Exit()
        return
    match = _ASSIGNMENT.match(text)
    if match:
        value = _text(match["value"])
        yield Assignment(line, match["name"], _joined(match["name"], value) if match["more"] else value)
    else:
        yield from command_of_nvcc(line, text, _text)
    for argument in _ARGUMENT.finditer(text):
        yield Assignment(line, argument["defined"] or argument["plain"], _text(argument["value"]))


def _text(written: str) -> Text:
    """A word with variables; single quotes keep it unchanged, and a command in it makes it unknown."""
    if written[:1] == "'" and written[-1:] == "'":
        return Text((written[1:-1],))
    bare = written.replace('"', "").replace("\\;", ";")
    if "$(" in bare or "`" in bare or bare.startswith("("):
        return _UNKNOWN
    parts: list[str | Reference] = []
    end = 0
    for match in _VARIABLE.finditer(bare):
        parts += [bare[end : match.start()], Reference(match["braced"] or match["plain"], _edit(match["rest"] or ""))]
        end = match.end()
    return Text((*parts, bare[end:]))


def _edit(rest: str) -> Edit:
    """The meaning of what follows a variable's name in braces."""
    if rest in _EDITS:
        return _EDITS[rest]
    return "if set" if rest.startswith((":-", "-")) else "unknown"


def _joined(name: str, value: Text) -> Text:
    """The value of a variable after `+=`."""
    return Text((Reference(name), *value.parts)) if value.parts is not None else value


def _condition(written: str) -> Condition:
    """`[[ … ]]`, `[ … ]` and `test …` with comparisons joined by `&&` or `||`; anything else is unknown."""
    text = written.strip().rstrip(";").strip()
    return Or(tuple(And(tuple(_term(term) for term in part.split("&&"))) for part in text.split("||")))


_COMPARED = re.compile(r"^(?P<left>\S+)\s+(?P<operator>===?|=|!=)\s+(?P<right>\S+)$")


def _term(written: str) -> Condition:
    text = re.sub(r"^\s*\[\[?\s|\s\]\]?\s*$|^\s*test\s", " ", written).strip()
    negated = text.startswith("! ")
    match = _COMPARED.match(text[2:].strip() if negated else text)
    if match is None:
        return Other(text)
    condition = _matches(_text(match["left"]), match["right"])
    return Not(condition) if negated != (match["operator"] == "!=") else condition


def _matches(subject: Text, patterns: str) -> Condition:
    """Whether a word matches one of the patterns separated by `|`."""
    if patterns.strip() == "*":
        return Constant(True)
    return Or(tuple(Compare(subject, "like", _text(pattern.strip())) for pattern in patterns.split("|")))
