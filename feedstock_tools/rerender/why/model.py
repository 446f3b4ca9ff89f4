"""The questions and answers of `why`: what a job should have; where values come from, what uses or loses them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.errors import InputError

CUDA = "cuda_compiler_version"
_NO_CUDA = "None"
_VERSIONED = re.compile(r"(cuda|py|python)-?(\d+(?:\.\d+)*)?")
_PAIR = re.compile(r"([A-Za-z_]\w*)=(.+)")


@dataclass(frozen=True, slots=True, order=True)
class FileLine:
    """A line of a file (counted from 1), with its text."""

    path: Path
    line: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class VariantStep:
    """One step in which a key got its values: a variant file, a migration, or built-in defaults (without places).

    `source` names the step; `effect` is `sets`, `replaces`, `changes`, `repeats` (the values were there already) or `is
    ignored` (part of a zip group that the file does not set whole). `values` are those after the step, `replaced` those
    before it.
    """

    source: str
    effect: str
    values: tuple[str, ...]
    replaced: tuple[str, ...]
    places: tuple[FileLine, ...] = ()


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """Where one value comes from: the lines that hold it (several where a migration and the pinning agree).

    `rule` names the rule behind a value that is in no file, or was not chosen because of its line.
    """

    value: str
    places: tuple[FileLine, ...] = ()
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Use:
    """Why a key is in the files: the kind of use, and the line of the recipe or script; rules have no line.

    `outputs` are the outputs to which the use applies; empty for rules that apply to the whole feedstock.
    """

    kind: str
    why: str
    place: FileLine | None = None
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """One key of one configuration.

    `splits_jobs`: the key is in the configuration's name; `zipped_with`: the other keys of its zip group in the
    configuration.
    """

    configuration: str
    key: str
    values: tuple[ValueOrigin, ...]
    settings: tuple[VariantStep, ...]
    uses: tuple[Use, ...]
    splits_jobs: bool = False
    zipped_with: tuple[str, ...] = ()

    def lines(self) -> Mapping[Path, frozenset[int]]:
        """The lines of all uses, by file."""
        numbers: dict[Path, set[int]] = {}
        for use in self.uses:
            if use.place is not None:
                numbers.setdefault(use.place.path, set()).add(use.place.line)
        return {path: frozenset(lines) for path, lines in numbers.items()}


@dataclass(frozen=True, slots=True)
class Loss:
    """What took a value or a platform away.

    `kind` is the station: `platform`, `file`, `selector`, `migration`, `missing migration`, `zip`, `unused`, `skip`,
    `noarch`, or `unknown`.
    """

    kind: str
    why: str
    places: tuple[FileLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Absence:
    """One platform: the jobs that meet all wishes, or, if there is none, what took it away."""

    platform: str
    jobs: tuple[str, ...]
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """A key and what its value should be.

    Attributes:
        value: None for any CUDA.
        is_version: longer versions count too: 3.13 stands for `3.13.* *_cp313`.
    """

    text: str
    key: str
    value: str | None
    is_version: bool = False

    def is_value(self, value: str) -> bool:
        if self.value is None:
            return value != _NO_CUDA
        if not self.is_version:
            return value == self.value
        version = value.split(" ")[0].removesuffix(".*")
        return version == self.value or version.startswith(f"{self.value}.")

    def is_met(self, values: Iterable[str]) -> bool:
        """Whether a job with these values of the key has it; a job that does not know CUDA is one without."""
        possible = tuple(values)
        if not possible:
            return self.key == CUDA and self.value == _NO_CUDA
        return any(self.is_value(value) for value in possible)


def read_wish(text: str) -> Wish:
    """Read a wish.

    >>> read_wish("py3.13").is_value("3.13.* *_cp313")
    True
    """
    if text == "cpu":
        return Wish(text, CUDA, _NO_CUDA)
    pair, versioned = _PAIR.fullmatch(text), _VERSIONED.fullmatch(text)
    if pair:
        return Wish(text, pair[1], pair[2])
    if versioned and versioned[1] == "cuda":
        return Wish(text, CUDA, versioned[2], is_version=True)
    if versioned and versioned[2]:
        return Wish(text, "python", versioned[2], is_version=True)
    raise InputError(
        f"'{text}' is neither a platform nor a value",
        hint="Write cuda12.9, cuda, cpu, py3.13, KEY=VALUE, or a platform such as osx-64.",
    )
