"""The exceptions that a user sees: what is wrong, where, what was expected, what to do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong in an input: what, where (line and column count from 1), and what to do about it."""

    message: str
    path: Path | None = None
    line: int | None = None
    column: int | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)
        place = place.replace("\n", "\\n")
        text = f"{place}: {self.message}" if place else self.message
        return (f"{text}\n{self.hint}" if self.hint else text).replace("\n", "\n  ")  # no name begins a line of its own


class FeedstockError(Exception):
    """Base of the errors that the command line prints without a traceback."""

    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        path: Path | None = None,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.mistakes: tuple[Mistake, ...] = (Mistake(message, path, line, column, hint),)
        super().__init__(message)

    @classmethod
    def of(cls, mistakes: list[Mistake]) -> FeedstockError:
        """One error for all `mistakes` (at least one), so that a user sees them together."""
        error = cls(mistakes[0].message)
        error.mistakes = tuple(mistakes)
        return error

    def __str__(self) -> str:
        """The mistakes; a hint that the next one has too is printed after the last of them."""
        following = (*self.mistakes[1:], None)
        shown = (
            replace(mistake, hint=None) if next_one is not None and next_one.hint == mistake.hint else mistake
            for mistake, next_one in zip(self.mistakes, following, strict=True)
        )
        return "\n".join(map(str, shown))


class InputError(FeedstockError):
    """An invalid input (exit code 2): a spec, recipe, variant file, name or option."""

    exit_code = 2


class WorkError(FeedstockError):
    """A valid operation that failed (exit code 1): a build, a solve, a transfer."""

    exit_code = 1
