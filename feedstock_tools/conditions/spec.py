"""The conditions of a feedstock.yaml: `linux and cuda >= 12`, written once and translated into both recipe formats.

    condition  = disjunction
    disjunction = conjunction ("or" conjunction)*
    conjunction = inversion ("and" inversion)*
    inversion  = "not" inversion | "(" condition ")" | comparison | word
    comparison = ("cuda" | "python") ("==" | "!=" | "<" | "<=" | ">" | ">=") version | key ("==" | "!=") text

The words are a fixed list, so a condition can neither reach a variable of the environment nor run code. A key is one of
the variant configuration, and its text stands in double quotes: `mpi == "openmpi"`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from feedstock_tools.conditions.tree import (
    And,
    Compare,
    Condition,
    Constant,
    Leaf,
    Match,
    Name,
    Not,
    Or,
    VersionTest,
    negated,
    truth,
    version_numbers,
)
from feedstock_tools.platforms import KNOWN_SUBDIRS, Platform

#: The words that need no comparison.
WORDS = (
    *("linux", "osx", "win", "unix", "x86_64", "aarch64", "arm64", "ppc64le", "riscv64"),
    *("linux-64", "linux-aarch64", "linux-ppc64le", "linux-riscv64", "osx-64", "osx-arm64", "win-64", "win-arm64"),
    *("cuda", "cpu", "cross"),
)
_ARCHITECTURES = {"x86_64": "64", "aarch64": "aarch64", "arm64": "arm64", "ppc64le": "ppc64le", "riscv64": "riscv64"}
_COMPARED = ("cuda", "python")
_SIGNS = ("==", "!=", "<", "<=", ">", ">=")
_TOKEN = re.compile(r"[<>=!]=|[<>]|[()]|\d+(?:\.\d+)*|\"[^\"\n]*\"|[A-Za-z_][\w-]*")
_VOCABULARY = f"Words are {', '.join(WORDS)}; `cuda` and `python` can be compared with a version."
_LIMIT = re.compile(r"(>=|<=|==|!=|<|>)?\s*(\d+(?:\.\d+)*)(?:\.\*)?")
_LONGEST, _DEEPEST = 2_000, 20

#: Word → its form in a selector of conda-build. A recipe.yaml uses the same form unless `_V1_WORDS` has another.
_V0_WORDS = {
    **{word: word for word in ("linux", "osx", "win", "unix", *_ARCHITECTURES)},
    "linux-64": "linux64",
    "linux-aarch64": "linux and aarch64",
    "linux-ppc64le": "linux and ppc64le",
    "linux-riscv64": "linux and riscv64",
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


class ConditionError(ValueError):
    """An invalid condition: `message`, and `hint` with what was expected."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


@dataclass(frozen=True, slots=True)
class Setting:
    """The setting in which a condition is evaluated: a platform, its build machine, CUDA (None for CPU), Python, and
    all keys of the variant."""

    platform: Platform
    build_platform: Platform
    cuda: str | None = None
    python: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)


def parse(text: str) -> Condition:
    """Read a condition.

    Raises:
        ConditionError: an unknown word, a missing part or an extra one.

    >>> parse("linux and cuda >= 12")
    And(parts=(Name(name='linux'), VersionTest(subject='cuda', operator='>=', version='12')))
    """
    if len(text) > _LONGEST:
        raise ConditionError("the condition is too long", "Split it over several entries.")
    return _Reader(text).whole()


def equal(key: str, value: str) -> Compare:
    """The condition that a key of the variant configuration has a value: `mpi == "openmpi"`."""
    return Compare(Name(key), "==", Constant(value))


def holds(condition: Condition | None, setting: Setting) -> bool:
    """Whether a condition holds in a setting; None always does.

    A comparison is false for a key that there is not; a CPU build has no version of CUDA.
    """

    def leaf(part: Leaf) -> bool:
        match part:
            case Name(name):
                return _word_holds(name, setting)
            case VersionTest(subject):
                version = setting.cuda if subject == "cuda" else setting.python
                return version is not None and part.holds(version)
            case Compare(Name(key), "==", Constant(str(value))):
                actual = setting.values.get(key)
                return actual == value or (actual is not None and actual.lower() == value.lower() in ("true", "false"))
        raise _ForeignError(part)

    return condition is None or truth(condition, leaf) is True


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


class _ForeignError(TypeError):
    """A leaf that only other languages have; no parser or importer makes one for a spec."""


def _words_of(text: str) -> Iterator[str]:
    rest = text.lstrip()
    while rest:
        match = _TOKEN.match(rest)
        if match is None:
            raise ConditionError(f"'{rest[0]}' has no meaning in the condition '{text}'", _VOCABULARY)
        yield match[0]
        rest = rest[match.end() :].lstrip()


