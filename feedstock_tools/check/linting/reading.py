"""A recipe as conda-forge's linter reads it: templates filled in, whatever lines have selectors or conditions.

A `meta.yaml` is rendered with words in place of what depends on a variant: `c_compiler_stub` for a compiler. Each line
carries its number through the rendering, so that findings have the place in the file that people wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2

from feedstock_tools.check.linting.subject import Subject
from feedstock_tools.recipe.v0.functions import DATETIME
from feedstock_tools.recipe.v0.jinja import render
from feedstock_tools.recipe.written.document import Document, Entry, Part
from feedstock_tools.recipe.written.owners import Owner, outputs_of, recipe_of

#: What stands for the lowest Python of conda-forge in a rendered recipe.
PYTHON_MIN = "9999"
_SET_PYTHON_MIN = re.compile(r"^\{%\s+set\s+python_min\s+=.*$", re.MULTILINE)
_TAG = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", re.DOTALL)
#: What carries the number of a line through a rendering: characters that no recipe has.
_MARK = re.compile("\ue000(\\d+)\ue001")


class _Written(jinja2.Undefined):
    """An undefined name, which stands for itself."""

    def _again(self, *_args: Any, **_kwargs: Any) -> _Written:
        return _Written(name=self._undefined_name)

    __add__ = __radd__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = _again  # type: ignore[assignment]
    __sub__ = __rsub__ = __pos__ = __neg__ = __call__ = __lt__ = __le__ = __gt__ = __ge__ = _again  # type: ignore[assignment]

    def __str__(self) -> str:
        return str(self._undefined_name)

    def __int__(self) -> int:  # type: ignore[override]
        return 0

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        return _Written(name=f"{self._undefined_name}.{name}")

    def __getitem__(self, key: object) -> Any:
        return _Written(name=f'{self._undefined_name}["{key}"]')


def _pin(kind: str) -> Any:
    return lambda name, *_args, **_kwargs: f"{kind}_pin {name}"


def _no_data(*_args: Any, **_kwargs: Any) -> _Written:
    return _Written(name="")


_NAMES: Mapping[str, Any] = {
    "compiler": lambda language: f"{language}_compiler_stub",
    "stdlib": lambda language: f"{language}_stdlib_stub",
    "cdt": lambda name, *_args, **_kwargs: f"{name}_cdt_stub".replace("-", "_"),
    "pin_subpackage": _pin("subpackage"),
    "pin_compatible": _pin("compatible"),
    **dict.fromkeys(("load_file_regex", "load_file_data", "load_setup_py_data", "load_str_data"), _no_data),
    **{"target_platform": "linux-64", "build_platform": "linux-64", "mpi": "mpi", "PY_VER": "3.7"},
    **{"python_min": PYTHON_MIN, "environ": _Written(name="environ"), "datetime": DATETIME},
}


@dataclass(frozen=True)
class Reading:
    """A recipe as the linter reads it.

    `document` is the recipe with its templates filled in (a `recipe.yaml` as it is), and `lines` has the line of the
    written recipe for each of its lines.
    """

    subject: Subject
    document: Document
    lines: tuple[int, ...] = ()

    @property
    def recipe(self) -> Document:
        """The recipe as it is written."""
        return self.subject.recipe

    @property
    def is_v1(self) -> bool:
        return not self.recipe.has_templates

    @cached_property
    def owners(self) -> tuple[Owner, ...]:
        """The recipe itself, then its outputs, those in the branches of a condition too, without stages."""
        top = recipe_of(self.document)
        if top is None:
            return ()
        written = (
            Owner(self.document, part, "output") for each in outputs_of(self.document) for part in cases(each.part)
        )
        return (top, *(owner for owner in written if "staging" not in owner.part.members))

    @property
    def outputs(self) -> tuple[Owner, ...]:
        return self.owners[1:]

    @property
    def forge(self) -> Document | None:
        """The feedstock's conda-forge.yml."""
        return self.subject.files.file("conda-forge.yml")

    def settings(self, *keys: str) -> list[Part]:
        """The scalars below keys of conda-forge.yml."""
        root = self.forge.root if self.forge is not None else None
        return [] if root is None else self.values(*keys, part=root)

    def first(self, *keys: str, part: Part | None = None) -> Part | None:
        """The first value below keys of the recipe, or of another part; None without one or for an empty one."""
        root = part or self.document.root
        found = next(root.below(*keys), None) if root is not None else None
        return None if found is None or is_empty(found.value) else found.value

    def word(self, *keys: str, part: Part | None = None) -> str:
        """A scalar below keys; '' without one."""
        found = self.first(*keys, part=part)
        return found.text.strip() if found is not None and found.kind == "scalar" else ""

    def values(self, *keys: str, part: Part | None = None) -> list[Part]:
        """The scalars below keys, also in the branches of conditions."""
        found = self.first(*keys, part=part)
        return [] if found is None else list(found.leaves)

    def place(self, at: Part | Entry | None) -> int:
        """The character of the written recipe that a part of the document comes from; 0 for none."""
        if at is None or not self.lines:
            return 0 if at is None else at.start
        number = self.lines[min(self.document.line_of(at.start), len(self.lines)) - 1]
        start = self.recipe.start_of(number)
        line = self.recipe.text[start : self.recipe.line_end(start)]
        column = self.document.column_of(at.start)
        rendered = self.document.line_start(at.start)
        if self.document.text[rendered : at.start] == line[:column]:
            return start + min(column, len(line))
        text = at.key if isinstance(at, Entry) else at.source
        found = line.find(text.splitlines()[0]) if text else -1
        return start + (found if found >= 0 else len(line) - len(line.lstrip(" -\t")))

    def section_place(self, name: str) -> int:
        """The character where a section begins; 0 without it."""
        return self.place(next(self.document.entries(name), None))

    def written(self, at: Part) -> tuple[int, int] | None:
        """The characters of the written recipe that a scalar stands in as it is read; None if a template makes it."""
        start = self.place(at)
        end = start + len(at.source)
        return (start, end) if self.recipe.text[start:end] == at.source else None


