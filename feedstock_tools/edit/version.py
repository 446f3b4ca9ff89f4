"""A new version of what a recipe packages: its version, the hashes of its sources, and its build number."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from feedstock_tools.edit.sources import DIGITS, SourceHash, changed_sources, following, kept_sources, moved_source
from feedstock_tools.edit.writing import replaced
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document, Part, TextEdit
from feedstock_tools.recipe.written.owners import outputs_of
from feedstock_tools.recipe.written.variables import Variable, expand, names_behind, names_in, read_variables
from feedstock_tools.versions import InvalidVersionError, parse_version
from feedstock_tools.wording import named

#: Gives the hash for an address and a kind: sha256, sha1 or md5.
Digest = Callable[[str, str], str]
_VERSION = re.compile(r"[0-9A-Za-z_.+!]{1,64}")
_PIECES = re.compile(r"([._-])")
_FIRST_TERM = re.compile(r"(?:\$?\{\{)?\s*(\d+)(?= \+ \()")
_NUMBER = re.compile(r"\d{1,9}")
#: What recipes call the variable of their build number.
_USUAL = re.compile(r"build(?:_?num(?:ber)?)?")


@dataclass(frozen=True, slots=True)
class _Base:
    """The places where a recipe writes its version: variables with a literal, or itself; and the new one."""

    version: str
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
    sources: Mapping[int, str] | None = None,
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
        sources: new addresses, revisions or versions of sources by their number from 1, as for `moved_source`.

    Raises:
        InputError: the version or a hash is malformed, the number of hashes is wrong, the recipe computes its version
            in a way that no literal decides, or it has no such output, source or literal for a variable.

    >>> print(set_version(Document(Path("recipe.yaml"), 'package: {name: x, version: "1.2"}'), "1.3", []).text)
    package: {name: x, version: "1.3"}
    """
    moved = move_to(document, version, output=output, variables=variables, sources=sources)
    changed = changed_sources(document, moved)
    changes = []
    for source, digest in zip(changed, _hashes(moved, changed, hashes), strict=True):
        if isinstance(source.place, Part) and names_in(source.place.text):
            raise moved.mistake("no literal holds this hash", source.place, "Edit it by hand.")
        changes += replaced(moved, source.place, digest)
    return set_build_number(moved.changed(changes), 0, output=output)


def move_to(
    document: Document,
    version: str,
    *,
    output: str | None = None,
    variables: Mapping[str, str] | None = None,
    sources: Mapping[int, str] | None = None,
) -> Document:
    """A recipe with another version, and the addresses of that version, but with its old hashes and build number.

    Arguments and errors are those of `set_version`.
    """
    if not _VERSION.fullmatch(version):
        raise InputError(f"'{version}' is not a version", hint="A version has digits, letters and . _ + ! only.")
    variables = variables or {}
    base = _base(document, version, output, variables)
    changes = [change for part in base.parts for change in replaced(document, part, base.version)]
    changes += [
        change for variable in base.variables for change in replaced(document, variable, base.values[variable.name])
    ]
    old = next((_expanded(document, part.text) for part in _version_parts(document, output, variables)), "")
    moved = document.changed([*changes, *following(document, old, base.version)])
    for number, value in (sources or {}).items():
        moved = moved.changed(moved_source(moved, number, value))
    return moved


def version_of(document: Document, output: str | None = None, variables: Collection[str] = ()) -> str:
    """The version that a recipe has now, or an output of it; of several by selector the one made of `variables`."""
    parts = _version_parts(document, output, variables)
    texts = {_expanded(document, part.text): part.text for part in parts}
    if len(texts) != 1:
        several = ", ".join(f"{version} ({text})" for version, text in texts.items())
        raise document.mistake("the recipe has several versions", hint=f"Choose one with --set NAME=VALUE: {several}.")
    return next(iter(texts))


def left_behind(document: Document, moved: Document, output: str | None = None) -> tuple[str, ...]:
    """Sentences on what a change of version left as it was: sources, and variables that seem to have the old version.

    >>> text = '{% set version = "12.8.90" %}\n{% set cuda = "12.8" %}\npackage: {version: {{ version }}}'
    >>> document = Document(Path("meta.yaml"), text)
    >>> left_behind(document, move_to(document, "12.9.79"))
    ('meta.yaml:2 is as before: cuda = 12.8',)
    """
    pairs = list(zip(read_variables(document), read_variables(moved), strict=True))
    changed = {old.name: old.literal or "" for old, new in pairs if old.expression != new.expression}
    old = {version_of(document, output, changed), *changed.values()}
    remarks = [
        f"{document.place_of(variable.start)} is as before: {variable.name} = {named(variable.literal)}"
        for variable, new in pairs
        if variable.literal and variable.expression == new.expression
        if any(_repeats(variable.literal, text) for text in old)
    ]
    kept = kept_sources(document, moved)
    why = "is as before, since nothing in it follows the version"
    return (*remarks, *(f"{place}: source {number} {why}: {named(address)}" for number, place, address in kept))


