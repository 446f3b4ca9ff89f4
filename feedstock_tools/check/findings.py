"""What a check reports: a verdict, with mistakes, and remarks on what works today but will fail later, or is wasted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Generic, Literal, NoReturn, TypeVar

from feedstock_tools.wording import counted, some_of

#: A mistake fails the build or breaks the package for some users; a remark does not yet.
Weight = Literal["mistake", "remark"]


class Verdict(StrEnum):
    """The answer of a check. It is neither true nor false: whoever asks must say what `UNKNOWN` means there.

    >>> bool(Verdict.UNKNOWN)
    Traceback (most recent call last):
    TypeError: a verdict is right, wrong or unknown: compare it with one of them
    """

    RIGHT = "right"
    WRONG = "wrong"
    UNKNOWN = "unknown"

    def __bool__(self) -> NoReturn:
        raise TypeError("a verdict is right, wrong or unknown: compare it with one of them")


@dataclass(frozen=True, slots=True)
class Check:
    """A question that was asked, and its answer; of an unknown one the reason, in a few words."""

    name: str
    verdict: Verdict
    reason: str = ""

    @classmethod
    def of(cls, name: str, *, wrong: bool, unknown: str = "") -> Check:
        """The check of what is wrong, else unknown for a reason, else right."""
        if wrong:
            return cls(name, Verdict.WRONG)
        return cls(name, Verdict.UNKNOWN if unknown else Verdict.RIGHT, unknown)


def verdict_of(checks: Iterable[Check]) -> Verdict:
    """The verdict of several checks: wrong if one is, else unknown if one is.

    >>> str(verdict_of([Check("a", Verdict.RIGHT), Check("b", Verdict.UNKNOWN, "no channel")]))
    'unknown'
    """
    found = {check.verdict for check in checks}
    return next((verdict for verdict in (Verdict.WRONG, Verdict.UNKNOWN) if verdict in found), Verdict.RIGHT)


def checks_values(checks: Sequence[Check]) -> dict[str, Any]:
    """The verdict of several checks and each of them, as JSON values."""
    return {"verdict": str(verdict_of(checks)), "checks": [asdict(check) for check in checks]}


def checks_line(checks: Sequence[Check], noun: str = "check") -> str:
    """How many of several checks have an answer, and why others have none, as a sentence.

    >>> checks_line([Check("a", Verdict.RIGHT), Check("b", Verdict.UNKNOWN, "no channel")])
    '1 of 2 checks could not be completed: b (no channel).'
    """
    names: dict[str, list[str]] = {}
    for check in checks:
        if check.verdict is Verdict.UNKNOWN:
            names.setdefault(check.reason, []).append(check.name)
    if not names:
        return f"{counted(len(checks), noun)} completed."
    reasons = "; ".join(f"{some_of(alike, 3)} ({reason})" for reason, alike in names.items())
    return f"{sum(map(len, names.values()))} of {counted(len(checks), noun)} could not be completed: {reasons}."


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake or remark: the configuration, or a file without one; the key, or a place in a file; the message, and
    the source of the violated fact."""

    configuration: str
    key: str
    message: str
    source: str | None = None
    weight: Weight = "mistake"

    def __str__(self) -> str:
        weight = "remark: " if self.weight == "remark" else ""
        source = f" [{self.source}]" if self.source else ""
        return f"{self.configuration}: {self.key}: {weight}{self.message}{source}"


_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Report(Generic[_Found]):
    """The findings of several checks, and the verdict of each."""

    findings: tuple[_Found, ...]
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> Verdict:
        """That of all checks together."""
        return verdict_of(self.checks)
