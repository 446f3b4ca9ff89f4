"""The feedstock's own scripts, called as conda-smithy's `build-locally.py` does: the way that conda-forge's CI builds.

A row is built in a copy of the feedstock, so that several can be built in parallel and no incomplete package enters the
channel; the script's arguments to docker differ from conda-smithy's only in the folder, and in arguments of
ours in `CONDA_FORGE_DOCKER_RUN_ARGS`, where its users put theirs.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from feedstock_tools.builds.engines.container import ELSEWHERE, NO_RUNTIME, Runtime, named_image, share_arguments
from feedstock_tools.builds.engines.contract import BuildRequest, Built, CrossTests, Event, Failed, Started
from feedstock_tools.builds.engines.process.program import Command, packages_in, run_command
from feedstock_tools.channel.packages.reading import read_hash_input
from feedstock_tools.errors import WorkError
from feedstock_tools.reading import CI_SUPPORT, read_bytes, read_text
from feedstock_tools.rerender.configuration import NO_LOOP, Configuration, with_own_values, with_rows

DOCKER_SCRIPT = ".scripts/run_docker_build.sh"
_OSX_SCRIPT = ".scripts/run_osx_build.sh"
_WIN_SCRIPT = ".scripts/run_win_build.bat"
#: Names of variables that a script reads, or passes into its container with `-e NAME`.
_ASKED = re.compile(r"\$\{?([A-Za-z_]\w*)|-e +([A-Za-z_]\w*)|%([A-Za-z_]\w*)%")
#: The variable in which scripts of conda-smithy take another program than docker.
_CHOICE = "DOCKER_EXECUTABLE"
_NOT_COPIED = ("build_artifacts", "miniforge3")
#: The container's folder in which the scripts keep fetched packages.
_CACHE_INSIDE = "/home/conda/feedstock_root/build_artifacts/pkg_cache"


def script_for(target: str, builder: str) -> str | None:
    """The script that builds for a platform on a machine; None if no script does.

    conda-smithy 2026.8.5, build-locally.py: Linux and, on Linux, macOS are built in a container.
    """
    if target.startswith("linux-") or (target.startswith("osx-") and builder.startswith("linux-")):
        return DOCKER_SCRIPT
    if target.startswith("osx-") and builder.startswith("osx-"):
        return _OSX_SCRIPT
    if target.startswith("win-") and builder.startswith("win-"):
        return _WIN_SCRIPT
    return None


@dataclass(frozen=True)
class FeedstockScript:
    """Runs the script of a feedstock.

    Attributes:
        machine: the environment of the machine; the script gets the variables that it names, in addition to a build's
            own.
        runtime: the container runtime; None if there is none.
    """

    feedstock: Path
    machine: Mapping[str, str]
    runtime: Runtime | None
    name: str = "container"
    shares_staging: bool = True
    #: A call of the script that builds all rows which share something, as the plan has it; they take its packages.
    keeps_shared: bool = True
    own_channels: bool = True
    cross_tests: CrossTests = "its own"

    @property
    def version(self) -> str:
        """`.scripts 0123456789ab`: a hash of the scripts, which determine the whole build but for a named image."""
        digest = sha256()
        for path in sorted((self.feedstock / ".scripts").glob("*")):
            if path.is_file():
                digest.update(path.name.encode() + b"\0" + read_bytes(path, within=self.feedstock))
        return f".scripts {digest.hexdigest()[:12]}{named_image(self.machine, self.runtime)}"

    def why_not(self, target: str, builder: str) -> str | None:
        script = script_for(target, builder)
        if script is None:
            system = "Windows" if target.startswith("win-") else "macOS or Linux"
            return f"packages for {target} need {system}, but this is {builder}"
        if not (self.feedstock / script).is_file():
            return f"the feedstock has no {script}"
        if script == _OSX_SCRIPT and not self.machine.get("OSX_SDK_DIR"):
            return (
                "set OSX_SDK_DIR to the folder of Apple's SDK (or for its download); setting it means agreeing to "
                "Apple's license"
            )
        return self.why_no_runtime() if script == DOCKER_SCRIPT else None

    def why_no_runtime(self) -> str | None:
        """The reason why the script of Linux builds cannot run containers; None if it can.

        Scripts of conda-smithy before March 2026 run docker whatever is in DOCKER_EXECUTABLE.
        """
        if self.runtime is None:
            return NO_RUNTIME
        is_other = Path(self.runtime.program).name != "docker" and self.runtime != ELSEWHERE
        if is_other and _CHOICE not in read_text(self.feedstock / DOCKER_SCRIPT, within=self.feedstock):
            return f"{DOCKER_SCRIPT} does not read {_CHOICE}: it runs docker, which is not here or does not answer"
        return self.runtime.why_not()

    @contextmanager
    def build(self, request: BuildRequest) -> Iterator[Iterator[Event]]:
        if request.inherits:
            yield _taken(request)
            return
        command = self.command(request)
        packages = [command.output / subdir for subdir in (request.target, "noarch")]
        with run_command(command, request) as events:
            yield _kept(events, packages) if request.only_shared else events

    def command(self, request: BuildRequest) -> Command:
        """Copy the feedstock into the private folder and return the call of its script there."""
        script = script_for(request.target, request.builder)
        assert script is not None  # noqa: S101  (`why_not` refuses such a request)
        copy = self._copied(request)
        variables = {name for names in _ASKED.findall(read_text(copy / script, within=copy)) for name in names}
        passed = {name: self.machine[name] for name in sorted(variables & self.machine.keys())}
        environment = {**passed, **request.environment, "CONFIG": request.configuration}
        environment |= {"UPLOAD_PACKAGES": "False", "IS_PR_BUILD": "True"}
        environment.pop("BUILD_WITH_CONDA_DEBUG", None)
        output = copy / "build_artifacts"
        if script == _WIN_SCRIPT:
            return Command(("cmd", "/D", "/Q", "/C", f"CALL {script}"), copy, environment, output)
        if script == _OSX_SCRIPT or self.runtime is None:
            return Command((script,), copy, environment, output)
        id_file = request.folder / "container.id"
        arguments = [
            *shlex.split(environment.get("CONDA_FORGE_DOCKER_RUN_ARGS", "")),
            *share_arguments(request),
            "--cidfile",
            str(id_file),
            *self._cache(request),
        ]
        # The script splits it at spaces and does not support quotes.
        environment["CONDA_FORGE_DOCKER_RUN_ARGS"] = " ".join(arguments)
        if not self.runtime.is_default:
            environment[_CHOICE] = self.runtime.for_script
        terminal = not environment.get("CI")
        return Command((script,), copy, environment, output, terminal, (id_file, self.runtime.program))

    def _cache(self, request: BuildRequest) -> list[str]:
        """The mount of the folder of fetched packages, which all rows share."""
        place = request.environment.get("RATTLER_CACHE_DIR")
        if place is None or self.runtime is None or " " in place:
            return []
        Path(place).mkdir(parents=True, exist_ok=True)
        return ["-v", f"{place}:{_CACHE_INSIDE}:rw{self.runtime.mount_suffix}"]

    def _copied(self, request: BuildRequest) -> Path:
        copy = request.folder / request.feedstock.name
        own = request.folder.resolve()

        def left_out(folder: str, names: list[str]) -> list[str]:
            return [name for name in names if name in _NOT_COPIED or own.is_relative_to(Path(folder, name).resolve())]

        try:
            shutil.copytree(request.feedstock, copy, symlinks=True, ignore=left_out)
            (_narrow_to_rows if request.only_shared else _narrow)(copy, request)
        except (OSError, shutil.Error) as error:
            raise WorkError(f"cannot copy the feedstock: {error}", path=copy) from error
        return copy


def _narrow(feedstock: Path, request: BuildRequest) -> None:
    """Keep one value for each key in the file of a configuration that has several rows; other files stay unchanged.

    Keys from the recipe's own variant file are written there too, since that file may have several values.
    """
    file, configured = _configuration(feedstock, request)
    if all(key in NO_LOOP or len(configured.values.get(key, ())) == 1 for key in request.values):
        return
    own = {key: (value,) for key, value in request.values.items()}
    file.write_bytes(replace(configured, values={**configured.values, **own}).to_bytes())


def _narrow_to_rows(feedstock: Path, request: BuildRequest) -> None:
    """Keep the rows of a call; a file that has no others stays unchanged."""
    file, configured = _configuration(feedstock, request)
    (completed,) = with_own_values(feedstock / "recipe", [configured])
    narrowed = with_rows(completed, request.rows)
    if narrowed is not completed:
        file.write_bytes(narrowed.to_bytes())


def _configuration(feedstock: Path, request: BuildRequest) -> tuple[Path, Configuration]:
    file = feedstock / CI_SUPPORT / f"{request.configuration}.yaml"
    return file, Configuration.from_file(file, within=feedstock)


def _kept(events: Iterator[Event], packages: Sequence[Path]) -> Iterator[Event]:
    """The events of a call for several rows, whose folders of packages are kept before the last one."""
    for event in events:
        if isinstance(event, Built):
            for folder in filter(Path.is_dir, packages):
                folder.rename(event.package / folder.name)
        yield event


def _taken(request: BuildRequest) -> Iterator[Event]:
    """The packages of a row, taken from those of its unit."""
    for name in request.wanted:
        yield Started(name)
        found = [
            package
            for folder in request.shared.values()
            for each, package in packages_in(folder, (request.target, "noarch"))
            if each == name and _is_of_row(package, request.values)
        ]
        if len(found) != 1:
            yield Failed(name, f"the call for all rows has made {len(found)} packages of that name for this one")
            return
        own = request.output / found[0].parent.name / found[0].name
        own.parent.mkdir(parents=True, exist_ok=True)
        yield Built(name, Path(shutil.copy2(found[0], own)), 0.0)


def _is_of_row(package: Path, values: Mapping[str, str]) -> bool:
    """Whether the values that a package was built with are those of a row; a noarch package has a target of its own."""
    from feedstock_tools.recipe.v1_engine import text_of

    used = {key: text_of(value) for key, value in read_hash_input(package).items() if key != "target_platform"}
    return all(values.get(key, value) == value for key, value in used.items())
