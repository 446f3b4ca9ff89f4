"""What a recipe does not build: `skip` with selectors in a `meta.yaml`, with conditions in a `recipe.yaml`."""

from __future__ import annotations

import re
from collections.abc import Callable

from feedstock_tools.edit.document import Change, Document, Entry, Part
from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.writing import (
    added_entry,
    added_item,
    added_line,
    quoted_like,
    removed_entry,
    removed_items,
    replaced,
)

__all__ = ["add_skip", "drop_skip", "list_in_skip", "skip_where"]

_NOT_IN = r"\b({key}\s+not\s+in\s*[(\[])([^()\[\]]*)([)\]])"


def add_skip(draft: Draft, key: str, version: str) -> Draft:
    """Skip a version of CUDA or Python; a limit `py<39` is raised instead where that is enough.

    Raises:
        InputError: the recipe has no section `build`.
    """
    return draft.with_recipe(lambda recipe: _skipping(recipe, key, version))


def skip_where(draft: Draft, condition: str) -> Draft:
    """Skip builds under a condition: a selector of a `meta.yaml`, an expression of a `recipe.yaml`.

    Raises:
        InputError: the recipe has no section `build`.
    """
    return draft.with_recipe(lambda recipe: _skipping_where(recipe, condition))


def drop_skip(draft: Draft, key: str, version: str) -> tuple[Draft, bool]:
    """Build a version that a skip excludes by name; whether there was such a skip.

    A skip for this version alone goes; `… or py == 38` loses the term, `in ("11.8", "12.0")` the version, and a limit
    that begins with the next version (`py<39` for 3.8) is lowered by one.
    """
    return _changed(draft, lambda text: _allowing(text, key, version))


def list_in_skip(draft: Draft, key: str, version: str) -> Draft:
    """Build a version that a skip excludes with all others: `not in ("None", "11.8")` gets the version."""

    def listing(text: str) -> str | None:
        found = re.search(_NOT_IN.format(key=key), text)
        words = _words(found[2]) if found else []
        if found is None or not words or version in (word.strip("\"'") for word in words):
            return None
        quote = next((word[0] for word in words if word[0] in "\"'"), "")
        return f"{text[: found.start(3)].rstrip(', ')}, {quote}{version}{quote}{text[found.start(3) :]}"

    return _changed(draft, listing)[0]


def _changed(draft: Draft, change: Callable[[str], str | None]) -> tuple[Draft, bool]:
    """Change the condition of the first skip that can be; whether there was one."""
    recipe = draft.recipe
    for entry in recipe.entries("build", "skip"):
        if recipe.has_templates:
            selector = recipe.selector_of(entry)
            start = recipe.text.find(selector, entry.end) if selector else -1
            places = [(selector, start)] if start >= 0 else []
        else:
            places = [(part.text, part.start) for part in (entry.value, *entry.value.items)]
        for text, start in places:
            allowed = change(text)
            if allowed is not None:
                changes = _with_condition(recipe, entry, text, start, allowed)
                return draft.with_document(recipe.changed(changes)), True
    return draft, False


def _with_condition(recipe: Document, entry: Entry, old: str, start: int, new: str) -> list[Change]:
    """Replace the condition of a skip; without one the skip goes, or its item."""
    item = next((item for item in entry.value.items if item.start == start), None)
    if new and recipe.has_templates:
        return [Change(start, start + len(old), new)]
    if new:
        return replaced(recipe, item or entry.value, new)
    if item is not None and len(entry.value.items) > 1:
        return removed_items(recipe, entry.value, [item])
    return removed_entry(recipe, entry)


def _allowing(condition: str, key: str, version: str) -> str | None:
    """A condition without what excludes a version by name: '' if nothing is left; None if nothing there names it."""
    terms = re.split(r"(\s+or\s+)", condition)
    if any(term.count("(") != term.count(")") for term in terms[::2]):
        return None
    for at in range(0, len(terms), 2):
        term = _allowing_term(terms[at], key, version)
        if term is not None:
            before, after = terms[: max(0, at - 1)], terms[at + 1 + (at == 0) :]  # without the `or` beside it
            return "".join([*terms[:at], term, *terms[at + 1 :]] if term else [*before, *after])
    return None


