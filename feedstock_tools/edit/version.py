"""A new version of what a recipe packages: its version, the hashes of its sources, and its build number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from feedstock_tools.edit.build_number import set_build_number
from feedstock_tools.edit.document import Change, Document, Entry, Part
from feedstock_tools.edit.variables import Variable, expand, names_behind, names_in, read_variables
from feedstock_tools.edit.writing import replaced
from feedstock_tools.errors import InputError

__all__ = ["Source", "set_version", "sources_that_change", "version_of"]

_SHA256 = re.compile(r"[0-9a-f]{64}")
_VERSION = re.compile(r"[0-9A-Za-z_.+!]{1,64}")


@dataclass(frozen=True, slots=True)
class Source:
    """A source whose address changes with the version: where it is after the change, and the hash to replace."""

    url: str
    hash_: Part
    selector: str = ""


@dataclass(frozen=True, slots=True)
class _Base:
    """What a recipe writes its version in: variables with a literal, or the version itself."""

    variables: tuple[Variable, ...]
    parts: tuple[Part, ...]
    #: The new literal of each variable, by name.
    values: dict[str, str]


def set_version(document: Document, version: str, hashes: Sequence[str] | Callable[[str], str]) -> Document:
    """Change a recipe to another version: the version, the hashes of the sources it changes, and build number 0.

    Args:
        document: a `meta.yaml` or `recipe.yaml`.
        version: the new one.
        hashes: the SHA-256 of each source whose address changes, in the order of the recipe; or a function that
            gets the address of a source and gives its SHA-256.

    Raises:
        InputError: the version or a hash is malformed, the number of hashes is wrong, or the recipe computes its
            version in a way that no literal decides.

    >>> print(set_version(Document(Path("recipe.yaml"), 'package: {name: x, version: "1.2"}'), "1.3", []).text)
    package: {name: x, version: "1.3"}
    """
    if not _VERSION.fullmatch(version):
        raise InputError(f"'{version}' is not a version", hint="A version has digits, letters and . _ + ! only.")
    base = _base(document, version)
    sources = _changing(document, base.values)
    new = _hashes(document, sources, hashes)
    changes = [change for part in base.parts for change in replaced(document, part, version)]
    changes += [change for each in base.variables for change in each.changed(base.values[each.name])]
    for source, sha256 in zip(sources, new, strict=True):
        changes += _hash_changes(document, source, sha256)
    return set_build_number(document.changed(changes), 0)


def version_of(document: Document) -> str:
    """The version that a recipe has now.

    Raises:
        InputError: it has none, or several.
    """
    texts = {_expanded(document, part.text) for part in _version_parts(document)}
    if len(texts) != 1:
        raise document.mistake("the recipe has several versions", hint="Edit them by hand.")
    return texts.pop()


def sources_that_change(document: Document, version: str) -> tuple[Source, ...]:
    """The sources whose address is another one with a new version, in order."""
    return _changing(document, _base(document, version).values)


def _changing(document: Document, values: Mapping[str, str]) -> tuple[Source, ...]:
    """The sources whose address is another one with new values of variables."""
    variables = read_variables(document)
    found = []
    for url, hash_ in _sources(document):
        texts = [part.text for part in (url.value.items or (url.value,))]
        selector = document.selector_of(url)
        before = [expand(document, text, {}, selector) for text in texts]
        after = [expand(document, text, values, selector) for text in texts]
        depends = any(names_behind(text, variables) & values.keys() for text in texts)
        if before != after or (None in before and depends):
            found.append(Source(after[0] or texts[0], hash_, selector))
    return tuple(found)


def _version_parts(document: Document) -> list[Part]:
    if parts := _at(document, ("package", "version"), ("recipe", "version")):
        return parts
    parts = _at(document, ("outputs", "*", "version"), ("outputs", "*", "package", "version"))
    if len({part.text for part in parts}) != 1:
        hint = "Expected 'version' below 'package', or the same in every output. Edit the versions by hand."
        raise document.mistake("the recipe has no single version", hint=hint)
    return parts[:1]


def _at(document: Document, *paths: tuple[str, ...]) -> list[Part]:
    return [entry.value for keys in paths for entry in document.entries(*keys)]


def _expanded(document: Document, text: str) -> str:
    value = expand(document, text, {})
    if not value:
        raise document.mistake(f"the version {text} cannot be computed from the recipe alone", hint="Edit it by hand.")
    return value


def _base(document: Document, version: str) -> _Base:
    """What decides the version, and what it becomes."""
    parts = _version_parts(document)
    literal = tuple(part for part in parts if "{{" not in part.text)
    variables: list[Variable] = []
    values: dict[str, str] = {}
    for part in parts:
        if part not in literal:
            for variable, value in _deciding(document, part, version):
                variables.append(variable)
                values[variable.name] = value
    return _Base(tuple(dict.fromkeys(variables)), literal, values)


def _deciding(document: Document, part: Part, version: str) -> Iterator[tuple[Variable, str]]:
    """The variables with literals that a version is made of, with their new values."""
    variables = read_variables(document)
    behind = names_behind(part.text, variables)
    literals = [each for each in variables if each.name in behind and each.literal is not None]
    names = list(dict.fromkeys(each.name for each in literals))
    values = next(filter(None, (_solved(document, part.text, name, version) for name in names)), None)
    values = values or _pieces(document, part.text, names, version)
    if not values:
        hint = 'Expected literals that make it up, such as {% set version = "1.2.3" %}. Edit the version by hand.'
        raise document.mistake(f"no literal of the recipe decides the version {part.text}", part, hint)
    yield from ((each, values[each.name]) for each in literals if each.name in values)


def _solved(document: Document, text: str, name: str, version: str) -> dict[str, str]:
    """The value of one variable with which a text expands to a version; empty if there is none.

    Either the text around it stays as it is (`{{ version }}{{ dev }}`), or a filter changes the spelling of all.
    """
    mark = "0a1b2c3"
    before, found, after = (expand(document, text, {name: mark}) or "").partition(mark)
    around = version[len(before) : len(version) - len(after)]
    fits = found and version == before + around + after
    spellings = [around] if fits else []
    spellings += [version, version.replace("_", "-"), version.replace(".", "_"), version.replace(".", "-")]
    old = next((each.literal or "" for each in read_variables(document) if each.name == name), "")
    spellings.sort(key=lambda spelling: _separators(spelling) != _separators(old))
    return next(({name: value} for value in spellings if expand(document, text, {name: value}) == version), {})


def _separators(text: str) -> set[str]:
    return set(text) & set("._-")


def _pieces(document: Document, text: str, names: Sequence[str], version: str) -> dict[str, str]:
    """The values of `{{ major }}.{{ minor }}.{{ patch }}` for a version; empty if the text is not of such a form."""
    marks = {name: f"0a1b2c3{at}d" for at, name in enumerate(names)}
    pattern = re.escape(expand(document, text, marks) or "")
    places = sorted((pattern.find(mark), name) for name, mark in marks.items() if mark in pattern)
    for at, (_, name) in enumerate(places):
        pattern = pattern.replace(marks[name], f"(?P<{name}>{'[^.]+' if at else '.+'})", 1)
    match = None if any(mark in pattern for mark in marks.values()) else re.fullmatch(pattern, version)
    values = match.groupdict() if match else {}
    return values if expand(document, text, values) == version else {}


def _sources(document: Document) -> Iterator[tuple[Entry, Part]]:
    """The address of each source with its SHA-256, of outputs too; a source without one cannot change it."""
    for keys in (("source",), ("outputs", "*", "source")):
        for entry in document.entries(*keys):
            yield from _sources_in(document, entry.value)


def _sources_in(document: Document, part: Part) -> Iterator[tuple[Entry, Part]]:
    for item in part.items:
        yield from _sources_in(document, item)
    urls = [entry for entry in part.entries if entry.key == "url"]
    hashes = [entry for entry in part.entries if entry.key == "sha256"]
    for entry in part.entries:
        if entry.key in {"then", "else"}:
            yield from _sources_in(document, entry.value)
    for at, url in enumerate(urls):
        same = [each for each in hashes if document.selector_of(each) == document.selector_of(url)]
        after = [each for each in hashes if each.start > url.start]
        if len(urls) == len(hashes):
            yield url, (same[0] if len(same) == 1 else hashes[at]).value
        elif same or after:
            yield url, (same or after)[0].value


def _hashes(document: Document, sources: Sequence[Source], given: Sequence[str] | Callable[[str], str]) -> list[str]:
    if callable(given):
        return [given(source.url) for source in sources]
    if len(given) != len(sources):
        addresses = "".join(f"\n    {source.url}" for source in sources)
        raise document.mistake(
            f"{len(given)} hashes for {len(sources)} sources that change",
            hint=f"Expected one for each, in order:{addresses}",
        )
    for sha256 in given:
        if not _SHA256.fullmatch(sha256):
            raise InputError(f"'{sha256}' is not a SHA-256", hint="Expected 64 digits from 0 to 9 and a to f.")
    return list(given)


def _hash_changes(document: Document, source: Source, sha256: str) -> list[Change]:
    """The hash in its place, or in the variable that holds it."""
    names = names_in(source.hash_.text)
    if not names:
        return replaced(document, source.hash_, sha256)
    for name in names:
        fitting = [each for each in read_variables(document) if each.name == name and each.literal is not None]
        chosen = [each for each in fitting if each.selector == source.selector] or fitting
        if chosen:
            return chosen[0].changed(sha256)
    raise document.mistake("no literal holds this hash", source.hash_, "Edit it by hand.")
