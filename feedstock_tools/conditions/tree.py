"""The tree of a condition, and its truth: true, false, or unknown (None)."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Scalar: TypeAlias = str | int | float | bool | None
Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """`span`: its first character in the text that it was read from, and the one after its last."""

    span: Span = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Name(_Node):
    """A variable, a key of variants, or a word such as `linux`."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant(_Node):
    """A value written in the condition."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class Items(_Node):
    """A list of values."""

    values: tuple[Scalar, ...]


#: What a script does to the value of a variable: `if set` gives it unless it is empty, `first part` what precedes the
#: first dot; `unknown` is anything else.
Edit: TypeAlias = Literal["none", "if set", "first part", "without first dot", "without dots", "unknown"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A variable in a text: its value after an edit, or the first `length` characters of it."""

    name: str
    edit: Edit = "none"
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Text(_Node):
    """A text with variables in it, as scripts write them; without parts (None) its value is unknown."""

    parts: tuple[str | Reference, ...] | None


@dataclass(frozen=True, slots=True)
class Other(_Node):
    """An expression of another kind: its text, the names that it reads, and whether it binds more loosely than `or`."""

    text: str
    names: frozenset[str] = frozenset()
    is_loose: bool = False


@dataclass(frozen=True, slots=True)
class Compare(_Node):
    """A comparison: `==`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `not in`, or `like` for a pattern of a shell."""

    left: Operand
    operator: str
    right: Operand


@dataclass(frozen=True, slots=True)
class VersionTest(_Node):
    """A comparison of a version as far as it is written: `> 12` does not hold for 12.4, `== 3.12` for 3.12.1."""

    subject: str
    operator: str
    version: str

    def holds(self, version: str) -> bool:
        """Whether it holds for a version."""
        numbers = version_numbers(self.version)
        return bool(COMPARISONS[self.operator](version_numbers(version)[: len(numbers)], numbers))


@dataclass(frozen=True, slots=True)
class Match(_Node):
    """A key whose value matches a specification of versions, as rattler-build has it.

    >>> str(Match("python", ">=3.10"))
    'match(python, ">=3.10")'
    """

    name: str
    spec: str

    def __str__(self) -> str:
        return f'match({self.name}, "{self.spec}")'

    def holds(self, version: str) -> bool | None:
        """Whether a version of numbers matches, or `None`, which precedes them; None if only the engine knows.

        >>> Match("python", ">=3.10,<3.13").holds("3.12.* *_cpython"), Match("cuda", "12.*").holds("None")
        (True, False)
        """
        numbers = _VERSION.fullmatch(version)
        if numbers is None and version != "None":
            return None
        known = _numbers(numbers[1]) if numbers else (-1,)
        return some(
            every(_is_within(known, limit.strip()) for limit in limits.split(",")) for limits in self.spec.split("|")
        )


@dataclass(frozen=True, slots=True)
class Not(_Node):
    part: Condition


@dataclass(frozen=True, slots=True)
class And(_Node):
    """All parts hold; always true without parts."""

    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Or(_Node):
    """At least one part holds."""

    parts: tuple[Condition, ...]


Operand: TypeAlias = Name | Constant | Items | Text | Match | Other
Leaf: TypeAlias = Name | Constant | Items | Compare | VersionTest | Match | Other
Condition: TypeAlias = And | Or | Not | Leaf

COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda item, items: item in items,
    "not in": lambda item, items: item not in items,
}


def truth(condition: Condition, leaf: Callable[[Leaf], bool | None]) -> bool | None:
    """Whether a condition is true; None if that is unknown.

    Args:
        leaf: the same for what stands between `and`, `or` and `not`, constants excepted. It is asked from left to
            right, and no further once the answer is certain.

    >>> truth(And((Name("linux"), Name("gpu"))), {"linux": False, "gpu": None}.get) is None
    True
    """
    match condition:
        case And(parts):
            return every(truth(part, leaf) for part in parts)
        case Or(parts):
            return some(truth(part, leaf) for part in parts)
        case Not(part):
            return opposite(truth(part, leaf))
        case Constant(value):
            return bool(value)
        case Items(values):
            return bool(values)
    return leaf(condition)


def every(answers: Iterable[bool | None]) -> bool | None:
    """False if one answer is; else None if one is unknown. Asks for no answer after one that decides."""
    result: bool | None = True
    for answer in answers:
        if answer is False:
            return False
        if answer is None:
            result = None
    return result


def some(answers: Iterable[bool | None]) -> bool | None:
    """True if one answer is; else None if one is unknown. Asks for no answer after one that decides."""
    return opposite(every(map(opposite, answers)))


def opposite(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def compared(left: object, sign: str, right: object) -> bool | None:
    """Whether two values compare so; None if they cannot be compared."""
    try:
        return bool(COMPARISONS[sign](left, right))
    except (KeyError, TypeError):
        return None


#: A version of numbers, with what may follow it in a variant: `3.12.* *_cpython`.
_VERSION = re.compile(r"(\d{1,9}(?:\.\d{1,9})*)(?:\.\*)?(?: \S+)?")
_LIMIT = re.compile(r"(>=|<=|==|!=|<|>)\s*(\d{1,9}(?:\.\d{1,9})*)|(!=)?(\d{1,9}(?:\.\d{1,9})*)\.\*")


def _is_within(version: tuple[int, ...], limit: str) -> bool | None:
    if limit in ("==None", "!=None"):
        return (version == (-1,)) == (limit == "==None")
    match = _LIMIT.fullmatch(limit)
    if match is None:
        return None
    if match[1]:
        return bool(COMPARISONS[match[1]](version, _numbers(match[2])))
    prefix = version_numbers(match[4])
    return ((version + (0,) * len(prefix))[: len(prefix)] == prefix) != bool(match[3])


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version without zeros at its end, so that 3.0 equals 3."""
    numbers = version_numbers(version)
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers = numbers[:-1]
    return numbers


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


def any_of(parts: Sequence[Condition]) -> Condition:
    """The condition that at least one of some holds."""
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def negated(condition: Condition) -> Condition:
    """The opposite, without `not not`."""
    return condition.part if isinstance(condition, Not) else Not(condition)


def leaves(condition: Condition) -> Iterator[Leaf]:
    """What a condition consists of besides `and`, `or` and `not`, from left to right."""
    match condition:
        case And(parts) | Or(parts):
            for part in parts:
                yield from leaves(part)
        case Not(part):
            yield from leaves(part)
        case _:
            yield condition


def operands(leaf: Leaf) -> tuple[Operand, ...]:
    """The two sides of a comparison; of any other leaf itself."""
    if isinstance(leaf, Compare):
        return leaf.left, leaf.right
    return () if isinstance(leaf, VersionTest) else (leaf,)


def names_of(condition: Condition) -> frozenset[str]:
    """The variables, keys and words that a condition reads."""
    names: set[str] = set()
    for leaf in leaves(condition):
        if isinstance(leaf, VersionTest):
            names.add(leaf.subject)
        for part in operands(leaf):
            match part:
                case Name(name) | Match(name):
                    names.add(name)
                case Other(names=others):
                    names |= others
                case Text(parts):
                    names |= {each.name for each in parts or () if isinstance(each, Reference)}
    return frozenset(names)


def version_numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version.

    >>> version_numbers("12.9")
    (12, 9)
    """
    return tuple(int(part) for part in version.split(".") if part.isdigit())
