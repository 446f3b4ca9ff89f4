"""The embedded engine in a container: our own steps in the image of the configuration, for a feedstock without scripts.

This program and its imports are mounted read-only, so the image only needs a Python of the same
version; the recipe and channels that are folders are mounted read-only too, each at its own place.
"""

from __future__ import annotations

import os
import shlex
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from feedstock_tools.builds.engines.containers.runtime import Runtime, share_arguments
from feedstock_tools.builds.engines.contract import BuildRequest, CrossTests, Event, Failed
from feedstock_tools.builds.engines.embedded.engine import WORKER, RattlerBuild, events_of, write_request
from feedstock_tools.builds.engines.process.child import started
from feedstock_tools.builds.engines.process.program import write_order
from feedstock_tools.builds.engines.process.program_worker import REMOVAL_SECONDS
from feedstock_tools.workers import PACKAGES, worker_words

_INSIDE = "/feedstock-tools"
#: Variables of the machine that are not passed; all others of a build's environment are passed by name.
_NOT_PASSED = frozenset({"HOME", "LOGNAME", "PATH", "SHELL", "SSH_AUTH_SOCK", "USER", "XDG_RUNTIME_DIR", "TMPDIR"})
_OF_CERTIFICATES = (
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "NETRC",
    "RATTLER_AUTH_FILE",
)
_MINOR = f"{sys.version_info[0]}.{sys.version_info[1]}"
#: Finds a Python of the version of this program's libraries, and executes it.
_SHELL = (
    f"for python in python{_MINOR} /opt/conda/bin/python{_MINOR} python3; do"
    f' if "$python" -c "import sys; sys.exit(sys.version_info[:2] != {tuple(sys.version_info[:2])})" 2>/dev/null;'
    ' then exec "$python" -P -c "$@"; fi; done;'
    f' echo "the image has no Python {_MINOR}, which the mounted libraries need" >&2; exit 1'
)


@dataclass(frozen=True)
class Container:
    """Builds rows in containers.

    Attributes:
        runtime: the container runtime; None if there is none.
        machine: the environment of the machine, for the program that runs containers.
    """

    runtime: Runtime | None
    machine: Mapping[str, str]
    name: str = "container"
    shares_staging: bool = False
    own_channels: bool = False
    cross_tests: CrossTests = "left out"

    @property
    def version(self) -> str:
        """The version of the embedded engine, which does the work."""
        return f"rattler-build {RattlerBuild().version}"

    def why_not(self, target: str, builder: str) -> str | None:
        """See `Engine`."""
        if not target.startswith("linux-"):
            return f"packages for {target} cannot be built in a Linux container without the feedstock's own scripts"
        if not builder.startswith("linux-"):
            return f"this is {builder}; without the feedstock's own scripts containers need Linux"
        return "there is neither docker nor podman on PATH" if self.runtime is None else self.runtime.why_not()

    @contextmanager
    def build(self, request: BuildRequest) -> Iterator[Iterator[Event]]:
        """See `Engine`."""
        assert self.runtime is not None  # noqa: S101  (`why_not` refuses)
        image = self.machine.get("DOCKER_IMAGE") or request.values.get("docker_image", "")
        if not image:
            reason = "the configuration has no docker_image, and DOCKER_IMAGE is not set"
            yield iter([Failed(request.wanted[0], reason)])
            return
        write_request(request)
        (request.folder / "home").mkdir(exist_ok=True)
        container = (request.folder / "container.id", self.runtime.program)
        watcher = write_order(request.folder, self.command(request, image), request.folder, "company", container)
        environment = {**self.machine, **request.environment}
        with started(
            watcher, folder=request.folder, environment=environment, guard=request.guard, grace=REMOVAL_SECONDS
        ) as process:
            yield events_of(process, request)

    def command(self, request: BuildRequest, image: str) -> list[str]:
        """The command: `docker run` with the mounts, the environment by name, and the worker of the embedded engine."""
        assert self.runtime is not None  # noqa: S101
        passed = sorted(name for name in request.environment if name not in _NOT_PASSED)
        own = {"HOME": str(request.folder / "home"), "TMPDIR": request.environment.get("TMPDIR", "/tmp")}  # noqa: S108
        own |= _credentials(request.environment)
        libraries = _libraries()
        inside = [f"{_INSIDE}/{number}" for number in range(len(libraries))]
        return [
            *(self.runtime.program, "run", "--rm", "--interactive"),
            *("--cidfile", str(request.folder / "container.id"), "--workdir", str(request.folder)),
            *self._user(),
            *shlex.split(self.machine.get("CONDA_FORGE_DOCKER_RUN_ARGS", "")),
            *share_arguments(request),
            *self._mounts(request, dict(zip(libraries, inside, strict=True))),
            *(word for name in passed for word in ("-e", name)),
            *(word for name, value in own.items() for word in ("-e", f"{name}={value}")),
            *("--entrypoint", "/bin/sh", image, "-c", _SHELL, "sh"),
            *worker_words(inside, WORKER, str(request.folder / "request.json")),
        ]

    def _user(self) -> list[str]:
        """Packages must belong to the user who builds; in rootless podman, root already is that user."""
        uid = os.getuid()
        if uid == 0:
            return []
        own = f"{uid}:{os.getgid()}"
        return ["--userns", "keep-id"] if self.runtime and self.runtime.is_podman else ["--user", own]

    def _mounts(self, request: BuildRequest, libraries: Mapping[Path, str]) -> Iterator[str]:
        suffix = self.runtime.mount_suffix if self.runtime else ""
        cache = request.environment.get("RATTLER_CACHE_DIR")
        writable = {request.folder, (request.output / "src_cache").resolve(), *([Path(cache)] if cache else ())}
        named = (request.environment.get(name) for name in _OF_CERTIFICATES)
        readable = {request.recipe.parent, request.feedstock, *_folders(request.channels)}
        readable |= {Path(place) for place in named if place and Path(place).exists()}
        readable |= {Path(place) for place in _credentials(request.environment).values()}
        for place, inside in libraries.items():
            yield from ("-v", f"{place}:{inside}:ro{suffix}")
        for place in sorted(readable - writable):
            yield from ("-v", f"{place}:{place}:ro{suffix}")
        for place in sorted(writable):
            with suppress(FileExistsError):
                place.mkdir(parents=True)
            yield from ("-v", f"{place}:{place}:rw{suffix}")


def _credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables for the files with the user's credentials for channels, which are not in the container's home."""
    home = environment.get("HOME")
    files = {"RATTLER_AUTH_FILE": ".rattler/credentials.json", "NETRC": ".netrc"}
    places = {name: Path(home, file) for name, file in files.items() if home and name not in environment}
    return {name: str(place) for name, place in places.items() if place.is_file()}


def _libraries() -> list[Path]:
    """The folders of this program and its imports."""
    return list(dict.fromkeys([PACKAGES, *(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib"))]))


def _folders(channels: tuple[str, ...]) -> Iterator[Path]:
    """The channels that are folders of this machine."""
    for channel in channels:
        if channel.startswith("file:"):
            yield Path(unquote(urlsplit(channel).path))
