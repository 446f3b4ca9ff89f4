"""The results of a rehearsal, as JSON values: which environments solve, and which builds users would get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

#: The reason for environments that were not tried.
FOLLOWS = "it depends on a build or host environment without a solution"

#: `waiting`: not tried, since an environment that it depends on does not solve. `unknown`: the available channels
#: are incomplete, and lack a package of it or of one that it depends on.
State = Literal["solved", "failed", "waiting", "unknown"]


@dataclass(frozen=True, slots=True)
class Environment:
    """One environment of one output in one row: `kind` is `build`, `host`, `run` or `test`.

    `packages` counts those of the solution; `reason` explains why there is none. `by_time` names builds of other
    feedstocks chosen only by time stamps, with the alternative; this is not a mistake of this feedstock.
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
    """The build that a solver chooses for an output's name, on a machine whose driver has a CUDA version (None: no
    GPU).

    `build` is `version build`, None if there is none. `by_time` is the other build that it chooses if the two were
    built in reverse order. `mistake` describes the mistake, None for the intended build.
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
    """All environments of some configurations, and the builds that users would get.

    `solved` counts the different environments that were solved; `why_incomplete` is the reason why the channels lack
    packages that exist, None if they do not.
    """

    environments: tuple[Environment, ...]
    picks: tuple[Pick, ...]
    channels: tuple[str, ...]
    solved: int
    why_incomplete: str | None = None

    @property
    def holds(self) -> bool:
        """Whether there are no mistakes."""
        return not any(environment.state in ("failed", "waiting") for environment in self.environments) and not any(
            pick.mistake for pick in self.picks
        )

    def to_json(self) -> dict[str, Any]:
        """As a document of JSON, with `holds`."""
        content = asdict(self)
        why = content.pop("why_incomplete")
        return {"holds": self.holds, **content, "stand_in": why}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Rehearsal:
        """The inverse of `to_json`; `KeyError` or `TypeError` for any other document."""
        return cls(
            environments=tuple(Environment(**content) for content in document["environments"]),
            picks=tuple(Pick(**content) for content in document["picks"]),
            channels=tuple(document["channels"]),
            solved=int(document["solved"]),
            why_incomplete=document["stand_in"],
        )