class _Reader:
    """Reads a condition once, from its first word to its last; `words` are those that follow."""

    def __init__(self, text: str) -> None:
        self.text, self.words, self.depth = text, list(_words_of(text)), 0

    def whole(self) -> Condition:
        """The condition that all words make."""
        condition = self.disjunction()
        if self.words:
            message = f"'{self.words[0]}' in '{self.text}' is unexpected"
            raise ConditionError(message, "Join the parts with `and` or `or`.")
        return condition

    def disjunction(self) -> Condition:
        parts = self._joined("or", self._conjunction)
        return Or(parts) if len(parts) > 1 else parts[0]

    def _conjunction(self) -> Condition:
        parts = self._joined("and", self._inversion)
        return And(parts) if len(parts) > 1 else parts[0]

    def _joined(self, word: str, read: Callable[[], Condition]) -> tuple[Condition, ...]:
        parts = [read()]
        while self._takes(word):
            parts.append(read())
        return tuple(parts)

    def _takes(self, word: str) -> bool:
        """Whether a word comes next, which is then read."""
        found = self.words[:1] == [word]
        del self.words[:found]
        return found

    def _inversion(self) -> Condition:
        """`not …`, a condition in brackets, or a word or comparison; `not not` is left out."""
        if not self.words:
            raise ConditionError("the condition ends where a word was expected", _VOCABULARY)
        if self.depth > _DEEPEST:
            raise ConditionError("the condition is nested too deeply", "Split it over several entries.")
        self.depth += 1
        if self._takes("not"):
            condition = negated(self._inversion())
        elif self._takes("("):
            condition = self.disjunction()
            if not self._takes(")"):
                raise ConditionError("a parenthesis is not closed in the condition", "Add the missing ')'.")
        else:
            condition = self._leaf()
        self.depth -= 1
        return condition

    def _leaf(self) -> Condition:
        """A word, or a comparison of a version or a key."""
        first, sign, operand = [*self.words, "", ""][:3]
        del self.words[: 3 if sign in _SIGNS else 1]
        if sign not in _SIGNS:
            if first not in WORDS:
                near = get_close_matches(first, WORDS, n=1)
                hint = f"Did you mean '{near[0]}'?" if near else _VOCABULARY
                raise ConditionError(f"'{first}' is not a word in conditions", hint)
            return Name(first)
        if operand.startswith('"'):
            if sign not in ("==", "!=") or first in WORDS or first in _COMPARED or "-" in first:
                message = f"'{first} {sign} {operand}' compares no key with a text"
                raise ConditionError(message, 'Such as: mpi == "openmpi"')
            condition = equal(first, operand[1:-1])
            return condition if sign == "==" else Not(condition)
        if first not in _COMPARED:
            hint = f'Versions of {" and ".join(_COMPARED)} can; other keys equal a text: mpi == "openmpi"'
            raise ConditionError(f"'{first}' cannot be compared", hint)
        if not operand[:1].isdigit():
            raise ConditionError(f"no version follows '{first} {sign}'", f"Such as: {first} {sign} 3.12")
        return VersionTest(first, sign, operand)


def to_spec(condition: Condition) -> str:
    """A condition in the words of a spec.

    >>> to_spec(And((Name("linux"), Not(Or((Name("cuda"), equal("mpi", "nompi")))))))
    'linux and not (cuda or mpi == "nompi")'
    """
    match condition:
        case Name(name):
            return name
        case VersionTest(subject, operator, version):
            return f"{subject} {operator} {version}"
        case Compare(Name(key), operator, Constant(value)):
            return f'{key} {operator} "{value}"'
        case Not(Name("cuda")):
            return "cpu"
        case Not(Compare(Name(key), "==", Constant(value))):
            return f'{key} != "{value}"'
        case Not(Name() | VersionTest() as part):
            return f"not {to_spec(part)}"
        case Not(part):
            return f"not ({to_spec(part)})"
        case And(parts):
            return " and ".join(f"({to_spec(part)})" if isinstance(part, Or) else to_spec(part) for part in parts)
        case Or(parts):
            return " or ".join(f"({to_spec(part)})" if isinstance(part, And) else to_spec(part) for part in parts)
    raise _ForeignError(condition)


def to_selector(condition: Condition, cuda_versions: Collection[str]) -> str:
    """A condition as a selector of conda-build, without its brackets.

    Selectors see a CUDA version as a string, which does not compare as a version, so `cuda >= 12` becomes the list of
    those `cuda_versions` that satisfy it.

    >>> to_selector(And((Name("linux-64"), Not(Name("cuda")))), ())
    'linux64 and cuda_compiler_version == "None"'
    """
    match condition:
        case Not(Or(parts)):
            tests = [part for part in parts if isinstance(part, VersionTest)]
            if len(tests) == len(parts) and {(test.subject, test.operator) for test in tests} == {("python", "==")}:
                return f"py not in ({', '.join(_py(test.version) for test in tests)})"
        case Not(VersionTest("python", "==", version)):
            return f"py != {_py(version)}"
    return _text(condition, _V0_WORDS, lambda leaf: _leaf_v0(leaf, cuda_versions))


