"""Platforms that a feedstock builds for, and the CI services that build them: keys of its conda-forge.yml."""

from __future__ import annotations

from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.writing import added_entry, added_line, removed_entry, replaced
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document, Part, TextEdit

_FORGE = "conda-forge.yml"
#: Platforms that conda-forge builds only if a feedstock requests them, and the platforms that cross-compile them.
_CROSSED_FROM = {"linux_aarch64": "linux_64", "linux_ppc64le": "linux_64", "osx_arm64": "osx_64"}
_PLATFORMS = (*_CROSSED_FROM, "linux_64", "osx_64", "win_64", "win_arm64")
PROVIDERS = ("default", "azure", "github_actions", "circle", "travis", "drone", "woodpecker", "appveyor")


def add_platform(draft: Draft, platform: str, *, native: bool = False) -> Draft:
    """Build for one more platform, cross-compiled on another one or built natively.

    A platform that is built by default (`win_64`) is built as soon as nothing skips it: a skip for it alone is removed.
    A platform that was built on its own machines is cross-compiled from then on.

    Args:
        draft: the feedstock.
        platform: such as `linux_aarch64`.
        native: build it on its own machines rather than cross-compile it.

    Raises:
        InputError: the platform is unknown, or built in this way already.

    >>> add_platform(open_draft(Path("solver-feedstock")), "linux-aarch64").changes().listed()
    (('change', 'conda-forge.yml'),)
    """
    name = platform.replace("-", "_")
    if name not in _PLATFORMS:
        raise InputError(f"'{platform}' is not a platform", hint=f"Expected one of {', '.join(_PLATFORMS)}.")
    origin = _CROSSED_FROM.get(name)
    if origin is None:
        return _unskipped(draft, name)
    forge = _forge(draft)
    for key in ("build_platform", "provider"):
        for entry in forge.entries(key, name):
            if entry.value.text in {"None", "null", ""}:
                continue
            if native or key == "build_platform":
                raise forge.mistake(f"{name} is built already", entry)
            draft = draft.remarked(
                f"{name} was built on its own machines ({entry.value.text}), and is cross-compiled now"
            )
    if native:
        return _unskipped(draft.with_document(_with_value(forge, "provider", name, "default")), name)
    forge = _with_value(forge, "build_platform", name, origin)
    if not list(forge.entries("test")) and not list(forge.entries("test_on_native_only")):
        forge = with_key(forge, "test", "native_and_emulated")
    return _unskipped(draft.with_document(forge), name)


def set_provider(draft: Draft, platform: str, provider: str) -> Draft:
    """Have a CI service, one of `PROVIDERS`, build a platform of the feedstock of `draft`.

    Raises:
        InputError: the `platform` or `provider` is unknown.

    >>> set_provider(open_draft(Path("solver-feedstock")), "linux_64", "github_actions").changes().listed()
    (('change', 'conda-forge.yml'),)
    """
    name = platform.replace("-", "_")
    if name not in _PLATFORMS or provider not in PROVIDERS:
        hint = f"Expected one of {', '.join(_PLATFORMS)}, and one of {', '.join(PROVIDERS)}."
        raise InputError(f"'{platform}' is not a platform, or '{provider}' is not a CI service", hint=hint)
    return draft.with_document(_with_value(_forge(draft), "provider", name, provider))


def _forge(draft: Draft) -> Document:
    return draft.file(_FORGE) or Document(draft.folder / _FORGE, "")


def _with_value(document: Document, key: str, name: str, value: str) -> Document:
    """The document with `key: {name: value}`."""
    for entry in document.entries(key, name):
        return document.changed(replaced(document, entry.value, value))
    for entry in document.entries(key):
        if entry.value.entries:
            return document.changed(_added(document, entry.value, name, value))
        if entry.value.source:
            raise document.mistake(f"expected a mapping at {key}", entry)
        line = f"{document.newline}  {name}: {value}"
        start = entry.start + len(entry.key) + 1
        changed = document.text[:start] + line + document.text[start:]
        return Document(document.path, changed)
    return _with_lines(document, f"{key}:{document.newline}  {name}: {value}", key)


def _added(document: Document, mapping: Part, name: str, value: str) -> list[TextEdit]:
    if mapping.is_flow:
        end = mapping.entries[-1].end
        return [TextEdit(end, end, f", {name}: {value}")]
    after = next((entry for entry in reversed(mapping.entries) if entry.key < name), None)
    return added_entry(document, mapping, name, [value], after, before=mapping.entries[0])


def with_key(document: Document, key: str, value: str) -> Document:
    """The document with `key: value` at its top level: a new value of the key, or a new key at its place."""
    for entry in document.entries(key):
        return document.changed(replaced(document, entry.value, value))
    return _with_lines(document, f"{key}: {value}", key)


def _with_lines(document: Document, lines: str, key: str) -> Document:
    """The document with a key at its top level: at its place if the keys are sorted, else at the end."""
    root = document.root
    if root is None:
        return Document(document.path, document.text + lines + document.newline)
    if root.is_flow:
        first, *nested = lines.split(f"{document.newline}  ")
        end = root.entries[-1].end if root.entries else root.start + 1
        text = f"{', ' if root.entries else ''}{first}{''.join(f' {{{line}}}' for line in nested)}"
        return document.changed([TextEdit(end, end, text)])
    keys = [entry.key for entry in root.entries]
    before = next((entry for entry in root.entries if entry.key > key), None) if keys == sorted(keys) else None
    return document.changed(added_line(document, lines, before=before.start if before else None, after=root.end))


def _unskipped(draft: Draft, name: str) -> Draft:
    """The draft without a skip for the platform alone, with remarks about other lines that name it."""
    word = {"win_64": "win", "linux_aarch64": "aarch64", "osx_arm64": "arm64", "linux_ppc64le": "ppc64le"}.get(
        name, name
    )
    recipe = draft.recipe
    for entry in recipe.entries("build", "skip"):
        condition = recipe.selector_of(entry) if recipe.has_templates else entry.value.text
        if condition == word:
            return draft.with_document(recipe.changed(removed_entry(recipe, entry)))
        texts = [condition, *(item.text for item in entry.value.items)]
        if any(word in text.split() for text in texts):
            draft = draft.remarked(f"{recipe.place_of(entry.start)} still skips {word}")
    return draft
