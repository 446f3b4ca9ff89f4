"""The contract of engines: the request for a build, its events, and its end.

An engine gets one row of a configuration, a recipe, channels and a private folder that nobody else touches. It streams
events and ends with packages or a reason. It does not know ledgers, output channels or selections, so that the
same call can run one build on another machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from feedstock_tools.builds.engines.comparable import DEFAULT_EPOCH
from feedstock_tools.builds.engines.process.guard import Guard
from feedstock_tools.feedstock.planned import PlannedOutput

if TYPE_CHECKING:
    from feedstock_tools.builds.engines.embedded.emulation import Emulator

#: The file in the folder of a shared build with its solved environments, `finalized_dependencies` as rattler-build has
#: them in a rendered recipe. An engine that does not know them leaves it out.
SOLVED = "solved.json"
#: In a cross build the engine runs tests under a given emulator, leaves them out, or lets the program that it calls
#: decide.
CrossTests = Literal["emulated", "left out", "its own"]


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """One row to build.

    Attributes:
        name: the row's name, for messages.
        recipe: the `recipe.yaml`.
        values: one value for each variant key.
        target: the target subdir; `builder` is the subdir of the build machine.
        channels: URLs to solve in, the first has priority.
        folder: the private folder: the build writes only below it.
        wanted: names of the outputs to build; the others of the row are already in `folder/output`.
        shared: the folders of the shared builds that the wanted outputs take files from, by name. They are complete,
            and nobody may write to them: other rows read them at the same time.
        only_shared: this is a shared build alone: `wanted` has its name, and `shared` the empty folder for its files.
        rows: if that is a call of the feedstock's script, the names of the rows that it builds.
        untested: outputs whose tests are left out, by name.
        emulator: runs the tests of packages for another platform; None if they are left out, or none is needed.
        extra: entries for the `extra` section of each package's metadata.
        environment: the whole environment of the build's process.
        configuration: the name of the row's file in `.ci_support`; `feedstock` is its folder.
        cores: the number of cores for the build, and `memory` its bytes; None for no limit.
        epoch: the time in its packages, in seconds since 1970, which is also the `SOURCE_DATE_EPOCH` of its scripts.
        for_pip: the machine's settings of pip, and of the user's cache, for what the engine fetches itself.
        other_addresses: second addresses of sources, where the recipe's do not answer; the embedded engine takes them.
        guard: enforces these limits on the engine's process, and ends it with its run; the engine attaches it.
    """

    name: str
    recipe: Path
    values: Mapping[str, str]
    target: str
    builder: str
    channels: tuple[str, ...]
    folder: Path
    wanted: tuple[str, ...]
    shared: Mapping[str, Path] = field(default_factory=dict)
    only_shared: bool = False
    rows: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
    emulator: Emulator | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    configuration: str = ""
    feedstock: Path = Path()
    cores: int | None = None
    memory: int | None = None
    epoch: int = DEFAULT_EPOCH
    for_pip: Mapping[str, str] = field(default_factory=dict)
    other_addresses: Mapping[str, str] = field(default_factory=dict)
    guard: Guard = field(default_factory=Guard)

    @property
    def output(self) -> Path:
        """The private channel: it contains the packages of this row, including earlier ones."""
        return self.folder / "output"

    @property
    def inherits(self) -> bool:
        """Whether it builds outputs that take files from shared builds."""
        return bool(self.shared) and not self.only_shared

    @property
    def recipe_of_heir(self) -> Path:
        """Where the embedded engine writes the recipe of such an output."""
        return self.folder / "recipe.json"

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
            "shared": {name: str(folder) for name, folder in self.shared.items()},
            "only_shared": self.only_shared,
            "rows": list(self.rows),
            "untested": list(self.untested),
            "emulator": self.emulator.to_json() if self.emulator else None,
            "extra": dict(self.extra),
            "configuration": self.configuration,
            "feedstock": str(self.feedstock),
            "cores": self.cores,
            "memory": self.memory,
            "epoch": self.epoch,
            "for_pip": dict(self.for_pip),
            "other_addresses": dict(self.other_addresses),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> BuildRequest:
        """The inverse of `to_json`."""
        from feedstock_tools.builds.engines.embedded.emulation import Emulator
        from feedstock_tools.variants.model import values_from_json

        paths: dict[str, Any] = {key: Path(content[key]) for key in ("recipe", "folder", "feedstock")}
        paths["shared"] = {name: Path(folder) for name, folder in content["shared"].items()}
        lists = {key: tuple(content[key]) for key in ("channels", "wanted", "rows", "untested")}
        emulator = Emulator(**content["emulator"]) if content["emulator"] else None
        values = values_from_json(content["values"])
        return cls(**{**content, **paths, **lists, "values": values, "emulator": emulator})


@dataclass(frozen=True, slots=True)
class Started:
    """The engine begins with an output."""

    output: str


@dataclass(frozen=True, slots=True)
class Log:
    """A message of the engine, of one or several lines. `stage` is its current step; `level` is info, warn or error."""

    text: str
    stage: str = ""
    level: str = "info"


@dataclass(frozen=True, slots=True)
class Output:
    """Bytes that programs of a build printed, in any encoding: whole lines, or a part of a very long one."""

    content: bytes
    stage: str = ""


@dataclass(frozen=True, slots=True)
class Built:
    """An output is complete and its tests have passed (or were left out): the package's file, and how long it took.

    Of a shared build `package` is its folder.
    """

    output: str
    package: Path
    seconds: float

    @property
    def shown(self) -> str:
        """The name of the package's file; of a shared build its own."""
        return self.package.name if self.package.suffix else self.output


