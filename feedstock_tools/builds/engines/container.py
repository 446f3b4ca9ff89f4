"""The embedded engine in a container: our own steps in the image of the configuration, for a feedstock without scripts.

This program and its imports are mounted read-only, so the image only needs a Python of the same
version; the recipe and channels that are folders are mounted read-only too, each at its own place.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from feedstock_tools.builds.engines.contract import BuildRequest, CrossTests, Event, Failed
from feedstock_tools.builds.engines.embedded.engine import WORKER, RattlerBuild, events_of, request_file
from feedstock_tools.builds.engines.embedded.fixed_place import UNIT, place_of
from feedstock_tools.builds.engines.process.child import started
from feedstock_tools.builds.engines.process.program import write_order
from feedstock_tools.builds.engines.process.program_worker import REMOVAL_SECONDS
from feedstock_tools.channel.properties import cache_behind, local_folder
from feedstock_tools.processes import PACKAGES, worker_words

_ASKING_SECONDS = 30
NO_RUNTIME = "there is neither docker nor podman on PATH"
_REACHING_SECONDS = 3
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
_SELINUX = Path("/sys/fs/selinux/enforce")
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


@dataclass(frozen=True, slots=True)
class Runtime:
    """docker or podman: its name or path for the script, and its environment; no name for that of other machines."""

    program: str
    environment: tuple[tuple[str, str], ...]

    @property
    def is_podman(self) -> bool:
        """Whether it is podman, which needs no daemon."""
        return Path(self.program).name == "podman"

    @property
    def is_default(self) -> bool:
        """Whether conda-smithy's script uses it by default."""
        return self.program == "docker"

    @property
    def for_script(self) -> str:
        """The name for conda-smithy's script, which concludes from `podman` that it runs without root."""
        if self.program != "podman" or os.getuid() != 0:
            return self.program
        return shutil.which(self.program, path=dict(self.environment).get("PATH")) or self.program

    @property
    def mount_suffix(self) -> str:
        """The suffix of a mount's options: SELinux's label, for podman only if SELinux is enforced."""
        enforced = _SELINUX.is_file() and _SELINUX.read_text().strip() == "1"
        return ",z" if enforced or not self.is_podman else ""

    def why_not(self) -> str | None:
        """Why it cannot run containers now; None if it answers, or if that is for another machine to find out."""
        return None if self == ELSEWHERE else _why_not(self.program, self.environment)


#: The runtime of a machine that builds in place of this one.
ELSEWHERE = Runtime("", ())


