"""The conditions of a spec: `linux and cuda >= 12`, written once and translated into both recipe formats
(`texts.condition_texts`).

    condition  = disjunction
    disjunction = conjunction ("or" conjunction)*
    conjunction = inversion ("and" inversion)*
    inversion  = "not" inversion | "(" condition ")" | comparison | word
    comparison = ("cuda" | "python") ("==" | "!=" | "<" | "<=" | ">" | ">=") version | key ("==" | "!=") text

The words are a fixed list, so a condition can neither reach a variable of the environment nor run code. A key is one of
the variant configuration, and its text stands in double quotes: `mpi == "openmpi"`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from feedstock_tools.platforms import KNOWN_SUBDIRS, Platform

#: The words that need no comparison.
WORDS = (
    *("linux", "osx", "win", "unix", "x86_64", "aarch64", "arm64", "ppc64le"),
    *("linux-64", "linux-aarch64", "linux-ppc64le", "osx-64", "osx-arm64", "win-64", "win-arm64"),
    *("cuda", "cpu", "cross"),
)
_ARCHITECTURES = {"x86_64": "64", "aarch64": "aarch64", "arm64": "arm64", "ppc64le": "ppc64le"}
_COMPARED = ("cuda", "python")
_OPERATORS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TOKEN = re.compile(
    r"\s*(?:(?P<op>[<>=!]=|[<>])|(?P<paren>[()])|(?P<version>\d+(?:\.\d+)*)"
    r"|(?P<text>\"[^\"\n]*\")|(?P<word>[A-Za-z_][\w-]*))"
)
_DEEPEST = 20
_LONGEST = 2_000


class ConditionError(ValueError):
    """An invalid condition: `message`, and `hint` with the nearest valid word."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Setting:
    """The setting in which a condition is evaluated: a platform, its build machine, CUDA (None for CPU), Python, and
    all keys of the variant."""

    platform: Platform
    build_platform: Platform
    cuda: str | None = None
    python: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Word:
    """One word: a platform, an architecture, `cuda`, `cpu` or `cross`."""

    name: str


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison of a version: `cuda >= 11.2`.

    A CPU build has no CUDA version, so every comparison is false for it.
    """

    subject: str
    operator: str
    version: str

    def holds(self, version: str) -> bool:
        """Whether the comparison holds for a version."""
        size = len(version_numbers(self.version))
        return _OPERATORS[self.operator](version_numbers(version)[:size], version_numbers(self.version))


@dataclass(frozen=True, slots=True)
class Equal:
    """A key of the variant configuration has a value: `mpi == "openmpi"`; false where there is no such key."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition."""

    part: Condition


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold; always true without parts."""

    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds."""

    parts: tuple[Condition, ...]


Condition = Word | Compare | Equal | Not | And | Or


def parse(text: str) -> Condition:
    """Read a condition.

    Raises:
        ConditionError: an unknown word, a missing part or an extra one.

    >>> parse("linux and cuda >= 12")
    And(parts=(Word(name='linux'), Compare(subject='cuda', operator='>=', version='12')))
    """
    if len(text) > _LONGEST:
        raise ConditionError("the condition is too long", "Split it over several entries.")
    tokens = _tokens(text)
    condition, rest = _disjunction(tokens, 0)
    if rest:
        raise ConditionError(f"'{rest[0]}' in '{text}' is unexpected", "Join the parts with `and` or `or`.")
    return condition


def both(left: Condition | None, right: Condition | None) -> Condition | None:
    """The condition that both hold; None stands for no condition."""
    parts: list[Condition] = []
    for condition in (left, right):
        for part in condition.parts if isinstance(condition, And) else (condition,):
            if part is not None and part not in parts:
                parts.append(part)
    if len(parts) > 1:
        return And(tuple(parts))
    return parts[0] if parts else None


def negated(condition: Condition) -> Condition:
    """The opposite, without `not not`."""
    return condition.part if isinstance(condition, Not) else Not(condition)


def words_of(condition: Condition) -> frozenset[str]:
    """The words and the subjects of comparisons that a condition names."""
    match condition:
        case Word(name):
            return frozenset({name})
        case Compare(subject=subject):
            return frozenset({subject})
        case Equal(key=key):
            return frozenset({key})
        case Not(part):
            return words_of(part)
        case And(parts) | Or(parts):
            return frozenset().union(*map(words_of, parts))


