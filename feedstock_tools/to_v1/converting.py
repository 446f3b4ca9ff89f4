"""A feedstock with a `meta.yaml` made into one with a `recipe.yaml`: the recipe, and the files that change with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.platforms import with_key
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document
from feedstock_tools.rerender.configurations.configuration import Configuration, read_configurations
from feedstock_tools.to_v1.comparison import Difference, compare_recipes
from feedstock_tools.to_v1.expressions import Names, names_of
from feedstock_tools.to_v1.recipe import Converted, recipe_text
from feedstock_tools.wording import counted

_FORGE = "conda-forge.yml"
_WORD = re.compile(r"[A-Za-z_]\w*")
#: The maximum number of lines of a difference that remarks show.
_MOST_LINES = 6
#: The maximum number of configurations to compare: those of the largest feedstocks differ in versions only.
_MOST_CONFIGURATIONS = 100


def to_v1(draft: Draft) -> Draft:
    """Make the `meta.yaml` of a feedstock a `recipe.yaml`, and have rattler-build build it.

    Scripts, patches and `conda_build_config.yaml` stay as they are: the recipe names the scripts that rattler-build
    would look for under another name, and rattler-build reads the variant file. `conda-forge.yml` gets
    `conda_build_tool: rattler-build`. The remarks of the draft name, with its line, each part that has no equivalent in
    a `recipe.yaml`, and what the configurations in `.ci_support` would build differently.

    Raises:
        InputError: the recipe is a `recipe.yaml` already, or cannot be read; with the line.

    >>> draft = to_v1(open_draft(Path("solver-feedstock")))
    >>> draft.changes().listed()
    (('change', 'conda-forge.yml'), ('delete', 'recipe/meta.yaml'), ('add', 'recipe/recipe.yaml'))
    >>> draft.remarks
    ('compared 3 configurations: the packages are the same but for the hashes in their build strings',)
    """
    meta = draft.recipe
    if not meta.has_templates:
        raise InputError("the recipe is a recipe.yaml already", path=meta.path)
    configurations = read_configurations(draft.folder)
    converted = convert_recipe(meta, configurations)
    path = meta.path.with_name("recipe.yaml")
    forge = draft.file(_FORGE) or Document(draft.folder / _FORGE, "")
    edited = draft.without(meta.path).with_document(Document(path, _with_breaks(converted.text, meta.newline)))
    edited = replace(edited.with_document(with_key(forge, "conda_build_tool", "rattler-build")), recipe_path=path)
    lost = (f"{meta.path.name}:{problem.line}: not converted: {problem.reason}" for problem in converted.problems)
    return edited.remarked(*lost, *_compared(draft, converted, configurations))


def convert_recipe(meta: Document, configurations: Sequence[Configuration]) -> Converted:
    """The `recipe.yaml` for a `meta.yaml`.

    Args:
        configurations: of the feedstock; they say which keys of variants are always set.

    Raises:
        InputError: the recipe cannot be read; with the line.
    """
    files = frozenset(path.name for path in _beside(meta.path.parent))
    return recipe_text(meta.text, meta.path, _names(meta, configurations), files)


def _beside(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from folder.iterdir()


def _names(meta: Document, configurations: Sequence[Configuration]) -> Names:
    """The keys of the variants; without configurations, each name in the recipe counts as always set."""
    names = names_of(configuration.values for configuration in configurations)
    return names if configurations else replace(names, always=frozenset(_WORD.findall(meta.text)))


def _with_breaks(text: str, newline: str) -> str:
    return text if newline == "\n" else text.replace("\n", newline)


def _compared(draft: Draft, converted: Converted, configurations: Sequence[Configuration]) -> Iterator[str]:
    """Remarks on what the converted recipe builds differently."""
    if not configurations:
        yield "nothing was compared: there are no configurations in .ci_support"
        return
    if draft.document(draft.recipe_path) != draft.original.get(draft.recipe_path):
        yield "nothing was compared: another edit of this call has changed the recipe already"
        return
    compared = configurations[:_MOST_CONFIGURATIONS]
    differences = compare_recipes(draft.folder, converted.text, compared)
    number = counted(len(compared), "configuration")
    if not differences:
        yield f"compared {number}: the packages are the same but for the hashes in their build strings"
        return
    yield f"compared {number}: {len(differences)} would build other packages"
    yield from _shown(differences[0])


def _shown(difference: Difference) -> Iterator[str]:
    for line in difference.lines[:_MOST_LINES]:
        yield f"{difference.configuration}: {line}"
    if len(difference.lines) > _MOST_LINES:
        yield f"{difference.configuration}: and {len(difference.lines) - _MOST_LINES} more"
