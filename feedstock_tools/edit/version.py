"""A new version of what a recipe packages: its version, the hashes of its sources, and its build number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from feedstock_tools.edit.build_number import set_build_number
from feedstock_tools.edit.sources import DIGITS, Source, hash_changes, sources_with_other_address
from feedstock_tools.edit.writing import replaced
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document, Part
from feedstock_tools.recipe.written.owners import Owner, outputs_of
from feedstock_tools.recipe.written.variables import Variable, expand, names_behind, read_variables

#: Gives the hash for an address and a kind: sha256, sha1 or md5.
Digest = Callable[[str, str], str]
_VERSION = re.compile(r"[0-9A-Za-z_.+!]{1,64}")
_PIECES = re.compile(r"([._-])")


@dataclass(frozen=True, slots=True)
class _Base:
    """The places where a recipe writes its version: variables with a literal, or the version itself."""

    variables: tuple[Variable, ...]
    parts: tuple[Part, ...]
    #: The new literal of each variable, by name.
    values: dict[str, str]


def set_version(
    document: Document,
    version: str,
    hashes: Sequence[str] | Digest,
    *,
    output: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> Document:
    """Change a recipe to another version: the version, the hashes of the sources it changes, and build number 0.

    Args:
        document: a `meta.yaml` or `recipe.yaml`.
        version: the new version.
        hashes: the SHA-256 (or MD5, SHA-1: what the recipe has) of each source whose address changes, in the order of
            the recipe, one for each selector; or a function that gets an address and `sha256`, `md5` or `sha1`, and
            gives the hash.
        output: the output whose version it is, if the outputs have several; only its build number starts again.
        variables: variables of the recipe that change with it, such as the tag of a release.

    Raises:
        InputError: the version or a hash is malformed, the number of hashes is wrong, the recipe computes its version
            in a way that no literal decides, or it has no such output or no literal for a variable.

    >>> print(set_version(Document(Path("recipe.yaml"), 'package: {name: x, version: "1.2"}'), "1.3", []).text)
    package: {name: x, version: "1.3"}
    """
    if not _VERSION.fullmatch(version):
        raise InputError(f"'{version}' is not a version", hint="A version has digits, letters and . _ + ! only.")
    base = _base(document, version, output, variables or {})
    sources = sources_with_other_address(document, base.values)
    digests = _hashes(document, sources, hashes)
    changes = [change for part in base.parts for change in replaced(document, part, version)]
    changes += [
        change for variable in base.variables for change in replaced(document, variable, base.values[variable.name])
    ]
    for source, digest in zip(sources, digests, strict=True):
        changes += hash_changes(document, source, digest)
    return set_build_number(document.changed(changes), 0, output=output)


def version_of(document: Document, output: str | None = None) -> str:
    """The version that a recipe has now, or an output of it.

    Raises:
        InputError: it has none, or several.
    """
    texts = {_expanded(document, part.text) for part in _version_parts(document, output)}
    if len(texts) != 1:
        raise document.mistake("the recipe has several versions", hint="Edit them by hand.")
    return texts.pop()


def left_behind(
    document: Document, version: str, *, output: str | None = None, variables: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Sentences on variables that a change of version leaves as they are, though they seem to contain the old one.

    >>> text = '{% set version = "12.8.90" %}\\n{% set cuda = "12.8" %}\\npackage: {version: {{ version }}}'
    >>> left_behind(Document(Path("meta.yaml"), text), "12.9.79")
    ('meta.yaml:2 is as before: cuda = 12.8',)
    """
    base = _base(document, version, output, variables or {})
    changing = {variable.start for variable in base.variables}
    old = {version_of(document, output), *(variable.literal or "" for variable in base.variables)}
    remarks = []
    for variable in read_variables(document):
        literal = variable.literal
        if literal and variable.start not in changing and any(_repeats(literal, text) for text in old):
            line = document.line_of(variable.start)
            remarks.append(f"{document.path.name}:{line} is as before: {variable.name} = {literal}")
    return tuple(remarks)


