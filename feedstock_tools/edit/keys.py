"""Single keys of a recipe: what its package is built for, and the file with its license."""

from __future__ import annotations

from feedstock_tools.edit.writing import added_entry, replaced
from feedstock_tools.recipe.written.document import Document


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