def lowered(old: str, version: str) -> tuple[str, ...]:
    """A sentence if a version is none for conda, has no digit, or is below the old one in conda's order.

    >>> lowered("2.0.post1", "2.0"), lowered("3.1", "1!2.0")
    (('version 2.0 is lower than 2.0.post1, which the recipe had',), ())
    """
    try:
        new = parse_version(version)
    except InvalidVersionError as error:
        return (f"conda does not take '{version}' for a version: {error}",)
    if not any(char.isdigit() for char in version):
        return (f"version {version} has no digit: is it the right one?",)
    with suppress(InvalidVersionError):
        if new < parse_version(old):
            return (f"version {version} is lower than {old}, which the recipe had",)
    return ()


def _repeats(literal: str, version: str) -> bool:
    """Whether a literal is a version, its first pieces, or has its pieces together: `12.8`, `root_12890`."""
    joined = re.sub(_PIECES, "", version)
    starts = "." in literal and f"{version}.".startswith(f"{literal}.")
    return starts or (len(joined) > 2 and joined in literal)


def _version_parts(document: Document, output: str | None, variables: Collection[str] = ()) -> list[Part]:
    """The parts with the version: of the recipe, of all its outputs if these have the same, or of the named output.

    Of several versions of the recipe, those that depend on `variables` if any do.
    """
    own = [entry.value for section in ("package", "recipe") for entry in document.entries(section, "version")]
    if output is None and own:
        read = read_variables(document)
        chosen = [part for part in own if not names_behind(part.text, read).isdisjoint(variables)]
        return chosen if chosen and len({expand(document, part.text, {}) for part in own}) > 1 else own
    outputs = (owner for owner in outputs_of(document) if owner.kind == "output")
    keys = (("version",), ("package", "version"))
    written = {owner.name: [entry.value for own in keys for entry in owner.part.below(*own)] for owner in outputs}
    named = {name: parts for name, parts in written.items() if parts}
    if output is not None and output not in named:
        hint = f"Expected one of {', '.join(named)}." if named else None
        raise document.mistake(f"the recipe has no output '{output}' with a version", hint=hint)
    parts = named[output] if output is not None else [part for parts in named.values() for part in parts]
    versions = {name: expand(document, part.text, {}) or part.text for name, (part, *_) in named.items()}
    if not parts or (output is None and len(set(versions.values())) != 1):
        several = ", ".join(f"{name} {version}" for name, version in versions.items())
        hint = f"Name an output with --of: {several}." if versions else "Expected 'version' below 'package'."
        raise document.mistake("the recipe has no single version", hint=hint)
    return list({part.text: part for part in parts}.values())


def _expanded(document: Document, text: str) -> str:
    value = expand(document, text, {})
    if not value:
        raise document.mistake(f"the version {text} cannot be computed from the recipe alone", hint="Edit it by hand.")
    return value


def _base(document: Document, version: str, output: str | None, others: Mapping[str, str]) -> _Base:
    """The parts and variables that decide the version, the given ones included, with their new values."""
    parts = _version_parts(document, output, others)
    literal = tuple(part for part in parts if "{{" not in part.text)
    values = dict(others)
    for part in parts:
        if part not in literal and expand(document, part.text, values) != version:
            name = _given(document, part, version)
            values = ({name: version} if name else _deciding(document, part, version)) | values
            version = (expand(document, part.text, values) if name else None) or version
    statements = [each for each in read_variables(document) if each.name in values and each.literal is not None]
    for name in values.keys() - {each.name for each in statements}:
        raise document.mistake(f"the recipe sets no variable '{name}' to a literal")
    return _Base(version, tuple(statements), literal, values)


def _given(document: Document, part: Part, version: str) -> str | None:
    """The variable whose form `version` has, if that is not the form of what the recipe computes from it.

    With the version `{{ major ~ "." ~ version }}` 35.1 stands for 7.35.1, and a tag `patch_7Feb2024` for what a
    template makes of it.
    """
    literals = _literals_behind(document, part.text)
    now, pieces = expand(document, part.text, {}) or "", len(_PIECES.split(version))
    if version[0].isdigit() or not now[:1].isdigit():
        same = {each.name for each in literals if len(_PIECES.split(each.literal or "")) == pieces > 1}
        is_part = len({each.name for each in literals}) > 1 and len(_PIECES.split(now)) > pieces
    else:
        same = {each.name for each in literals if not (each.literal or "0")[0].isdigit()}
        is_part = True
    name = same.pop() if is_part and len(same) == 1 else None
    return name if name and expand(document, part.text, {name: version}) else None


def _literals_behind(document: Document, text: str) -> list[Variable]:
    """The variables with literals that a text depends on, in the order of the recipe."""
    variables = read_variables(document)
    dependencies = names_behind(text, variables)
    return [variable for variable in variables if variable.name in dependencies and variable.literal is not None]


