"""Conditions of skips and selectors as text: the versions of CUDA or Python that they name, with one more or less."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from feedstock_tools.platforms import Platform
from feedstock_tools.variants.namespace import Namespace
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import evaluate

#: What an expression may raise; a loop of attributes or a huge number ends in the last two.
_ERRORS = (ArithmeticError, LookupError, SyntaxError, TypeError, ValueError, MemoryError, RecursionError)
#: An `or` outside of brackets that hold no others.
_OR = re.compile(r"^(?:\([^()]*\)|[^()])*?\bor\b")
_FLAT = re.compile(r"(?:\([^()]*\)|[^()])*")


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
    """Whether a condition may hold for a version on a platform; it may if it names anything else."""
    return _truth(condition, key, version, platform) is not False


def must_hold(condition: str, key: str, version: str, platform: Platform) -> bool:
    """Whether a condition holds for a version on a platform, whatever else differs."""
    return _truth(condition, key, version, platform) is True


def _truth(condition: str, key: str, version: str, platform: Platform) -> bool | None:
    """The truth of a condition; None if it names anything but the platform and the key, or is not an expression."""
    values: dict[str, Any] = {key: version}
    namespace = Namespace(platform.subdir, platform.subdir, values, {}, CondaBuildRules())
    try:
        names = {node.id for node in ast.walk(ast.parse(condition, mode="eval")) if isinstance(node, ast.Name)}
        return evaluate(condition, namespace) if names <= namespace.keys() else None
    except _ERRORS:
        return None


def in_brackets(condition: str) -> str:
    """A condition that `and` may follow."""
    return condition if _FLAT.fullmatch(condition) and not _OR.search(condition) else f"({condition})"


def condition_for(key: str, version: str, *, templates: bool) -> str:
    """The condition that holds for one version, as recipes of the two formats write it."""
    if key != "python":
        return f'{key} == "{version}"'
    return f"py == {version.replace('.', '')}" if templates else f'match(python, "{version}.*")'


def allowing(condition: str, key: str, version: str, *, is_oldest: bool) -> str | None:
    """A condition without what excludes a version by name: '' if nothing is left; None if nothing there names it.

    Args:
        is_oldest: whether there is no older version, so that a limit which excludes older ones alone may go.

    >>> allowing("win or py<39", "python", "3.8", is_oldest=False)
    'win or py<38'
    >>> allowing("win or py<39", "python", "3.8", is_oldest=True)
    'win'
    """
    pieces = re.split(r"(\s+or\s+)", condition)
    if any(term.count("(") != term.count(")") for term in pieces[::2]):
        return None
    for index in range(0, len(pieces), 2):
        term = _term_allowing(pieces[index], key, version, is_oldest=is_oldest)
        if term:
            return "".join([*pieces[:index], term, *pieces[index + 1 :]])
        if term == "":
            # The `or` beside the term goes too.
            return "".join([*pieces[: max(0, index - 1)], *pieces[index + 1 + (index == 0) :]])
    return None


def _term_allowing(term: str, key: str, version: str, *, is_oldest: bool) -> str | None:
    """The same for a term between two `or`."""
    if _plain(term) in {_plain(condition_for(key, version, templates=templates)) for templates in (True, False)}:
        return ""
    if key == "python":
        major, minor = version.split(".")
        following = int(minor) + 1
        limit = re.fullmatch(rf"(py\s*<\s*){major}{following}", term)
        if limit:
            return "" if is_oldest else f"{limit[1]}{major}{minor}"
        limit = re.fullmatch(rf'(match\(python,\s*["\']<\s*){major}\.{following}(["\']\))', term)
        return None if limit is None else "" if is_oldest else f"{limit[1]}{version}{limit[2]}"
    versions = version_list(term, key) if re.fullmatch(rf"{key}\s+in\s*[(\[].*[)\]]", term) else None
    return None if versions is None else versions.without(version)


def _plain(condition: str) -> str:
    return re.sub(r"\s+", "", condition).replace("'", '"')


def raised_limit(condition: str, version: str) -> str | None:
    """A condition such as `win or py<39` with the limit that excludes 3.9 too; None if it has no such limit."""
    major, minor = version.split(".")
    limit = rf"py\s*<\s*({major}{minor})|match\(python,\s*[\"']<\s*({major}\.{minor})[\"']\)"
    match = re.fullmatch(rf"(?:.*\bor\s+)?(?:{limit})(?:\s+or\b.*)?", condition)
    if not match:
        return None
    start, end = match.span(1 if match[1] else 2)
    return f"{condition[:start]}{major}{'' if match[1] else '.'}{int(minor) + 1}{condition[end:]}"
