"""What a recipe does not build: `skip` with selectors in a `meta.yaml`, with conditions in a `recipe.yaml`."""

from __future__ import annotations

import re

from feedstock_tools.edit.document import Change, Document, Part
from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.writing import added_entry, added_item, added_line, quoted_like, removed_entry, removed_items

__all__ = ["add_skip", "drop_skip"]


def add_skip(draft: Draft, key: str, version: str) -> Draft:
    """Skip a version of CUDA or Python; a limit `py<39` is raised instead where that is enough.

    Raises:
        InputError: the recipe has no section `build`.
    """
    return draft.with_recipe(lambda recipe: _skipping(recipe, key, version))


def drop_skip(draft: Draft, key: str, version: str) -> tuple[Draft, bool]:
    """Remove the skip that is for one version alone; whether there was one."""
    recipe = draft.recipe
    condition = _plain(_condition(key, version, templates=recipe.has_templates))
    for entry in recipe.entries("build", "skip"):
        own = recipe.selector_of(entry) if recipe.has_templates else entry.value.text
        if _plain(own) == condition:
            return draft.with_document(recipe.changed(removed_entry(recipe, entry))), True
        for item in entry.value.items:
            if _plain(item.text) == condition:
                last = len(entry.value.items) == 1
                changes = removed_entry(recipe, entry) if last else removed_items(recipe, entry.value, [item])
                return draft.with_document(recipe.changed(changes)), True
    return draft, False


def _skipping(recipe: Document, key: str, version: str) -> Document:
    condition = _condition(key, version, templates=recipe.has_templates)
    skips = [entry for entry in recipe.entries("build", "skip") if not recipe.is_in_block(entry.start)]
    if not recipe.has_templates:
        if skips:
            return recipe.changed(_or(recipe, skips[-1].value, condition))
        return _with_build_entry(recipe, "skip", [f"  - {condition}"])
    for entry in skips:
        selector = recipe.selector_of(entry)
        raised = _raised(selector, version) if key == "python" else None
        if raised is not None:
            start = recipe.text.index(selector, entry.end)
            return recipe.changed([Change(start, start + len(selector), raised)])
    if skips:
        line = f"{' ' * recipe.column_of(skips[-1].start)}skip: true  # [{condition}]"
        return recipe.changed(added_line(recipe, line, after=skips[-1].end))
    return _with_build_entry(recipe, "skip", [f"true  # [{condition}]"])


def _condition(key: str, version: str, *, templates: bool) -> str:
    """The condition that holds for one version, as recipes of the two formats write it."""
    if key != "python":
        return f'{key} == "{version}"'
    return f"py == {version.replace('.', '')}" if templates else f'match(python, "{version}.*")'


def _plain(condition: str) -> str:
    return re.sub(r"\s+", "", condition).replace("'", '"')


def _raised(selector: str, version: str) -> str | None:
    """A selector such as `win or py<39` with the limit that skips 3.9 too; None if it has no such limit."""
    major, minor = (int(word) for word in version.split("."))
    match = re.fullmatch(r"(.*\bor\s+)?py\s*<\s*(\d{2,3})(\s+or\b.*)?", selector)
    if not match or match[2] != f"{major}{minor}":
        return None
    start, end = match.span(2)
    return f"{selector[:start]}{major}{minor + 1}{selector[end:]}"


def _or(recipe: Document, skip: Part, condition: str) -> list[Change]:
    """Skip under one more condition."""
    if skip.kind == "sequence":
        return added_item(recipe, skip, condition, sort=False)
    line = recipe.text[recipe.line_start(skip.start) : skip.start]
    lead = f"{recipe.newline}{' ' * (len(line) - len(line.lstrip()) + 2)}- "
    return [Change(skip.start, skip.end, f"{lead}{skip.source}{lead}{quoted_like(None, condition)}")]


def _with_build_entry(recipe: Document, key: str, lines: list[str]) -> Document:
    for entry in recipe.entries("build"):
        if entry.value.entries:
            always = [each for each in entry.value.entries if not recipe.is_in_block(each.start)]
            after = next((each for each in always if each.key == "number"), always[-1] if always else None)
            return recipe.changed(added_entry(recipe, entry.value, key, lines, after))
    raise recipe.mistake("the recipe has no section 'build'", hint="Add one with a number.")
