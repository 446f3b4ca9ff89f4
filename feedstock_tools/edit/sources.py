"""The sources of a recipe: each hash with the address that it is for, under the selector that both have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from feedstock_tools.edit.writing import replaced
from feedstock_tools.recipe.written.document import Document, Entry, Part, TextEdit
from feedstock_tools.recipe.written.variables import (
    Variable,
    expand,
    holds_with,
    is_undecided,
    names_behind,
    names_in,
    read_variables,
)

#: Kinds of hashes, with their number of hexadecimal digits.
DIGITS = {"sha256": 64, "sha1": 40, "md5": 32}


@dataclass(frozen=True, slots=True)
class Source:
    """A hash and the address that it is for.

    `kind` is a key of `DIGITS`. `place` holds the hash: its value, or the statement of a variable. `urls` are the
    address and its mirrors, as the recipe writes them; `url` is the first, expanded as far as the recipe alone tells.
    `is_certain` is False if `url` depends on variables that differ by a selector which the hash does not have.
    """

    kind: str
    place: Part | Variable
    urls: tuple[str, ...]
    selector: str
    url: str = ""
    is_certain: bool = True


def sources_of(document: Document) -> list[Source]:
    """The hashes of all sources, of outputs too, in the order of the recipe; a shared statement counts once."""
    parts = [entry.value for keys in (("source",), ("outputs", "*", "source")) for entry in document.entries(*keys)]
    sources = (source for part in parts for source in _sources_in(document, part))
    return list({source.place: source for source in sources}.values())


def sources_with_other_address(document: Document, values: Mapping[str, str]) -> tuple[Source, ...]:
    """The sources whose address changes with new values of variables; their `url` is the new address."""
    variables = read_variables(document)
    moved = []
    for source in sources_of(document):
        before = [expand(document, text, {}, source.selector) for text in source.urls]
        after = [expand(document, text, values, source.selector) for text in source.urls]
        depends = any(names_behind(text, variables) & values.keys() for text in source.urls)
        if before != after or (None in before and depends):
            first = source.urls[0]
            certain = after[0] is not None and not is_undecided(first, variables, source.selector)
            url = after[0] or first
            moved.append(Source(source.kind, source.place, source.urls, source.selector, url, certain))
    return tuple(moved)


def hash_changes(document: Document, source: Source, digest: str) -> list[TextEdit]:
    """Change the hash of a source, in its place or in the variable that holds it."""
    if isinstance(source.place, Part) and names_in(source.place.text):
        raise document.mistake("no literal holds this hash", source.place, "Edit it by hand.")
    return replaced(document, source.place, digest)


def _sources_in(document: Document, part: Part) -> Iterator[Source]:
    for item in part.items:
        yield from _sources_in(document, item)
    for entry in part.entries:
        if entry.key in {"then", "else"}:
            yield from _sources_in(document, entry.value)
    urls = [entry for entry in part.entries if entry.key == "url"]
    hashes = [entry for entry in part.entries if entry.key in DIGITS]
    for hash_ in hashes if urls else ():
        for place, selector in _places(document, hash_):
            url = _url_of(document, urls, [other for other in hashes if other.key == hash_.key], hash_, selector)
            url_selector = document.selector_of(url)
            texts = tuple(item.text for item in (url.value.items or (url.value,)))
            yield Source(hash_.key, place, texts, selector or url_selector)


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
