"""The sources of a recipe: each hash with the address that it is for, and what a new version leaves as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from feedstock_tools.digests import is_by_hash
from feedstock_tools.edit.writing import replaced
from feedstock_tools.recipe.written.document import Document, Entry, Part, TextEdit
from feedstock_tools.recipe.written.owners import addresses_of, written_sources
from feedstock_tools.recipe.written.variables import (
    Variable,
    expand,
    follows_from_recipe,
    holds_with,
    is_undecided,
    names_behind,
    names_in,
    read_variables,
)

#: Kinds of hashes, with their number of hexadecimal digits.
DIGITS = {"sha256": 64, "sha1": 40, "md5": 32}
_TEMPLATE = re.compile(r"(\$?\{\{.*?\}\})")


@dataclass(frozen=True, slots=True)
class SourceHash:
    """A hash and the address that it is for.

    `kind` is a key of `DIGITS`. `place` holds the hash: its value, or the statement of a variable. `urls` are the
    address and its mirrors, as the recipe writes them; `url` is the first, expanded if the recipe alone tells it.
    `is_certain` is False if `url` depends on the variant, or on variables that differ by a selector which the hash does
    not have.
    """

    kind: str
    place: Part | Variable
    urls: tuple[str, ...]
    selector: str
    url: str = ""
    is_certain: bool = True


def sources_of(document: Document) -> list[SourceHash]:
    """The hashes of all sources, of outputs too, in the order of the recipe; a shared statement counts once."""
    hashes = (own for source in written_sources(document) for own in _hashes_of(document, source))
    return list({each.place: each for each in hashes}.values())


def changed_sources(document: Document, moved: Document) -> tuple[SourceHash, ...]:
    """The hashes, in a document with a new version, of the sources whose address is not that of the one before."""
    names = _changed_names(document, moved)
    variables = read_variables(moved)
    changed = []
    for old, new in zip(sources_of(document), sources_of(moved), strict=True):
        before = [expand(document, text, {}, old.selector) for text in old.urls]
        after = [expand(moved, text, {}, new.selector) for text in new.urls]
        depends = any(names_behind(text, variables) & names for text in new.urls)
        if before != after or (None in before and depends):
            first = new.urls[0]
            is_known = follows_from_recipe(moved, first, new.selector)
            certain = is_known and after[0] is not None and not is_undecided(first, variables, new.selector)
            changed.append(replace(new, url=(is_known and after[0]) or first, is_certain=certain))
    return tuple(changed)


def kept_sources(document: Document, moved: Document) -> list[tuple[int, str, str]]:
    """The sources that a new version leaves as they are: their numbers from 1, place, and address."""
    names, variables = _changed_names(document, moved), read_variables(moved)
    kept = []
    for number, (old, new) in enumerate(zip(written_sources(document), written_sources(moved), strict=True), 1):
        texts = [leaf.text for leaf in _leaves(new)]
        if texts == [leaf.text for leaf in _leaves(old)] and not any(names_behind(t, variables) & names for t in texts):
            repository = [entry.value.text for key in ("git_url", "git") for entry in new.below(key)]
            words = [
                (follows_from_recipe(moved, text) and expand(moved, text, {})) or text
                for text in dict.fromkeys([*repository, *texts])
            ]
            kept.append((number, document.place_of(old.start), " ".join(words)))
    return kept


def keeps_all_sources(document: Document, moved: Document) -> bool:
    """Whether a recipe has sources, and a new version moves none of them."""
    kept = kept_sources(document, moved)
    return bool(kept) and len(kept) == len(written_sources(document))


def following(document: Document, old: str, version: str) -> list[TextEdit]:
    """Changes of addresses and tags that have the old version written out: it becomes the new one.

    An address that has the hash of its file stays, since it leads to no other.
    """
    if "." not in old:
        return []  # a number alone may be anything
    pattern = re.compile(rf"(?<![0-9])(?<![0-9]\.){re.escape(old)}(?![0-9]|\.[0-9])")
    changes = []
    for leaf in (leaf for source in written_sources(document) for leaf in _leaves(source)):
        if is_by_hash(leaf.text):
            continue
        pieces = _TEMPLATE.split(leaf.text)
        text = "".join(piece if index % 2 else pattern.sub(version, piece) for index, piece in enumerate(pieces))
        changes += replaced(document, leaf, text) if text != leaf.text else []
    return changes


def moved_source(document: Document, number: int, value: str) -> list[TextEdit]:
    """Changes with which a source comes from another address, revision or tag, or is of another version of its own.

    Args:
        number: which source, from 1 in the order of the recipe.
        value: the address if it has `://`, else the revision or tag, or the version that a variable of the address has.

    Raises:
        InputError: there is no such source, or nothing in it that the value is for.
    """
    sources = written_sources(document)
    if not 0 < number <= len(sources):
        raise document.mistake(f"there is no source {number}", hint=f"Expected a number from 1 to {len(sources)}.")
    is_address = "://" in value
    entries = addresses_of(sources[number - 1])
    entries = [entry for entry in entries if (entry.key == "url") == is_address] or ([] if is_address else entries)
    leaves = [leaf for entry in entries for leaf in entry.value.leaves]
    literals = [variable for variable in read_variables(document) if variable.literal is not None]
    places: list[Part | Variable] = []
    for leaf in leaves:
        names, only = names_in(leaf.text), _TEMPLATE.fullmatch(leaf.text)
        if entries[0].key == "url" and not is_address:
            places += [each for each in literals if each.name in names and re.search(r"\d", each.literal or "")]
        else:
            places += [each for each in literals if only and each.name in names] or [leaf]
    if len(places) != 1:
        raise document.mistake(
            f"source {number} has {len(places)} places for '{value}'",
            sources[number - 1],
            "Give the whole address, or the variable that changes with --set NAME=VALUE.",
        )
    return replaced(document, places[0], value)


def _leaves(source: Part) -> Iterator[Part]:
    """The texts of its addresses."""
    for entry in addresses_of(source):
        yield from entry.value.leaves


def _changed_names(document: Document, moved: Document) -> frozenset[str]:
    pairs = zip(read_variables(document), read_variables(moved), strict=True)
    return frozenset(old.name for old, new in pairs if old.expression != new.expression)


def _hashes_of(document: Document, source: Part) -> Iterator[SourceHash]:
    urls = [entry for entry in source.entries if entry.key == "url"]
    keyed = [
        replace(entry, key=expand(document, entry.key, {}) or entry.key) if "{{" in entry.key else entry
        for entry in source.entries
    ]
    hashes = [entry for entry in keyed if entry.key in DIGITS]
    for hash_ in hashes if urls else ():
        for place, selector in _places(document, hash_):
            url = _url_of(document, urls, [other for other in hashes if other.key == hash_.key], hash_, selector)
            url_selector = document.selector_of(url)
            texts = tuple(item.text for item in (url.value.items or (url.value,)))
            yield SourceHash(hash_.key, place, texts, selector or url_selector)


def _places(document: Document, hash_: Entry) -> list[tuple[Part | Variable, str]]:
    """What holds a hash, with its selector: the value itself, or the statements of the variable that it names."""
    selector = document.selector_of(hash_)
    names = names_in(hash_.value.text)
    statements = [
        variable for variable in read_variables(document) if variable.name in names and variable.literal is not None
    ]
    chosen = [variable for variable in statements if holds_with(variable.selector, selector)] or statements
    return [(variable, selector or variable.selector) for variable in chosen] or [(hash_.value, selector)]


def _url_of(document: Document, urls: Sequence[Entry], hashes: Sequence[Entry], hash_: Entry, selector: str) -> Entry:
    """The address that a hash is for.

    It is the only one with the selector of the hash, else the one at the same place if there are as many addresses as
    hashes, else the last one before the hash.
    """
    fitting = [url for url in urls if holds_with(document.selector_of(url), selector)]
    if len(fitting) == 1:
        return fitting[0]
    if len(urls) == len(hashes):
        return urls[hashes.index(hash_)]
    return next((url for url in reversed(urls) if url.start < hash_.start), urls[0])
