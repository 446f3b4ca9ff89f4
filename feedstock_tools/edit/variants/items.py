"""A version in the lists of a variant file, with what is zipped with it: added beside its neighbour, or removed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.variants.choices import Choice, newest, older_than
from feedstock_tools.edit.variants.lists import (
    VERSION,
    counterparts,
    is_version,
    names_version,
    version_of,
    zipped_lists,
    zipped_with,
)
from feedstock_tools.edit.variants.migrations import values_beside
from feedstock_tools.edit.writing import added_item, quoted_like, removed_items
from feedstock_tools.recipe.written.document import Document, Entry, Part, TextEdit


def with_version(
    draft: Draft,
    document: Document,
    choice: Choice,
    version: str,
    given: Mapping[str, str],
    migration: Document | None,
) -> Draft:
    """Add a version to each list of the variant file; the lists zipped with it get the given value, that of the
    pinning's migration, or else that of its neighbour."""
    migrated = {} if migration is None else values_beside(migration, choice.key, version)
    changes: list[TextEdit] = []
    copied = []
    unused = set(given)
    for entry in document.entries(choice.key):
        list_ = entry.value
        nearest = _nearest(list_, version)
        for place in [] if nearest is None else _alike(document, list_, nearest):
            neighbour = list_.items[place]
            text = quoted_like(neighbour, _named(neighbour.text, version, migrated.get(choice.key, "")))
            renamed = (version_of(neighbour), version)
            changes += _added_after(document, list_, place, text, renamed)
            for partner, partner_place in _beside(document, choice.key, entry, place):
                item = partner.value.items[partner_place]
                value = given.get(partner.key, migrated.get(partner.key))
                unused.discard(partner.key)
                source = item.source if value is None else quoted_like(item, value)
                if value is None:
                    source = re.sub(rf"(?<![\d.]){re.escape(renamed[0])}(?![\d.])", version, source)
                    copied.append(f"{partner.key}: {source}")
                changes += _added_after(document, partner.value, partner_place, source, renamed)
    if not changes:
        raise document.mistake(f"lists no version of {choice.title}", next(document.entries(choice.key)))
    if unused:
        message = f"{sorted(unused)[0]} is not listed beside {choice.key} here"
        raise document.mistake(message, hint=f"Expected one of {', '.join(sorted(zipped_with(document, choice.key)))}.")
    draft = draft.with_document(document.changed(changes))
    if not copied:
        return draft
    values = ", ".join(dict.fromkeys(copied))
    return draft.remarked(f"zipped with {choice.title} {version}, copied from its neighbour: {values}")


def _nearest(list_: Part, version: str) -> int | None:
    """The place in a list of the newest version older than `version`, else of the last; None if it has none.

    A version of Python without the global interpreter lock stands beside others of this kind.
    """
    versions = {place: version_of(item) for place, item in enumerate(list_.items) if VERSION.match(item.text)}
    alike = {place: other for place, other in versions.items() if _is_threaded(other) == _is_threaded(version)}
    alike = alike or versions
    neighbour = newest(older_than(version, alike.values()))
    return max((place for place, other in alike.items() if neighbour in {None, other}), default=None)


def _is_threaded(version: str) -> bool:
    """Whether a version is Python without the global interpreter lock."""
    return version.endswith("t")


def _named(neighbour: str, version: str, migrated: str) -> str:
    """The text of a version in a list, as its neighbour is written; with a build string that of the migration."""
    number, dash, build = neighbour.partition(" ")
    if dash and migrated:
        return migrated
    plain = version.rstrip("t")
    build = re.sub(r"_cp\d+t?$", f"_cp{version.replace('.', '')}", build)
    return re.sub(r"^\d+\.\d+", plain, number) + dash + build


def _alike(document: Document, list_: Part, place: int) -> list[int]:
    """The places of a version that a list has once for each selector; only `place` if the list repeats it otherwise."""
    text = list_.items[place].text
    places = [other for other, item in enumerate(list_.items) if item.text == text]
    selectors = {document.selector_of(list_.items[other]) for other in places}
    return places if len(selectors) == len(places) else [place]


def _beside(document: Document, key: str, entry: Entry, place: int) -> Iterator[tuple[Entry, int]]:
    """The counterparts of an item in the lists zipped with its own: these lists, and the places in them."""
    for partner in zipped_lists(document, key, entry):
        for partner_place in counterparts(document, entry.value, place, partner.value):
            yield partner, partner_place


def _added_after(document: Document, list_: Part, place: int, text: str, renamed: tuple[str, str]) -> list[TextEdit]:
    """Add an item after the one at `place`, with the selector of that one. `renamed` holds the neighbour's version and
    the new one: a comment that names the first is copied with the second."""
    selector = document.selector_of(list_.items[place])
    comment = document.comment_after(list_.items[place])
    new_comment = (
        comment.replace(*renamed) if names_version(comment, renamed[0]) else f"# [{selector}]" if selector else ""
    )
    head = Part("sequence", list_.start, list_.items[place].end, style=list_.style, items=list_.items[: place + 1])
    if list_.is_flow and place + 1 < len(list_.items):
        return [TextEdit(list_.items[place].end, list_.items[place].end, f", {text}")]
    neighbour = list_.items[place]
    comment_start = document.text.find("#", neighbour.end, document.line_end(neighbour.end)) if new_comment else -1
    text = text.ljust(comment_start - neighbour.start - 2)
    return added_item(document, head, text, new_comment if not list_.is_flow else "", sort=False)


def without_version(draft: Draft, document: Document, choice: Choice, version: str) -> Draft:
    """Remove a version from the lists of the variant file, and what is zipped with it."""
    changes: list[TextEdit] = []
    for entry in document.entries(choice.key):
        removed = [place for place, item in enumerate(entry.value.items) if is_version(item, version)]
        if removed and len(removed) == len(entry.value.items):
            raise document.mistake(f"{choice.title} {version} is the only one that is built here", entry)
        for list_entry in (entry, *zipped_lists(document, choice.key, entry)):
            partners = [
                partner for place in removed for partner in counterparts(document, entry.value, place, list_entry.value)
            ]
            changes += removed_items(document, list_entry.value, [list_entry.value.items[place] for place in partners])
    return draft.with_document(document.changed(changes))
