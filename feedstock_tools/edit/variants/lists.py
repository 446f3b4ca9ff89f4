"""Lists of versions of CUDA and Python in variant files and migrations, and what is zipped with them.

A version is added beside its neighbour, or removed, together with the values zipped with it; the pinning's lists are
copied into the variant file of a recipe so that it can list other versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.writing import added_item, added_line, quoted_like, removed_items
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.written.document import VARIANT_FILES, Document, Entry, Part, TextEdit, read_document
from feedstock_tools.recipe.written.variables import holds_with
from feedstock_tools.variants.files import parse
from feedstock_tools.variants.model import VariantConfig

#: A version of CUDA or Python, without patch level; `3.14t` is Python without the global interpreter lock.
VERSION = re.compile(r"\d{1,2}\.\d{1,3}")

#: The platforms that pinnings have lists for, and where conda-forge builds them.
PLATFORMS = tuple(
    Platform.parse(name) for name in ("linux-64", "linux-aarch64", "linux-ppc64le", "osx-64", "osx-arm64", "win-64")
)

#: What conda-forge's pinning zips, or zipped, with CUDA and Python: a recipe's file may rely on that.
_ZIPPED = {
    "cuda_compiler_version": frozenset(
        {
            *("cuda_compiler", "cuda_compiler_version_min", "cudnn", "docker_image", "cdt_name", "c_stdlib_version"),
            *("c_compiler_version", "cxx_compiler_version", "fortran_compiler_version", "github_actions_labels"),
        }
    ),
    "python": frozenset({"numpy", "python_impl", "is_python_min", "is_freethreading", "is_abi3"}),
}


@dataclass(frozen=True, slots=True)
class VersionKey:
    """A key whose values are versions: its name in variant files, and in messages."""

    name: str
    title: str


CUDA = VersionKey("cuda_compiler_version", "CUDA")
PYTHON = VersionKey("python", "Python")


def older_than(version: str, versions: Iterable[str]) -> list[str]:
    """The versions that are older than a given one."""
    return [other for other in versions if _order(other) < _order(version)]


def newest(versions: Iterable[str]) -> str | None:
    """The newest of some versions; None if there are none."""
    return max(versions, key=_order, default=None)


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def version_of(item: Part) -> str:
    """The version that an item of a list is: `3.12.* *_cpython` is 3.12, `3.14.* *_cp314t` is 3.14t."""
    number, _, build = re.sub(r"\.\*", "", item.text).partition(" ")
    return f"{number}t" if re.search(r"_cp\d+t$", build) else number


def _is_version(item: Part, version: str) -> bool:
    """Whether an item of a list is a version."""
    return item.kind == "scalar" and version_of(item) == version


def versions_in(document: Document, key: str) -> frozenset[str]:
    """The versions that a file lists."""
    items = (item for entry in document.entries(key) for item in entry.value.items)
    return frozenset(version_of(item) for item in items if item.kind == "scalar" and VERSION.match(item.text))


def listing(document: Document, key: str, version: str) -> Part | None:
    """The first list of a key that has a version."""
    lists = (entry.value for entry in document.entries(key))
    return next((list_ for list_ in lists if any(_is_version(item, version) for item in list_.items)), None)


def _values_beside(migration: Document, key: str, version: str) -> dict[str, str]:
    """The values of other keys that a migration has for the one version that it adds, each the same on all platforms;
    and the value of the key itself, such as `3.13.* *_cp313`."""
    if versions_in(migration, key) != {version}:
        return {}
    lists = [entry for entry in migration.root.entries if entry.value.items] if migration.root is not None else []
    texts = {
        entry.key: {item.text for other in lists if other.key == entry.key for item in other.value.items}
        for entry in lists
        if entry.key != "zip_keys"
    }
    return {name: values.pop() for name, values in texts.items() if len(values) == 1}


def platforms_with(document: Document, key: str, version: str) -> tuple[Platform, ...]:
    """The platforms for which a file lists a version; all if its selectors cannot be read."""
    number = re.compile(rf"{re.escape(version.rstrip('t'))}(?!\d)")
    platforms = []
    for platform in PLATFORMS:
        try:
            values = _on(document, platform).values.get(key, ())
        except InputError:
            values = (version,)
        if any(number.match(str(value)) for value in values):
            platforms.append(platform)
    return tuple(platforms)


def versions_on(platform: Platform, documents: Iterable[Document], key: str) -> frozenset[str]:
    """The versions that files list for a platform, without patch level; none where their selectors cannot be read."""
    versions = set()
    for document in documents:
        try:
            values = _on(document, platform).values.get(key, ())
        except InputError:
            return frozenset()
        versions |= {number[0] for value in values if (number := VERSION.match(str(value)))}
    return frozenset(versions)


def _on(document: Document, platform: Platform) -> VariantConfig:
    """The configuration in a variant file for a platform, with CUDA enabled."""
    environ = {"CF_CUDA_ENABLED": "True", "BUILD_PLATFORM": platform.subdir, "CONFIG_VERSION": "1"}
    return parse(document.text, document.path, platform, environ=environ)


def _zip_group(document: Document, key: str) -> frozenset[str]:
    """The keys that a variant file zips with a key; empty if it zips none."""
    for entry in document.entries("zip_keys"):
        for group in entry.value.items or ():
            names = {item.text for item in group.items} or {item.text for item in entry.value.items}
            if key in names:
                return frozenset(names - {key})
    return frozenset()


def with_pinned_lists(draft: Draft, key: str, pinning: Path) -> tuple[Document, frozenset[str]] | None:
    """The recipe's `conda_build_config.yaml` with the pinning's list of a key and those zipped with it at its end; and
    their keys.

    Text is copied, with comments and selectors. None if the pinning lists no values of the key.
    """
    pinned = read_document(pinning, within=None)
    group = _zip_group(pinned, key)
    lists = [entry for name in (key, *sorted(group)) for entry in pinned.entries(name) if entry.value.items]
    if not any(entry.key == key for entry in lists):
        return None
    spans = sorted({(pinned.line_start(entry.start), pinned.line_end(entry.end - 1)) for entry in lists})
    own = draft.file(VARIANT_FILES[0]) or Document(draft.folder / VARIANT_FILES[0], "")
    breaks = "" if own.text.endswith(("\n", "\r")) or not own.text else own.newline
    copied = own.newline.join("\n".join(pinned.text[start:end] for start, end in spans).splitlines())
    return Document(own.path, f"{own.text}{breaks}{copied}{own.newline}"), frozenset(entry.key for entry in lists)


def are_even(document: Document, keys: frozenset[str]) -> bool:
    """Whether the lists of some keys in a variant file have the same number of values on every platform."""
    for platform in PLATFORMS:
        try:
            config = _on(document, platform)
        except InputError:
            return False
        if len({len(config.values[key]) for key in keys if key in config.values}) > 1:
            return False
    return True


def zipped_with(document: Document, key: str) -> frozenset[str]:
    """The keys zipped with a key in a variant file; where it has no zip_keys for it, those that the pinning zips."""
    return _zip_group(document, key) or _ZIPPED[key]


def _zipped_lists(document: Document, key: str, entry: Entry) -> Iterator[Entry]:
    """The lists zipped with that of `entry`: of several by selector, the one with its selector."""
    for name in sorted(zipped_with(document, key)):
        lists = [partner for partner in document.entries(name) if partner.value.items]
        same = [partner for partner in lists if document.selector_of(partner) == document.selector_of(entry)]
        yield from same[:1] or lists[:1]


def _counterparts(document: Document, list_: Part, index: int, other: Part) -> list[int]:
    """The places in another list of the items zipped with one: at the same place among the items for its selector.

    There are several if the other list distinguishes more (`linux64 and native`, `linux64 and crossed`). Where the
    numbers of items differ, they are the items that name the version, or whose comments do. There are none if nothing
    names it and the lists differ in length.
    """
    selectors = [[document.selector_of(item) for item in items] for items in (list_.items, other.items)]
    own_selector = selectors[0][index]
    places = [place for place, selector in enumerate(selectors[0]) if holds_with(selector, own_selector)]
    partners: list[int] = []
    for condition in dict.fromkeys((own_selector, *selectors[1])):
        group = [place for place, selector in enumerate(selectors[1]) if holds_with(selector, condition)]
        if holds_with(own_selector, condition) and len(group) == len(places):
            partners.append(group[places.index(index)])
    number = version_of(list_.items[index])
    naming = [place for place, item in enumerate(other.items) if _names_version(item.text, number)]
    naming = naming or [
        place for place, item in enumerate(other.items) if _names_version(document.comment_after(item), number)
    ]
    return list(dict.fromkeys(partners or naming)) or ([index] if len(list_.items) == len(other.items) else [])


def _names_version(text: str, version: str) -> bool:
    """Whether a text names a version, and not only a longer one that contains it."""
    return re.search(rf"(?<![\d.]){re.escape(version)}(?![\d.])", text) is not None


def with_version(
    draft: Draft,
    document: Document,
    key: VersionKey,
    version: str,
    given: Mapping[str, str],
    migration: Document | None,
) -> Draft:
    """Add a version to each list of the variant file; the lists zipped with it get the given value, that of the
    pinning's migration, or else that of its neighbour."""
    migrated = {} if migration is None else _values_beside(migration, key.name, version)
    changes: list[TextEdit] = []
    copied = []
    unused = set(given)
    for entry in document.entries(key.name):
        list_ = entry.value
        nearest = _nearest(list_, version)
        for place in [] if nearest is None else _alike(document, list_, nearest):
            neighbour = list_.items[place]
            text = quoted_like(neighbour, _named(neighbour.text, version, migrated.get(key.name, "")))
            renamed = (version_of(neighbour), version)
            changes += _added_after(document, list_, place, text, renamed)
            beside = (
                (partner, partner_place)
                for partner in _zipped_lists(document, key.name, entry)
                for partner_place in _counterparts(document, list_, place, partner.value)
            )
            for partner, partner_place in beside:
                item = partner.value.items[partner_place]
                value = given.get(partner.key, migrated.get(partner.key))
                unused.discard(partner.key)
                source = item.source if value is None else quoted_like(item, value)
                if value is None:
                    source = re.sub(rf"(?<![\d.]){re.escape(renamed[0])}(?![\d.])", version, source)
                    copied.append(f"{partner.key}: {source}")
                changes += _added_after(document, partner.value, partner_place, source, renamed)
    if not changes:
        raise document.mistake(f"lists no version of {key.title}", next(document.entries(key.name)))
    if unused:
        message = f"{sorted(unused)[0]} is not listed beside {key.name} here"
        raise document.mistake(message, hint=f"Expected one of {', '.join(sorted(zipped_with(document, key.name)))}.")
    draft = draft.with_document(document.changed(changes))
    if not copied:
        return draft
    values = ", ".join(dict.fromkeys(copied))
    return draft.remarked(f"zipped with {key.title} {version}, copied from its neighbour: {values}")


