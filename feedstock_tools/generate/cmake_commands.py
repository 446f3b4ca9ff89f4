"""The commands of a CMakeLists.txt with their arguments (cmake-language(7)); nothing is run.

Reading takes time in proportion to the text, whatever it has: files of strangers come here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

#: One token with the spaces before it.
_TOKEN = re.compile(
    r"""
    \s*+ (?:
      (?P<bare> (?! \[=*+\[ ) (?: [^\s()\#"\\]++ | \\. )++)
    | (?P<opening> \()
    | (?P<closing> \))
    | "(?P<quoted> [^"\\]*+ (?: \\. [^"\\]*+ )*+)"
    | (?P<bracket> \#?\[(?P<level>=*+)\[)
    | (?P<comment> \#[^\n]*+)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_REFERENCE = re.compile(r"\$\w*\{")
#: Characters of a value, and of a text with variables: each `set()` can double a value.
_LONGEST_VALUE = 200


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its name in lower case, its arguments without quotes, and its line, counted from 1.

    Lists are their elements: `C;CXX` without quotes is two arguments.
    """

    name: str
    arguments: tuple[str, ...]
    line: int


def commands_of(text: str) -> Iterator[Command]:
    """The commands in their order, also those in conditions and definitions; none after a quote or bracket without end.

    >>> [command.arguments for command in commands_of('project(foo DESCRIPTION "A (fast) library")  # project(bar)')]
    [('foo', 'DESCRIPTION', 'A (fast) library')]
    """
    at, depth, line, counted, begin = 0, 0, 1, 0, 0
    name, arguments = "", list[str]()
    while found := _TOKEN.match(text, at):
        at = found.end()
        kind = found.lastgroup
        if kind == "bare":
            word = found["bare"]
            if not depth:
                name, begin = word, found.start("bare")
            elif ";" in word or "\\" in word:
                arguments.extend(_unescaped(part) for part in word.split(";") if part)
            else:
                arguments.append(word)
        elif kind == "opening":
            arguments = arguments if depth else []
            depth += 1
        elif kind == "closing" and depth:
            depth -= 1
            if name and not depth:
                line += text.count("\n", counted, begin)
                counted = begin
                yield Command(name.lower(), tuple(arguments), line)
                name = ""
        elif kind == "quoted":
            arguments.append(_unescaped(found["quoted"]))
        elif kind == "bracket":
            end = text.find(f"]{found['level']}]", at)
            if end < 0:
                return
            if text[found.start("bracket")] != "#":
                arguments.append(text[at:end].removeprefix("\n"))
            at = end + len(found["level"]) + 2


def literal_variables(commands: Iterable[Command]) -> dict[str, str]:
    """The variables that `set()` gives one value, made of literals and of such variables."""
    values: dict[str, str | None] = {}
    for command in commands:
        if command.name == "set" and command.arguments:
            variable, *words = command.arguments
            ends = [words.index(word) for word in ("CACHE", "PARENT_SCOPE") if word in words]
            value = with_variables(";".join(words[: min(ends, default=None)]), values)
            known = value is not None and len(value) <= _LONGEST_VALUE and values.get(variable, value) == value
            values[variable] = value if known else None
    return {variable: value for variable, value in values.items() if value is not None}


def with_variables(text: str, values: Mapping[str, str | None] | Mapping[str, str]) -> str | None:
    """The text with the values of its variables; None if one has no value, or the text is long.

    >>> with_variables("lib${N}", {"N": "foo"}), with_variables("${M}", {})
    ('libfoo', None)
    """
    if not _REFERENCE.search(text):
        return text
    if len(text) > _LONGEST_VALUE or any(values.get(variable) is None for variable in _VARIABLE.findall(text)):
        return None
    filled = _VARIABLE.sub(lambda found: str(values[found[1]]), text)
    return None if _REFERENCE.search(filled) else filled


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL) if "\\" in text else text
