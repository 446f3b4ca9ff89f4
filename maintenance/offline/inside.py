"""The steps in the container, with its Python alone: `python3 inside.py STEP [PYTEST ARGUMENT …]`.

Each prints its commands with their exit statuses and times, and ends at the first that fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

#: What the container is given (`maintenance.offline.prepare`), and where a user works.
GIVEN, _WORK = Path("/given"), Path("/home/user/work")
_CLONE, _DIST = GIVEN / "clone", GIVEN / "dist"
_ENVIRONMENT, _PREFIX = _WORK / "environment", _WORK / "prefix"
_BUILD, _BUILT = "linux_64_cuda11.2", "build_artifacts"
_PIP = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"{GIVEN}/wheelhouse", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
#: Installs the conda package with its dependencies, into the second argument.
_INSTALL = """
import os, sys
from pathlib import Path
from feedstock_tools.builds.stand_in import open_channel
from feedstock_tools.channel.solving import install
from feedstock_tools.channel.solving import solve, virtual_packages
from feedstock_tools.platforms import Platform
package, prefix = map(Path, sys.argv[1:])
python = "{}.{}".format(*sys.version_info[:2])
here, cache = Platform.here(), Path.home() / ".cache" / "feedstock-tools"
stand_in = open_channel(dict(os.environ), here, [python], cache)
wanted, channels = ["feedstock-tools", "pip", f"python {python}.*"], [package.parents[1].as_uri(), stand_in.url]
records = solve(wanted, channels, here, virtual=virtual_packages(here))
install(records, prefix, here, cache=prefix.with_name("packages"))
print(len(records), "packages installed")
"""


def _run(*command: str | Path, folder: Path = _WORK, programs: Path | None = None) -> None:
    """Run a command, with the programs of an environment first on PATH; end this step where it fails."""
    sys.stdout.write(f"$ {' '.join(str(word) for word in command if word != _INSTALL)}\n")
    sys.stdout.flush()
    path = os.pathsep.join([*([f"{programs}/bin"] if programs else []), os.environ["PATH"]])
    begun = time.monotonic()
    program = shutil.which(command[0], path=path) or command[0]
    status = subprocess.run([program, *command[1:]], cwd=folder, env={**os.environ, **_PIP, "PATH": path}).returncode
    sys.stdout.write(f"status {status} after {time.monotonic() - begun:.1f} s\n")
    if status:
        sys.exit(1)


def _wheel(_: Sequence[str]) -> None:
    """Install the lock and our wheel, and use it."""
    shutil.rmtree(_ENVIRONMENT, ignore_errors=True)
    _run("python3", "-m", "venv", _ENVIRONMENT)
    pip = ("python", "-m", "pip")
    lock = ("install", "-q", "--require-hashes", "--no-deps", "-r", _CLONE / "requirements.lock")
    _run(*pip, *lock, programs=_ENVIRONMENT)
    _run(*pip, "install", "-q", "--no-deps", *_DIST.glob("*.whl"), programs=_ENVIRONMENT)
    _use(_ENVIRONMENT)


def _conda(_: Sequence[str]) -> None:
    """Build our conda package from our archive with the installed wheel, install it, and use it."""
    (archive,) = _DIST.glob("*.tar.gz")
    top, version = _WORK / "top", archive.name.removeprefix("feedstock_tools-").removesuffix(".tar.gz")
    for folder in (top, _PREFIX):
        shutil.rmtree(folder, ignore_errors=True)
    (top / "dist" / version).mkdir(parents=True)
    shutil.copy(archive, top / "dist" / version)
    feedstock = top / "examples" / "feedstock-tools"
    shutil.copytree(_CLONE / "examples" / "feedstock-tools", feedstock)
    build = ("feedstock-tools", "build", "--quiet", feedstock, "--channel", "stand-in", "--all")
    _run(*build, programs=_ENVIRONMENT)
    (package,) = feedstock.rglob("noarch/feedstock-tools-*.conda")
    _run("python", "-c", _INSTALL, package, _PREFIX, programs=_ENVIRONMENT)
    _use(_PREFIX)


def _use(environment: Path) -> None:
    """Start the program of an environment, rerender the feedstock, and build an example with it."""
    for name in ("feedstock", "gpuprobe"):
        shutil.rmtree(_WORK / name, ignore_errors=True)
    shutil.copytree(GIVEN / "feedstock", _WORK / "feedstock", symlinks=True)
    shutil.copytree(_CLONE / "examples" / "gpuprobe", _WORK / "gpuprobe", ignore=shutil.ignore_patterns(_BUILT))
    _run("python", "-m", "pip", "check", programs=environment)
    _run("feedstock-tools", "--version", programs=environment)
    _run("man", "-w", "feedstock-tools", "build", programs=environment)
    _run("feedstock-tools", "rerender", "feedstock", "--pinning", GIVEN / "pinning", programs=environment)
    _run("feedstock-tools", "build", "--quiet", "gpuprobe", _BUILD, programs=environment)
    found = len(list((_WORK / "gpuprobe" / _BUILT).rglob("*.conda")))
    sys.stdout.write(f"{found} packages\n")


def _build_locally(_: Sequence[str]) -> None:
    """The first command of the README."""
    shutil.rmtree(_CLONE / "examples" / "gpuprobe" / _BUILT, ignore_errors=True)
    _run("python3", "build-locally.py", "--quiet", _BUILD, folder=_CLONE)


def _tests(of_pytest: Sequence[str]) -> None:
    """The second command of the README."""
    _run("python3", "-m", "tests", *of_pytest, folder=_CLONE)


STEPS: Mapping[str, Callable[[Sequence[str]], None]] = {
    "wheel": _wheel,
    "conda": _conda,
    "build-locally": _build_locally,
    "tests": _tests,
}

if __name__ == "__main__":
    _WORK.mkdir(parents=True, exist_ok=True)
    STEPS[sys.argv[1]](sys.argv[2:])