def with_listed(document: Document, list_: Part, version: str) -> Document:
    """A document with a version in a list that nothing is zipped with: after the newest older one, else first."""
    neighbour = newest(older_than(version, (version_of(item) for item in list_.items)))
    if neighbour is None:
        text, first = quoted_like(list_.items[0], version), list_.items[0].start
        lead = document.text[document.line_start(first) : first]
        before = TextEdit(first, first, f"{text}, ") if list_.is_flow else None
        return document.changed([before] if before else added_line(document, f"{lead}{text}", before=first))
    place = next(place for place, item in enumerate(list_.items) if version_of(item) == neighbour)
    text = quoted_like(list_.items[place], version)
    return document.changed(_added_after(document, list_, place, text, (neighbour, version)))


def without_listed(document: Document, entry: Entry, key: VersionKey, version: str) -> Document:
    """A document without a version in the list of `entry`, that nothing is zipped with."""
    removed = [item for item in entry.value.items if _is_version(item, version)]
    if not removed:
        raise document.mistake(f"does not list {key.title} {version}", entry)
    if len(removed) == len(entry.value.items):
        raise document.mistake(f"{key.title} {version} is the only one that is built here", entry)
    return document.changed(removed_items(document, entry.value, removed))


def _nearest(list_: Part, version: str) -> int | None:
    """The place in a list of the newest version older than `version`, else of the last; None if it has none.

    A version of Python without the global interpreter lock stands beside others of this kind.
    """
    versions = {place: version_of(item) for place, item in enumerate(list_.items) if VERSION.match(item.text)}
    alike = {place: other for place, other in versions.items() if other.endswith("t") == version.endswith("t")}
    alike = alike or versions
    neighbour = newest(older_than(version, alike.values()))
    return max((place for place, other in alike.items() if neighbour in {None, other}), default=None)


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


