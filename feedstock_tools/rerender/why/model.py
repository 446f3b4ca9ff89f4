"""The answers of `why`: places in files, where values come from, and what uses a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of a file (counted from 1), with its text."""

    path: Path
    line: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """One step in which a key got its values: a variant file, a migration, or built-in defaults (without places).

    `source` names the step; `effect` is `sets`, `replaces`, `changes`, `repeats` (the values were there already) or `is
    ignored` (part of a zip group that the file does not set whole). `values` are those after the step, `replaced` those
    before it.
    """

    source: str
    effect: str
    values: tuple[str, ...]
    replaced: tuple[str, ...]
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """Where one value comes from: the lines that hold it (several where a migration and the pinning agree).

    `rule` names the rule behind a value that is in no file, or was not chosen because of its line.
    """

    value: str
    places: tuple[Place, ...] = ()
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Use:
    """Why a key is in the files: the kind of use, and the line of the recipe or script; rules have no line.

    `outputs` are the outputs to which the use applies; empty for rules that apply to the whole feedstock.
    """

    kind: str
    why: str
    place: Place | None = None
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
    settings: tuple[Setting, ...]
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
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Absence:
    """One platform: the jobs that meet all wishes, or, if there is none, what took it away."""

    platform: str
    jobs: tuple[str, ...]
    losses: tuple[Loss, ...]
