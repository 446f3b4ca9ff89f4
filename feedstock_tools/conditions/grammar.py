"""What all languages of conditions share: `or`, `and`, `not` and brackets."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from feedstock_tools.conditions.tree import And, Condition, Not, Or

_DEEPEST = 20


class ConditionError(ValueError):
    """An invalid condition: `message`, and `hint` with what was expected."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Token:
    """A word, sign or literal with its place in the text."""

    text: str
    start: int
    end: int


def tokens_of(text: str, pattern: re.Pattern[str], vocabulary: str) -> list[Token]:
    """The tokens of a text, each a match of `pattern`.

    Raises:
        ConditionError: no token begins at a character.
    """
    tokens: list[Token] = []
    at = 0
    while rest := text[at:].lstrip():
        at = len(text) - len(rest)
        match = pattern.match(text, at)
        if match is None:
            raise ConditionError(f"'{rest[0]}' has no meaning in the condition '{text}'", vocabulary)
        tokens.append(Token(match.group(), at, match.end()))
        at = match.end()
    return tokens


class Grammar:
    """Reads a condition once, from its first token to its last; a language adds how it reads a leaf.

    `at` is the token that comes next.
    """

    #: What a language says if a word is missing.
    vocabulary = "A condition joins words and comparisons with `and`, `or` and `not`."

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text, self.tokens = text, tokens
        self.at = self._depth = 0

    @property
    def word(self) -> str | None:
        """The next token, if there is one."""
        return self.tokens[self.at].text if self.at < len(self.tokens) else None

    def whole(self) -> Condition:
        """The condition that all tokens make.

        Raises:
            ConditionError: a part is missing, or there is one too many.
        """
        condition = self.disjunction()
        if self.word is not None:
            raise ConditionError(f"'{self.word}' in '{self.text}' is unexpected", "Join the parts with `and` or `or`.")
        return condition

    def disjunction(self) -> Condition:
        parts = self._joined("or", self._conjunction)
        return Or(parts, span=self.span_of(*parts)) if len(parts) > 1 else parts[0]

    def inversion(self) -> Condition:
        """`not …`, a condition in brackets, or a leaf."""
        if self.word is None:
            raise ConditionError("the condition ends where a word was expected", self.vocabulary)
        if self._depth > _DEEPEST:
            raise ConditionError("the condition is nested too deeply", "Split it over several entries.")
        token = self.tokens[self.at]
        if token.text != "not" and not self.begins_group():
            return self.leaf()
        self._depth += 1
        self.at += 1
        if token.text == "not":
            part = self.inversion()
            condition: Condition = Not(part, span=(token.start, part.span[1]))
        else:
            inner = self.disjunction()
            if self.word != ")":
                raise ConditionError("a parenthesis is not closed in the condition", "Add the missing ')'.")
            condition = replace(inner, span=(token.start, self.tokens[self.at].end))
            self.at += 1
        self._depth -= 1
        return condition

    def leaf(self) -> Condition:
        """A word or comparison that begins at the next token; each language has its own."""
        raise NotImplementedError

    def begins_group(self) -> bool:
        """Whether the next token is a bracket around a condition."""
        return self.word == "("

    @staticmethod
    def span_of(*parts: Condition) -> tuple[int, int]:
        return parts[0].span[0], parts[-1].span[1]

    def _conjunction(self) -> Condition:
        parts = self._joined("and", self.inversion)
        return And(parts, span=self.span_of(*parts)) if len(parts) > 1 else parts[0]

    def _joined(self, word: str, read: Callable[[], Condition]) -> tuple[Condition, ...]:
        parts = [read()]
        while self.word == word:
            self.at += 1
            parts.append(read())
        return tuple(parts)
