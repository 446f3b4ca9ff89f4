"""The conditions that a recipe's text has."""

from __future__ import annotations

import re
from collections.abc import Iterator

from feedstock_tools.conditions.recipes import parse
from feedstock_tools.conditions.spec import WORDS, equal, of_match
from feedstock_tools.conditions.tree import (
    And,
    Compare,
    Condition,
    Constant,
    Match,
    Name,
    Not,
    Operand,
    Or,
    Other,
    VersionTest,
    negated,
)
from feedstock_tools.importing.trees import CLOSE, OPEN
from feedstock_tools.recipe.written.document import Document
from feedstock_tools.recipe.written.sites import sites_of
from feedstock_tools.variants.selectors import split_lines
from feedstock_tools.yaml_reading.nodes import compose

_STATEMENT = re.compile(r"\{%-?\s*(?:el)?if\s+(.+?)\s*-?%\}")
_PLATFORM_KEYS = frozenset({"build_platform", "target_platform", "host_platform"})
_PLATFORMS = {"linux64": "linux-64", "win64": "win-64"}
_SIGNS = ("<", "<=", ">", ">=", "==", "!=")
_SUBJECTS = {"cuda_compiler_version": "cuda", "python": "python"}
#: The beginning of a version of CUDA.
_START = re.compile(r"(.+)\.startswith\(\s*[\"'](\d+)\.*[\"']\s*\)", re.DOTALL)


class _InexpressibleError(ValueError):
    pass


def condition_of(text: str) -> Condition | None:
    """An expression of a recipe as a condition of a spec; None if a spec cannot express it.

    >>> condition_of('unix and (cuda_compiler_version or "").startswith("12")')
    And(parts=(Name(name='unix'), VersionTest(subject='cuda', operator='==', version='12')))
    """
    inner = re.fullmatch(r"\$\{\{(.*)\}\}", text.strip(), re.DOTALL)
    tree = parse((inner[1] if inner else text).strip(), "selector")
    try:
        return None if tree is None else _condition(tree)
    except _InexpressibleError:
        return None


class WrittenConditions:
    """The conditions of a recipe that a spec can express: all of them, and those beside a text."""

    def __init__(self, recipe: Document | None = None) -> None:
        self._places = [
            (text, [condition for each in written if (condition := condition_of(each)) is not None])
            for text, written in (_places(recipe) if recipe is not None else ())
        ]
        self._known: dict[str, list[Condition]] = {}

    @property
    def all(self) -> list[Condition]:
        """Each condition once."""
        return list(dict.fromkeys(condition for _, conditions in self._places for condition in conditions))

    def near(self, text: str) -> list[Condition]:
        """The conditions beside the first word of a text, such as a requirement's name."""
        bare = text.strip(f"{OPEN}{CLOSE}")
        word = bare.split(" ")[-1 if text.startswith(OPEN) else 0] if bare else ""
        if word not in self._known:
            beside = (conditions for place, conditions in self._places if word and word in place)
            self._known[word] = list(dict.fromkeys(condition for conditions in beside for condition in conditions))
        return self._known[word]


def _places(recipe: Document) -> Iterator[tuple[str, list[str]]]:
    """The lines of a `meta.yaml`, or the texts of a `recipe.yaml`, with the conditions beside them."""
    if recipe.has_templates:
        for line in split_lines(recipe.text):
            yield line.text, [*filter(None, [line.selector]), *_STATEMENT.findall(line.text)[:1]]
        return
    for site in sites_of(compose(recipe.text)):
        own = [site.text] if site.kind == "condition" or site.keys[-1:] == ("skip",) else []
        yield site.text, [*own, *(condition for condition, _ in site.conditions[-1:])]


def _condition(tree: Condition) -> Condition:
    match tree:
        case And(parts):
            return And(tuple(map(_condition, parts)))
        case Or(parts):
            return Or(tuple(map(_condition, parts)))
        case Not(part):
            return negated(_condition(part))
        case Name(name) if name in WORDS or name in _PLATFORMS:
            return Name(_PLATFORMS.get(name, name))
        case Name(key) if re.fullmatch(r"is_\w+", key):
            return equal(key, "true")
        case Compare(left, sign, right) if sign in _SIGNS:
            return _compared(left, sign, right)
        case Match(key) if key in _SUBJECTS and (tests := of_match(tree, _SUBJECTS[key])) is not None:
            return tests
        case Other(text):
            call = _START.fullmatch(text)
            if call and _is_cuda(parse(call[1], "selector")):
                return VersionTest("cuda", "==", call[2])
    raise _InexpressibleError


def _is_cuda(part: Condition | Operand | None) -> bool:
    """Whether a value is the version of CUDA, with a default or without."""
    if isinstance(part, Other):
        part = parse(part.text, "selector")
    if isinstance(part, Or):
        return _is_cuda(part.parts[0])
    return part == Name("cuda_compiler_version")


def _compared(left: Operand, sign: str, right: Operand) -> Condition:
    if isinstance(left, Constant) and isinstance(right, Name) and sign in ("==", "!="):
        left, right = right, left
    if _is_cuda(left):
        left = Name("cuda_compiler_version")
    match left, right:
        case Name(first), Name(second) if {first, second} <= _PLATFORM_KEYS:
            if first == second or "build_platform" not in (first, second) or sign not in ("==", "!="):
                raise _InexpressibleError
            return Name("cross") if sign == "!=" else Not(Name("cross"))
        case Name("target_platform" | "host_platform"), Constant(str(subdir)) if sign in ("==", "!="):
            if subdir not in WORDS:
                raise _InexpressibleError
            return Name(subdir) if sign == "==" else Not(Name(subdir))
        case Name("py"), Constant(int(number)) if 27 <= number < 400:
            return VersionTest("python", sign, f"{str(number)[0]}.{str(number)[1:]}")
        case Name("cuda_compiler_version"), Constant(str(value)) if sign in ("==", "!="):
            same = Not(Name("cuda")) if value in ("None", "") else VersionTest("cuda", "==", value)
            return same if sign == "==" else negated(same)
        case Name(key), Constant(str() | int() as value) if sign in ("==", "!="):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if key in WORDS or key == "python" or '"' in text:
                raise _InexpressibleError
            return equal(key, text) if sign == "==" else Not(equal(key, text))
    raise _InexpressibleError
