"""Limits on the templates of a `recipe.yaml`, which the engine would expand until the process dies.

The engine limits neither the result of a template (`'a' * 10 ** 10`) nor its nesting. An upper bound for each result is
computed before the engine sees it: the characters of all names and strings in it, times the numbers that it
multiplies with. What this cannot see, the limits of the process meet (`bounds.limits`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from feedstock_tools.bounds.limits import BoundError, most

_TEMPLATE = re.compile(r"\$\{\{(.*?)(?:\}\}|\Z)", re.DOTALL)
_STATEMENT = re.compile(r"\{%[-+]?\s*(\w*)(.*?)(?:%\}|\Z)", re.DOTALL)
_RAW = re.compile(r"\{%[-+]?\s*raw\s*[-+]?%\}.*?\{%[-+]?\s*endraw\s*[-+]?%\}", re.DOTALL)
_MACRO = re.compile(r"\{%[-+]?\s*macro\s+(\w+)(.*?)\{%[-+]?\s*endmacro", re.DOTALL)
_SET = re.compile(r"\s*(\w+)\s*=(.*)", re.DOTALL)
_TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|[A-Za-z_]\w*|\d[\d_]*(?:\.\d+)?|\*\*|[^\s\w]")
_ENVIRONMENT = re.compile(r"\benv\b")
_NAME = re.compile(r"[A-Za-z_]")
_CONDITIONS = frozenset({"if", "skip"})
#: Statements that repeat nothing; `set` and `macro` are checked more closely.
_STATEMENTS = frozenset({"if", "elif", "else", "endif", "raw", "endraw", "set", "macro", "endmacro"})
_GROWING = frozenset({"replace", "join", "format", "indent", "center", "tojson", "pprint"})
_NUMERIC = frozenset({"int", "float", "length", "count", "abs", "round"})
_KEYWORDS = frozenset({"if", "else", "and", "or", "not"})
#: Far above any template of conda-forge: the characters of a template, of its result, and what it nests.
_LONGEST = 20_000
_LARGEST = 4_000_000
_DEEPEST = 100
#: The size of a name that the recipe does not set: a value of a variant.
_VALUE = 100
#: The size of a number.
_DIGITS = 40


def check_templates(content: Any, path: Path, text: str = "") -> None:
    """Refuse templates that are too long or whose result may be too large.

    Args:
        content: the parsed recipe, every scalar a string.
        text: of the recipe, where messages find their line.

    Raises:
        BoundError: naming the template, with its line.
    """
    if not isinstance(content, Mapping):
        return
    try:
        _check(content)
    except _TooMuchError as error:
        start = text.find(error.template.splitlines()[0]) if error.template else -1
        line = text.count("\n", 0, start) + 1 if start >= 0 else None
        shown = " ".join(error.template.split())
        shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
        raise BoundError(f"{error.what}: {shown}", path=path, line=line) from None


def asks_environment(content: Any) -> bool:
    """Whether a template may read variables of the process, which it can only by the name `env`."""
    return any(_ENVIRONMENT.search(text) for text in texts_of(content))


class _TooMuchError(Exception):
    def __init__(self, what: str, template: str) -> None:
        super().__init__(what)
        self.what, self.template = what, template


class _Sizes(dict[str, int]):
    """The most characters that the value of each name has, and the names whose values are numbers."""

    numbers: frozenset[str] = frozenset()


def _check(content: Mapping[Any, Any]) -> None:
    sizes = _Sizes()
    context = content.get("context")
    for name, value in context.items() if isinstance(context, Mapping) else ():
        sizes[str(name)] = sum(_size(text, sizes) for text in texts_of(value))
        if isinstance(value, str) and _gives_number(value, sizes.numbers):
            sizes.numbers = sizes.numbers | {str(name)}
    for key, part in content.items():
        if key != "context":
            for text in texts_of(part, key in _CONDITIONS):
                _size(text, sizes)


def texts_of(node: Any, condition: bool = False) -> Iterator[str]:
    """All strings in a part of a recipe; conditions, which are templates without marks, with marks."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from texts_of(value, key in _CONDITIONS)
    elif isinstance(node, list):
        for value in node:
            yield from texts_of(value, condition)
    elif isinstance(node, str):
        yield f"${{{{{node}}}}}" if condition and "${{" not in node else node


def _size(text: str, sizes: _Sizes) -> int:
    """An upper bound for the characters that a text renders to."""
    if "${{" not in text and "{%" not in text:
        return len(text)
    total = len(text)
    if "{%" in text:
        text = _RAW.sub("", text)
        sizes = _after_statements(text, sizes)
        total *= 1 + len(_MACRO.findall(text))
    for template in _TEMPLATE.findall(text):
        total += _result(template, sizes)
        if total > most(_LARGEST):
            raise _TooMuchError("the result of a template may be too large", text)
    return total


