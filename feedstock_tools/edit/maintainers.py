"""The maintainers that a recipe names."""

from __future__ import annotations

import re

from feedstock_tools.edit.writing import added_item, removed_items
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document, Part

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}|conda-forge/[A-Za-z0-9._-]{1,100}")


def add_maintainer(document: Document, name: str) -> Document:
    """Add a person or team on GitHub, by `name`, to the maintainers of the recipe in `document`.

    Raises:
        InputError: the name is not valid on GitHub, or is a maintainer already.

    >>> add_maintainer(Document(Path("meta.yaml"), "extra: {recipe-maintainers: [anna]}"), "berta").text
    'extra: {recipe-maintainers: [anna, berta]}'
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"'{name}' is not a name on GitHub", hint="Expected a user, or conda-forge/TEAM.")
    list_ = _maintainers(document)
    if name.lower() in {item.text.lower() for item in list_.items}:
        raise document.mistake(f"'{name}' is a maintainer already", list_)
    return document.changed(added_item(document, list_, name))


def drop_maintainer(document: Document, name: str) -> Document:
    """Remove a maintainer, by `name`, from the recipe in `document`.

    Raises:
        InputError: no maintainer has this name, or none would remain.

    >>> drop_maintainer(Document(Path("meta.yaml"), "extra: {recipe-maintainers: [anna, berta]}"), "anna").text
    'extra: {recipe-maintainers: [berta]}'
    """
    list_ = _maintainers(document)
    matching = [item for item in list_.items if item.text.lower() == name.lower()]
    if not matching:
        raise document.mistake(f"'{name}' is not a maintainer", list_)
    if len(matching) == len(list_.items):
        raise document.mistake(f"without '{name}' nobody would maintain the recipe", list_, "Add somebody first.")
    return document.changed(removed_items(document, list_, matching))


def _maintainers(document: Document) -> Part:
    for entry in document.entries("extra", "recipe-maintainers"):
        if entry.value.items:
            return entry.value
    raise document.mistake("the recipe names no maintainers", hint="Expected a list at extra.recipe-maintainers.")
