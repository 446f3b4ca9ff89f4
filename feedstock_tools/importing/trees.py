"""What a recipe says in one setting, the same for both formats: texts with marks, lists, and the remaining keys.

A marked value equals the value of a variant, and prints as the name of its key: a recipe rendered with marked values
has the names of keys where it used them, `cuda-version ⟨cuda⟩.*`, and yet the values decide every condition in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, SupportsIndex

#: Characters of no language, which enclose the name of a key.
OPEN, CLOSE = "\ue000", "\ue001"
_MARK = re.compile(f"{OPEN}([^{OPEN}{CLOSE}]*){CLOSE}")
_PLACEHOLDER = re.compile(r"(?<!\$)\{[A-Za-z_]\w*\}")
#: Variant keys that a spec has other names for.
_NAMES = {"cuda_compiler_version": "cuda"}
#: Names that a generated recipe gives to values of its own.
RESERVED = frozenset(
    {"name", "version", "number", "build", "build_number", "hash", "cuda", "cuda_digits", "cuda_major"}
)


def mark(name: str) -> str:
    """The text that stands for a value: of a key, or of a call such as `compiler c`."""
    return f"{OPEN}{name}{CLOSE}"


def raw_of(value: str) -> str:
    return str.__str__(value) if isinstance(value, Marked) else value


class Marked(str):
    """A text that prints as something else."""

    __slots__ = ("shown",)
    shown: str

    def __new__(cls, value: str, shown: str) -> Marked:
        marked = super().__new__(cls, value)
        marked.shown = shown
        return marked

    def __str__(self) -> str:
        return self.shown

    def __add__(self, other: str) -> Marked:
        return Marked(raw_of(self) + raw_of(other), self.shown + str(other))

    def __radd__(self, other: str) -> Marked:
        return Marked(raw_of(other) + raw_of(self), str(other) + self.shown)

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> str:
        changed = raw_of(self).replace(str(old), str(new), count)
        if changed == raw_of(self):
            return self
        if (old, new) == (".", "") and set(_MARK.findall(self.shown)) == {"cuda"}:
            bare = (part.replace(".", "") for part in self.shown.split(mark("cuda")))
            return Marked(changed, mark("cuda_digits").join(bare))
        return changed

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        parts: list[str] = raw_of(self).split(sep, maxsplit)
        if self.shown == mark("cuda") and sep == ".":
            return [Marked(parts[0], mark("cuda_major")), *parts[1:]]
        return parts


class MarkedNumber(int):
    """A number that prints as something else."""

    shown: str

    def __new__(cls, value: int, shown: str) -> MarkedNumber:
        marked = super().__new__(cls, value)
        marked.shown = shown
        return marked

    def __str__(self) -> str:
        return self.shown


def marked(key: str, value: str) -> Marked:
    return Marked(value, mark(_NAMES.get(key, key)))


def unmarked(text: str, variant: Mapping[str, str]) -> str:
    """The text with the values of a variant in place of marks.

    >>> unmarked("demo" + mark("suffix"), {"suffix": "-fast"})
    'demo-fast'
    """
    keys = {name: key for key, name in _NAMES.items()}
    return _MARK.sub(lambda match: variant.get(keys.get(match[1], match[1]), match[0]), text)


def as_placeholders(text: str) -> str | None:
    """The text with a spec's placeholders; None where it has braces that a spec would read as one, Jinja, or a call.

    >>> as_placeholders("cuda-version " + mark("cuda") + ".*")
    'cuda-version {cuda}.*'
    """
    names = _MARK.findall(text)
    bare = _MARK.sub("", text)
    if OPEN in bare or CLOSE in bare or any(not re.fullmatch(r"\w+", name) for name in names):
        return None
    if _PLACEHOLDER.search(bare) or re.search(r"\{\{|\}\}|\{%|%\}|\{#|#\}", bare) or re.search(r"\$" + OPEN, text):
        return None
    return _MARK.sub(lambda match: f"{{{match[1]}}}", text)


@dataclass(frozen=True, slots=True)
class ScriptTree:
    """A script: a file, or commands, and the variables that it sees; `passed` are those that come from the machine."""

    file: str | None = None
    commands: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    passed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputTree:
    """An output. `tests` are its imports, commands and the like; the `more…` hold keys without a place elsewhere."""

    name: str = ""
    version: str = ""
    number: int | None = None
    string: str | None = None
    noarch: str | None = None
    skip: bool = False
    script: ScriptTree = ScriptTree()
    files: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    requirements: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ignored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    entry_points: tuple[str, ...] = ()
    independent: bool = False
    tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    more_build: Mapping[str, Any] = field(default_factory=dict)
    more_test: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecipeTree:
    """A recipe. `number` is its build number; `top` what runs before the outputs; `alone`: it has no outputs.
    `values` are the texts that it gives names to."""

    name: str
    version: str
    number: int
    skip: bool = False
    alone: bool = True
    sources: tuple[Mapping[str, Any], ...] = ()
    top: OutputTree = OutputTree()
    outputs: tuple[OutputTree, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)


def as_texts(value: Any) -> tuple[str, ...]:
    """A value as the texts of a list; a single one as its only entry."""
    if value is None or value == "":
        return ()
    items = value if isinstance(value, list | tuple) else (value,)
    return tuple(str(item).strip() for item in items if item is not None and str(item).strip())


def number_in(value: Any) -> int | None:
    """The whole number that a text is."""
    text = str(value or "").strip()
    return int(text) if text.isdigit() else None
