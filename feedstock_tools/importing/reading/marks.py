"""Values that show their origin: they equal the value of a variant, and print as the name of its key.

A recipe rendered with such values has the names of keys where it used them, `cuda-version ⟨cuda⟩.*`, and yet the values
decide every condition in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import SupportsIndex

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
    """The value itself, as plain text."""
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
    """The value of a variant key."""
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
