"""What runs containers on this machine: docker or podman, found as conda-smithy's script would be told of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from feedstock_tools.builds.engines.contract import BuildRequest

__all__ = ["Runtime", "find_runtime", "share_arguments"]

_ASKING_SECONDS = 30
_SELINUX = Path("/sys/fs/selinux/enforce")


@dataclass(frozen=True, slots=True)
class Runtime:
    """docker or podman: its name or path, as the script is told it, and the environment that it runs in."""

    program: str
    environment: tuple[tuple[str, str], ...]

    @property
    def is_podman(self) -> bool:
        """Whether it is podman, which needs no daemon."""
        return Path(self.program).name == "podman"

    @property
    def is_default(self) -> bool:
        """Whether conda-smithy's script takes it without being told."""
        return self.program == "docker"

    @property
    def for_script(self) -> str:
        """What conda-smithy's script is told: from the word `podman` it concludes that it has no rights of root."""
        if self.program != "podman" or os.getuid() != 0:
            return self.program
        return shutil.which(self.program, path=dict(self.environment).get("PATH")) or self.program

    @property
    def mount_suffix(self) -> str:
        """What a mount's options end in: SELinux's label, which podman is given only where SELinux is enforced."""
        enforced = _SELINUX.is_file() and _SELINUX.read_text().strip() == "1"
        return ",z" if enforced or not self.is_podman else ""

    def why_not(self) -> str | None:
        """Why it cannot run containers now; None where it answers."""
        return _why_not(self.program, self.environment)


@cache
def _why_not(program: str, environment: tuple[tuple[str, str], ...]) -> str | None:
    # docker's client says what it knows of itself, and ends well, where no daemon answers: it is asked for that.
    form = "{{.Version.Version}}" if Path(program).name == "podman" else "{{.ServerVersion}}"
    command = [program, "info", "--format", form]
    try:
        asked = subprocess.run(
            command, env=dict(environment), capture_output=True, text=True, timeout=_ASKING_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{program} does not answer: {error}"
    if asked.returncode:
        said = (asked.stderr or asked.stdout).strip().splitlines()
        return f"{program} does not answer: {said[-1] if said else f'status {asked.returncode}'}"
    return None


def find_runtime(machine: Mapping[str, str], *, answering: bool = False) -> Runtime | None:
    """The program that `DOCKER_EXECUTABLE` names, else docker, else podman; None where there is none on PATH.

    Args:
        answering: take podman where docker is there and does not answer.
    """
    environment = tuple(sorted(machine.items()))
    named = machine.get("DOCKER_EXECUTABLE")
    found = [
        Runtime(name, environment)
        for name in ((named,) if named else ("docker", "podman"))
        if shutil.which(name, path=machine.get("PATH"))
    ]
    if answering and len(found) > 1:
        return next((each for each in found if each.why_not() is None), found[0])
    return found[0] if found else None


def share_arguments(request: BuildRequest) -> list[str]:
    """The arguments of `docker run` that hold a build to its share of cores and memory."""
    cores = ["--cpus", str(request.cores)] if request.cores else []
    memory = ["--memory", str(request.memory)] if request.memory else []
    return cores + memory