def to_expression(condition: Condition) -> str:
    """A condition as the expression of an `if:` in a recipe.yaml.

    >>> to_expression(VersionTest("python", ">=", "3.12"))
    'match(python, ">=3.12")'
    """
    return _text(condition, _V1_WORDS, _leaf_v1)


def _text(condition: Condition, words: Mapping[str, str], leaf: Callable[[Leaf], str]) -> str:
    match condition:
        case Name(name):
            return words[name]
        case Not(Name(name)) if name in _INVERTED:
            return _INVERTED[name]
        case Not(part):
            inner = _text(part, words, leaf)
            return f"not {inner}" if re.fullmatch(r"\w+", inner) else f"not ({inner})"
        case And(parts):
            texts = [_text(part, words, leaf) for part in parts]
            return " and ".join(
                f"({text})" if isinstance(part, Or) else text for part, text in zip(parts, texts, strict=True)
            )
        case Or(parts):
            texts = [_text(part, words, leaf) for part in parts]
            return " or ".join(f"({text})" if " and " in text else text for text in texts)
    return leaf(condition)


def _py(version: str) -> str:
    """A version of Python as the variable `py` of selectors has it.

    >>> _py("3.12")
    '312'
    """
    major, minor = (*version_numbers(version), 0)[:2]
    return f"{major}{minor}"


def _leaf_v0(leaf: Leaf, cuda_versions: Collection[str]) -> str:
    match leaf:
        case Compare(Name(key), "==", Constant(str(value))):
            return f"{key} == {_typed(value)}"
        case VersionTest("python", sign, version):
            return f"py {sign} {_py(version)}"
        case VersionTest():
            versions = [version for version in cuda_versions if leaf.holds(version)]
            if len(versions) == 1 or (leaf.operator == "==" and not versions):
                return f'cuda_compiler_version == "{versions[0] if versions else leaf.version}"'
            listed = ", ".join(f'"{version}"' for version in versions)
            return f"cuda_compiler_version in ({listed})"
    raise _ForeignError(leaf)


def _leaf_v1(leaf: Leaf) -> str:
    match leaf:
        case Compare(Name(key), "==", Constant(str(value))):
            # To the engine a key without a value is an error, and a value may be a number or a boolean.
            or_empty = f'{key} | default("")'
            plain = _typed(value).startswith('"')
            return f'({or_empty}) == "{value}"' if plain else f'(({or_empty}) ~ "") == "{value}"'
        case VersionTest("python"):
            return str(as_match(leaf, "python"))
        case VersionTest(_, "==", version) if "." in version:
            return f'cuda_compiler_version == "{version}"'
        case VersionTest():
            return f'cuda_compiler_version != "None" and {as_match(leaf, "cuda_compiler_version")}'
    raise _ForeignError(leaf)


def _typed(value: str) -> str:
    """A value as selectors see it, where whole numbers and booleans are no text (variants.selectors)."""
    if re.fullmatch(r"[+-]?\d+", value.strip()):
        return str(int(value))
    return value.capitalize() if value.lower() in ("true", "false") else f'"{value}"'


def as_match(test: VersionTest, key: str) -> Match:
    """The comparison of a version as rattler-build makes it with the value of a key.

    `== 3.12` matches the whole series, and `> 12` does not match 12.4.
    """
    version = test.version
    if test.operator in ("==", "!="):
        return Match(key, f"{test.operator if test.operator == '!=' else ''}{version}.*")
    if test.operator in ("<=", ">"):
        *front, last = version.split(".")
        following = ".".join([*front, str(int(last) + 1)])
        return Match(key, f"{'<' if test.operator == '<=' else '>='}{following}")
    return Match(key, f"{test.operator}{version}")


def of_match(match: Match, subject: str) -> Condition | None:
    """A match of versions as comparisons of `cuda` or `python`; None for a specification of another kind.

    >>> of_match(Match("python", ">=3.10"), "python")
    VersionTest(subject='python', operator='>=', version='3.10')
    """
    limits = [_LIMIT.fullmatch(limit.strip()) for limit in match.spec.split(",")]
    tests = tuple(VersionTest(subject, limit[1] or "==", limit[2]) for limit in limits if limit is not None)
    if len(tests) < len(limits):
        return None
    return tests[0] if len(tests) == 1 else And(tests)