def _deciding(document: Document, part: Part, version: str) -> dict[str, str]:
    """The new values of the variables that a version is made of."""
    literals = _literals_behind(document, part.text)
    names = list(dict.fromkeys(variable.name for variable in literals))
    values = next(filter(None, (_solved(document, part.text, name, version) for name in names)), None)
    values = values or _pieces(document, part.text, names, version)
    if not values:
        hint = 'Expected literals that make it up, such as {% set version = "1.2.3" %}. Edit the version by hand.'
        if literals:
            hint = f"It is computed from {literals[0].name} = {literals[0].literal}. Give the new {literals[0].name}."
        raise document.mistake(f"no literal of the recipe decides the version {part.text}", part, hint)
    return values


def _solved(document: Document, text: str, name: str, version: str) -> dict[str, str]:
    """The value of one variable with which a text expands to a version; empty if there is none.

    Either the text around it stays as it is (`{{ version }}{{ dev }}`), or a filter changes the spelling of all.
    """
    mark = "0a1b2c3"
    before, middle, after = (expand(document, text, {name: mark}) or "").partition(mark)
    around = version[len(before) : len(version) - len(after)]
    fits = middle and version == before + around + after
    old = next((variable.literal or "" for variable in read_variables(document) if variable.name == name), "")
    spellings = [_spelled_like(old, around), around] if fits else [_spelled_like(old, version)]
    spellings += [version, version.replace("_", "-"), version.replace(".", "_"), version.replace(".", "-")]
    spellings.sort(key=lambda spelling: _separators(spelling) != _separators(old))
    return next(({name: value} for value in spellings if expand(document, text, {name: value}) == version), {})


def _spelled_like(old: str, version: str) -> str:
    """A version with the separators and leading zeros of an old literal, if it has as many pieces.

    >>> _spelled_like("6-30-02", "6.30.4"), _spelled_like("2.26.2-1", "2.27.3.1")
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


def _hashes(document: Document, sources: Sequence[SourceHash], given: Sequence[str] | Digest) -> list[str]:
    if callable(given):
        for source in sources:
            if not source.is_certain:
                hint = "Give the hashes of all sources that change with --sha256."
                message = f"the address {source.url} differs by selector or variant, or is computed"
                raise document.mistake(message, hint=hint)
        return [given(source.url, source.kind) for source in sources]
    if len(given) != len(sources):
        addresses = "".join(f"\n    {source.url}{_of_kind(source)}" for source in sources)
        if not sources:
            raise document.mistake("no source changes", hint="Give no hash.")
        raise document.mistake(
            f"sources that change: {len(sources)}, hashes: {len(given)}",
            hint=f"Expected one for each, in order:{addresses}",
        )
    for source, digest in zip(sources, given, strict=True):
        if not re.fullmatch(rf"[0-9a-f]{{{DIGITS[source.kind]}}}", digest):
            name = {"sha256": "a SHA-256", "sha1": "a SHA-1", "md5": "an MD5"}[source.kind]
            hint = f"Expected {DIGITS[source.kind]} digits from 0 to 9 and a to f."
            raise InputError(f"'{digest}' is not {name}", hint=hint)
    return list(given)


def _of_kind(source: SourceHash) -> str:
    """The words that distinguish a source from others with the same address."""
    words = [source.kind] if source.kind != "sha256" else []
    words += [f"[{source.selector}]"] if source.selector else []
    return f"  ({', '.join(words)})" if words else ""


# --- the build number: a literal, or what the recipe's variables compute from one


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

    One in a variable with another name than the recipe's, such as `proc_build_number` of a metapackage that all builds
    share, stays, as conda-forge's bot leaves it.

    Raises:
        InputError: no literal decides the build number.

    >>> raise_build_number(Document(Path("meta.yaml"), "build: {number: 4}  # again")).text
    'build: {number: 5}  # again'
    """
    places = dict(pair for group in _groups(document) for pair in group)
    usual = {place: base for place, base in places.items() if isinstance(place, Part) or _USUAL.fullmatch(place.name)}
    return document.changed(
        change for place, base in (usual or places).items() for change in replaced(document, place, str(base + by))
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
                found = _base_variables(part.text, variables) or _first_terms(part, variables)
                group |= {variable: int(variable.literal or 0) for variable in found}
        if parts and not group:
            raise document.mistake(f"no literal decides the build number {parts[0].text}", parts[0], "Edit it by hand.")
        groups += [list(group.items())] if group else []
    return groups


def _first_terms(part: Part, variables: tuple[Variable, ...]) -> list[Variable]:
    """The numbers that sums begin with, as in `${{ 3 + (200 if cuda else 0) }}`, which specs generate."""
    behind = names_behind(part.text, variables)
    sums = [(part.source, part.start), *((each.expression, each.start) for each in variables if each.name in behind)]
    terms = [(match, start) for source, start in sums if (match := _FIRST_TERM.match(source))]
    return [Variable("", match[1], start + match.start(1), start + match.end(1)) for match, start in terms]


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
    if not dependencies & {variable.name for variable in variables}:  # a name that the recipe does not set
        numbers = [each for each in variables if _NUMBER.fullmatch(each.literal or "")]
        return [each for each in numbers if _USUAL.fullmatch(each.name)]
    return [variable for variable in numbers if re.search(r"build|number", variable.name)] or numbers