def _after_statements(text: str, sizes: _Sizes) -> _Sizes:
    """The sizes of names, those included that the statements in a text set."""
    after = _Sizes(sizes)
    after.numbers = sizes.numbers - {match[1] for word, rest in _STATEMENT.findall(text) if (match := _SET.match(rest))}
    for word, rest in _STATEMENT.findall(text):
        if word not in _STATEMENTS and most(1) == 1:
            raise _TooMuchError(f"a template may repeat itself without end (`{word}`)", text)
        if word == "set":
            match = _SET.fullmatch(rest)
            if match is None:
                raise _TooMuchError("a template sets what cannot be measured", text)
            after[match[1]] = _result(match[2], after)
        elif word in ("if", "elif"):
            _result(rest, after)
    macros = _MACRO.findall(text)
    calls = re.compile(rf"\b(?:{'|'.join(name for name, _ in macros)})\s*\(") if macros else None
    for name, body in macros:
        if calls is not None and calls.search(body.partition(")")[2]):
            raise _TooMuchError("a macro calls a macro", text)
        after[name] = len(body) + sum(_result(template, after) for template in _TEMPLATE.findall(body))
    return after


def _result(template: str, sizes: _Sizes) -> int:
    """An upper bound for the characters of the result of one template, without its marks."""
    if len(template) > most(_LONGEST):
        raise _TooMuchError(f"a template is longer than {most(_LONGEST):g} characters", template)
    names, texts, growth, depth = _parts(template)
    if depth > _DEEPEST:
        raise _TooMuchError(f"a template is nested deeper than {_DEEPEST} levels", template)
    if "*" in template and _is_numeric(_without(template, sizes.numbers)):
        return _DIGITS
    size = texts + sum(sizes.get(name, _VALUE) for name in names)
    found = size * (growth or (1 + texts if len(names) == 1 else size))
    if found > most(_LARGEST):
        raise _TooMuchError("the result of a template may be too large", template)
    return found


def _without(template: str, numbers: frozenset[str]) -> list[str]:
    """The words of a template, with a number in place of each name whose value is one."""
    return ["0" if token in numbers else token for token in _TOKEN.findall(template)]


def _gives_number(text: str, numbers: frozenset[str]) -> bool:
    """Whether a text renders to a number: digits, one template that only computes with numbers, or one that a filter
    such as `int` makes one as a whole."""
    if text.isdigit():
        return len(text) <= _DIGITS
    match = _TEMPLATE.fullmatch(text.strip())
    if match is None or "${{" in match[1]:
        return False
    tokens = _without(match[1], numbers)
    if _is_numeric(tokens):
        return True
    depth, outside = 0, []
    for token in tokens:
        depth += (token in ("(", "[", "{")) - (token in (")", "]", "}"))
        if depth == 0 and token not in (")", "]", "}"):
            outside.append(token)
    joined = {"+", "-", "*", "**", "/", "%", "~", *_KEYWORDS}
    return outside[-2:-1] == ["|"] and outside[-1] in _NUMERIC and not joined.intersection(outside)


@lru_cache(maxsize=4096)
def _parts(template: str) -> tuple[tuple[str, ...], int, int, int]:
    """What the size of a result is computed from.

    Returns:
        The names in the template, the characters of its strings and numbers, what it multiplies with (0: with one
        another), and how deep it is nested.
    """
    tokens = _TOKEN.findall(template)
    texts = sum(len(token) for token in tokens if token[0] in "'\"0123456789")
    words = [(before, token) for before, token in zip(["", *tokens], tokens, strict=False) if _NAME.match(token)]
    names = tuple(token for before, token in words if before not in ("|", "."))
    depth = _depth(tokens)
    if "*" not in tokens and "**" not in tokens:
        return names, texts, 0 if any(_grows(tokens, at) for at in range(len(tokens))) else 1, depth
    if _is_numeric(tokens):
        return (), _DIGITS, 1, depth
    if "**" in tokens:
        return names, _LARGEST, 2, depth
    growth = 1
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        if token[0].isdigit() and "*" in (before, after):
            growth *= max(1, int(token.replace("_", "").split(".")[0]))
    return names, texts, growth, depth


def _grows(tokens: Sequence[str], at: int) -> bool:
    """Whether a word may make a text longer: not `replace(".", "")`, whose new text is no longer than the old."""
    if tokens[at] not in _GROWING:
        return False
    call = tokens[at : at + 6]
    is_plain = call[0] == "replace" and [*call[1:2], *call[3:4], *call[5:6]] == ["(", ",", ")"]
    if is_plain and all(call[place][0] in "'\"" for place in (2, 4)):
        return not 2 < len(call[2]) >= len(call[4])
    return True


def _is_numeric(tokens: list[str]) -> bool:
    """Whether all that a template computes with are numbers, as they are written or by a filter that makes one."""
    following = [*tokens[1:], "", ""]
    for before, token, after, filtered in zip(["", *tokens], tokens, following, following[1:], strict=False):
        if token[0] in "'\"[~." or (before == "|" and token not in _NUMERIC):
            return False
        is_value = _NAME.match(token) and token not in _KEYWORDS and before != "|"
        if is_value and not (after == "|" and filtered in _NUMERIC):
            return False
    return True


def _depth(tokens: list[str]) -> int:
    """How deep brackets and signs are nested in one another; signs and `not` count until a value ends their run."""
    deepest = depth = run = 0
    for token in tokens:
        if token in ("(", "[", "{"):
            depth += 1
        elif token in (")", "]", "}"):
            depth -= 1
        run = run + 1 if token in ("not", "-", "+") else 0
        deepest = max(deepest, depth, run)
    return deepest