def _repeats(literal: str, version: str) -> bool:
    """Whether a literal is a version, its first pieces, or has its pieces together: `12.8`, `root_12890`."""
    joined = re.sub(_PIECES, "", version)
    starts = "." in literal and f"{version}.".startswith(f"{literal}.")
    return starts or (len(joined) > 2 and joined in literal)


def sources_that_change(
    document: Document, version: str, *, output: str | None = None, variables: Mapping[str, str] | None = None
) -> tuple[Source, ...]:
    """The sources whose address changes with a new version, in order."""
    return sources_with_other_address(document, _base(document, version, output, variables or {}).values)


def _version_parts(document: Document, output: str | None) -> list[Part]:
    """The parts with the version: of the recipe, of all its outputs if these have the same, or of the named output."""
    if output is None and (parts := _at(document, ("package", "version"), ("recipe", "version"))):
        return parts
    outputs = (owner for owner in outputs_of(document) if owner.kind == "output")
    named = {owner.name: parts for owner in outputs if (parts := _versions_of(owner))}
    if output is not None and output not in named:
        hint = f"Expected one of {', '.join(named)}." if named else None
        raise document.mistake(f"the recipe has no output '{output}' with a version", hint=hint)
    parts = named[output] if output is not None else [part for parts in named.values() for part in parts]
    versions = {name: expand(document, own[0].text, {}) or own[0].text for name, own in named.items()}
    if not parts or (output is None and len(set(versions.values())) != 1):
        several = ", ".join(f"{name} {version}" for name, version in versions.items())
        hint = f"Name an output with --of: {several}." if versions else "Expected 'version' below 'package'."
        raise document.mistake("the recipe has no single version", hint=hint)
    return list({part.text: part for part in parts}.values())


def _versions_of(output: Owner) -> list[Part]:
    return [entry.value for keys in (("version",), ("package", "version")) for entry in output.part.below(*keys)]


def _at(document: Document, *paths: tuple[str, ...]) -> list[Part]:
    return [entry.value for keys in paths for entry in document.entries(*keys)]


def _expanded(document: Document, text: str) -> str:
    value = expand(document, text, {})
    if not value:
        raise document.mistake(f"the version {text} cannot be computed from the recipe alone", hint="Edit it by hand.")
    return value


def _base(document: Document, version: str, output: str | None, others: Mapping[str, str]) -> _Base:
    """The parts and variables that decide the version, the given ones included, with their new values."""
    parts = _version_parts(document, output)
    literal = tuple(part for part in parts if "{{" not in part.text)
    variables: list[Variable] = []
    values: dict[str, str] = {}
    for part in parts:
        if part not in literal:
            for variable, value in _deciding(document, part, version):
                variables.append(variable)
                values[variable.name] = value
    for name, value in others.items():
        statements = [
            variable for variable in read_variables(document) if variable.name == name and variable.literal is not None
        ]
        if not statements:
            raise document.mistake(f"the recipe sets no variable '{name}' to a literal")
        variables += statements
        values[name] = value
    return _Base(tuple(dict.fromkeys(variables)), literal, values)


def _deciding(document: Document, part: Part, version: str) -> Iterator[tuple[Variable, str]]:
    """The variables with literals that a version is made of, with their new values."""
    variables = read_variables(document)
    dependencies = names_behind(part.text, variables)
    literals = [variable for variable in variables if variable.name in dependencies and variable.literal is not None]
    names = list(dict.fromkeys(variable.name for variable in literals))
    values = next(filter(None, (_solved(document, part.text, name, version) for name in names)), None)
    values = values or _pieces(document, part.text, names, version)
    if not values:
        hint = 'Expected literals that make it up, such as {% set version = "1.2.3" %}. Edit the version by hand.'
        raise document.mistake(f"no literal of the recipe decides the version {part.text}", part, hint)
    yield from ((variable, values[variable.name]) for variable in literals if variable.name in values)


