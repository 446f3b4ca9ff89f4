"""The engine for a `meta.yaml`: the conda-build on PATH, called as conda-smithy's scripts call it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from feedstock_tools.builds.engines.conda_environment import CondaEnvironment
from feedstock_tools.builds.engines.contract import BuildRequest, Built, CrossTests, Event, Failed, Started
from feedstock_tools.builds.engines.embedded.fixed_place import UNIT, is_possible, place_of
from feedstock_tools.builds.engines.process.program import MADE_NONE, Command, run_command
from feedstock_tools.reading import CI_SUPPORT
from feedstock_tools.yaml_reading.nodes import read_texts

_ASKING_SECONDS = 120
#: conda-build's folders in a private folder.
_ROOT = "conda-build"
#: The options of a row that begins with what a shared build has left, and those of the shared build.
_STEPS = (("--no-build-id", "--dirty", "--post"), ("--no-build-id", "--dirty", "--build-only"))


@dataclass(frozen=True)
class CondaBuild:
    """Builds rows with conda-build.

    Attributes:
        machine: the environment of the machine, whose search path determines the conda-build.
        own: the environment with conda-build for a machine that has none on its search path; None without one.
    """

    machine: Mapping[str, str]
    own: CondaEnvironment | None = None
    name: str = "conda-build"
    shares_staging: bool = True
    own_channels: bool = False
    cross_tests: CrossTests = "left out"

    @property
    def program(self) -> str | None:
        return shutil.which("conda-build", path=self.machine.get("PATH"))

    @property
    def keeps_shared(self) -> bool:
        return is_possible()

    @property
    def version(self) -> str:
        """`26.7.1`, or `unknown`."""
        if self.program is None and self.own is not None and self.own.why_not() is None:
            return self.own.version
        return _version(self.program, tuple(sorted(self.machine.items()))) if self.program else "unknown"

    def why_not(self, target: str, builder: str) -> str | None:
        if self.program is None and (self.own is None or self.own.why_not()):
            reason = self.own.why_not() if self.own else "there is no conda-build on PATH"
            return f"{reason}; install it with conda, for example from environment.yml"
        if target.startswith("win-") != builder.startswith("win-"):
            return f"packages for {target} are not built on {builder}"
        if target.startswith("osx-") and not builder.startswith("osx-"):
            return f"packages for {target} need macOS with Apple's SDK, but this is {builder}"
        return None

    @contextmanager
    def build(self, request: BuildRequest) -> Iterator[Iterator[Event]]:
        if request.shared or not any(request.output.glob("*/*.conda")):
            with run_command(self.command(request), request) as events:
                yield self._kept(events, request) if request.only_shared else events
            return
        with closing(self._remaining(request)) as events:
            yield events

    def _kept(self, events: Iterator[Event], request: BuildRequest) -> Iterator[Event]:
        """The events of a shared build, whose folders are kept before its last one."""
        for event in events:
            if isinstance(event, Built):
                (request.folder / _ROOT).rename(event.package / _ROOT)
            yield event

    def _remaining(self, request: BuildRequest) -> Generator[Event]:
        """Build a row some of whose outputs are finished, without these.

        conda-build then does not build what a channel has either, so what is lacking after it is built with the others.
        """
        missing = list(request.wanted)
        with run_command(self.command(request, "--skip-existing"), request) as events:
            for event in events:
                if isinstance(event, Failed) and event.reason.endswith(MADE_NONE):
                    break
                if isinstance(event, Built):
                    missing.remove(event.output)
                yield event
            else:
                return
        remaining = replace(request, wanted=tuple(missing))
        with run_command(self.command(remaining), remaining) as events:
            yield from (event for event in events if event != Started(missing[0]))

    def command(self, request: BuildRequest, *more: str) -> Command:
        """The call of conda-build for one row, with a variant file of only that row's values.

        A shared build is conda-build's of the top level, up to its packages. Its rows begin with a copy of the folders
        that it has left, which are at the same place again.

        The arguments are those of conda-smithy 2026.8.5, templates/build_steps.sh.tmpl. conda's settings, which that
        script writes to a `.condarc`, are in a file that `CONDARC` names and conda reads last: they override
        the settings of the installation and of the user.
        """
        program = self.program or str(self.own.program() if self.own else "")  # `why_not` refuses without either
        variants = request.folder / f"{request.configuration}.yaml"
        self._write_variants(request, variants)
        clobber = request.feedstock / CI_SUPPORT / f"clobber_{request.configuration}.yaml"
        native = request.target in (request.builder, "noarch")
        words = [
            *(program, str(request.feedstock / "recipe"), "-m", str(variants)),
            *(() if native else ("--no-test",)),
            "--suppress-variables",
            *(("--clobber-file", str(clobber)) if clobber.is_file() else ()),
            *("--output-folder", str(request.output)),
            *(_STEPS[request.only_shared] if request.shared else ()),
            *more,
            *("--override-channels", *(word for channel in request.channels for word in ("-c", channel))),
            *_extra(request),
        ]
        environment = {
            **request.environment,
            "CONDARC": str(self._write_settings(request)),
            "CONDA_SUBDIR": request.builder,
        }
        kept = [folder / _ROOT for folder in request.shared.values() if request.inherits]
        copied = (kept[0], request.folder / _ROOT) if kept else None
        return Command(
            tuple(words), request.folder, environment, request.output, copied=copied, at_place=bool(request.shared)
        )

    def _write_variants(self, request: BuildRequest, place: Path) -> None:
        """The file of the configuration with one value for each key, in conda-build's form."""
        import yaml

        configured = request.feedstock / CI_SUPPORT / f"{request.configuration}.yaml"
        content = read_texts(configured, within=request.feedstock)
        narrowed = {
            key: [str(request.values[key])] if key in request.values and isinstance(listed, list) else listed
            for key, listed in content.items()
        }
        place.write_text(yaml.safe_dump(narrowed, default_flow_style=False), encoding="utf-8")

    def _write_settings(self, request: BuildRequest) -> Path:
        import yaml

        request.output.mkdir(parents=True, exist_ok=True)
        place = request.folder / "condarc"
        packages = request.environment.get("RATTLER_CACHE_DIR")
        settings = {
            "channels": list(request.channels),
            "channel_priority": "strict",
            "conda-build": {
                "root-dir": str((place_of(request.folder, UNIT) if request.shared else request.folder) / _ROOT),
                "pkg_format": "2",
            },
            "pkgs_dirs": [
                str(Path(packages).parent / "conda-packages") if packages else str(request.folder / "packages")
            ],
            "show_channel_urls": True,
            "anaconda_upload": False,
        }
        place.write_text(yaml.safe_dump(settings), encoding="utf-8")
        return place


def _extra(request: BuildRequest) -> list[str]:
    """The metadata of the build in each package: the identifiers of a CI run, and our marks."""
    origin = {name: request.environment.get(name, "") for name in ("flow_run_id", "remote_url", "sha")}
    marks = {key: value.replace(" ", "-") for key, value in request.extra.items()}
    return ["--extra-meta", *(f"{key}={value}" for key, value in {**origin, **marks}.items())]


@cache
def _version(program: str, environment: tuple[tuple[str, str], ...]) -> str:
    try:
        answer = subprocess.run(
            [program, "--version"],
            env=dict(environment),
            capture_output=True,
            text=True,
            timeout=_ASKING_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    words = answer.stdout.split()
    return words[-1] if answer.returncode == 0 and words else "unknown"
