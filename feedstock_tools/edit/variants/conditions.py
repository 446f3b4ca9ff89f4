"""Conditions of skips and selectors as text: the versions of CUDA or Python that they name, with one more or less."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from feedstock_tools.conditions.recipes import parse, unbracketed
from feedstock_tools.conditions.tree import Compare, Condition, Constant, Leaf, Match, Name, Or, Other, names_of, truth
from feedstock_tools.platforms import Platform
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import Namespace, holds


@dataclass(frozen=True, slots=True)
class VersionList:
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


def version_lists(text: str, key: str, *, excluded: bool = False) -> Iterator[VersionList]:
    """The lists of versions of a key in a text: after `in`, or if they are `excluded` after `not in`.

    >>> [each.versions for each in version_lists('cuda_compiler_version in ("11.8", "12.9")', "cuda_compiler_version")]
    [['11.8', '12.9']]
    """
    operator = r"not\s+in" if excluded else "in"
    for match in re.finditer(rf"\b{key}\s+{operator}\s*[(\[]([^()\[\]]*)[)\]]", text):
        yield VersionList(text, *match.span(1))


def version_list(condition: str, key: str, *, excluded: bool = False) -> VersionList | None:
    """The first list of versions of a key in a condition; None if there is none."""
    return next(version_lists(condition, key, excluded=excluded), None)


def may_hold(condition: str, key: str, version: str, platform: Platform) -> bool:
    """Whether a condition may hold for a version on a platform; what else it names is unknown."""
    return _truth(condition, key, version, platform) is not False


def must_hold(condition: str, key: str, version: str, platform: Platform) -> bool:
    """Whether a condition holds for a version on a platform, whatever else differs."""
    return _truth(condition, key, version, platform) is True


def _truth(condition: str, key: str, version: str, platform: Platform) -> bool | None:
    namespace = Namespace(platform.subdir, platform.subdir, {key: version}, {}, CondaBuildRules())

    def leaf(part: Leaf) -> bool | None:
        return holds(condition[slice(*part.span)], namespace) if names_of(part) <= namespace.keys() else None

    tree = parse(condition, "selector")
    return None if tree is None else truth(tree, leaf)


def in_brackets(condition: str) -> str:
    """A condition that `and` may follow."""
    tree = parse(condition, "selector")
    binds_loosely = isinstance(tree, Or) or (isinstance(tree, Other) and tree.is_loose)
    return f"({condition})" if binds_loosely and unbracketed(condition) == condition else condition


def condition_for(key: str, version: str, *, templates: bool) -> str:
    """The condition that holds for one version, as recipes of the two formats write it."""
    if key != "python":
        return f'{key} == "{version}"'
    return f"py == {version.replace('.', '')}" if templates else f'match(python, "{version}.*")'


def _terms(condition: str) -> tuple[Condition, ...]:
    """The parts between the outermost `or`; none of what is not a condition."""
    tree = parse(condition, "selector")
    return tree.parts if isinstance(tree, Or) else () if tree is None else (tree,)


def allowing(condition: str, key: str, version: str, *, is_oldest: bool) -> str | None:
    """A condition without what excludes a version by name: '' if nothing is left; None if nothing there names it.

    Args:
        is_oldest: whether there is no older version, so that a limit which excludes older ones alone may go.

    >>> allowing("win or py<39", "python", "3.8", is_oldest=False)
    'win or py<38'
    >>> allowing("win or py<39", "python", "3.8", is_oldest=True)
    'win'
    """
    terms = _terms(condition)
    exact = {parse(condition_for(key, version, templates=templates), "selector") for templates in (True, False)}
    for index, term in enumerate(terms):
        start, end = term.span
        changed: str | None = None
        if term in exact:
            changed = ""
        elif key == "python":
            lowered = _with_limit(condition, term, _following(version), version)
            changed = "" if lowered is not None and is_oldest else lowered
        elif isinstance(term, Compare) and term.left == Name(key) and term.operator == "in":
            versions = version_list(condition[start:end], key)
            without = None if versions is None else versions.without(version)
            changed = f"{condition[:start]}{without}{condition[end:]}" if without else without
        if changed:
            return changed
        if changed == "":  # the `or` beside the term goes too
            if index:
                return condition[: terms[index - 1].span[1]] + condition[end:]
            return condition[:start] + condition[terms[1].span[0] :] if len(terms) > 1 else ""
    return None


def raised_limit(condition: str, version: str) -> str | None:
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