def holds(condition: Condition | None, setting: Setting) -> bool:
    """Whether a condition holds in a setting; None always does."""
    match condition:
        case None:
            return True
        case Word(name):
            return _word_holds(name, setting)
        case Compare(subject=subject):
            version = setting.cuda if subject == "cuda" else setting.python
            return version is not None and condition.holds(version)
        case Equal(key, value):
            actual = setting.values.get(key)
            return actual == value or (actual is not None and actual.lower() == value.lower() in ("true", "false"))
        case Not(part):
            return not holds(part, setting)
        case And(parts):
            return all(holds(part, setting) for part in parts)
        case Or(parts):
            return any(holds(part, setting) for part in parts)


def version_numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version.

    >>> version_numbers("12.9")
    (12, 9)
    """
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _word_holds(name: str, setting: Setting) -> bool:
    if name in _ARCHITECTURES:
        return setting.platform.arch == _ARCHITECTURES[name]
    if name in KNOWN_SUBDIRS:
        return setting.platform.subdir == name
    special = {
        "cuda": setting.cuda is not None,
        "cpu": setting.cuda is None,
        "cross": setting.build_platform != setting.platform,
        "unix": setting.platform.os in ("linux", "osx"),
    }
    return special.get(name, setting.platform.os == name)


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise ConditionError(f"'{text[at:].strip()[0]}' has no meaning in the condition '{text}'", _vocabulary())
        tokens.append(match.group().strip())
        at = match.end()
    return tokens


def _disjunction(tokens: list[str], depth: int) -> tuple[Condition, list[str]]:
    parts, rest = _joined(tokens, "or", lambda left: _joined_conjunction(left, depth))
    return (Or(tuple(parts)) if len(parts) > 1 else parts[0]), rest


def _joined_conjunction(tokens: list[str], depth: int) -> tuple[Condition, list[str]]:
    parts, rest = _joined(tokens, "and", lambda left: _inversion(left, depth))
    return (And(tuple(parts)) if len(parts) > 1 else parts[0]), rest


def _joined(
    tokens: list[str], word: str, read: Callable[[list[str]], tuple[Condition, list[str]]]
) -> tuple[list[Condition], list[str]]:
    part, rest = read(tokens)
    parts = [part]
    while rest and rest[0] == word:
        part, rest = read(rest[1:])
        parts.append(part)
    return parts, rest


def _inversion(tokens: list[str], depth: int) -> tuple[Condition, list[str]]:
    if not tokens:
        raise ConditionError("the condition ends where a word was expected", _vocabulary())
    if depth > _DEEPEST:
        raise ConditionError("the condition is nested too deeply", "Split it over several entries.")
    first, rest = tokens[0], tokens[1:]
    if first == "not":
        part, rest = _inversion(rest, depth + 1)
        return negated(part), rest
    if first == "(":
        condition, rest = _disjunction(rest, depth + 1)
        if not rest or rest[0] != ")":
            raise ConditionError("a parenthesis is not closed in the condition", "Add the missing ')'.")
        return condition, rest[1:]
    return _comparison_or_word(first, rest)


def _comparison_or_word(first: str, rest: list[str]) -> tuple[Condition, list[str]]:
    if rest and rest[0] in _OPERATORS:
        if len(rest) > 1 and rest[1].startswith('"'):
            return _equality(first, rest[0], rest[1]), rest[2:]
        if first not in _COMPARED:
            hint = f'Versions of {" and ".join(_COMPARED)} can; other keys equal a text: mpi == "openmpi"'
            raise ConditionError(f"'{first}' cannot be compared", hint)
        if len(rest) < 2 or not re.fullmatch(r"\d+(?:\.\d+)*", rest[1]):
            raise ConditionError(f"no version follows '{first} {rest[0]}'", f"Such as: {first} {rest[0]} 3.12")
        return Compare(first, rest[0], rest[1]), rest[2:]
    if first not in WORDS:
        near = get_close_matches(first, WORDS, n=1)
        raise ConditionError(
            f"'{first}' is not a word in conditions", f"Did you mean '{near[0]}'?" if near else _vocabulary()
        )
    return Word(first), rest


def _equality(key: str, sign: str, text: str) -> Condition:
    if sign not in ("==", "!=") or key in WORDS or key in _COMPARED or "-" in key:
        raise ConditionError(f"'{key} {sign} {text}' compares no key with a text", 'Such as: mpi == "openmpi"')
    equal = Equal(key, text[1:-1])
    return equal if sign == "==" else Not(equal)


def _vocabulary() -> str:
    return f"Words are {', '.join(WORDS)}; `cuda` and `python` can be compared with a version."