@cache
def _why_not(program: str, environment: tuple[tuple[str, str], ...]) -> str | None:
    # Without a daemon docker's client reports its own version and succeeds, so the query is for the daemon's.
    form = "{{.Version.Version}}" if Path(program).name == "podman" else "{{.ServerVersion}}"
    command = [program, "info", "--format", form]
    try:
        answer = subprocess.run(
            command, env=dict(environment), capture_output=True, text=True, timeout=_ASKING_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{program} does not answer: {error}"
    if answer.returncode:
        lines = (answer.stderr or answer.stdout).strip().splitlines()
        return f"{program} does not answer: {lines[-1] if lines else f'status {answer.returncode}'}"
    return None


def find_runtime(machine: Mapping[str, str], *, answering: bool = False) -> Runtime | None:
    """The program in `DOCKER_EXECUTABLE`, else docker, else podman; None if there is none on PATH.

    Args:
        answering: use podman if docker is installed but does not answer.
    """
    environment = tuple(sorted(machine.items()))
    named = machine.get("DOCKER_EXECUTABLE")
    runtimes = [
        Runtime(name, environment)
        for name in ((named,) if named else ("docker", "podman"))
        if shutil.which(name, path=machine.get("PATH"))
    ]
    if answering and len(runtimes) > 1:
        return next((runtime for runtime in runtimes if runtime.why_not() is None), runtimes[0])
    return runtimes[0] if runtimes else None


@cache
def why_unreachable(runtime: Runtime, image: str, channels: tuple[str, ...]) -> str | None:
    """Why the image and the channels of a build are neither here nor can be reached; None if they can.

    Behind a proxy that is for the build to find out.
    """
    machine = dict(runtime.environment)
    if any(machine.get(name) for name in _PROXIES):
        return None
    hosts: list[str] = []
    if image and not _is_here(image, runtime):
        registry, _, rest = image.partition("/")
        hosts.append(registry if rest and "." in registry else "registry-1.docker.io")
    return next(filter(None, (*map(why_no_connection, channels), *map(_why_unreachable, hosts))), None)


def why_no_connection(channel: str) -> str | None:
    """Why the host of a channel cannot be reached; None if it can, or if the channel is a folder."""
    from feedstock_tools.channel.properties import local_folder

    if local_folder(channel) is not None:
        return None
    return _why_unreachable(urlsplit(channel).netloc if ":" in channel else "conda.anaconda.org")


def _is_here(image: str, runtime: Runtime) -> bool:
    command = [runtime.program, "image", "inspect", image]
    with suppress(OSError, subprocess.SubprocessError):
        environment = dict(runtime.environment)
        shown = subprocess.run(command, env=environment, capture_output=True, timeout=_ASKING_SECONDS, check=False)
        return shown.returncode == 0
    return False


@cache
def _why_unreachable(host: str) -> str | None:
    address = urlsplit(f"//{host}")
    try:
        socket.create_connection((address.hostname or host, address.port or 443), _REACHING_SECONDS).close()
    except (OSError, ValueError) as error:
        return f"{host} cannot be reached: {error}"
    return None


def named_image(machine: Mapping[str, str], runtime: Runtime | None) -> str:
    """What a version says of the image in `DOCKER_IMAGE`, which replaces that of every configuration on this machine.

    A host of a fleet has an environment of its own: its version differs from the plan's if it names an image.
    """
    image = machine.get("DOCKER_IMAGE")
    return f" in {image}" if image and runtime != ELSEWHERE else ""


def share_arguments(request: BuildRequest) -> list[str]:
    """The arguments of `docker run` that limit a build to its share of cores and memory."""
    cores = ["--cpus", str(request.cores)] if request.cores else []
    memory = ["--memory", str(request.memory)] if request.memory else []
    return cores + memory


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
    keeps_shared: bool = True
    own_channels: bool = False
    cross_tests: CrossTests = "left out"

    @property
    def version(self) -> str:
        """The version of the embedded engine, which does the work, and the image if the machine names one."""
        return f"rattler-build {RattlerBuild().version}{named_image(self.machine, self.runtime)}"

    def why_not(self, target: str, builder: str) -> str | None:
        if not target.startswith("linux-"):
            return f"packages for {target} cannot be built in a Linux container without the feedstock's own scripts"
        if not builder.startswith("linux-"):
            return f"this is {builder}; without the feedstock's own scripts containers need Linux"
        return NO_RUNTIME if self.runtime is None else self.runtime.why_not()

    @contextmanager
    def build(self, request: BuildRequest) -> Iterator[Iterator[Event]]:
        assert self.runtime is not None  # noqa: S101  (`why_not` refuses)
        image = self.machine.get("DOCKER_IMAGE") or request.values.get("docker_image", "")
        if not image:
            reason = "the configuration has no docker_image, and DOCKER_IMAGE is not set"
            yield iter([Failed(request.wanted[0], reason)])
            return
        with request_file(request):
            if request.inherits:
                shutil.copyfile(request.recipe, request.recipe_of_heir)
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
        (writable if request.only_shared else readable).update(request.shared.values())
        elsewhere = dict(libraries)
        if request.inherits:
            elsewhere[request.recipe_of_heir] = str(request.recipe)
        for place, inside in elsewhere.items():
            yield from ("-v", f"{place}:{inside}:ro{suffix}")
        for place in sorted(readable - writable):
            yield from ("-v", f"{place}:{place}:ro{suffix}")
        fixed = place_of(request.folder, UNIT if request.shared else "")
        yield from ("-v", f"{request.folder}:{fixed}:rw{suffix}")
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
    return list(dict.fromkeys([PACKAGES, *(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib"))]))


def _folders(channels: tuple[str, ...]) -> Iterator[Path]:
    for channel in channels:
        if (folder := local_folder(channel)) is not None:
            yield cache_behind(channel) or folder
