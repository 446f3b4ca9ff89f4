"""Single keys of a recipe: what its package is built for, the file with its license, and its maintainers."""

from __future__ import annotations

import re

from feedstock_tools.edit.writing import added_entry, added_item, removed_items, replaced
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document, Part


def set_noarch(document: Document, kind: str) -> Document:
    r"""Build one package for all platforms: `noarch` of the recipe in `document` becomes a `kind`, python or generic.

    >>> set_noarch(Document(Path("meta.yaml"), "build:\n  number: 4\n"), "python").text
    'build:\n  noarch: python\n  number: 4\n'
    """
    return _with_key(document, "build", "noarch", kind, after=())


def set_license_file(document: Document, path: str) -> Document:
    r"""Name the file with the license, by its `path` in the source, in the recipe in `document`.

    >>> set_license_file(Document(Path("meta.yaml"), "about:\n  license: MIT\n  summary: X\n"), "LICENSE").text
    'about:\n  license: MIT\n  license_file: LICENSE\n  summary: X\n'
    """
    return _with_key(document, "about", "license_file", path, after=("license", "license_family"))


def _with_key(document: Document, section: str, key: str, value: str, after: tuple[str, ...]) -> Document:
    """The document with a key of a section: a new value, or a new line after the last of some keys, else the first."""
    entry = next((entry for entry in document.entries(section) if entry.value.entries), None)
    if entry is None:
        raise document.mistake(f"the recipe has no section '{section}' with keys", hint="Edit it by hand.")
    known = [own.value for own in entry.value.entries if own.key == key]
    if known:
        return document.changed(change for part in known for change in replaced(document, part, value))
    above = [own for own in entry.value.entries if own.key in after]
    place = above[-1] if above else None
    return document.changed(added_entry(document, entry.value, key, [value], place, before=entry.value.entries[0]))


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