def _added_after(document: Document, list_: Part, place: int, text: str, renamed: tuple[str, str]) -> list[TextEdit]:
    """Add an item after the one at `place`, with the selector of that one. `renamed` holds the neighbour's version and
    the new one: a comment that names the first is copied with the second."""
    selector = document.selector_of(list_.items[place])
    comment = document.comment_after(list_.items[place])
    new_comment = (
        comment.replace(*renamed) if _names_version(comment, renamed[0]) else f"# [{selector}]" if selector else ""
    )
    head = Part("sequence", list_.start, list_.items[place].end, style=list_.style, items=list_.items[: place + 1])
    if list_.is_flow and place + 1 < len(list_.items):
        return [TextEdit(list_.items[place].end, list_.items[place].end, f", {text}")]
    neighbour = list_.items[place]
    comment_start = document.text.find("#", neighbour.end, document.line_end(neighbour.end)) if new_comment else -1
    text = text.ljust(comment_start - neighbour.start - 2)
    return added_item(document, head, text, new_comment if not list_.is_flow else "", sort=False)


def without_version(draft: Draft, document: Document, key: VersionKey, version: str) -> Draft:
    """Remove a version from the lists of the variant file, and what is zipped with it."""
    changes: list[TextEdit] = []
    for entry in document.entries(key.name):
        removed = [place for place, item in enumerate(entry.value.items) if _is_version(item, version)]
        if removed and len(removed) == len(entry.value.items):
            raise document.mistake(f"{key.title} {version} is the only one that is built here", entry)
        for list_entry in (entry, *_zipped_lists(document, key.name, entry)):
            partners = [
                partner
                for place in removed
                for partner in _counterparts(document, entry.value, place, list_entry.value)
            ]
            changes += removed_items(document, list_entry.value, [list_entry.value.items[place] for place in partners])
    return draft.with_document(document.changed(changes))