def _solved(document: Document, text: str, name: str, version: str) -> dict[str, str]:
    """The value of one variable with which a text expands to a version; empty if there is none.

    Either the text around it stays as it is (`{{ version }}{{ dev }}`), or a filter changes the spelling of all.
    """
    mark = "0a1b2c3"
    before, middle, after = (expand(document, text, {name: mark}) or "").partition(mark)
    around = version[len(before) : len(version) - len(after)]
    fits = middle and version == before + around + after
    old = next((variable.literal or "" for variable in read_variables(document) if variable.name == name), "")
    spellings = [_in_the_manner_of(old, around), around] if fits else [_in_the_manner_of(old, version)]
    spellings += [version, version.replace("_", "-"), version.replace(".", "_"), version.replace(".", "-")]
    spellings.sort(key=lambda spelling: _separators(spelling) != _separators(old))
    return next(({name: value} for value in spellings if expand(document, text, {name: value}) == version), {})


def _in_the_manner_of(old: str, version: str) -> str:
    """A version with the separators and leading zeros of an old literal, if it has as many pieces.

    >>> _in_the_manner_of("6-30-02", "6.30.4"), _in_the_manner_of("2.26.2-1", "2.27.3.1")
    ('6-30-04', '2.27.3-1')
    """
    old_pieces, pieces = _PIECES.split(old), _PIECES.split(version)
    if len(old_pieces) != len(pieces):
        return version
    widths = [len(piece) if piece.startswith("0") else 0 for piece in old_pieces]
    return "".join(old_pieces[index] if index % 2 else piece.zfill(widths[index]) for index, piece in enumerate(pieces))


def _separators(text: str) -> set[str]:
    return set(text) & set("._-")


def _pieces(document: Document, text: str, names: Sequence[str], version: str) -> dict[str, str]:
    """The values of `{{ major }}.{{ minor }}.{{ patch }}` for a version; empty if the text is not of such a form."""
    marks = {name: f"0a1b2c3{index}d" for index, name in enumerate(names)}
    pattern = re.escape(expand(document, text, marks) or "")
    places = sorted((pattern.find(mark), name) for name, mark in marks.items() if mark in pattern)
    for index, (_, name) in enumerate(places):
        pattern = pattern.replace(marks[name], f"(?P<{name}>{'[^.]+' if index else '.+'})", 1)
    match = None if any(mark in pattern for mark in marks.values()) else re.fullmatch(pattern, version)
    values = match.groupdict() if match else {}
    return values if expand(document, text, values) == version else {}


def _hashes(document: Document, sources: Sequence[Source], given: Sequence[str] | Digest) -> list[str]:
    if callable(given):
        for source in sources:
            if not source.is_certain:
                hint = "Give the hashes of all sources that change with --sha256."
                raise document.mistake(f"the address {source.url} differs by selector, or is computed", hint=hint)
        return [given(source.url, source.kind) for source in sources]
    if len(given) != len(sources):
        addresses = "".join(f"\n    {source.url}{_of_kind(source)}" for source in sources)
        raise document.mistake(
            f"{len(given)} hashes for {len(sources)} sources that change",
            hint=f"Expected one for each, in order:{addresses}",
        )
    for source, digest in zip(sources, given, strict=True):
        if not re.fullmatch(rf"[0-9a-f]{{{DIGITS[source.kind]}}}", digest):
            name = {"sha256": "a SHA-256", "sha1": "a SHA-1", "md5": "an MD5"}[source.kind]
            hint = f"Expected {DIGITS[source.kind]} digits from 0 to 9 and a to f."
            raise InputError(f"'{digest}' is not {name}", hint=hint)
    return list(given)


def _of_kind(source: Source) -> str:
    """The words that distinguish a source from others with the same address."""
    words = [source.kind] if source.kind != "sha256" else []
    words += [f"[{source.selector}]"] if source.selector else []
    return f"  ({', '.join(words)})" if words else ""
