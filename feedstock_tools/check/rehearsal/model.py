"""What a rehearsal found, as values that JSON has: which environments solve, and which builds users would get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["FOLLOWS", "Environment", "Pick", "Rehearsal"]

#: The reason of environments that were not tried.
FOLLOWS = "it follows from a build or host environment that has no solution"

#: `waiting`: not tried, since an environment that it follows from does not solve. `unknown`: the channels that were at
#: hand are known to be incomplete, and lack a package, of it or of one that it follows from.
State = Literal["solved", "failed", "waiting", "unknown"]


@dataclass(frozen=True, slots=True)
class Environment:
    """One environment of one output in one row: `kind` is `build`, `host`, `run` or `test`.

    `packages` counts those of the solution; `reason` says why there is none. `by_time` names builds of other feedstocks
    that only time stamps chose, with another that would have done; it is no mistake of this one.
    """

    configuration: str
    row: str
    output: str
    kind: str
    platform: str
    state: State
    packages: int = 0
    reason: str | None = None
    by_time: str | None = None


@dataclass(frozen=True, slots=True)
class Pick:
    """Which build a solver takes for an output's name, on a machine whose driver has a CUDA version (None: no GPU).

    `build` is `version build`, None where there is none. `by_time` is the other build that it takes when the two were
    built in the other order. `mistake` says what is wrong with it, None where it is the build that is meant.
    """

    platform: str
    driver: str | None
    name: str
    build: str | None
    cuda: str | None
    by_time: str | None = None
    mistake: str | None = None


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """All environments of some configurations, and what users would get.

    `solved` counts the different environments that a solver was asked for; `stand_in` is the reason why the channels
    are stand-ins and known to be incomplete, None where they are real.
    """

    environments: tuple[Environment, ...]
    picks: tuple[Pick, ...]
    channels: tuple[str, ...]
    solved: int
    stand_in: str | None = None

    @property
    def holds(self) -> bool:
        """Whether nothing was found that is wrong."""
        return not any(one.state in ("failed", "waiting") for one in self.environments) and not any(
            pick.mistake for pick in self.picks
        )

    def to_json(self) -> dict[str, Any]:
        """As a document of JSON, with `holds`."""
        return {"holds": self.holds, **asdict(self)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Rehearsal:
        """The inverse of `to_json`; `KeyError` or `TypeError` where it is something else."""
        return cls(
            environments=tuple(Environment(**one) for one in document["environments"]),
            picks=tuple(Pick(**one) for one in document["picks"]),
            channels=tuple(document["channels"]),
            solved=int(document["solved"]),
            stand_in=document["stand_in"],
        )
