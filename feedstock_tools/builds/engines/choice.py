"""The engine for a configuration: the one its recipe needs and this machine has, or the requested one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import CI_SUPPORT

if TYPE_CHECKING:
    from feedstock_tools.builds.engines.conda_environment import CondaEnvironment
    from feedstock_tools.builds.engines.contract import Engine
    from feedstock_tools.feedstock.planned import PlannedConfiguration

#: The values of `--engine`.
ENGINES = ("rattler-build", "conda-build", "container")


@dataclass(frozen=True, slots=True)
class Choice:
    """The engine for a platform and the reason; or no engine, and the reasons why none can build for it.

    `passed` are those before it, each with the reason why it cannot.
    """

    engine: Engine | None
    reason: str
    passed: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """Name and version, as part of a build's identity; empty without an engine."""
        return f"{self.engine.name} {self.engine.version}" if self.engine else ""


@dataclass(frozen=True)
class Engines:
    """The engines that this machine has for a feedstock.

    Attributes:
        folder: the folder of the feedstock.
        recipe: the `recipe.yaml` to build; if there is no such file, the recipe is a `meta.yaml`.
        given: the value of `--engine`; None to choose.
        for_hosts: other machines build, and have a container runtime; this one needs none.
        is_converted: the `recipe.yaml` was made from a `meta.yaml` that people wrote.
        why_unconverted: why a `meta.yaml` could not be converted for the embedded engine.
    """

    folder: Path
    recipe: Path
    machine: Mapping[str, str]
    given: str | None = None
    is_converted: bool = False
    why_unconverted: str | None = None
    for_hosts: bool = False

    def choose(self, platform: str) -> Choice:
        """The engine for a platform. Looks for programs and queries them; starts no build."""
        if platform not in self._chosen:
            self._chosen[platform] = self._choose(platform, asking=True)
        return self._chosen[platform]

    def planned(self, platform: str) -> Choice:
        """The engine that would be chosen if every installed program worked: part of a build's identity.

        For a `meta.yaml` that people wrote it is the one that works.
        """
        choice = self.choose(platform) if self._is_written else None
        return choice if choice and choice.engine else self._choose(platform, asking=False)

    def engine(self, configuration: PlannedConfiguration) -> Engine:
        """The engine that builds a configuration."""
        return self.engine_for(configuration.name, configuration.platform)

    def engine_for(self, name: str, platform: str) -> Engine:
        """The engine that builds a configuration, by its name and platform.

        Raises:
            InputError: no engine can, with the reasons.
        """
        choice = self.choose(platform)
        if choice.engine is None:
            raise InputError(f"{name} cannot be built here: {choice.reason}")
        return choice.engine

    def why_not(self, configuration: PlannedConfiguration) -> str | None:
        """The reason why a configuration cannot be built on this machine; None if it can."""
        return self.why_elsewhere(configuration) or configuration.refusal

    def why_elsewhere(self, configuration: PlannedConfiguration) -> str | None:
        """The reason why another machine must build a configuration; None if this one can.

        The feedstock's script would run any macOS build in a Linux container. Configurations that conda-forge builds
        that way name the image for it; the others are only tried with `--engine container`.
        """
        choice = self.choose(configuration.platform)
        if choice.engine is None:
            return choice.reason
        scripted = choice.engine.own_channels and self.given is None and configuration.platform.startswith("osx-")
        builder = Platform.here().subdir
        if (
            scripted
            and builder.startswith("linux-")
            and not any(row.values.get("docker_image") for row in configuration.rows)
        ):
            return f"packages for {configuration.platform} need macOS: its CI builds them there, without a docker_image"
        return None

    @property
    def need_a_conversion(self) -> bool:
        """Whether a `meta.yaml` must be converted to be built: by request, or because no other engine works here."""
        if self.given is not None:
            return self.given == "rattler-build" or (self.given == "container" and not self._has_scripts)
        if self._why_no_container is None or shutil.which("conda-build", path=self.machine.get("PATH")):
            return False
        return self._conda_environment is None or self._conda_environment.why_not() is not None

    @property
    def stamp(self) -> str:
        """A value that changes when the choice may change: the requested engine, and the installed programs."""
        path = self.machine.get("PATH")
        programs = [shutil.which(name, path=path) for name in ("conda-build", "docker", "podman")]
        found = [f"{program} {Path(program).stat().st_mtime_ns}" for program in programs if program]
        contained = [str(self._why_no_container is None), str(self.need_a_conversion)] if self._is_written else []
        return " ".join([self.given or "", self.machine.get("DOCKER_EXECUTABLE", ""), *found, *contained])

    @property
    def _is_written(self) -> bool:
        """Whether the recipe is a `meta.yaml` that people wrote, and any engine may build it."""
        return self.given is None and (self.is_converted or not self._has_recipe)

    @cached_property
    def _why_no_container(self) -> str | None:
        """Why the feedstock's scripts cannot build in a container that has what conda-forge's CI has."""
        if self.for_hosts:
            return None
        if not self._has_scripts:
            return "the feedstock has no .scripts"
        from feedstock_tools.builds.engines.container import NO_RUNTIME, find_runtime, why_unreachable
        from feedstock_tools.builds.engines.feedstock_script import FeedstockScript

        runtime = find_runtime(self.machine, answering=True)
        if runtime is None:
            return NO_RUNTIME
        why = FeedstockScript(self.folder, self.machine, runtime).why_no_runtime()
        return why or why_unreachable(runtime, *self._image_and_channels())

    def _image_and_channels(self) -> tuple[str, tuple[str, ...]]:
        """Those of the feedstock's first configuration."""
        from feedstock_tools.yaml_reading.nodes import read_texts

        file = next(iter(sorted((self.folder / CI_SUPPORT).glob("*.yaml"))), None)
        content = read_texts(file, within=self.folder) if file else {}
        first = {key: values[0] for key, values in content.items() if isinstance(values, list) and values}
        image = self.machine.get("DOCKER_IMAGE") or first.get("docker_image", "")
        return image, tuple(first.get("channel_sources", "conda-forge").split(","))

    def _choose(self, platform: str, *, asking: bool) -> Choice:
        builder = Platform.here().subdir
        refused: list[str] = []
        for name, engine, why in self._candidates(platform, builder, asking=asking):
            reason = why if engine is None else engine.why_not(platform, builder) if asking else None
            if reason is None and asking and self._is_written and name == "container" and builder.startswith("linux-"):
                reason = self._why_no_container
            if engine is not None and reason is None:
                return Choice(engine, "requested with --engine" if self.given else why, tuple(refused))
            refused.append(f"{name}: {reason}")
        first, *others = refused
        return Choice(None, "\n".join([first.partition(": ")[2], *(f"  {reason}" for reason in others)]))

    def _candidates(self, platform: str, builder: str, *, asking: bool) -> Iterator[tuple[str, Engine | None, str]]:
        """Name, engine and reason, the preferred one first; without an engine, the reason why not."""
        for name in (self.given,) if self.given else self._order():
            if name == "rattler-build":
                yield name, *self._embedded()
            elif name == "conda-build":
                yield name, *self._conda_build()
            else:
                yield name, *self._container(platform, builder, asking=asking)

    def _order(self) -> tuple[str, ...]:
        if self._is_written:
            return ("container", "conda-build", "rattler-build")
        return ("rattler-build", "container") if self._has_scripts else ("rattler-build",)

    @cached_property
    def _conda_environment(self) -> CondaEnvironment | None:
        """The one for this machine; other machines have their own conda-build."""
        from feedstock_tools.builds.engines.conda_environment import CondaEnvironment
        from feedstock_tools.feedstock.folder import user_cache

        if self.for_hosts:
            return None
        return CondaEnvironment(user_cache(self.machine, self.folder / "build_artifacts" / ".cache") / "conda-build")

    @property
    def _has_recipe(self) -> bool:
        return self.recipe.is_file()

    @cached_property
    def _chosen(self) -> dict[str, Choice]:
        """The choices by platform: each program is queried once."""
        return {}

    @cached_property
    def _has_scripts(self) -> bool:
        return (self.folder / ".scripts").is_dir()

    def _embedded(self) -> tuple[Engine | None, str]:
        from feedstock_tools.builds.engines.embedded.engine import RattlerBuild

        if self._has_recipe:
            return RattlerBuild(), "the embedded engine builds a recipe.yaml"
        if self.why_unconverted:
            return None, f"its recipe is a meta.yaml that cannot be converted: {self.why_unconverted}"
        return None, "its recipe is a meta.yaml; --engine rattler-build converts it"

    def _conda_build(self) -> tuple[Engine | None, str]:
        from feedstock_tools.builds.engines.conda_build import CondaBuild

        if not (self.folder / "recipe" / "meta.yaml").is_file():
            return None, "the recipe is a recipe.yaml, which conda-build does not read"
        engine = CondaBuild(self.machine, self._conda_environment)
        if engine.program is None and self._conda_environment is not None:
            return engine, "the recipe is a meta.yaml; conda-build comes from conda-forge, in an environment of ours"
        return engine, "the recipe is a meta.yaml, and there is a conda-build on PATH"

    def _container(self, platform: str, builder: str, *, asking: bool) -> tuple[Engine | None, str]:
        from feedstock_tools.builds.engines.container import ELSEWHERE, Container, find_runtime
        from feedstock_tools.builds.engines.feedstock_script import FeedstockScript, script_for

        runtime = ELSEWHERE if self.for_hosts else find_runtime(self.machine, answering=asking)
        script = script_for(platform, builder)
        if self._has_scripts or not self._has_recipe:
            is_recipe = self._has_recipe and not self.is_converted
            reason = "the embedded engine cannot build it" if is_recipe else "the recipe is a meta.yaml"
            return FeedstockScript(self.folder, self.machine, runtime), f"{reason}, and the feedstock has {script}"
        return Container(runtime, self.machine), "the image of the configuration, with our own steps"
