"""New keys of the section `build` of a recipe and its outputs, and new variables above it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from feedstock_tools.edit.writing import added_line
from feedstock_tools.enable_gpu.insertion import placed, with_selectors
from feedstock_tools.generate.texts.lines import Line
from feedstock_tools.recipe.written.document import Document, TextEdit
from feedstock_tools.recipe.written.owners import Owner
from feedstock_tools.recipe.written.variables import read_variables

_STATEMENT = re.compile(r"\{%.*?%\}", re.DOTALL)
#: Keys below which a new section `build` stands.
_ABOVE = ("name", "package", "recipe", "version", "script", "source", "inherit", "staging")
#: Keys of `build` below which new ones stand.
_FIRST = ("number", "skip", "noarch")
#: Keys of a recipe's `build` that its outputs have of their own, or not at all.
_OF_RECIPE = frozenset({"number", "string", "skip", "noarch", "script", "script_env", "entry_points", "run_exports"})


@dataclass(frozen=True, slots=True)
class Setting:
    """Lines for the section `build` of an owner, such as `string: …` with a selector, or a key with lines below."""

    owner: Owner
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Edits:
    """What a step changes in a recipe: its text, settings and variables that it adds; and its remarks."""

    changes: tuple[TextEdit, ...] = ()
    settings: tuple[Setting, ...] = ()
    variables: tuple[Line, ...] = ()
    remarks: tuple[str, ...] = ()


def set_in(settings: Sequence[Setting], recipe: Owner) -> list[TextEdit]:
    """The changes that add all settings, those of one owner in one place.

    An output of a `meta.yaml` without a section `build` inherits the recipe's. If it gets a section, that also gets
    the recipe's settings for linking and run exports.

    Raises:
        InputError: a section `build` is written in brackets.
    """
    changes: list[TextEdit] = []
    owners = list(dict.fromkeys(setting.owner for setting in settings))
    for owner in owners:
        groups = [setting.lines for setting in settings if setting.owner is owner]
        inherits = owner.document.has_templates and owner.build is None and owner.name != recipe.name
        changes += _below_build(owner, [*groups, *_inherited(recipe)] if inherits else groups)
    return changes


def _inherited(recipe: Owner) -> Iterator[tuple[Line, ...]]:
    """The settings of a recipe that an output without any inherits, except those that it replaces or for scripts.

    (conda_build/metadata.py: get_output_metadata.)
    """
    document = recipe.document
    for entry in recipe.settings:
        if entry.key not in _OF_RECIPE and not document.is_in_block(entry.start):
            column = document.column_of(entry.start)
            lines = document.text[document.line_start(entry.start) : document.line_end(entry.end - 1)].splitlines()
            yield tuple(Line(line[column:]) for line in lines if line.strip())


def _below_build(owner: Owner, groups: Sequence[Sequence[Line]]) -> list[TextEdit]:
    document, build = owner.document, owner.build
    if build is not None and build.value.is_flow:
        raise document.mistake("a section in brackets cannot hold lines with conditions", build, "Write it in lines.")
    if build is not None and build.value.entries:
        lead = " " * document.column_of(build.value.entries[0].start)
        free = [entry for entry in build.value.entries if not document.is_in_block(entry.start)]
        first = [entry for entry in free if entry.key in _FIRST]
        return placed(document, _written(groups, lead), after=first[-1].end if first else build.start)
    if build is not None:
        lead = " " * (document.column_of(build.start) + 2)
        return placed(document, _written(groups, lead), after=build.start)
    above = [entry for entry in owner.part.entries if entry.key in _ABOVE]
    after = above[-1] if above else owner.part.entries[0]
    indent = " " * document.column_of(owner.part.entries[0].start)
    blank = [""] if owner.kind == "recipe" else []
    return placed(document, [*blank, f"{indent}build:", *_written(groups, f"{indent}  ")], after=after.end)


def _written(groups: Sequence[Sequence[Line]], lead: str) -> list[str]:
    return [text for lines in groups for text in with_selectors(lines, lead, None)]


def free_name(document: Document, *names: str) -> str:
    """The first of several names that no variable of a recipe has."""
    taken = {variable.name for variable in read_variables(document)}
    return next((name for name in names if name not in taken), f"{names[-1]}_of_cuda")


def defined(document: Document, lines: Sequence[Line]) -> list[TextEdit]:
    """The changes that define variables: statements of Jinja above the recipe, or entries of its context."""
    if not lines:
        return []
    if document.has_templates:
        return _statements(document, lines)
    for entry in document.entries("context"):
        if entry.value.entries:
            lead = " " * document.column_of(entry.value.entries[0].start)
            return placed(document, [lead + line.text for line in lines], after=entry.value.end)
    root = document.root
    schema = [entry for entry in (root.entries if root else ()) if entry.key == "schema_version"]
    written = ["context:", *(f"  {line.text}" for line in lines), ""]
    if schema:
        return placed(document, ["", *written[:-1]], after=schema[-1].end)
    at = document.line_start(root.entries[0].start) if root else 0
    return [TextEdit(at, at, document.newline.join([*written, ""]))]


def _statements(document: Document, lines: Sequence[Line]) -> list[TextEdit]:
    root = document.root
    start = root.entries[0].start if root else 0
    written = with_selectors(lines, "", -1)
    statements = list(_STATEMENT.finditer(document.text, 0, start))
    if statements:
        return placed(document, written, after=statements[-1].end() - 1)
    return added_line(document, document.newline.join([*written, ""]), before=start)
