"""The build number of a recipe: a literal, or what its variables compute from one."""

from __future__ import annotations

import re

from feedstock_tools.edit.writing import replaced
from feedstock_tools.recipe.written.document import Document, Part, TextEdit
from feedstock_tools.recipe.written.owners import outputs_of
from feedstock_tools.recipe.written.variables import Variable, names_behind, read_variables

_NUMBER = re.compile(r"\d{1,9}")


def set_build_number(document: Document, number: int, *, output: str | None = None) -> Document:
    """Set the build `number` of the recipe in `document` and its outputs, or of one `output` that has its own.

    Where an output has several numbers, by selectors or branches, the lowest becomes `number` and the others keep their
    distance to it. Statements such as `{% set build = build + 200 %}` stay: the literal that they start from changes.

    Raises:
        InputError: no literal decides the build number.

    >>> set_build_number(Document(Path("meta.yaml"), "build: {number: 4}  # again"), 0).text
    'build: {number: 0}  # again'
    """
    changes: list[TextEdit] = []
    for group in _groups(document, output):
        lowest = min(base for _, base in group)
        for place, base in group:
            changes += replaced(document, place, str(number + base - lowest))
    return document.changed(changes)


def raise_build_number(document: Document, by: int = 1) -> Document:
    """Raise the build numbers of the recipe in `document` and its outputs `by` a number.

    Raises:
        InputError: no literal decides the build number.

    >>> raise_build_number(Document(Path("meta.yaml"), "build: {number: 4}  # again")).text
    'build: {number: 5}  # again'
    """
    places = dict(pair for group in _groups(document) for pair in group)
    return document.changed(
        change for place, base in places.items() for change in replaced(document, place, str(base + by))
    )


def _groups(document: Document, output: str | None = None) -> list[list[tuple[Part | Variable, int]]]:
    """The literals, and variables with literals, that decide the build numbers of the recipe and of each output."""
    variables = read_variables(document)
    builds = [entry.value for keys in (("build",), ("outputs", "*", "build")) for entry in document.entries(*keys)]
    named = [owner for owner in outputs_of(document) if output and owner.kind == "output" and owner.is_called(output)]
    own_builds = [entry.value for owner in named for entry in owner.part.below("build")]
    if any("number" in build.members for build in own_builds):
        builds = own_builds
    groups = []
    for build in builds:
        parts = [leaf for entry in build.entries if entry.key == "number" for leaf in entry.value.leaves]
        group: dict[Part | Variable, int] = {}
        for part in parts:
            if _NUMBER.fullmatch(part.text):
                group[part] = int(part.text)
            else:
                group |= {variable: int(variable.literal or 0) for variable in _base_variables(part.text, variables)}
        if parts and not group:
            raise document.mistake(f"no literal decides the build number {parts[0].text}", parts[0], "Edit it by hand.")
        groups += [list(group.items())] if group else []
    return groups


def _base_variables(text: str, variables: tuple[Variable, ...]) -> list[Variable]:
    """The variables with whole numbers that a build number starts from, all statements of each name.

    A name that only chooses between numbers (`build + 100 if cuda else build`) or computes something else has no
    whole number as its literal, or does not have `build` or `number` in its name.
    """
    dependencies = names_behind(text, variables)
    numbers = [
        variable
        for variable in variables
        if variable.name in dependencies and _NUMBER.fullmatch(variable.literal or "")
    ]
    return [variable for variable in numbers if re.search(r"build|number", variable.name)] or numbers
