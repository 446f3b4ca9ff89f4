"""Platforms that a feedstock builds for, the CI services that build them, and other keys of its conda-forge.yml."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.scripts import failing
from feedstock_tools.edit.writing import added_entry, removed_entry, removed_items, replaced
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document, TextEdit
from feedstock_tools.wording import nearest

_FORGE = "conda-forge.yml"
#: Platforms that conda-forge builds only if a feedstock requests them, and the platforms that cross-compile them.
_CROSSED_FROM = {
    **dict.fromkeys(("linux_aarch64", "linux_ppc64le", "linux_riscv64"), "linux_64"),
    **{"osx_arm64": "osx_64", "win_arm64": "win_64"},
}
_PLATFORMS = (*_CROSSED_FROM, "linux_64", "osx_64", "win_64")
#: What skips a platform alone.
_SKIPPING = {"win_64": "win"} | {f"linux_{name}": name for name in ("aarch64", "ppc64le", "riscv64")}
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
    old = [{"target_platform": each.replace("_", "-")} for each in _PLATFORMS if each != name]
    draft = draft.doubted(
        *failing(draft, {"target_platform": name.replace("_", "-")}, old), *_without_script(draft, name)
    )
    origin = _CROSSED_FROM.get(name)
    if draft.spec is not None and not list(draft.spec.entries("platforms", name.replace("_", "-"))):
        return _in_spec(draft, draft.spec, name.replace("_", "-"), None if native else origin)
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
        return _unskipped(draft.with_document(with_setting(forge, ("provider", name), "default")), name)
    forge = with_setting(forge, ("build_platform", name), origin)
    if not list(forge.entries("test")) and not list(forge.entries("test_on_native_only")):
        forge = with_setting(forge, ("test",), "native_and_emulated")
    return _unskipped(draft.with_document(forge), name)


def _in_spec(draft: Draft, spec: Document, subdir: str, origin: str | None) -> Draft:
    """The draft with one more platform in the spec, crossed from `origin`."""
    crossed = f"{{build_on: {origin.replace('_', '-')}}}" if origin else ""
    spec = with_setting(spec, ("platforms", subdir), crossed, sort=False)
    if origin and not list(spec.entries("conda_forge", "test")):
        spec = with_setting(spec, ("conda_forge", "test"), "native_and_emulated", sort=False)
    return draft.with_document(spec)


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
    return draft.with_document(with_setting(_forge(draft), ("provider", name), provider))


def _forge(draft: Draft) -> Document:
    return draft.file(_FORGE) or Document(draft.folder / _FORGE, "")


def set_setting(draft: Draft, key: str, value: str) -> Draft:
    """Set a `key` of conda-forge.yml in the feedstock of `draft`, such as `bot.automerge`, to a `value` as in YAML.

    A new key comes last, as conda-forge's bot writes it.

    >>> set_setting(open_draft(Path("solver-feedstock")), "bot.automerge", "true").changes().listed()
    (('change', 'conda-forge.yml'),)
    """
    return draft.with_document(with_setting(_forge(draft), key.split("."), value, sort=False))


def drop_setting(draft: Draft, key: str) -> Draft:
    """Remove a `key` of conda-forge.yml in the feedstock of `draft`, and the mappings that it alone is in.

    Raises:
        InputError: conda-forge.yml has no such key.
    """
    forge, keys = _forge(draft), key.split(".")
    found = [entry for depth in range(len(keys)) for entry in [*forge.entries(*keys[: depth + 1])][-1:]]
    if forge.root is None or len(found) < len(keys):
        known = [entry.key for entry in forge.root.entries] if forge.root else []
        raise forge.mistake(
            f"there is no setting '{key}'", hint=nearest(key, known, "Expected one such as bot.automerge.")
        )
    mappings = [forge.root, *(entry.value for entry in found)]
    depth = next((depth for depth in reversed(range(len(keys))) if len(mappings[depth].entries) > 1), 0)
    return draft.with_document(forge.changed(removed_items(forge, mappings[depth], [found[depth]])))


def with_setting(document: Document, keys: Sequence[str], value: str, *, sort: bool = True) -> Document:
    """The document with a value at `keys`: in place of the old one, or with a new key at its place or at the end."""
    for entry in document.entries(*keys):
        return document.changed(replaced(document, entry.value, value))
    depth = next(depth for depth in reversed(range(len(keys))) if not depth or list(document.entries(*keys[:depth])))
    outer = next(document.entries(*keys[:depth]), None) if depth else None
    mapping = outer.value if outer is not None else document.root
    key, *inner = keys[depth:]
    lines = [f"{'  ' * level}{name}:" for level, name in enumerate(inner, 1)]
    lines = [*lines[:-1], f"{lines[-1]} {value}"] if lines else [value]
    if mapping is None:
        written = f"{key}: {value}" if not inner else document.newline.join([f"{key}:", *lines])
        return Document(document.path, document.text + written + document.newline)
    if mapping.is_flow:
        text = "".join(f"{name}: {{" for name in keys[depth:-1]) + f"{keys[-1]}: {value}" + "}" * len(inner)
        end = mapping.entries[-1].end if mapping.entries else mapping.start + 1
        return document.changed([TextEdit(end, end, f", {text}" if mapping.entries else text)])
    if mapping.entries:
        names = [entry.key for entry in mapping.entries]
        sort = sort and names == sorted(names)
        before = next((entry for entry in mapping.entries if entry.key > key), None) if sort else None
        return document.changed(added_entry(document, mapping, key, lines, before=before))
    if outer is None or mapping.source:
        raise document.mistake(f"expected a mapping at {'.'.join(keys[:depth]) or 'the top'}", outer)
    indent = " " * (document.column_of(outer.start) + 2)
    start = outer.start + len(outer.key) + 1
    added = [f"{key}: {value}"] if not inner else [f"{key}:", *lines]
    return document.changed([TextEdit(start, start, "".join(f"{document.newline}{indent}{line}" for line in added))])


def _without_script(draft: Draft, name: str) -> Iterator[str]:
    """A doubt about a recipe that only a script for Unix builds."""
    recipe = draft.recipe
    script = recipe.path.with_name("bld.bat" if recipe.has_templates else "build.bat")
    if any(recipe.entries("outputs")) or any(recipe.entries("build", "script")) or not name.startswith("win_"):
        return
    if script.with_name("build.sh").is_file() and not script.is_file():
        yield f"build.sh builds the package, and there is no {script.name}: nothing would build it on Windows"


def _unskipped(draft: Draft, name: str) -> Draft:
    """The draft without a skip for the platform alone, with remarks about other lines that name it."""
    alone = _SKIPPING.get(name, "arm64" if name == "osx_arm64" else name)
    words = {"win", "arm64"} if name == "win_arm64" else {alone}
    recipe = draft.recipe
    for entry in recipe.entries("build", "skip"):
        condition = recipe.selector_of(entry) if recipe.has_templates else entry.value.text
        if condition == alone:
            return draft.with_document(recipe.changed(removed_entry(recipe, entry)))
        texts = [condition, *(item.text for item in entry.value.items)]
        for word in sorted({word for text in texts for word in text.split()} & words):
            draft = draft.remarked(f"{recipe.place_of(entry.start)} still skips {word}")
    return draft
