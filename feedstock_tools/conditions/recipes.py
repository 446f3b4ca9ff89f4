"""Conditions of recipes: selectors of a `meta.yaml` (Python) and expressions of a `recipe.yaml` (Jinja)."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from feedstock_tools.conditions.grammar import ConditionError, Grammar, tokens_of
from feedstock_tools.conditions.tree import (
    And,
    Compare,
    Condition,
    Constant,
    Items,
    Match,
    Name,
    Other,
    Scalar,
)

Language = Literal["selector", "expression"]
#: Longer conditions are not read.
_LONGEST = 10_000
_TOKEN = re.compile(
    r"(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|\d[\w.]*|[^\W\d]\w*|[<>=!:]=|\*\*|//|[-+*/%~|&^<>=.,:()\[\]{}]",
    re.DOTALL,
)
_WORD = re.compile(r"[^\W\d]\w*")
_COMPARED = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in"})
_CONSTANTS: dict[Language, dict[str, Scalar]] = {
    "selector": {"True": True, "False": False, "None": None},
    "expression": {"true": True, "false": False, "none": None, "True": True, "False": False, "None": None},
}
#: Words that bind more loosely than `or`, and those that begin no operand.
_LOOSEST = frozenset({"if", "else", ",", "lambda", "for", ":=", "=", ":"})
_KEYWORDS = frozenset({"and", "or", "not", "in", "is", "if", "else", "lambda", "for"})
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


@lru_cache(maxsize=8192)
def parse(text: str, language: Language) -> Condition | None:
    """A condition of a recipe as a tree; None if it is not an expression.

    >>> parse("linux and py >= 310", "selector")
    And(parts=(Name(name='linux'), Compare(left=Name(name='py'), operator='>=', right=Constant(value=310))))
    >>> parse("linux and", "selector") is None
    True
    """
    if len(text) > _LONGEST:
        return None
    try:
        return _Recipes(text, language).whole()
    except (ConditionError, RecursionError):
        return None


def unbracketed(text: str) -> str:
    """An expression without the brackets around all of it.

    >>> unbracketed("(a or b)"), unbracketed("(a) or (b)")
    ('a or b', '(a) or (b)')
    """
    depth = 0
    tokens = tokens_of(text, _TOKEN, "")
    for token in tokens:
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if depth == 0 and token is not tokens[-1]:
            return text
    return unbracketed(text.strip()[1:-1]) if text.strip()[:1] == "(" else text


class _Recipes(Grammar):
    """The part of both languages that makes a condition; anything else is a leaf."""

    def __init__(self, text: str, language: Language) -> None:
        super().__init__(text, tokens_of(text, _TOKEN, self.vocabulary))
        self._language = language
        if any(_is_value(first.text) and _is_value(second.text) for first, second in pairwise(self.tokens)):
            raise ConditionError("two values stand side by side in the condition", self.vocabulary)
        #: How many brackets are open before each token, and the token that closes each bracket.
        self._depths: list[int] = []
        self._closing: dict[int, int] = {}
        open_brackets: list[int] = []
        for at, token in enumerate(self.tokens):
            self._depths.append(len(open_brackets))
            if token.text in _OPENING:
                open_brackets.append(at)
            elif token.text in _CLOSING and open_brackets:
                self._closing[open_brackets.pop()] = at
            elif token.text in _CLOSING:
                open_brackets = [at]
                break
        if open_brackets:
            raise ConditionError("a parenthesis is not closed in the condition", "Add the missing ')'.")
        self._end = len(self.tokens)

    def disjunction(self) -> Condition:
        """`… or …`, unless it is part of something that binds more loosely."""
        start, outer = self.at, self._end
        self._end = end = self._closing.get(start - 1, outer)
        if _LOOSEST.isdisjoint(self._words(start, end)):
            condition = super().disjunction()
        else:
            self.at = end
            condition = replace(self._rest(start, end), is_loose=True)
        self._end = outer
        return condition

    def begins_group(self) -> bool:
        """Whether nothing but a condition is in the brackets, so that `(a or b).lower()` is not divided."""
        if self.word != "(":
            return False
        after = self._closing[self.at] + 1
        return after == len(self.tokens) or self.tokens[after].text in {"and", "or", ")"}

    def leaf(self) -> Condition:
        """A name, a constant, a comparison, or something else."""
        start = self.at
        while self.at < self._end and self.tokens[self.at].text not in {"and", "or"}:
            is_open = self.tokens[self.at].text in _OPENING
            self.at = self._closing[self.at] + 1 if is_open else self.at + 1
        end = self.at
        signs = [at for at in range(start, end) if self._depths[at] == self._depths[start] and self._sign(at)]
        if not signs:
            return self._operand(start, end)
        if self._language == "selector" and "is" in self._words(start, end):
            return self._rest(start, end)
        starts = [start, *(at + len(self._sign(at).split()) for at in signs)]
        sides = [self._operand(*ends) for ends in zip(starts, [*signs, end], strict=True)]
        parts = tuple(
            Compare(left, self._sign(at), right, span=(left.span[0], right.span[1]))
            for left, at, right in zip(sides, signs, sides[1:], strict=False)
        )
        return parts[0] if len(parts) == 1 else And(parts, span=self.span_of(*parts))

    def _sign(self, at: int) -> str:
        """The comparison that begins at a token, or nothing."""
        before, word, after = (
            self.tokens[each].text if 0 <= each < len(self.tokens) else "" for each in (at - 1, at, at + 1)
        )
        if word == "not" and after == "in":
            return "not in"
        return word if word in _COMPARED and not (word == "in" and before == "not") else ""

    def _operand(self, start: int, end: int) -> Name | Constant | Items | Match | Other:
        if start >= end:
            raise ConditionError("the condition ends where a word was expected", self.vocabulary)
        span = (self.tokens[start].start, self.tokens[end - 1].end)
        first = self.tokens[start].text
        if end - start == 1:
            return self._atom(start)
        if first in {"(", "["} and self._closing[start] == end - 1:
            inside = [self._atom(at) for at in range(start + 1, end - 1, 2)]
            is_list = all(self.tokens[at].text == "," for at in range(start + 2, end - 1, 2))
            if first == "(" and len(inside) == 1 and end - start == 3:
                return replace(inside[0], span=span)
            values = tuple(each.value for each in inside if isinstance(each, Constant))
            if is_list and len(values) == len(inside):
                return Items(values, span=span)
        words = [token.text for token in self.tokens[start:end]]
        if [*words[:2], *words[3:4], *words[5:]] == ["match", "(", ",", ")"] and _WORD.fullmatch(words[2]):
            spec = _literal(words[4])
            if isinstance(spec, str):
                return Match(words[2], spec, span=span)
        return self._rest(start, end)

    def _atom(self, at: int) -> Name | Constant | Other:
        """The value of one token."""
        token = self.tokens[at]
        span = (token.start, token.end)
        if token.text in _CONSTANTS[self._language]:
            return Constant(_CONSTANTS[self._language][token.text], span=span)
        if _WORD.fullmatch(token.text) and token.text not in _KEYWORDS:
            return Name(token.text, span=span)
        value = _literal(token.text)
        if value is None and _is_value(token.text):
            raise ConditionError(f"'{token.text}' in '{self.text}' is not a value", self.vocabulary)
        return Other(token.text, span=span) if value is None else Constant(value, span=span)

    def _rest(self, start: int, end: int) -> Other:
        tokens = self.tokens[start:end]
        span = (tokens[0].start, tokens[-1].end)
        return Other(self.text[slice(*span)], self._names(start, end), span=span)

    def _names(self, start: int, end: int) -> frozenset[str]:
        """The names that tokens read: no functions, attributes, keywords of calls, filters or tests."""
        names = set()
        for at in range(start, end):
            word = self.tokens[at].text
            before = self.tokens[at - 1].text if at > start else ""
            after = self.tokens[at + 1].text if at + 1 < end else ""
            is_name = _WORD.fullmatch(word) and word not in _KEYWORDS and word not in _CONSTANTS[self._language]
            if self._language == "expression" and before in {"|", "is"}:
                is_name = None
            if is_name and before != "." and after not in {"(", "="}:
                names.add(word)
        return frozenset(names)

    def _words(self, start: int, end: int) -> set[str]:
        """The tokens that stand in no brackets of their own."""
        return {self.tokens[at].text for at in range(start, end) if self._depths[at] == self._depths[start]}


def _is_value(text: str) -> bool:
    """Whether a token is a value, or the last of one, that no other may follow."""
    return text[0] in "\"'_" or (text[0].isalnum() and text not in _KEYWORDS)


def _literal(text: str) -> Scalar:
    """The value of a number or a text in quotes; None for anything else."""
    if text[:1] not in "\"'0123456789":
        return None
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return None
    return value if isinstance(value, str | int | float) else None
