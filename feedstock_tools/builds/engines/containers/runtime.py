"""The container runtime of this machine: docker or podman, found in the way of conda-smithy's script."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from feedstock_tools.builds.engines.contract import BuildRequest

_ASKING_SECONDS = 30
_SELINUX = Path("/sys/fs/selinux/enforce")


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


def share_arguments(request: BuildRequest) -> list[str]:
    """The arguments of `docker run` that limit a build to its share of cores and memory."""
    cores = ["--cpus", str(request.cores)] if request.cores else []
    memory = ["--memory", str(request.memory)] if request.memory else []
    return cores + memory