def is_empty(part: Part) -> bool:
    """Whether a value is nothing: no text, or no items."""
    if part.kind == "scalar":
        return part.source in {"", "~", "null", "''", '""'}
    return part.kind != "alias" and not part.entries and not part.items


def cases(part: Part) -> Iterator[Part]:
    """The mappings that an item stands for: itself, or those in the branches of its condition."""
    if "if" in part.members:
        for branch in ("then", "else"):
            for entry in part.below(branch):
                for each in entry.value.items or (entry.value,):
                    yield from cases(each)
    elif part.kind == "mapping":
        yield part


def items_of(part: Part | None) -> list[Part]:
    """The mappings of a list, or the only one."""
    return [] if part is None else [case for each in part.items or (part,) for case in cases(each)]


def read_recipe(subject: Subject) -> Reading:
    """The recipe as the linter reads it."""
    recipe = subject.recipe
    if not recipe.has_templates:
        return Reading(subject, recipe)
    rendered = render(recipe.path, None, _marked(recipe.text), _NAMES, _Written)
    numbers, lines = [], []
    number = 1
    for line in rendered.split("\n"):
        marks = _MARK.findall(line)
        number = int(marks[-1]) if marks else number
        numbers.append(number)
        lines.append(_MARK.sub("", line))
    document = Document(Path(recipe.path).with_name("rendered.yaml"), "\n".join(lines))
    _ = document.root
    return Reading(subject, document, tuple(numbers))


def _marked(text: str) -> str:
    """A template whose lines end with their numbers, where that is not inside of a tag."""
    text = _SET_PYTHON_MIN.sub(f"{{% set python_min = '{PYTHON_MIN}' %}}", text)
    inside = [match.span() for match in _TAG.finditer(text)]
    parts, at, tag = [], 0, 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        body = line.rstrip("\r\n")
        end = at + len(body)
        while tag < len(inside) and inside[tag][1] <= end:
            tag += 1
        is_inside = tag < len(inside) and inside[tag][0] < end < inside[tag][1]
        parts += [body, "" if is_inside else f"\ue000{number}\ue001", line[len(body) :]]
        at += len(line)
    return "".join(parts)