@dataclass(frozen=True, slots=True)
class Failed:
    """The build has ended without the output.

    `during` is the step that failed: `solve`, `packages` (unpacking them), `script`, `tests` or `engine`.
    """

    output: str
    reason: str
    during: str = "engine"


Event = Started | Log | Output | Built | Failed


class Engine(Protocol):
    """Something that builds rows."""

    @property
    def name(self) -> str:
        """Its name for `--engine`."""
        ...

    @property
    def shares_staging(self) -> bool:
        """Whether a staging output is built once for all outputs of a row that inherit from it, and not once for
        each."""
        ...

    @property
    def keeps_shared(self) -> bool:
        """Whether it runs a shared build by itself (`BuildRequest.only_shared`) and builds rows from what that left.

        The shared build of several rows is then planned, recorded and kept as an item of its own.
        """
        ...

    @property
    def own_channels(self) -> bool:
        """Whether it always solves in the configuration's own channels."""
        ...

    @property
    def cross_tests(self) -> CrossTests:
        """How it treats the tests of packages for another platform than the machine's."""
        ...

    @property
    def version(self) -> str:
        """The version of the engine, as part of a build's identity."""
        ...

    def why_not(self, target: str, builder: str) -> str | None:
        """The reason why it cannot build for a platform on this machine; None if it can."""
        ...

    def build(self, request: BuildRequest) -> AbstractContextManager[Iterator[Event]]:
        """Run a build: a context whose value yields events as they occur, ending after `Failed` or the last `Built`.

        Leaving the context ends the build with all its processes, whatever the reason.
        """
        ...


def repeated_staging(engine: Engine, outputs: Sequence[PlannedOutput]) -> Iterator[Log]:
    """A warning for each staging output that an engine will build more than once for these outputs of a row.

    Such a script may run for hours, so the run warns before the first of them begins.
    """
    if engine.shares_staging:
        return
    for staging in dict.fromkeys(name for output in outputs for name in output.staging):
        heirs = [output.name for output in outputs if staging in output.staging]
        if len(heirs) > 1:
            yield Log(
                f"WARNING: the script of the staging output {staging} will run {len(heirs)} times, once for each of "
                f"{', '.join(heirs)}: {engine.name} {engine.version} does not share its files between packages.",
                "feedstock-tools",
                "warn",
            )
