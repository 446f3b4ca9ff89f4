"""Values in a `recipe.yaml` as the engine takes them, as far as they are certain."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass

from feedstock_tools.platforms import Platform
from feedstock_tools.variants.model import WholeNumber

#: The engine's variables for the target platform.
PLATFORM_WORDS = (
    *("linux", "osx", "win", "unix"),
    *("x86_64", "aarch64", "arm64", "ppc64le", "s390x", "riscv64"),
    *("linux64", "linux32", "win64", "win32"),
)
_WHOLE = re.compile(r"0|[1-9][0-9]{0,8}")
_VERSION_LIKE = re.compile(r"[0-9]+(?:\.[0-9]+)+")
#: Texts that YAML takes for nothing else.
_PLAIN = re.compile(r"(?!(?i:true|false|yes|no|on|off|null|nan|inf)$)[A-Za-z_/][^\0]*")


class UndecidedError(Exception):
    """Only the engine knows the value."""


@dataclass(frozen=True, slots=True)
class Term:
    """A value with only a known origin: equal terms have equal values."""

    made_by: tuple[Hashable, ...]


#: The result of a condition without `else` that is false: an empty text.
NOTHING = Term(("nothing",))


def as_text(value: Hashable) -> Hashable:
    """The value of a template in quotes: the text of its value without them."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


def scalar(text: str) -> Hashable:
    """The value of a text without quotes."""
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    if _VERSION_LIKE.fullmatch(text) or _PLAIN.fullmatch(text):
        return text
    raise UndecidedError


def typed_value(value: str) -> str | bool | int:
    """A value of a variant with the type that the engine receives it in."""
    if isinstance(value, WholeNumber):
        return int(value)
    return value == "true" if value in ("true", "false") else value


def is_platform(word: str, platform: Platform) -> bool:
    """The value of a variable such as `linux` or `x86_64` on a platform."""
    system, _, machine = platform.subdir.partition("-")
    machine = "x86_64" if machine == "64" else machine
    if system not in ("linux", "osx", "win"):
        raise UndecidedError
    if word in ("linux", "osx", "win"):
        return system == word
    if word == "unix":
        return system in ("linux", "osx")
    if word in ("linux64", "linux32", "win64", "win32"):
        return platform.subdir == f"{word[:-2]}-{word[-2:]}"
    return machine == word


_VERSION = re.compile(r"(\d{1,9}(?:\.\d{1,9})*)(?:\.\*)?(?: \S+)?")
_LIMIT = re.compile(r"(>=|<=|==|!=|<|>)\s*(\d{1,9}(?:\.\d{1,9})*)|(\d{1,9}(?:\.\d{1,9})*)\.\*")
_SHORT = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.\*)?(?: \S+)?")


def matches(version: Hashable, spec: Hashable) -> bool:
    """The engine's `match` for versions of numbers; `3.12.* *_cpython` counts as 3.12."""
    if not isinstance(version, str) or not isinstance(spec, str):
        raise UndecidedError
    match = _VERSION.fullmatch(version)
    if match is None:
        raise UndecidedError
    numbers = _numbers(match[1])
    return any(all(_is_within(numbers, limit.strip()) for limit in limits.split(",")) for limits in spec.split("|"))


def _is_within(version: tuple[int, ...], limit: str) -> bool:
    match = _LIMIT.fullmatch(limit)
    if match is None:
        raise UndecidedError
    if match[3]:
        prefix = tuple(int(number) for number in match[3].split("."))
        return (version + (0,) * len(prefix))[: len(prefix)] == prefix
    other = _numbers(match[2])
    return {
        ">=": version >= other,
        "<=": version <= other,
        "==": version == other,
        "!=": version != other,
        "<": version < other,
        ">": version > other,
    }[match[1]]


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version without zeros at its end, so that 3.0 equals 3."""
    numbers = [int(number) for number in version.split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def short_version(version: str) -> str:
    """The engine's `version_to_buildstring`: 3.12 as `312`."""
    match = _SHORT.fullmatch(version)
    if match is None:
        raise UndecidedError
    return f"{match[1]}{match[2]}"
