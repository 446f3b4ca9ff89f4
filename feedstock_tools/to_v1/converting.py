"""A feedstock with a `meta.yaml` made into one with a `recipe.yaml`, and the packages of both recipes compared.

The comparison covers names, versions, build strings and requirements, for each configuration of the feedstock; hashes
differ, since their inputs do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.platforms import with_setting
from feedstock_tools.errors import InputError
from feedstock_tools.reading import read_bytes
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.packages import Package
from feedstock_tools.recipe.requirements import SECTIONS, Pin, ensure_valid_spec, pin_of_mapping, requirement_of_text
from feedstock_tools.recipe.written.document import Document, read_document
from feedstock_tools.rerender.configuration import Configuration, read_configurations
from feedstock_tools.rerender.forge import read_forge
from feedstock_tools.rerender.outputs import packages_of
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.to_v1.expressions import names_of
from feedstock_tools.to_v1.judging import smithy_objections
from feedstock_tools.to_v1.recipe import Converted, recipe_text
from feedstock_tools.variants.selectors import DEFAULT_VARIANT
from feedstock_tools.wording import counted

_FORGE = "conda-forge.yml"
#: The scripts for Windows that the builders run without being told.
_CONDA_BUILDS, _RATTLER_BUILDS = "bld.bat", "build.bat"
#: Files that may name a script.
_NAMING = frozenset({".bat", ".cmd", ".ps1", ".py", ".sh", ".yaml"})
_WORD = re.compile(r"[A-Za-z_]\w*")
#: The maximum number of lines of a difference that remarks show.
_MOST_LINES = 6
#: The maximum number of configurations to compare: those of the largest feedstocks differ in versions only.
_MOST_CONFIGURATIONS = 100
#: From how many times the lines of the original on a remark names the reasons.
_LONG = 1.6
#: The lines that list the files which a script adds.
_LISTING = 2


def to_v1(draft: Draft, *, keep_refused: bool = False) -> Draft:
    """Make the `meta.yaml` of a feedstock a `recipe.yaml`, and have rattler-build build it.

    Scripts, patches and `conda_build_config.yaml` stay as they are, but for a `bld.bat` that nothing names, since
    rattler-build looks for `build.bat`. `conda-forge.yml` gets `conda_build_tool: rattler-build`. The remarks of the
    draft name, with its line, each part that has no equivalent in a `recipe.yaml`. The refusals say why it must not be
    written: rattler-build or conda-smithy cannot read it, or the configurations in `.ci_support` would build other
    packages.

    Args:
        keep_refused: keep the `meta.yaml` beside a recipe that is refused.

    Raises:
        InputError: the recipe is a `recipe.yaml` already, or cannot be read; with the line.

    >>> draft = to_v1(open_draft(Path("solver-feedstock")))
    >>> draft.changes().listed()
    (('change', 'conda-forge.yml'), ('delete', 'recipe/meta.yaml'), ('add', 'recipe/recipe.yaml'))
    >>> draft.remarks[-1], draft.refusals
    ('compared 3 configurations: the packages are the same but for the hashes in their build strings', ())
    """
    meta = draft.recipe
    if not meta.has_templates:
        raise InputError("the recipe is a recipe.yaml already", path=meta.path)
    configurations = read_configurations(draft.folder)
    script = meta.path.with_name(_CONDA_BUILDS)
    is_renamed = _is_found_alone(script)
    converted = convert_recipe(meta, configurations, {_CONDA_BUILDS: _RATTLER_BUILDS} if is_renamed else {})
    path = meta.path.with_name("recipe.yaml")
    name = meta.path.name
    remarks = [f"{name}:{problem.line}: not converted: {problem.reason}" for problem in converted.problems]
    remarks += [f"{name}:{note.line}: {note.reason}" for note in converted.notes]
    compared, doubts, refusals = _compared(draft, converted, configurations)
    refusals = (
        *(f"{path.name}:{found.line}: {found.message}" for found in smithy_objections(converted.text, path)),
        *refusals,
    )
    forge = draft.file(_FORGE) or Document(draft.folder / _FORGE, "")
    edited = draft
    if is_renamed:
        written = read_document(script, within=draft.folder)
        renamed = Document(script.with_name(_RATTLER_BUILDS), written.text)
        edited = edited.with_script(written).with_script(renamed)
    if not (refusals and keep_refused):
        edited = edited.without(meta.path)
        edited = edited.without(script) if is_renamed else edited
    edited = edited.with_document(Document(path, converted.text.replace("\n", meta.newline)))
    edited = replace(
        edited.with_document(with_setting(forge, ("conda_build_tool",), "rattler-build")), recipe_path=path
    )
    return edited.remarked(*remarks, *_size(meta.text, converted), *compared).doubted(*doubts).refused(*refusals)


def _size(meta: str, converted: Converted) -> Iterator[str]:
    """A remark on a recipe that is much longer than the original, with the reasons."""
    before, after = (len(text.splitlines()) for text in (meta, converted.text))
    ratio = after / max(before, 1)
    text = f"recipe.yaml has {counted(after, 'line')}, {ratio:.1f} times those of meta.yaml"
    if ratio <= _LONG:
        yield text
        return
    conditions = sum(map(converted.text.count, ("- if: ", "  then:", "  else:")))
    listing = converted.text.count("RATTLER_BUILD_PACKAGE_FILES")
    reasons = {
        "loops and macros that are written out": converted.repeated,
        "conditions, which have lines of their own": conditions,
        "lists of the files that scripts of outputs add": listing * _LISTING,
    }
    shown = (f"{number} for {reason}" for reason, number in reasons.items() if number)
    yield f"{text}: {', '.join(shown) or 'outputs that repeat what they inherit'}"


def _is_found_alone(script: Path) -> bool:
    """Whether conda-build runs a script by its name alone: no file beside it names it."""
    folder = script.parent
    if not script.is_file() or script.with_name(_RATTLER_BUILDS).exists():
        return False
    others = [path for path in folder.iterdir() if path.suffix in _NAMING and path.is_file() and not path.is_symlink()]
    texts = [read_bytes(path, within=folder) for path in (script, *others)]
    return texts[0].isascii() and not any(script.name.encode() in text for text in texts)


def convert_recipe(
    meta: Document, configurations: Sequence[Configuration], renamed: Mapping[str, str] = MappingProxyType({})
) -> Converted:
    """The `recipe.yaml` for a `meta.yaml`.

    Args:
        renamed: files beside it by the names that they lose.
        configurations: of the feedstock; they say which keys of variants are always set: without any, each name in
            the recipe.
    """
    folder = meta.path.parent
    found = frozenset(path.name for path in folder.iterdir()) if folder.is_dir() else frozenset()
    files = frozenset(renamed.get(name, name) for name in found)
    names = names_of(configuration.values for configuration in configurations)
    if not configurations:
        names = replace(names, always=frozenset(_WORD.findall(meta.text)))
    return recipe_text(meta.text, meta.path, names, files)


def _compared(
    draft: Draft, converted: Converted, configurations: Sequence[Configuration]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """A remark on the packages of both recipes, what is unknown of them, and what the converted one builds
    differently."""
    if not configurations:
        return (), ("no package was compared: there are no configurations in .ci_support",), ()
    if draft.document(draft.recipe_path) != draft.original.get(draft.recipe_path):
        return (), ("no package was compared: another edit of this call has changed the recipe already",), ()
    compared = configurations[:_MOST_CONFIGURATIONS]
    differences = compare_recipes(draft.folder, converted.text, compared)
    number = counted(len(compared), "configuration")
    if not differences:
        rest = len(configurations) - len(compared)
        doubts = (f"{counted(rest, 'configuration')} of {len(configurations)} were not compared",) if rest else ()
        return (f"compared {number}: the packages are the same but for the hashes in their build strings",), doubts, ()
    return (), (), (f"compared {number}: {len(differences)} would build other packages", *_shown(differences[0]))


def _shown(difference: Difference) -> Iterator[str]:
    for line in difference.lines[:_MOST_LINES]:
        yield f"{difference.configuration}: {line}"
    if len(difference.lines) > _MOST_LINES:
        yield f"{difference.configuration}: and {len(difference.lines) - _MOST_LINES} more"


_HASH = re.compile(r"(?<![0-9a-z])[0-9a-f]{7}(?![0-9a-z])_?|h[0-9a-f]{7}_?")
_EXACTLY = "exactly as"
_BOUNDS = re.compile(r"[,|]")
#: Zeros that mean nothing to conda: `2024.05.001` and `2024.5.1` are one version.
_ZEROS = re.compile(r"(?<![0-9a-zA-Z])0+(?=[0-9])")
#: A package: name, version, number, build string, platform, requirements by section.
_Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """What a configuration builds differently: lines with a sign, - for the original and + for the converted recipe."""

    configuration: str
    lines: tuple[str, ...]


def compare_recipes(feedstock: Path, text: str, configurations: Sequence[Configuration]) -> tuple[Difference, ...]:
    """Compare the `meta.yaml` of a feedstock with a `recipe.yaml` made of it.

    Args:
        feedstock: the folder of the feedstock.
        text: the `recipe.yaml`.
        configurations: those to compare.
    """
    rules = Rules.newest()
    forge = read_forge(feedstock, rules)
    folder = feedstock / forge.recipe_dir
    differences = []
    for configuration in configurations:
        packages = partial(packages_of, folder, configuration, forge.builder_of(configuration.platform), rules)
        before = _counted(packages(v1=False))
        try:
            after = _counted(packages(v1=True, text=text))
        except InputError as error:
            found = error.mistakes[0]
            place = f"recipe.yaml:{found.line}: " if found.line else ""
            differences.append(Difference(configuration.name, (place + found.message,)))
            continue
        lines = tuple(_differing(before, after))
        if lines:
            differences.append(Difference(configuration.name, lines))
    return tuple(differences)


def _counted(packages: Iterable[Package]) -> Counter[_Parts]:
    """The number of times that each package is made, hashes aside.

    One that pins another exactly counts once: rattler-build makes it for each build of the other, while for conda-build
    the pin is not part of the hash, so that all have one name.
    """
    counts = Counter({package.output.file_stem: _parts(package) for package in packages}.values())
    return Counter({parts: 1 if any(_EXACTLY in part for part in parts) else count for parts, count in counts.items()})


def without_hash(build: str) -> str:
    """A build string without its hash.

    >>> without_hash("cuda112h1234567_3")
    'cuda1123'
    """
    return _HASH.sub("", build)


def _differing(before: Counter[_Parts], after: Counter[_Parts]) -> Iterator[str]:
    """The lines in which the packages of a configuration differ, those of one name and build string side by side."""
    removed, added = list((before - after).elements()), list((after - before).elements())
    for package in removed:
        other = next((candidate for candidate in added if candidate[0] == package[0]), None)
        if other is None:
            yield f"- {package[0]}"
            continue
        added.remove(other)
        yield from (f"{package[0]}: - {part}" for part in package[1:] if part not in other)
        yield from (f"{package[0]}: + {part}" for part in other[1:] if part not in package)
    yield from (f"+ {package[0]}" for package in added)


def _parts(package: Package) -> _Parts:
    output = package.output
    variant = {key.replace("_", "-"): value for key, value in {**DEFAULT_VARIANT, **output.variant}.items()}
    parts = [
        output.name,
        f"version {_ZEROS.sub('', output.version)}",
        f"build number {output.build_number}",
        f"build string {without_hash(output.build_string)}",
        f"noarch {output.noarch or 'no'}",
    ]
    for section in SECTIONS:
        parts += _lines(section, package.sections.get(section, ()), output, variant)
    for kind, items in package.exports.items():
        parts += _lines(f"run export ({kind})", items, output, {})
    return (parts[0], *sorted(set(parts[1:])))


def _lines(section: str, items: Iterable[Any], output: RenderedOutput, variant: Mapping[str, str]) -> Iterator[str]:
    for item in items:
        text = _canonical(item, variant)
        # conda-build drops the requirements of an output on itself.
        if text and not (section in {"build", "host", "run"} and text.split(" ")[0] == output.name):
            yield f"{section}: {text}"


def _canonical(item: Any, variant: Mapping[str, str]) -> str:
    """A requirement in canonical form: pins by bounds, versions with operators, bare names where a variant pins."""
    if isinstance(item, Mapping):
        build = next(iter(item.values())).get("build")
        return _pin(pin_of_mapping(item), str(build) if build else "")
    text = " ".join(str(item).split())
    if " @" in text:
        pin = requirement_of_text(text)
        assert isinstance(pin, Pin)  # noqa: S101 - the mark of a pin is there
        return _pin(pin, text.partition(" @")[2].partition(" ")[2])
    return _spec(text, variant)


def _pin(pin: Pin, build: str) -> str:
    if pin.exact:
        return f"{pin.name} {_EXACTLY} {'in host' if pin.compatible else 'built'} {build}".strip()
    kind = "in host" if pin.compatible else "built"
    return f"{pin.name} as {kind}, from {pin.lower} to {pin.upper} {build}".strip()


def _spec(text: str, variant: Mapping[str, str]) -> str:
    name, _, constraint = ensure_valid_spec(_spaced(text)).partition(" ")
    name = name.lower()
    if not constraint:
        return name
    pinned = variant.get(name.replace("_", "-"))
    version, _, build = constraint.partition(" ")
    if pinned is not None and ensure_valid_spec(f"{name} {pinned}") == f"{name} {constraint}":
        return name
    if "=" in version.lstrip("=<>!~") and not _BOUNDS.search(version) and not build:
        start = len(version) - len(version.lstrip("=<>!~"))
        number, _, build = version[start:].partition("=")
        version = version[:start] + number
    exact = bool(build) or "|" in version
    alternatives = [",".join(sorted(_bound(bound, exact) for bound in part.split(","))) for part in version.split("|")]
    version = "|".join(sorted(alternatives))
    return " ".join(part for part in (name, "" if version == "*" and not build else version, build) if part)


def _spaced(text: str) -> str:
    match = re.match(r"[\w.\-]+(?=[<>=!~])", text)
    if match:
        text = f"{match[0]} {text[match.end() :]}"
    return re.sub(r"(?<=[<>=!~,|])\s+|\s+(?=[,|])", "", text)


def _bound(part: str, has_build: bool) -> str:
    operator = part[: len(part) - len(part.lstrip("=<>!~"))]
    version = _ZEROS.sub("", part[len(operator) :])
    bare = version.rstrip("*").rstrip(".")
    if not bare:
        return "*"
    if operator in {"", "=", "=="} and version.endswith("*"):
        return f"{bare}.*"
    if operator in {">=", ">", "<", "<="}:
        return operator + bare
    if operator == "=":
        return f"{bare}.*"
    if not operator:
        return f"=={bare}" if has_build else f"{bare}.*"
    return operator + version
