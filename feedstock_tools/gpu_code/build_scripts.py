"""Build scripts as trees of assignments and conditions, and the values of variables at their end.

Nothing is run: conditions on the variant and assignments of plain text are followed. What cannot be
known (the output of a command, a file that may exist) stays unknown, and both branches are possible then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from itertools import product
from math import prod
from pathlib import Path

from feedstock_tools.conditions.tree import (
    And,
    Compare,
    Condition,
    Constant,
    Edit,
    Leaf,
    Not,
    Or,
    Other,
    Reference,
    Text,
    names_of,
    truth,
)
from feedstock_tools.gpu_code.architecture_lists import argument_pattern, options_in, options_of
from feedstock_tools.reading import LARGEST_SCRIPT, read_bytes

#: A variable with more possible values than this counts as unknown.
_MOST = 16
#: What stands for the unknown parts of a text.
HOLE = "\0"


@dataclass(frozen=True, slots=True)
class Assigned:
    """A value that a variable may have, with `HOLE` for each unknown part, and the line that set it."""

    written: str
    line: int

    @property
    def text(self) -> str | None:
        """The value; None if a part is unknown."""
        return None if HOLE in self.written else self.written


#: The possible values of each known variable.
Values = Mapping[str, frozenset[Assigned]]


@dataclass(frozen=True, slots=True)
class Assignment:
    """A variable gets a value."""

    line: int
    name: str
    value: Text


@dataclass(frozen=True, slots=True)
class Branches:
    """Parts of a script with their conditions; the first that holds is taken, and the last one may always hold."""

    parts: tuple[tuple[Condition, tuple[Node, ...]], ...]


@dataclass(frozen=True, slots=True)
class Exit:
    """The script ends; the build goes on unless it `fails`."""

    fails: bool


Node = Assignment | Branches | Exit

#: Programs that configure or compile, by the name at the head of a command, and Python's front ends.
_PROGRAM = re.compile(
    r"(?:^|[\s;&|(])(?:\S*[/\\])?(?P<name>(?:mpi)?cmake|configure|meson|g?make|ninja|bazel|nvcc|pip|\w+\.py)(?=\s|$)"
)


def calls_in(values: Values) -> Iterator[tuple[str, int, frozenset[str]]]:
    """The calls of programs that configure or compile: the program, the line, and the possible texts of the command,
    with `HOLE` alone where it may not be called."""
    for name, possible in values.items():
        program, _, line = name.partition("@call@")
        if line:
            yield program, int(line), frozenset(value.written for value in possible)


def _command(
    line: int, text: str, assignment: tuple[str, Text] | None, argument: re.Pattern[str], read: Callable[[str], Text]
) -> Iterator[Assignment]:
    """What a command sets: a variable, or `nvcc@<line>` for a call of nvcc with options on architectures; and
    arguments with lists.

    Args:
        argument: such an argument in the language of the script.
        read: how that language reads a text.
    """
    program = None if assignment else _PROGRAM.search(text)
    if program is not None:
        yield Assignment(line, f"{program['name']}@call@{line}", read(_COMMAND_OUTPUT.sub(HOLE, text)))
    if assignment is not None:
        yield Assignment(line, *assignment)
    elif "nvcc" in text.lower() and any(options_in(text)):
        yield Assignment(line, f"nvcc@{line}", read(options_of(text)))
    for match in argument.finditer(text):
        yield Assignment(line, match["defined"] or match["plain"], read(match["value"]))


_COMMAND_OUTPUT = re.compile(r"\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`")


def _with_references(text: str, variable: re.Pattern[str], reference: Callable[[re.Match[str]], Reference]) -> Text:
    """A text with the variables in it."""
    parts: list[str | Reference] = []
    end = 0
    for match in variable.finditer(text):
        parts += [text[end : match.start()], reference(match)]
        end = match.end()
    return Text((*parts, text[end:]))


def run(nodes: Iterable[Node], values: Values) -> Values:
    """The possible values of variables after a script, wherever it ends without a failure; empty if it always fails."""
    ended: list[Values] = []
    last = _after(nodes, values, ended)
    return _joined([*ended, *([] if last is None else [last])])


def _after(nodes: Iterable[Node], values: Values, ended: list[Values]) -> Values | None:
    """The possible values after a part of a script; None if the script always ends before, with those in `ended`."""
    current: dict[str, frozenset[Assigned]] = dict(values)
    for node in nodes:
        if isinstance(node, Exit):
            ended += [] if node.fails else [current]
            return None
        if isinstance(node, Assignment):
            current[node.name] = _assigned(node, current)
            continue
        after = _after_branches(node, current, ended)
        if after is None:
            return None
        current = dict(after)
    return current


def _assigned(node: Assignment, values: Values) -> frozenset[Assigned]:
    names = frozenset(part.name for part in node.value.parts or () if isinstance(part, Reference))
    singles = _singles(names, values)
    possible = frozenset(Assigned(_value_of(node.value, single), node.line) for single in singles)
    return possible if len(possible) <= _MOST else frozenset({Assigned(HOLE, node.line)})


def _after_branches(branches: Branches, values: Values, ended: list[Values]) -> Values | None:
    """The possible values over all branches that may be taken."""
    ends: list[Values] = []
    for condition, body in branches.parts:
        answers = {truth(condition, partial(_holds, single)) for single in _singles(names_of(condition), values)}
        if answers == {False}:
            continue
        end = _after(body, values, ended)
        if end is not None:
            ends.append(end)
        if answers == {True}:
            break
    else:
        ends.append(values)
    return _joined(ends) if ends else None


def _joined(ends: Sequence[Values]) -> Values:
    """The possible values after any of several parts."""
    names = frozenset().union(*(end.keys() for end in ends))
    unset = frozenset({Assigned(HOLE, 0)})  # its value before the script is unknown
    return {name: frozenset().union(*(end.get(name, unset) for end in ends)) for name in names}


def _singles(names: frozenset[str], values: Values) -> list[dict[str, str]]:
    """Every combination of possible values of the named variables."""
    ordered = sorted(names)
    options = [sorted({value.written for value in values.get(name, ())} or {HOLE}) for name in ordered]
    combined = list(product(*options)) if prod(map(len, options)) <= _MOST * _MOST else [(HOLE,) * len(ordered)]
    return [dict(zip(ordered, texts, strict=True)) for texts in combined]


def _holds(values: Mapping[str, str], leaf: Leaf) -> bool | None:
    """Whether a comparison of texts holds for single values of their variables; None if it is unknown."""
    match leaf:
        case Compare(Text() as left, sign, Text() as right):
            first, other = _value_of(left, values), _value_of(right, values)
            if HOLE not in first and HOLE not in other:
                return fnmatchcase(first, other) if sign == "like" else first == other
    return None


def _value_of(text: Text, values: Mapping[str, str]) -> str:
    """The value of a text for single values of its variables, with `HOLE` for each unknown part."""
    parts = text.parts or (HOLE,)
    return "".join(
        part if isinstance(part, str) else _value_of_reference(part, values.get(part.name, HOLE)) for part in parts
    )


def _value_of_reference(reference: Reference, value: str) -> str:
    if reference.edit == "none" and reference.length is None:
        return value
    if HOLE in value:
        return HOLE
    match reference.edit:
        case "none":
            return value[: reference.length]
        case "if set":
            return value or HOLE
        case "first part":
            return value.partition(".")[0]
        case "without first dot":
            return value.replace(".", "", 1)
        case "without dots":
            return value.replace(".", "")
    return HOLE


#: An exit with a status that is certainly not zero.
_FAILURE = re.compile(r"^exit\s+(?:/b\s+)?(?:-\d+|0*[1-9]\d*)\b", re.IGNORECASE)
_ASSIGNMENT = re.compile(
    r"(?:(?:export|local|readonly|declare(?:\s+-\w+)?)\s+)?(?P<name>[A-Za-z_]\w*)(?P<more>\+?)=(?P<value>\"[^\"]*\"|'[^']*'|[^\s;&|]*)"
)
#: An array, and one that goes on in the next line.
_ARRAY = re.compile(r"(?:(?:declare\s+-\w+|local|export)\s+)?(?P<name>[A-Za-z_]\w*)(?P<more>\+?)=\((?P<items>.*)\)\s*$")
_OPEN_ARRAY = re.compile(r"\s*(?:(?:declare\s+-\w+|local|export)\s+)?[A-Za-z_]\w*\+?=\((?!(?:[^#]|(?<![\s(])#)*\))")
_SHELL_ARGUMENT = argument_pattern(r"\"[^\"]*\"|'[^']*'|[^\s\"')]+")
_SHELL_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)(?P<rest>[^}]*)\}|(?P<plain>\w+))")
#: The items of an array, if it has any.
_IF_ANY = re.compile(r"\$\{(\w+)(?:\[[@*]\])?:?\+\$\{\1\[[@*]\]\}\}")
_PATTERN = re.compile(r"^\s*\(?(?P<patterns>[^()]+)\)\s*(?P<rest>.*)$")
_HEREDOC = re.compile(r"(?<!<)<<(?!<)-?\s*['\"]?(?P<end>\w+)")
_FUNCTION = re.compile(r"(?:function\s+[\w-]+\s*(?:\(\s*\))?|[\w-]+\s*\(\s*\))\s*(?:\{\s*(?P<rest>.*))?$")
#: A command, and others in braces for when it fails, or does not.
_GROUP = re.compile(r"(?P<command>.*?\S)\s*(?:\|\||&&)\s*\{(?:\s+(?P<rest>.*))?$")
#: What follows a variable's name in braces, and its meaning.
_EDITS: Mapping[str, Edit] = {
    "": "none",
    ":-": "none",
    "-": "none",
    "[@]": "none",
    "[*]": "none",
    "%%.*": "first part",
    "/./": "without first dot",
    "//./": "without dots",
}
_UNKNOWN = Text(None)


def script_text(path: Path, folder: Path) -> str:
    """The text of a script in a folder, whatever its encoding."""
    return read_bytes(path, LARGEST_SCRIPT, within=folder).decode(errors="replace").replace("\r\n", "\n")


@lru_cache(maxsize=64)
def tree_of(text: str, *, is_batch: bool) -> tuple[Node, ...]:
    """The tree of a script."""
    return read_batch(text) if is_batch else read_shell(text)


def read_shell(text: str) -> tuple[Node, ...]:
    """The tree of a shell script: assignments, `if`, `case`, `exit`, arguments with lists and calls of nvcc."""
    return _ShellReader(_statements(text)).block()


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
        if _OPEN_ARRAY.match(pending):
            pending = f"{' '.join(_parts(pending))} "
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


class _ShellReader:
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
                nodes.append(self._branches(text[len(word) :]))
            elif word == "case":
                nodes.append(self._case(text))
            elif function := _FUNCTION.match(text):
                nodes.append(self._function(line, function["rest"]))
            elif group := _GROUP.match(text):
                nodes += _shell_command(line, group["command"])
                nodes.append(self._function(line, group["rest"]))
            elif word in ("then", "else", "do"):
                self._statements[self._at - 1 : self._at] = [(line, text[len(word) :].strip() or ":")]
                self._at -= 1
            else:
                nodes += _shell_command(line, text)
        return tuple(nodes)

    def _function(self, line: int, rest: str | None) -> Node:
        """The body of a function, or of a group, which may run or not."""
        if rest is None and self._at < len(self._statements) and self._statements[self._at][1].startswith("{"):
            rest = self._statements.pop(self._at)[1][1:].strip()
        if rest:
            self._statements.insert(self._at, (line, rest))
        body = self.block("}")
        self._at += 1
        return Branches(((Other("called"), body),))

    def _branches(self, condition: str) -> Node:
        branches = []
        test = self._whole(condition)
        while True:
            branches.append((_shell_condition(test), self.block("elif", "else", "fi")))
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
        return Branches(tuple(branches))

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
        subject = _shell_text(match["word"]) if match else _UNKNOWN
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
        return Branches(tuple(branches))


def _shell_command(line: int, text: str) -> Iterator[Node]:
    """One command: an assignment, an exit, arguments of cmake, a call of nvcc, or `condition && command`."""
    test, operator, command = text.partition("&&")
    if operator and test.strip().startswith("["):
        yield Branches(((_shell_condition(test), tuple(_shell_command(line, command.strip()))),))
        return
    if text.split(None, 1)[0] == "exit":
        if not text.endswith(")"):  # of a subshell
            yield Exit(_FAILURE.search(text) is not None)
        return
    match = _ARRAY.match(text)
    value = _UNKNOWN
    if match:
        value = _shell_text(f" {_COMMAND_OUTPUT.sub(HOLE, match['items'])}")
    elif match := _ASSIGNMENT.match(text):
        value = _shell_text(match["value"]) if match["value"].count('"') != 1 else _UNKNOWN
    if match and match["more"]:
        value = Text((Reference(match["name"]), *(value.parts or (HOLE,))))
    yield from _command(line, text, (match["name"], value) if match else None, _SHELL_ARGUMENT, _shell_text)


def _shell_text(written: str) -> Text:
    """A word with variables; single quotes keep it unchanged, and a command in it makes it unknown."""
    if written[:1] == "'" and written[-1:] == "'":
        return Text((written[1:-1],))
    bare = _IF_ANY.sub(r"${\1}", written.replace('"', "").replace("\\;", ";"))
    if "$(" in bare or "`" in bare or bare.startswith("("):
        return _UNKNOWN
    return _with_references(bare, _SHELL_VARIABLE, _shell_variable)


def _shell_variable(match: re.Match[str]) -> Reference:
    rest = match["rest"] or ""
    edit = _EDITS.get(rest, "if set" if rest.startswith((":-", "-")) else "unknown")
    return Reference(match["braced"] or match["plain"], edit)


def _shell_condition(written: str) -> Condition:
    """`[[ … ]]`, `[ … ]` and `test …` with comparisons joined by `&&` or `||`; anything else is unknown."""
    text = written.strip().rstrip(";").strip()
    return Or(tuple(And(tuple(_term(term) for term in part.split("&&"))) for part in text.split("||")))


_EMPTY = re.compile(r"^-(?P<letter>[nz])\s+(?P<word>\S+)$")
_IF_SET = re.compile(r":?\+\w+\}")
_SHELL_COMPARED = re.compile(r"^(?P<left>\S+)\s+(?P<operator>===?|=|!=)\s+(?P<right>\S+)$")


def _term(written: str) -> Condition:
    text = re.sub(r"^\s*\[\[?\s|\s\]\]?\s*$|^\s*test\s", " ", written).strip()
    negated = text.startswith("! ")
    text = text[2:].strip() if negated else text
    if empty := _EMPTY.match(text):
        is_empty = Compare(_shell_text(_IF_SET.sub("}", empty["word"])), "==", Text(("",)))
        return Not(is_empty) if negated != (empty["letter"] == "n") else is_empty
    match = _SHELL_COMPARED.match(text)
    if match is None:
        return Other(text)
    condition = _matches(_shell_text(match["left"]), match["right"])
    return Not(condition) if negated != (match["operator"] == "!=") else condition


def _matches(subject: Text, patterns: str) -> Condition:
    """Whether a word matches one of the patterns separated by `|`."""
    if patterns.strip() == "*":
        return Constant(True)
    return Or(tuple(Compare(subject, "like", _shell_text(pattern.strip())) for pattern in patterns.split("|")))


_SET = re.compile(r'^set\s+(?:"(?P<quoted>[^"]*)"|(?P<plain>.*))', re.IGNORECASE)
_IF = re.compile(r"^if\s+(?P<rest>.*)$", re.IGNORECASE)
_BATCH_COMPARED = re.compile(
    r'^(?P<negated>not\s+)?(?:/i\s+)?(?P<left>"[^"]*"|\S+?)\s*==\s*(?P<right>"[^"]*"|[^\s("]+)\s*(?P<then>.*)$', re.I
)
_BATCH_TEST = re.compile(
    r"(?:not\s+)?(?:/i\s+)?(?:(?:defined|exist|errorlevel)\s+|\S+\s+(?:equ|neq|lss|leq|gtr|geq)\s+)"
    r"(?:\"[^\"]*\"|\S+)\s+(?P<then>.+)$",
    re.IGNORECASE,
)
_BATCH_VARIABLE = re.compile(r"%(?P<name>\w+)(?::~0,(?P<length>\d+))?%|!(?P<late>\w+)!")
_BATCH_ARGUMENT = argument_pattern(r'"[^"]*"|[^\s"^]+')


def read_batch(text: str) -> tuple[Node, ...]:
    """The tree of a batch script: `set`, `if`, `exit`, arguments with lists and calls of nvcc."""
    return _BatchReader(list(_batch_lines(text))).block()


def _batch_lines(text: str) -> Iterator[tuple[int, str]]:
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


class _BatchReader:
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
                nodes.append(self._branches(line, match["rest"]))
            elif text.endswith("(") and not text.lower().startswith("set"):
                nodes += self.block()  # the body of a loop
                self._at += 1
            else:
                nodes += _batch_command(line, text)
        return tuple(nodes)

    def _branches(self, line: int, rest: str) -> Node:
        branches: list[tuple[Condition, tuple[Node, ...]]] = []
        while True:
            condition, then = _batch_condition(rest)
            if then != "(":
                branches.append((condition, tuple(_batch_command(line, then))))
                return Branches(tuple(branches))
            branches.append((condition, self.block()))
            if self._at >= len(self._lines):
                return Branches(tuple(branches))
            line, closing = self._lines[self._at]
            self._at += 1
            after = re.match(r"^\)\s*else\s*(?P<rest>.*)$", closing, re.IGNORECASE)
            if after is None:
                return Branches(tuple(branches))
            again = _IF.match(after["rest"])
            if again is None:
                one_line = after["rest"].strip() != "("
                branches.append(
                    (Constant(True), tuple(_batch_command(line, after["rest"])) if one_line else self.block())
                )
                self._at += 0 if one_line else 1
                return Branches(tuple(branches))
            rest = again["rest"]


def _batch_condition(rest: str) -> tuple[Condition, str]:
    """A condition, and what follows it: `(` or a command."""
    match = _BATCH_COMPARED.match(rest)
    if match is None:
        other = _BATCH_TEST.match(rest)
        then = other["then"] if other else rest.split(None, 1)[-1]
        return Other(rest), "(" if rest.rstrip().endswith("(") else then
    same = Compare(_batch_text(match["left"]), "==", _batch_text(match["right"]))
    return Not(same) if match["negated"] else same, match["then"].strip()


def _batch_command(line: int, text: str) -> Iterator[Node]:
    nested = _IF.match(text)
    if nested:
        condition, then = _batch_condition(nested["rest"])
        yield Branches(((condition, tuple(_batch_command(line, then))),))
        return
    if text.lower().startswith("exit"):
        yield Exit(_FAILURE.search(text) is not None)
        return
    match = _SET.match(text)
    name, _, value = (match["quoted"] or match["plain"] or "").partition("=") if match else ("", "", "")
    assignment = (name.strip(), _batch_text(value)) if match else None
    yield from _command(line, text, assignment, _BATCH_ARGUMENT, _batch_text)


def _batch_text(written: str) -> Text:
    return _with_references(
        written.replace('"', ""),
        _BATCH_VARIABLE,
        lambda match: Reference(
            match["name"] or match["late"], length=int(match["length"]) if match["length"] else None
        ),
    )
