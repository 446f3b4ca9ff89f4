"""Lists of versions in variant files and migrations: what they hold, what is zipped with them, and the pinning's,
copied into the variant file of a recipe so that it can list others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from feedstock_tools.edit.draft import Draft
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.written.document import Document, Entry, Part, read_document
from feedstock_tools.recipe.written.variables import holds_with
from feedstock_tools.variants.files import parse
from feedstock_tools.variants.model import VariantConfig

#: A version of CUDA or Python, without patch level; `3.14t` is Python without the global interpreter lock.
VERSION = re.compile(r"\d{1,2}\.\d{1,3}")

#: The platforms that pinnings have lists for, and where conda-forge builds them.
PLATFORMS = tuple(
    Platform.parse(name) for name in ("linux-64", "linux-aarch64", "linux-ppc64le", "osx-64", "osx-arm64", "win-64")
)

#: The variant files of a recipe that list values.
VARIANT_FILES = ("recipe/conda_build_config.yaml", "recipe/variants.yaml")

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


def version_of(item: Part) -> str:
    """The version that an item of a list is: `3.12.* *_cpython` is 3.12, `3.14.* *_cp314t` is 3.14t."""
    number, _, build = re.sub(r"\.\*", "", item.text).partition(" ")
    return f"{number}t" if re.search(r"_cp\d+t$", build) else number


def is_version(item: Part, version: str) -> bool:
    """Whether an item of a list is a version."""
    return item.kind == "scalar" and version_of(item) == version


def versions_in(document: Document, key: str) -> frozenset[str]:
    """The versions that a file lists."""
    items = (item for entry in document.entries(key) for item in entry.value.items)
    return frozenset(version_of(item) for item in items if item.kind == "scalar" and VERSION.match(item.text))


def listing(document: Document, key: str, version: str) -> Part | None:
    """The first list of a key that has a version."""
    lists = (entry.value for entry in document.entries(key))
    return next((list_ for list_ in lists if any(is_version(item, version) for item in list_.items)), None)


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


def zip_group(document: Document, key: str) -> frozenset[str]:
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
    group = zip_group(pinned, key)
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
    return zip_group(document, key) or _ZIPPED[key]


def zipped_lists(document: Document, key: str, entry: Entry) -> Iterator[Entry]:
    """The lists zipped with that of `entry`: of several by selector, the one with its selector."""
    for name in sorted(zipped_with(document, key)):
        lists = [partner for partner in document.entries(name) if partner.value.items]
        same = [partner for partner in lists if document.selector_of(partner) == document.selector_of(entry)]
        yield from same[:1] or lists[:1]


def counterparts(document: Document, list_: Part, index: int, other: Part) -> list[int]:
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
    naming = [place for place, item in enumerate(other.items) if names_version(item.text, number)]
    naming = naming or [
        place for place, item in enumerate(other.items) if names_version(document.comment_after(item), number)
    ]
    return list(dict.fromkeys(partners or naming)) or ([index] if len(list_.items) == len(other.items) else [])


def names_version(text: str, version: str) -> bool:
    """Whether a text names a version, and not only a longer one that contains it."""
    return re.search(rf"(?<![\d.]){re.escape(version)}(?![\d.])", text) is not None