def _allowing_term(term: str, key: str, version: str) -> str | None:
    """The same for a term between two `or`."""
    major, minor = version.split(".")
    if _plain(term) in {_plain(_condition(key, version, templates=each)) for each in (True, False)}:
        return ""
    if key == "python":
        following, own = (f"{major}{int(minor) + more}" for more in (1, 0))
        if match := re.fullmatch(rf"(py\s*<\s*){following}", term):
            return f"{match[1]}{own}"
        match = re.fullmatch(rf'(match\(python,\s*["\']<\s*){major}\.{int(minor) + 1}(["\']\))', term)
        return f"{match[1]}{version}{match[2]}" if match else None
    listed = re.fullmatch(rf"({key}\s+in\s*[(\[])(.*)([)\]])", term)
    words = _words(listed[2]) if listed else []
    others = [word for word in words if word.strip("\"'") != version]
    if listed is None or len(others) == len(words):
        return None
    inside = ", ".join(others) + ("," if len(others) == 1 and listed[1].endswith("(") else "")
    return f"{listed[1]}{inside}{listed[3]}" if others else ""


def _words(inside: str) -> list[str]:
    return [word.strip() for word in inside.split(",") if word.strip()]


def _skipping(recipe: Document, key: str, version: str) -> Document:
    condition = _condition(key, version, templates=recipe.has_templates)
    skips = [entry for entry in recipe.entries("build", "skip") if not recipe.is_in_block(entry.start)]
    for entry in skips if key == "python" else ():
        places = [entry.value, *entry.value.items]
        texts = [recipe.selector_of(entry)] if recipe.has_templates else [part.text for part in places]
        for part, text in zip(places, texts, strict=False):
            raised = _raised(text, version)
            if raised is not None:
                start = recipe.text.index(text, entry.end) if recipe.has_templates else part.start
                return recipe.changed(_with_condition(recipe, entry, text, start, raised))
    return _skipping_where(recipe, condition)


def _skipping_where(recipe: Document, condition: str) -> Document:
    skips = [entry for entry in recipe.entries("build", "skip") if not recipe.is_in_block(entry.start)]
    if not recipe.has_templates:
        if skips:
            return recipe.changed(_or(recipe, skips[-1].value, condition))
        return _with_build_entry(recipe, "skip", [f"  - {condition}"])
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


def _raised(condition: str, version: str) -> str | None:
    """A condition such as `win or py<39` with the limit that skips 3.9 too; None if it has no such limit."""
    major, minor = version.split(".")
    limit = rf"py\s*<\s*({major}{minor})|match\(python,\s*[\"']<\s*({major}\.{minor})[\"']\)"
    match = re.fullmatch(rf"(?:.*\bor\s+)?(?:{limit})(?:\s+or\b.*)?", condition)
    if not match:
        return None
    start, end = match.span(1 if match[1] else 2)
    return f"{condition[:start]}{major}{'' if match[1] else '.'}{int(minor) + 1}{condition[end:]}"


def _or(recipe: Document, skip: Part, condition: str) -> list[Change]:
    """Skip under one more condition."""
    if skip.kind == "sequence":
        return added_item(recipe, skip, condition, sort=False)
    line = recipe.text[recipe.line_start(skip.start) : skip.start]
    lead = f"{recipe.newline}{' ' * (len(line) - len(line.lstrip()) + 2)}- "
    start = skip.start - (len(line) - len(line.rstrip(" ")))
    return [Change(start, skip.end, f"{lead}{skip.source}{lead}{quoted_like(None, condition)}")]


def _with_build_entry(recipe: Document, key: str, lines: list[str]) -> Document:
    for entry in recipe.entries("build"):
        if entry.value.entries:
            always = [each for each in entry.value.entries if not recipe.is_in_block(each.start)]
            after = next((each for each in always if each.key == "number"), always[-1] if always else None)
            return recipe.changed(added_entry(recipe, entry.value, key, lines, after))
    raise recipe.mistake("the recipe has no section 'build'", hint="Add one with a number.")
