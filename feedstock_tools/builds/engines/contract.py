"""The contract of engines: what a build is given, what it tells while it runs, and how it ends.

An engine gets one row of a configuration, a recipe, channels and a private folder that nobody else touches. It streams
what happens and ends with packages or a reason. It knows nothing of ledgers, output channels or selections, so that the
same call can run one build on another machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from feedstock_tools.builds.engines.process.guard import Guard

if TYPE_CHECKING:
    from feedstock_tools.builds.engines.embedded.emulation import Emulator

__all__ = ["BuildRequest", "Built", "CrossTests", "Engine", "Event", "Failed", "Log", "Started"]


#: In a cross build the engine runs tests under an emulator that it is given, leaves them out, or what it calls decides.
CrossTests = Literal["emulated", "left out", "its own"]


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """One row to build.

    Attributes:
        name: of the row, for messages.
        recipe: the `recipe.yaml`.
        values: one value for each variant key.
        target: the subdir that is built for; `builder` the subdir of the machine that builds.
        channels: URLs to solve in, the first preferred.
        folder: the private folder: everything that the build writes lies below it.
        wanted: names of the outputs to build; the others of the row lie in `folder/output` already.
        untested: outputs whose tests are left out, by name.
        emulator: what runs the tests of packages for another platform; None where they are left out, or none is needed.
        extra: what is added to the `extra` section of each package's metadata.
        environment: the whole environment of the build's process.
        configuration: the name of the row's file in `.ci_support`; `feedstock` the folder that has it.
        cores: how many the build may keep busy, and `memory` the bytes that it may use; None for no limit.
        guard: holds the engine's process to these, and ends it with its run; the engine attaches it.
    """

    name: str
    recipe: Path
    values: Mapping[str, str]
    target: str
    builder: str
    channels: tuple[str, ...]
    folder: Path
    wanted: tuple[str, ...]
    untested: tuple[str, ...] = ()
    emulator: Emulator | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    configuration: str = ""
    feedstock: Path = Path()
    cores: int | None = None
    memory: int | None = None
    guard: Guard = field(default_factory=Guard)

    @property
    def output(self) -> Path:
        """The private channel: packages of this row lie here, those that were there before included."""
        return self.folder / "output"

    def to_json(self) -> dict[str, Any]:
        """All but the environment and the guard, for a file that another process reads."""
        from feedstock_tools.variants.model import values_to_json

        return {
            "name": self.name,
            "recipe": str(self.recipe),
            "values": values_to_json(self.values),
            "target": self.target,
            "builder": self.builder,
            "channels": list(self.channels),
            "folder": str(self.folder),
            "wanted": list(self.wanted),
            "untested": list(self.untested),
            "emulator": self.emulator.to_json() if self.emulator else None,
            "extra": dict(self.extra),
            "configuration": self.configuration,
            "feedstock": str(self.feedstock),
            "cores": self.cores,
            "memory": self.memory,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> BuildRequest:
        """The inverse of `to_json`."""
        from feedstock_tools.builds.engines.embedded.emulation import Emulator
        from feedstock_tools.variants.model import values_from_json

        paths = {key: Path(content[key]) for key in ("recipe", "folder", "feedstock")}
        lists = {key: tuple(content[key]) for key in ("channels", "wanted", "untested")}
        emulator = Emulator(**content["emulator"]) if content["emulator"] else None
        values = values_from_json(content["values"])
        return cls(**{**content, **paths, **lists, "values": values, "emulator": emulator})


@dataclass(frozen=True, slots=True)
class Started:
    """The engine begins with an output."""

    output: str


@dataclass(frozen=True, slots=True)
class Log:
    """A line (or block of lines) of the log. `stage` says what the engine was doing; `level` is info, warn or error."""

    text: str
    stage: str = ""
    level: str = "info"


@dataclass(frozen=True, slots=True)
class Built:
    """An output is complete and its tests have passed (or were left out): the package's file, and how long it took."""

    output: str
    package: Path
    seconds: float


@dataclass(frozen=True, slots=True)
class Failed:
    """The build has ended without the output. `during` is what failed: `solve`, `script`, `tests` or `engine`."""

    output: str
    reason: str
    during: str = "engine"


Event = Started | Log | Built | Failed


class Engine(Protocol):
    """Something that builds rows."""

    @property
    def name(self) -> str:
        """What `--engine` calls it."""
        ...

    @property
    def shares_staging(self) -> bool:
        """Whether outputs of a row that inherit from one staging output have it built once, and not once for each."""
        ...

    @property
    def own_channels(self) -> bool:
        """Whether it solves in the channels that the configuration names, and nobody can give it others."""
        ...

    @property
    def cross_tests(self) -> CrossTests:
        """What becomes of the tests of packages for another platform than the machine's."""
        ...

    @property
    def version(self) -> str:
        """Versions of what builds, as part of a build's identity."""
        ...

    def why_not(self, target: str, builder: str) -> str | None:
        """The reason why it cannot build for a platform on this machine; None where it can."""
        ...

    def build(self, request: BuildRequest) -> AbstractContextManager[Iterator[Event]]:
        """Run a build: a context whose value gives the events as they come, ending after `Failed` or the last `Built`.

        Leaving the context ends the build and everything that it started, whatever the reason for leaving.
        """
        ...
