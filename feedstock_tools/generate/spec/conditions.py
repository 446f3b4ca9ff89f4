"""The conditions of a spec: `linux and cuda >= 12`, written once and translated into both recipe formats.

    condition  = disjunction
    disjunction = conjunction ("or" conjunction)*
    conjunction = inversion ("and" inversion)*
    inversion  = "not" inversion | "(" condition ")" | comparison | word
    comparison = ("cuda" | "python") ("==" | "!=" | "<" | "<=" | ">" | ">=") version

The words are a fixed list, so a condition can neither reach a variable of the environment nor run code.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from difflib import get_close_matches

from feedstock_tools.platforms import KNOWN_SUBDIRS, Platform

__all__ = ["And", "Compare", "Condition", "ConditionError", "Not", "Or", "Setting", "Word", "both", "negated", "parse"]

#: Word → its form in a selector of conda-build. v1 uses the same form unless `_V1_WORDS` has another.
_V0_WORDS = {
    "linux": "linux",
    "osx": "osx",
    "win": "win",
    "unix": "unix",
    "x86_64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "arm64",
    "ppc64le": "ppc64le",
    "linux-64": "linux64",
    "linux-aarch64": "linux and aarch64",
    "linux-ppc64le": "linux and ppc64le",
    "osx-64": "osx and x86_64",
    "osx-arm64": "osx and arm64",
    "win-64": "win64",
    "win-arm64": "win and arm64",
    "cuda": 'cuda_compiler_version != "None"',
    "cpu": 'cuda_compiler_version == "None"',
    "cross": "build_platform != target_platform",
}
_V1_WORDS = _V0_WORDS | {"linux-64": "linux and x86_64", "win-64": "win and x86_64"}
#: The form of a negated word, if it reads better than `not (...)`.
_INVERTED = {
    "cuda": 'cuda_compiler_version == "None"',
    "cpu": 'cuda_compiler_version != "None"',
    "cross": "build_platform == target_platform",
}
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
_TOKEN = re.compile(r"\s*(?:(?P<op>[<>=!]=|[<>])|(?P<paren>[()])|(?P<version>\d+(?:\.\d+)*)|(?P<word>[A-Za-z_][\w-]*))")
_DEEPEST = 20
_LONGEST = 500


class ConditionError(ValueError):
    """An invalid condition: `message`, and `hint` with the nearest valid word."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Setting:
    """The setting in which a condition is evaluated: a platform, its build machine, CUDA (None for CPU) and Python."""

    platform: Platform
    build_platform: Platform
    cuda: str | None = None
    python: str | None = None


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
        size = len(_numbers(self.version))
        return _OPERATORS[self.operator](_numbers(version)[:size], _numbers(self.version))


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


Condition = Word | Compare | Not | And | Or


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
        case Not(part):
            return not holds(part, setting)
        case And(parts):
            return all(holds(part, setting) for part in parts)
        case Or(parts):
            return any(holds(part, setting) for part in parts)


def to_selector(condition: Condition, cuda_versions: Collection[str]) -> str:
    """The condition as a selector of conda-build, without its brackets.

    Selectors see a CUDA version as a string, which does not compare as a version, so `cuda >= 12` becomes the list of
    those `cuda_versions` that satisfy it.

    >>> to_selector(parse("linux-64 and not cuda"), ())
    'linux64 and cuda_compiler_version == "None"'
    """
    match condition:
        case Not(Or(parts)) if all(isinstance(part, Compare) and part.operator == "==" for part in parts):
            subjects = {part.subject for part in parts if isinstance(part, Compare)}
            versions = [part.version for part in parts if isinstance(part, Compare)]
            if subjects == {"python"}:
                return f"py not in ({', '.join(map(_py, versions))})"
        case Not(Compare("python", "==", version)):
            return f"py != {_py(version)}"
    return _say(condition, _V0_WORDS, lambda compare: _compare_v0(compare, cuda_versions))


def to_v1(condition: Condition) -> str:
    """The condition as the expression of an `if:` in recipe.yaml.

    >>> to_v1(parse("python >= 3.12"))
    'match(python, ">=3.12")'
    """
    return _say(condition, _V1_WORDS, _compare_v1)


def _numbers(version: str) -> tuple[int, ...]:
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


def _py(version: str) -> str:
    """A version of Python as the variable `py` of selectors has it.

    >>> _py("3.12")
    '312'
    """
    major, minor = (*_numbers(version), 0)[:2]
    return f"{major}{minor}"


def _compare_v0(compare: Compare, cuda_versions: Collection[str]) -> str:
    if compare.subject == "python":
        return f"py {compare.operator} {_py(compare.version)}"
    versions = [version for version in cuda_versions if compare.holds(version)]
    if len(versions) == 1 or (compare.operator == "==" and not versions):
        return f'cuda_compiler_version == "{versions[0] if versions else compare.version}"'
    listed = ", ".join(f'"{version}"' for version in versions)
    return f"cuda_compiler_version in ({listed})"


def _compare_v1(compare: Compare) -> str:
    if compare.subject == "python":
        return f'match(python, "{_match_spec(compare)}")'
    if compare.operator == "==" and "." in compare.version:
        return f'cuda_compiler_version == "{compare.version}"'
    return f'cuda_compiler_version != "None" and match(cuda_compiler_version, "{_match_spec(compare)}")'


def _match_spec(compare: Compare) -> str:
    """`== 3.12` matches the whole series, and `> 12` does not match 12.4."""
    version = compare.version
    if compare.operator in ("==", "!="):
        return f"{compare.operator if compare.operator == '!=' else ''}{version}.*"
    if compare.operator in ("<=", ">"):
        *front, last = version.split(".")
        following = ".".join([*front, str(int(last) + 1)])
        return f"{'<' if compare.operator == '<=' else '>='}{following}"
    return f"{compare.operator}{version}"


def _say(condition: Condition, words: dict[str, str], compare: Callable[[Compare], str]) -> str:
    match condition:
        case Word(name):
            return words[name]
        case Compare():
            return compare(condition)
        case Not(Word(name)) if name in _INVERTED:
            return _INVERTED[name]
        case Not(part):
            words_of_part = _say(part, words, compare)
            return f"not {words_of_part}" if re.fullmatch(r"\w+", words_of_part) else f"not ({words_of_part})"
        case And(parts):
            said_parts = [_say(part, words, compare) for part in parts]
            wrapped = [f"({text})" if isinstance(p, Or) else text for p, text in zip(parts, said_parts, strict=True)]
            return " and ".join(wrapped)
        case Or(parts):
            said_parts = [_say(part, words, compare) for part in parts]
            return " or ".join(f"({text})" if " and " in text else text for text in said_parts)


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
        if first not in _COMPARED:
            raise ConditionError(f"'{first}' cannot be compared", f"Versions of {' and '.join(_COMPARED)} can.")
        if len(rest) < 2 or not re.fullmatch(r"\d+(?:\.\d+)*", rest[1]):
            raise ConditionError(f"no version follows '{first} {rest[0]}'", f"Such as: {first} {rest[0]} 3.12")
        return Compare(first, rest[0], rest[1]), rest[2:]
    if first not in _V0_WORDS:
        near = get_close_matches(first, _V0_WORDS, n=1)
        raise ConditionError(
            f"'{first}' is not a word in conditions", f"Did you mean '{near[0]}'?" if near else _vocabulary()
        )
    return Word(first), rest


def _vocabulary() -> str:
    return f"Words are {', '.join(_V0_WORDS)}; `cuda` and `python` can be compared with a version."
