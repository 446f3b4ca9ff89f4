"""Mistakes of a recipe that conda-forge's linter does not see, with the line of each.

Some follow from the recipe alone, the others from what its configurations render to: packages of two jobs under one
name, packages without files that do not pin what they stand for, selectors that hold in no job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.check.rendered import Built, rendered
from feedstock_tools.edit.document import Document, Part, selector_in
from feedstock_tools.edit.draft import Draft, read_draft
from feedstock_tools.edit.requirements import name_of, output_name, outputs_of, requirement_lists
from feedstock_tools.edit.writing import removed_items
from feedstock_tools.errors import InputError
from feedstock_tools.generate.spec.review_checks import license_mistake
from feedstock_tools.platforms import Platform
from feedstock_tools.rerender.configurations.configuration import Configuration, read_configurations
from feedstock_tools.variants.namespace import Namespace
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import evaluate

__all__ = ["RULES", "Mistaken", "fixed", "lint_feedstock"]

#: The rules, with what each means.
RULES: Mapping[str, str] = {
    "colliding-packages": "two jobs build packages with one file name and different requirements",
    "dead-selector": "a selector about CUDA, Python or NumPy holds in no job",
    "duplicate-requirement": "a requirement stands twice in one list",
    "license": "the license is missing or not an SPDX expression",
    "license-file": "the recipe names no license file",
    "loose-metapackage": "a package without files does not pin its sibling exactly",
    "no-package": "a job builds no package",
}
#: What dead selectors are about: versions that come and go. Lines that skip are not meant to hold.
_VERSIONED = frozenset({"cuda_compiler_version", "python", "py", "numpy", "np"})
_SKIP = re.compile(r"\s*skip\s*:")
_WORD = re.compile(r"[A-Za-z_]\w*")
_EXACT = re.compile(r"exact\s*=\s*[Tt]rue")
#: Keys of an output, or of its `build`, that put files into its package.
_WITH_FILES = frozenset({"script", "files"})


@dataclass(frozen=True, slots=True, order=True)
class Mistaken:
    """One finding: the file relative to the feedstock, its line (from 1), the rule, and what is wrong."""

    path: str
    line: int
    rule: str
    message: str
    fixable: bool = False


def lint_feedstock(feedstock: Path, *, bounds: Bounds | None = None) -> tuple[Mistaken, ...]:
    """The findings in a feedstock's recipe, in the order of its lines.

    Args:
        feedstock: its folder; configurations are read from its `.ci_support`.
        bounds: what the work may take, in a child process; None to do it in this process.

    Raises:
        InputError: the feedstock lacks a recipe, or a file cannot be read.

    >>> [found.rule for found in lint_feedstock(Path("solver-feedstock"))]
    ['license-file']
    """
    if bounds is not None:
        return run_bounded(partial(lint_feedstock, feedstock), bounds)
    draft = read_draft(feedstock)
    recipe = draft.recipe
    jobs = [(configuration, rendered(feedstock, configuration)) for configuration in read_configurations(feedstock)]
    found = [
        *_duplicates(draft),
        *_licenses(draft),
        *_without_package(draft, jobs),
        *_colliding(draft, jobs),
        *_loose(draft),
    ]
    if recipe.has_templates:
        found += _dead_selectors(draft, [configuration for configuration, _ in jobs])
    return tuple(sorted(set(found)))


def fixed(draft: Draft) -> Draft:
    """The draft without what can be mended safely: requirements that stand twice in a list."""
    recipe = draft.recipe
    repeated: dict[Part, list[Part]] = {}
    for list_, item in _repeated(recipe):
        repeated.setdefault(list_, []).append(item)
    changes = [change for list_, items in repeated.items() for change in removed_items(recipe, list_, items)]
    return draft.with_document(recipe.changed(changes))


def _finding(draft: Draft, offset: int, rule: str, message: str, *, fixable: bool = False) -> Mistaken:
    path = draft.recipe_path.relative_to(draft.folder).as_posix()
    return Mistaken(path, draft.recipe.line_of(offset), rule, message, fixable)


def _duplicates(draft: Draft) -> Iterator[Mistaken]:
    for _, item in _repeated(draft.recipe):
        yield _finding(
            draft, item.start, "duplicate-requirement", f"'{item.text}' stands in this list already", fixable=True
        )


def _repeated(recipe: Document) -> Iterator[tuple[Part, Part]]:
    """Items that repeat one of the same list with the same selector, outside of blocks of Jinja."""
    for list_ in requirement_lists(recipe):
        seen: set[tuple[str, str]] = set()
        for item in list_.items:
            key = (" ".join(item.text.split()), recipe.selector_of(item))
            if item.kind != "scalar" or recipe.is_in_block(item.start):
                continue
            if key in seen:
                yield list_, item
            seen.add(key)


def _licenses(draft: Draft) -> Iterator[Mistaken]:
    recipe = draft.recipe
    licenses = list(recipe.entries("about", "license"))
    if not licenses and not list(recipe.entries("outputs", "*", "about", "license")):
        yield _finding(draft, 0, "license", "the recipe names no license (about.license)")
    for entry in licenses:
        text = entry.value.text
        if "{{" not in text and (wrong := license_mistake(text)):
            yield _finding(draft, entry.start, "license", f"{wrong[0]}. {wrong[1]}")
    files = [*recipe.entries("about", "license_file"), *recipe.entries("outputs", "*", "about", "license_file")]
    if licenses and not files:
        yield _finding(draft, licenses[0].start, "license-file", "no license_file is below 'about'")


def _without_package(draft: Draft, jobs: list[tuple[Configuration, tuple[Built, ...]]]) -> Iterator[Mistaken]:
    empty = [configuration.name for configuration, outputs in jobs if not outputs]
    if empty and len(empty) < len(jobs):
        line = next(draft.recipe.entries("build"), None)
        names = ", ".join(empty[:3]) + (f" and {len(empty) - 3} more" if len(empty) > 3 else "")
        message = f"everything is skipped in {names}: rerender the feedstock"
        yield _finding(draft, line.start if line else 0, "no-package", message)


def _colliding(draft: Draft, jobs: list[tuple[Configuration, tuple[Built, ...]]]) -> Iterator[Mistaken]:
    """Packages of two jobs that would be the same file, although their requirements differ."""
    known: dict[tuple[str, str], tuple[str, Mapping[str, tuple[str, ...]]]] = {}
    for configuration, outputs in jobs:
        for built in outputs:
            output = built.output
            subdir = "noarch" if output.noarch else configuration.platform.subdir
            run = {name: items for name, items in output.requirements.items() if name in {"run", "run_constrained"}}
            job, other = known.setdefault((subdir, output.file_stem), (configuration.name, run))
            if other != run and not output.noarch:
                message = f"{output.file_stem} comes from {job} and {configuration.name} with different requirements"
                yield _finding(draft, _place_of(draft.recipe, output.name), "colliding-packages", message)


def _loose(draft: Draft) -> Iterator[Mistaken]:
    """Outputs that only require siblings, and some without their build: the solver may combine two builds."""
    recipe = draft.recipe
    names = {output_name(output) for output in outputs_of(recipe)} - {""}
    for output in outputs_of(recipe):
        parts = output.members
        below = {key: part.members for key, part in parts.items()}
        sections = below.get("requirements", {})
        has_files = parts.keys() & _WITH_FILES or below.get("build", {}).keys() & _WITH_FILES
        if has_files or sections.keys() & {"build", "host"} or "run" not in sections:
            continue
        siblings = names - {output_name(output)}
        items = sections["run"].items
        if items and all(item.kind == "scalar" and name_of(item.text) in siblings for item in items):
            for item in items:
                if not _EXACT.search(item.text):
                    message = f"{output_name(output)} has no files and requires {item.text} without its exact build"
                    yield _finding(draft, item.start, "loose-metapackage", message)


def _place_of(recipe: Document, name: str) -> int:
    """Where an output is named; the top of the recipe if a template names it."""
    paths = (("outputs", "*", "name"), ("outputs", "*", "package", "name"), ("package", "name"))
    entries = [entry for keys in paths for entry in recipe.entries(*keys)]
    return next((entry.start for entry in entries if entry.value.text == name), 0)


def _dead_selectors(draft: Draft, configurations: list[Configuration]) -> Iterator[Mistaken]:
    """Selectors that hold in no job: of a CUDA or Python that is no longer built."""
    spaces = [space for configuration in configurations for space in _namespaces(configuration)]
    recipe, at = draft.recipe, 0
    for line in recipe.text.splitlines(keepends=True):
        selector = "" if line.lstrip().startswith("#") or _SKIP.match(line) else selector_in(line)
        if spaces and _VERSIONED & set(_WORD.findall(selector)) and not _holds(selector, spaces):
            yield _finding(draft, at, "dead-selector", f"[{selector}] holds in no job")
        at += len(line)


def _namespaces(configuration: Configuration) -> Iterator[Namespace]:
    """What selectors see in a job: one namespace for each row of its values."""
    rows = max((len(values) for values in configuration.values.values()), default=1)
    platform: Platform = configuration.platform
    for row in range(rows):
        variant = {key: values[min(row, len(values) - 1)] for key, values in configuration.values.items() if values}
        yield Namespace(platform.subdir, platform.subdir, variant, {}, CondaBuildRules())


def _holds(selector: str, spaces: list[Namespace]) -> bool:
    """Whether a selector holds in some job, or cannot be evaluated: then nothing is claimed."""
    try:
        return any(evaluate(selector, space) for space in spaces)
    except (InputError, KeyError, NameError, TypeError, ValueError, AttributeError):
        return True
