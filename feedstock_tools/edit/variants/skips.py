"""What a recipe does not build: `skip` with selectors in a `meta.yaml`, with conditions in a `recipe.yaml`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection

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
from feedstock_tools.platforms import Platform
from feedstock_tools.variants.namespace import Namespace
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import evaluate

__all__ = ["add_skip", "drop_skip", "list_in_selectors", "list_in_skip", "skip_where"]

_IN = r"\b{key}\s+in\s*[(\[]([^()\[\]]*)[)\]]"
_NOT_IN = r"\b({key}\s+not\s+in\s*[(\[])([^()\[\]]*)([)\]])"

#: An `or` outside of brackets that hold no others.
_OR = re.compile(r"^(?:\([^()]*\)|[^()])*?\bor\b")
#: Platforms that a version may come to alone, in selectors of both formats.
_SELECTORS = {
    "linux-64": "(linux and x86_64)",
    "linux-aarch64": "aarch64",
    "linux-ppc64le": "ppc64le",
    "osx-64": "(osx and x86_64)",
    "osx-arm64": "arm64",
    "win-64": "win",
}


def add_skip(draft: Draft, key: str, version: str) -> Draft:
    """Skip a version of CUDA or Python; where that is enough, raise a limit such as `py<39`.

    Raises:
        InputError: the recipe has no section `build`, or the version is Python without the global interpreter lock,
            for which selectors have no name of its own.
    """
    if not version[-1].isdigit():
        hint = "Expected it in a list of the recipe, or a migration."
        raise draft.recipe.mistake(f"no skip can name {key} {version} alone", hint=hint)
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
    return _changed(draft, lambda text: _allowing(text, key, version)) if version[-1].isdigit() else (draft, False)


def list_in_skip(
    draft: Draft, key: str, version: str, platforms: Collection[Platform], others: Collection[Platform] = ()
) -> Draft:
    """Build a version that a skip excludes with all others: `not in ("None", "11.8")` gets the version.

    Args:
        platforms: those that the version comes to; a skip for others stays.
        others: those that have the version besides; where the skip excludes it there, it goes on to do so.
    """

    def listing(text: str) -> str | None:
        found = re.search(_NOT_IN.format(key=key), text)
        words = _words(found[2]) if found else []
        if found is None or not words or version in _bare(words):
            return None
        held = [platform for platform in platforms if _may_hold(text, key, version, platform)]
        if not held:
            return None
        if all(platform in platforms or not _may_hold(text, key, version, platform) for platform in others):
            return _with_word(text, found.start(3), words, version)
        names = _in_brackets(" or ".join(_SELECTORS[platform.subdir] for platform in held))
        return f'{_in_brackets(text)} and not ({key} == "{version}" and {names})'

    return _changed(draft, listing)[0]


def list_in_selectors(draft: Draft, key: str, version: str, neighbour: str) -> Draft:
    """Name a new version where conditions besides skips list several: `in ("11.0", "11.1")` gets 11.2.

    Args:
        neighbour: the version before the new one; a list without it is about older versions, and stays.
    """

    def listing(recipe: Document) -> Document:
        skips = [(entry.start, recipe.line_end(entry.end)) for entry in recipe.entries("build", "skip")]
        changes = []
        for match in re.finditer(_IN.format(key=key), recipe.text):
            words = _words(match[1])
            is_skip = any(start <= match.start() < end for start, end in skips)
            if not is_skip and len(words) > 1 and neighbour in _bare(words) and version not in _bare(words):
                longer = _with_word(match[1], len(match[1]), words, version)
                changes.append(Change(*match.span(1), longer))
        return recipe.changed(changes)

    changed = draft.with_recipe(listing)
    pairs = zip(draft.recipe.text.splitlines(), changed.recipe.text.splitlines(), strict=True)
    lines = [(number, line) for number, (before, line) in enumerate(pairs, 1) if line != before]
    name = draft.recipe_path.name
    return changed.remarked(*(f"{name}:{number} names {version} too: {line.strip()}" for number, line in lines))


def _may_hold(condition: str, key: str, version: str, platform: Platform) -> bool:
    """Whether a condition may hold for a version on a platform; so it may if it names anything else."""
    namespace = Namespace(platform.subdir, platform.subdir, {key: version}, {}, CondaBuildRules())
    try:
        names = {node.id for node in ast.walk(ast.parse(condition, mode="eval")) if isinstance(node, ast.Name)}
        return not names <= namespace.keys() or evaluate(condition, namespace)
    except (ArithmeticError, LookupError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError):
        return True


def _in_brackets(condition: str) -> str:
    """A condition that `and` may follow."""
    return (
        condition
        if re.fullmatch(r"(?:\([^()]*\)|[^()])*", condition) and not _OR.search(condition)
        else f"({condition})"
    )


def _with_word(text: str, end: int, words: list[str], version: str) -> str:
    """A text with one more word at the end of a list of them, in quotes as those are."""
    quote = next((word[0] for word in words if word[0] in "\"'"), "")
    return f"{text[:end].rstrip(', ')}, {quote}{version}{quote}{text[end:]}"


def _bare(words: list[str]) -> list[str]:
    return [word.strip("\"'") for word in words]


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
