"""What a recipe does not build: `skip` with selectors in a `meta.yaml`, with conditions in a `recipe.yaml`; and the
versions of CUDA and Python that conditions name, with one more or less."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from feedstock_tools.conditions.recipes import parse, unbracketed
from feedstock_tools.conditions.tree import Compare, Condition, Constant, Leaf, Match, Name, Or, Other, names_of, truth
from feedstock_tools.edit import writing
from feedstock_tools.edit.draft import Draft
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.written.document import Document, Entry, Part, TextEdit
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import Namespace, holds

_OF_RECIPE = ("build", "skip")
_OF_OUTPUTS = ("outputs", "*", "build", "skip")
#: A version of CUDA or Python in a condition.
_DIGIT = re.compile(r"\d\.\d")


@dataclass(frozen=True, slots=True)
class _VersionList:
    """A list of versions in a condition, of `in ("11.8", "12.9")` or `not in (…)`.

    `start` is the first character inside the brackets of `text`, `end` the one after the last.
    """

    text: str
    start: int
    end: int

    @property
    def _words(self) -> list[str]:
        return [word.strip() for word in self.text[self.start : self.end].split(",") if word.strip()]

    @property
    def versions(self) -> list[str]:
        """The listed versions, without quotes."""
        return [word.strip("\"'") for word in self._words]

    def longer(self, version: str) -> str:
        """The text inside the brackets with one more version at its end, in quotes if the others are."""
        quote = next((word[0] for word in self._words if word[0] in "\"'"), "")
        return f"{self.text[self.start : self.end].rstrip(', ')}, {quote}{version}{quote}"

    def with_version(self, version: str) -> str:
        """The text with one more version in the list."""
        return f"{self.text[: self.start]}{self.longer(version)}{self.text[self.end :]}"

    def without(self, version: str) -> str | None:
        """The text without a version; '' if no other is left, None if the list does not have it."""
        others = [word for word in self._words if word.strip("\"'") != version]
        if len(others) == len(self._words):
            return None
        comma = "," if len(others) == 1 and self.text[self.start - 1] == "(" else ""
        return f"{self.text[: self.start]}{', '.join(others)}{comma}{self.text[self.end :]}" if others else ""


def _version_lists(text: str, key: str, *, excluded: bool = False) -> Iterator[_VersionList]:
    """The lists of versions of a key in a text: after `in`, or if they are `excluded` after `not in`.

    >>> [each.versions for each in _version_lists('cuda_compiler_version in ("11.8", "12.9")', "cuda_compiler_version")]
    [['11.8', '12.9']]
    """
    operator = r"not\s+in" if excluded else "in"
    for match in re.finditer(rf"\b{key}\s+{operator}\s*[(\[]([^()\[\]]*)[)\]]", text):
        yield _VersionList(text, *match.span(1))


def _version_list(condition: str, key: str, *, excluded: bool = False) -> _VersionList | None:
    """The first list of versions of a key in a condition; None if there is none."""
    return next(_version_lists(condition, key, excluded=excluded), None)


def _truth(condition: str, key: str, version: str, platform: Platform) -> bool | None:
    """Whether a condition holds for a version on a platform; None if that depends on what else it names."""
    namespace = Namespace(platform.subdir, platform.subdir, {key: version}, {}, CondaBuildRules())

    def leaf(part: Leaf) -> bool | None:
        return holds(condition[slice(*part.span)], namespace) if names_of(part) <= namespace.keys() else None

    tree = parse(condition, "selector")
    return None if tree is None else truth(tree, leaf)


def _in_brackets(condition: str) -> str:
    """A condition that `and` may follow."""
    tree = parse(condition, "selector")
    binds_loosely = isinstance(tree, Or) or (isinstance(tree, Other) and tree.is_loose)
    return f"({condition})" if binds_loosely and unbracketed(condition) == condition else condition


def _condition_for(key: str, version: str, *, templates: bool) -> str:
    """The condition that holds for one version, as recipes of the two formats write it."""
    if key != "python":
        return f'{key} == "{version}"'
    return f"py == {version.replace('.', '')}" if templates else f'match(python, "{version}.*")'


def _terms(condition: str) -> tuple[Condition, ...]:
    """The parts between the outermost `or`; none of what is not a condition."""
    tree = parse(condition, "selector")
    return tree.parts if isinstance(tree, Or) else () if tree is None else (tree,)


def _allowing(condition: str, key: str, version: str, *, is_oldest: bool) -> str | None:
    """A condition without what excludes a version by name: '' if nothing is left; None if nothing there names it.

    Args:
        is_oldest: whether there is no older version, so that a limit which excludes older ones alone may go.

    >>> _allowing("win or py<39", "python", "3.8", is_oldest=False)
    'win or py<38'
    >>> _allowing("win or py<39", "python", "3.8", is_oldest=True)
    'win'
    """
    terms = _terms(condition)
    exact = {parse(_condition_for(key, version, templates=templates), "selector") for templates in (True, False)}
    for index, term in enumerate(terms):
        start, end = term.span
        changed: str | None = None
        if term in exact:
            changed = ""
        elif key == "python":
            lowered = _with_limit(condition, term, _following(version), version)
            changed = "" if lowered is not None and is_oldest else lowered
        elif isinstance(term, Compare) and term.left == Name(key) and term.operator == "in":
            versions = _version_list(condition[start:end], key)
            without = None if versions is None else versions.without(version)
            changed = f"{condition[:start]}{without}{condition[end:]}" if without else without
        if changed:
            return changed
        if changed == "":  # the `or` beside the term goes too
            if index:
                return condition[: terms[index - 1].span[1]] + condition[end:]
            return condition[:start] + condition[terms[1].span[0] :] if len(terms) > 1 else ""
    return None


def _raised_limit(condition: str, version: str) -> str | None:
    """A condition such as `win or py<39` with the limit that excludes 3.9 too; None if it has no such limit."""
    raised = (_with_limit(condition, term, version, _following(version)) for term in _terms(condition))
    return next((text for text in raised if text is not None), None)


def _following(version: str) -> str:
    major, minor = version.split(".")
    return f"{major}.{int(minor) + 1}"


def _with_limit(condition: str, term: Condition, old: str, new: str) -> str | None:
    """The condition with another version of Python in a term such as `py < 39` or `match(python, "<3.9")`.

    None if the term is no limit at the `old` version.
    """
    start, end = term.span
    match term:
        case Compare(Name("py"), "<", Constant(int(number)) as limit) if str(number) == old.replace(".", ""):
            start, end = limit.span
            return f"{condition[:start]}{new.replace('.', '')}{condition[end:]}"
        case Match("python", spec) if re.fullmatch(rf"<\s*{re.escape(old)}", spec):
            return f"{condition[:start]}{condition[start:end].replace(old, new)}{condition[end:]}"
    return None


class _Condition(NamedTuple):
    """A condition of a skip, where its text begins, and the part that holds it: an item of a list, or the value."""

    entry: Entry
    part: Part
    text: str
    start: int


def add_skip(draft: Draft, key: str, version: str) -> Draft:
    """Skip a version of CUDA or Python; if raising a limit such as `py<39` is enough, raise it.

    Raises:
        InputError: the recipe has no section `build`, or the version is Python without the global interpreter lock,
            which no selector can name alone.
    """
    if not version[-1].isdigit():
        hint = "Expected it in a list of the recipe, or a migration."
        raise draft.recipe.mistake(f"no skip can name {key} {version} alone", hint=hint)
    return draft.with_recipe(lambda recipe: _skipping(recipe, key, version))


def skip_where(draft: Draft, condition: str) -> Draft:
    """Skip builds under a condition: a selector of a `meta.yaml`, an expression of a `recipe.yaml`."""
    return draft.with_recipe(lambda recipe: _skipping_where(recipe, condition))


def drop_skip(draft: Draft, key: str, version: str, *, is_oldest: bool = False) -> tuple[Draft, bool]:
    """Build a version that a skip excludes by name; the second result tells whether there was such a skip.

    A skip for this version alone goes; `… or py == 38` loses the term, `in ("11.8", "12.0")` the version, and a limit
    that begins with the next version (`py<39` for 3.8) is lowered by one. Outputs with the same condition follow.

    Args:
        is_oldest: whether no older version is built, so that the limit goes too.
    """
    if not version[-1].isdigit():
        return draft, False
    before = {condition.text for condition in _conditions(draft.recipe, _OF_RECIPE)}

    def change(condition: str) -> str | None:
        return _allowing(condition, key, version, is_oldest=is_oldest)

    recipe = _with_conditions(draft.recipe, _OF_RECIPE, change)
    if recipe is draft.recipe:
        return draft, False
    removed = before - {condition.text for condition in _conditions(recipe, _OF_RECIPE)}
    recipe = _with_conditions(
        recipe, _OF_OUTPUTS, lambda condition: change(condition) if condition in removed else None
    )
    return draft.with_document(recipe), True


def list_in_skip(
    draft: Draft, key: str, version: str, platforms: Collection[Platform], others: Collection[Platform] = ()
) -> Draft:
    """Build a version that skips exclude with all others: `not in ("None", "11.8")` gets the version.

    The skip of an output for which only builds without CUDA remain (`not in ("None",)`) stays.

    Args:
        platforms: those for which the version is added; a skip for others stays.
        others: those that have the version besides; if the skip excludes it there, it continues to do so.
    """

    recipe = _with_conditions(
        draft.recipe, _OF_RECIPE, lambda condition: _listing(condition, key, version, platforms, others)
    )
    recipe = _with_conditions(
        recipe,
        _OF_OUTPUTS,
        lambda condition: _listing(condition, key, version, platforms, others) if _DIGIT.search(condition) else None,
    )
    return draft if recipe is draft.recipe else draft.with_document(recipe)


def _listing(
    condition: str, key: str, version: str, platforms: Collection[Platform], others: Collection[Platform]
) -> str | None:
    """A condition that excludes all versions but some, with one more of these; None if it does not."""
    built = _version_list(condition, key, excluded=True)
    skipped = [platform for platform in platforms if _truth(condition, key, version, platform) is not False]
    if built is None or not built.versions or version in built.versions or not skipped:
        return None
    if all(platform in platforms or _truth(condition, key, version, platform) is False for platform in others):
        return built.with_version(version)
    selectors = [platform.selector for platform in skipped]
    where = selectors[0] if len(selectors) == 1 else f"({' or '.join(f'({selector})' for selector in selectors)})"
    return f'{_in_brackets(condition)} and not ({key} == "{version}" and {where})'


def keep_skipped(draft: Draft, key: str, version: str, built: Mapping[Platform, Collection[str]]) -> Draft:
    """Keep skipping a platform for which a skip names all versions: `win and … in ("11.2", "11.8")` gets the new one.

    Nothing changes where the version would then be built nowhere.

    Args:
        built: the versions besides the new one, for each platform for which it is added.
    """

    recipe = _with_conditions(draft.recipe, _OF_RECIPE, lambda condition: _longer(condition, key, version, built))
    if recipe is draft.recipe:
        return draft
    remark = f"a skip names each {key} that a platform has: it names {version} too"
    return draft.with_document(recipe).remarked(remark)


def _longer(condition: str, key: str, version: str, built: Mapping[Platform, Collection[str]]) -> str | None:
    """A condition that names all versions of a platform, with a new one; None if it does not, or no build is left."""
    skipped = _version_list(condition, key)
    if skipped is None or version in skipped.versions:
        return None
    longer = skipped.with_version(version)
    if all(_truth(longer, key, version, platform) for platform in built):
        return None
    names_all = any(
        versions
        and all(_truth(condition, key, other, platform) for other in versions)
        and not _truth(condition, key, "None", platform)
        for platform, versions in built.items()
    )
    return longer if names_all else None


def list_in_selectors(draft: Draft, key: str, version: str, neighbour: str) -> Draft:
    """Name a new version where conditions besides skips list several: `in ("11.0", "11.1")` gets 11.2.

    Args:
        neighbour: the version before the new one; a list without it is about older versions, and stays.
    """

    def listing(recipe: Document) -> Document:
        skips = [(entry.start, recipe.line_end(entry.end)) for entry in recipe.entries(*_OF_RECIPE)]
        changes = []
        for listed in _version_lists(recipe.text, key):
            is_skip = any(start <= listed.start < end for start, end in skips)
            is_next = len(listed.versions) > 1 and neighbour in listed.versions and version not in listed.versions
            if is_next and not is_skip:
                changes.append(TextEdit(listed.start, listed.end, listed.longer(version)))
        return recipe.changed(changes)

    changed = draft.with_recipe(listing)
    lines = zip(draft.recipe.text.splitlines(), changed.recipe.text.splitlines(), strict=True)
    name = draft.recipe_path.name
    return changed.remarked(
        *(
            f"{name}:{number} names {version} too: {after.strip()}"
            for number, (before, after) in enumerate(lines, 1)
            if after != before
        )
    )


def _conditions(recipe: Document, keys: tuple[str, ...]) -> Iterator[_Condition]:
    """The conditions of the skips at some keys."""
    for entry in recipe.entries(*keys):
        if not recipe.has_templates:
            yield from (
                _Condition(entry, part, part.text, part.start)
                for part in (entry.value, *entry.value.items)
                if part.kind == "scalar"
            )
        elif (selector := recipe.selector_of(entry)) and (start := recipe.text.find(selector, entry.end)) >= 0:
            yield _Condition(entry, entry.value, selector, start)


def _with_conditions(recipe: Document, keys: tuple[str, ...], change: Callable[[str], str | None]) -> Document:
    """Change each condition of the skips at some keys: `change` gives the text, '' to remove it, None to keep it."""
    index = 0
    while index < len(conditions := [*_conditions(recipe, keys)]):
        condition = conditions[index]
        changed = change(condition.text)
        if changed is not None:
            recipe = recipe.changed(_replaced(recipe, condition, changed))
        index += changed != ""
    return recipe


def _replaced(recipe: Document, condition: _Condition, text: str) -> list[TextEdit]:
    """Change the text of a condition; an empty text removes the skip, or its item."""
    entry, part = condition.entry, condition.part
    if text and recipe.has_templates:
        return [TextEdit(condition.start, condition.start + len(condition.text), text)]
    if text:
        return writing.replaced(recipe, part, text)
    if part is not entry.value and len(entry.value.items) > 1:
        return writing.removed_items(recipe, entry.value, [part])
    return writing.removed_entry(recipe, entry)


def _skipping(recipe: Document, key: str, version: str) -> Document:
    """The recipe with a raised limit, or a skip for a version."""
    for condition in _conditions(recipe, _OF_RECIPE) if key == "python" else ():
        raised = None if recipe.is_in_block(condition.entry.start) else _raised_limit(condition.text, version)
        if raised is not None:
            return recipe.changed(_replaced(recipe, condition, raised))
    return _skipping_where(recipe, _condition_for(key, version, templates=recipe.has_templates))


def _skipping_where(recipe: Document, condition: str) -> Document:
    skips = [entry for entry in recipe.entries(*_OF_RECIPE) if not recipe.is_in_block(entry.start)]
    if not recipe.has_templates:
        if skips:
            return recipe.changed(_or(recipe, skips[-1].value, condition))
        return _with_skip(recipe, [f"  - {condition}"])
    if skips:
        line = f"{' ' * recipe.column_of(skips[-1].start)}skip: true  # [{condition}]"
        return recipe.changed(writing.added_line(recipe, line, after=skips[-1].end))
    return _with_skip(recipe, [f"true  # [{condition}]"])


def _or(recipe: Document, skip: Part, condition: str) -> list[TextEdit]:
    """Skip under one more condition."""
    if skip.kind == "sequence":
        return writing.added_item(recipe, skip, condition, sort=False)
    line = recipe.text[recipe.line_start(skip.start) : skip.start]
    lead = f"{recipe.newline}{' ' * (len(line) - len(line.lstrip()) + 2)}- "
    start = skip.start - (len(line) - len(line.rstrip(" ")))
    return [TextEdit(start, skip.end, f"{lead}{skip.source}{lead}{writing.quoted_like(None, condition)}")]


def _with_skip(recipe: Document, lines: list[str]) -> Document:
    """The recipe with a skip in its section `build`, after the number."""
    for build in recipe.entries("build"):
        if build.value.entries:
            unconditional = [entry for entry in build.value.entries if not recipe.is_in_block(entry.start)]
            after = next(
                (entry for entry in unconditional if entry.key == "number"),
                unconditional[-1] if unconditional else None,
            )
            return recipe.changed(writing.added_entry(recipe, build.value, "skip", lines, after))
    raise recipe.mistake("the recipe has no section 'build'", hint="Add one with a number.")
