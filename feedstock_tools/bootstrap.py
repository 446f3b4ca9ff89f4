"""Make the environment that the tool runs in, on a machine that has Python and nothing else.

Standard library only, and in a syntax that old interpreters read, so that they can say what is missing:

    python -m feedstock_tools.bootstrap EXTRA PROGRAM [ARGUMENT ...]

runs PROGRAM (`python`, `ruff`, ...) of an environment with the dependencies that pyproject.toml names for the extra
(`build` for none, `test`, `dev`).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["run_in_environment"]

ROOT = Path(__file__).resolve().parent.parent
LEAST_PYTHON = (3, 11)
NEWEST_MINOR_TRIED = 20


def run_in_environment(extra: str, program: str, arguments: Sequence[str]) -> int:
    """Run a program of the environment for `extra`, making that environment where it is missing.

    Returns the exit status (on POSIX the process is replaced and this does not return).
    """
    if sys.version_info < LEAST_PYTHON:
        return _run_with_newer_python(extra, program, arguments)
    folder = ROOT / ".environments" / "{}-{}.{}".format(extra, *sys.version_info[:2])
    if not _is_current(folder):
        try:
            status = _make(folder, extra)
        except KeyboardInterrupt:
            _say("Interrupted; the next run makes the environment anew.")
            return 130
        if status:
            return status
    return _replace_process([str(_program(folder, program)), *arguments])


def _program(folder: Path, name: str) -> Path:
    return folder / "Scripts" / f"{name}.exe" if os.name == "nt" else folder / "bin" / name


def _digest_of_declaration() -> str:
    """What an environment depends on: the declaration of dependencies and the interpreter that it was made with."""
    declaration = (ROOT / "pyproject.toml").read_bytes()
    return hashlib.sha256(declaration + sys.version.encode() + sys.base_prefix.encode()).hexdigest()


def _marker(folder: Path) -> Path:
    return folder / "made-for.sha256"


def _is_current(folder: Path) -> bool:
    try:
        return _marker(folder).read_text() == _digest_of_declaration()
    except OSError:
        return False


def _make(folder: Path, extra: str) -> int:
    """Make the environment in `folder`; what went wrong is printed, and the exit status returned."""
    folder.parent.mkdir(exist_ok=True)
    log = folder.parent / f"{folder.name}.log"
    with _only_one(folder.parent / f"{folder.name}.lock"):
        if _is_current(folder):  # another process made it while this one waited
            return 0
        _say(f"First run: making an environment in {folder}")
        _say("with Python's venv and pip; later runs use it as it is.")
        shutil.rmtree(folder, ignore_errors=True)
        target = str(ROOT) if extra == "build" else f"{ROOT}[{extra}]"
        steps: list[list[str]] = [
            [sys.executable, "-m", "venv", str(folder)],
            [str(_program(folder, "python")), "-m", "pip", "install", "--disable-pip-version-check", "-e", target],
        ]
        with log.open("wb") as output:
            for step in steps:
                if subprocess.run(step, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False).returncode:
                    shutil.rmtree(folder, ignore_errors=True)
                    return _explain_failure(step, log)
        _marker(folder).write_text(_digest_of_declaration())
        _say("Environment ready.")
    return 0


def _explain_failure(step: list[str], log: Path) -> int:
    lines = log.read_text(errors="replace").strip().splitlines()
    _say("The environment could not be made. This failed:")
    _say("  " + " ".join(step))
    for line in lines[-12:]:
        _say("  | " + line)
    _say(f"The whole log is in {log}.")
    if "venv" in step:
        _say("Python's venv module is needed (on Debian and Ubuntu: apt install python3-venv).")
    else:
        _say(
            "A package index that pip can reach is needed on the first run; set pip's index-url where yours is private."
        )
    return 1


def _run_with_newer_python(extra: str, program: str, arguments: Sequence[str]) -> int:
    least = "{}.{}".format(*LEAST_PYTHON)
    for minor in range(NEWEST_MINOR_TRIED, LEAST_PYTHON[1] - 1, -1):
        newer = shutil.which(f"python3.{minor}")
        # A name on PATH may be a shim of a version manager that refuses to start.
        if newer and subprocess.run([newer, "-c", ""], capture_output=True, check=False).returncode == 0:
            _say("Python {}.{} is too old; using {}.".format(*sys.version_info[:2], newer))
            return _replace_process([newer, str(Path(__file__).resolve()), extra, program, *arguments])
    _say(f"Python {least} or later is needed, and this is {sys.version.split()[0]} ({sys.executable}).")
    _say(f"Install a newer one so that `python{least}` or later is on PATH, or start this with it.")
    return 2


def _replace_process(command: list[str]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "nt":  # os.execv there returns to the shell before the new process has ended
        return subprocess.run(command, check=False).returncode
    return os.execv(command[0], command)  # noqa: S606  (an argument list, no shell)


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Hold the lock file, so that two first runs at once do not make the same environment together."""
    with lock.open("w") as handle:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        _say("usage: python -m feedstock_tools.bootstrap build|test|dev PROGRAM [ARGUMENT ...]")
        sys.exit(2)
    sys.exit(run_in_environment(sys.argv[1], sys.argv[2], sys.argv[3:]))
