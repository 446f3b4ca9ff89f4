"""Create the environment for a checkout of this tool, on a machine that has only Python.

Standard library only, in the syntax of Python 3.7, so that old interpreters can report what is missing:

    python -m feedstock_tools.bootstrap EXTRA PROGRAM [ARGUMENT ...]

runs PROGRAM (`python`, `ruff`, ...) of an environment with the dependencies that pyproject.toml names for the extra
(`build` for none, `test`, `dev`).
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO

__all__ = ["run_in_environment"]

ROOT = Path(__file__).resolve().parent.parent
LEAST_PYTHON = (3, 11)
NEWEST_MINOR_TRIED = 20
#: Seconds between two checks of pip's progress, and between two lines if the output is not a terminal.
_TICK, _PAUSE = 0.2, 300.0
#: The time limits for a Python to start, and for pip or another process to create an environment, in seconds.
_PROBE_SECONDS, _LONGEST = 30.0, 7200.0
#: How long a step's output is read after its end, in seconds, if a process that it started holds it open.
_AFTER_END = 5.0
#: The beginning of a line of pip's, and our progress message. `{}` is the text of the group.
_STEPS = (
    (r"Collecting ([A-Za-z0-9._-]+)", "collecting {}"),
    (r"\s+Downloading (\S+ \([^)]+\))", "downloading {}"),
    (r"\s+Using cached (\S+)", "taking {} from pip's cache"),
    (r"\s+Installing build dependencies()", "installing what builds the package{}"),
    (r"Building \S+ for ([^(]+?) \(", "building {}"),
    (r"Installing collected packages: (.*)", "installing {}"),
    (r"WARNING: Retrying ()", "the package index does not answer; trying again{}"),
)
#: A pattern in a log, its meaning, and what to do.
_REASONS = (
    (r"No space left on device", "the disk is full.", "Free some space and run it again."),
    (
        r"No module named '?venv|ensurepip is not available|No module named '?ensurepip",
        "this Python has no venv.",
        "Install it (Debian, Ubuntu: apt install python3-venv), or use another Python.",
    ),
    (
        r"(?s)WARNING: Retrying.*(No matching distribution|Could not find|Max retries|Could not install)",
        "the package index cannot be reached.",
        "The first run needs a package index; set PIP_INDEX_URL to use a mirror.",
    ),
)


class _CannotMakeError(Exception):
    """The environment cannot be created; the message gives the reason."""


def run_in_environment(extra: str, program: str, arguments: Sequence[str]) -> int:
    """Run a program of the environment for `extra`, after creating that environment if it is missing.

    Returns the exit status (on POSIX the process is replaced and this does not return). A caller may hold Ctrl-C back
    (SIGINT blocked): it is let through while an environment is created, and held back for the program.
    """
    try:
        return _run_in_environment(extra, program, arguments)
    except KeyboardInterrupt:
        _say("Interrupted.")
        return 130


def _run_in_environment(extra: str, program: str, arguments: Sequence[str]) -> int:
    if sys.version_info < LEAST_PYTHON:
        return _run_with_newer_python(extra, program, arguments)
    if not (ROOT / "pyproject.toml").is_file():
        _say(f"{ROOT} is not a checkout of feedstock-tools: run `feedstock-tools` where it is installed.")
        return 2
    name = "{}-{}.{}".format(extra, *sys.version_info[:2])
    try:
        path = _program(_environment(name, extra), program)
        if not path.exists():
            raise _CannotMakeError(f"The environment has no program {program}: {path}")
    except _CannotMakeError as error:
        _say(str(error))
        return 1
    except OSError as error:
        _say(_failed(error, ROOT))
        return 1
    except KeyboardInterrupt:
        _say("Interrupted; the next run creates the environment again.")
        return 130
    return _replace_process([str(path), *arguments])


def _environment(name: str, extra: str) -> Path:
    """The folder of a complete environment: beside the code, or in the user's cache if that is read-only."""
    folders = [place / name for place in (ROOT / ".environments", _cache())]
    for folder in folders:
        if _is_current(folder):
            return folder
    for folder in folders:
        if _is_writable(folder.parent):
            _make(folder, extra)
            return folder
    listed = " or ".join(str(folder.parent) for folder in folders)
    raise _CannotMakeError(f"Cannot create an environment in {listed}: these folders are not writable.")


def _cache() -> Path:
    """The folder in the user's cache for environments of this checkout."""
    home = Path(os.environ.get("HOME") or os.environ.get("USERPROFILE") or Path.home())
    root = Path(os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or home / ".cache")
    return root / "feedstock-tools" / "environments" / hashlib.sha256(str(ROOT).encode()).hexdigest()[:12]


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(str(folder), os.W_OK)


def _program(folder: Path, name: str) -> Path:
    return folder / "Scripts" / f"{name}.exe" if os.name == "nt" else folder / "bin" / name


def _interpreter() -> str:
    """The Python for creating environments: the running one may belong to the environment that is created again."""
    return str(getattr(sys, "_base_executable", sys.executable)) if sys.prefix != sys.base_prefix else sys.executable


def _digest_of_declaration() -> str:
    """The inputs of an environment: the project's declaration and the interpreter that it was created with."""
    import tomllib

    with (ROOT / "pyproject.toml").open("rb") as file:
        content = tomllib.load(file)
    tools = content.get("tool", {}).get("hatch")
    declaration = json.dumps([content.get("project"), content.get("build-system"), tools], sort_keys=True)
    return hashlib.sha256((declaration + sys.version + sys.base_prefix).encode()).hexdigest()


def _marker(folder: Path) -> Path:
    return folder / "made-for.sha256"


def _is_current(folder: Path) -> bool:
    """Whether an environment is complete, and created for this declaration and an interpreter that still exists."""
    try:
        return _marker(folder).read_text() == _digest_of_declaration() and _program(folder, "python").exists()
    except OSError:
        return False


def _make(folder: Path, extra: str) -> None:
    """Create the environment in `folder` and show the progress; raises `_CannotMakeError` on failure."""
    log = folder.parent / f"{folder.name}.log"
    target = str(ROOT) if extra == "build" else f"{ROOT}[{extra}]"
    python, wheel = str(_program(folder, "python")), _wheel_of_pip()
    creating = "creating it with venv"
    steps = [(creating, [_interpreter(), "-m", "venv", "--without-pip", str(folder)])]
    if wheel is None:
        steps.append((creating, [python, "-m", "ensurepip", "--upgrade", "--default-pip"]))
    install = [python, "-m", "pip", "install", "--progress-bar=off", "--disable-pip-version-check", "-e", target]
    steps.append(("installing", install))
    with _interruptible(), _only_one(folder.parent / f"{folder.name}.lock") as lock, _terminating():
        if _is_current(folder):  # another process created it while this one waited
            return
        _say(f"First run: creating an environment in {folder}")
        began = time.monotonic()
        _remove(folder)
        try:
            with log.open("wb") as output, _Status(began) as status:
                for doing, command in steps:
                    status.show(doing)
                    if wheel is not None and command is install:
                        shutil.unpack_archive(str(wheel), _packages(folder), "zip")
                    if _run(command, output, status, lock):
                        raise _CannotMakeError(_explained(command, log))
            _marker(folder).write_text(_digest_of_declaration())
        except BaseException as error:
            _remove(folder)
            if isinstance(error, OSError):
                raise _CannotMakeError(f"Cannot create the environment: {error.strerror or error}: {folder}") from error
            raise
        _say(f"Environment ready after {time.monotonic() - began:.0f} s; later runs reuse it.")


def _wheel_of_pip() -> Path | None:
    """The wheel that this Python's ensurepip installs; None where it is not beside it, as on Debian.

    To unpack it is to install it, without its programs, in a fiftieth of ensurepip's time (5 s).
    """
    module = find_spec("ensurepip")
    origin = module.origin if module else None
    wheels = sorted(Path(origin).parent.glob("_bundled/pip-*.whl")) if origin else []
    return wheels[0] if wheels else None


def _packages(folder: Path) -> str:
    """The folder for packages of an environment."""
    import sysconfig

    return sysconfig.get_path("purelib", "venv", {"base": str(folder)})


def _remove(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    shutil.rmtree(str(folder), ignore_errors=True)


def _run(command: list[str], log: IO[bytes], status: _Status, lock: IO[str]) -> int:
    """Run a step with its output in the log; return its exit status. The lock is held while the step runs."""
    options = {} if os.name == "nt" else {"pass_fds": (lock.fileno(),), "start_new_session": True}
    # No module of the current folder, such as a `typing.py` of a feedstock, runs in place of Python's.
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    lines: queue.Queue[bytes] = queue.Queue()
    process: subprocess.Popen[bytes] | None = None
    try:
        with _signals_later():
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment,
                **options,  # type: ignore[call-overload]
            )
            reader = threading.Thread(target=_read, args=(process.stdout, lines), daemon=True)
            reader.start()
        end = time.monotonic() + _LONGEST
        while reader.is_alive() or not lines.empty():
            if time.monotonic() > end:
                if process.returncode is None:
                    log.write(b"timed out\n")
                _kill(process)
                break
            if process.poll() is not None:
                end = min(end, time.monotonic() + _AFTER_END)
            with suppress(queue.Empty):
                line = lines.get(timeout=_TICK)
                log.write(line)
                log.flush()
                status.show(_step(line.decode(errors="replace")))
                continue
            status.show(None)
        return int(process.wait())
    finally:
        if process is not None and process.poll() is None:
            _kill(process)


def _read(stream: IO[bytes], lines: queue.Queue[bytes]) -> None:
    with stream:
        for line in stream:
            lines.put(line)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _step(line: str) -> str | None:
    """pip's current step from a line of its output; None if the line does not show it."""
    for pattern, text in _STEPS:
        match = re.match(pattern, line)
        if match:
            return text.format(match[1].strip())
    return None


class _Status:
    """The current step and its duration: one changing line on a terminal, a line every five minutes elsewhere."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._shown = 0.0
        self._text = ""
        self._live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> _Status:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[K")

    def show(self, text: str | None) -> None:
        """Show the current step; None: unchanged."""
        self._text = text or self._text
        seconds = time.monotonic() - self._began
        if not self._live and seconds - self._shown < _PAUSE:
            return
        self._shown = seconds
        width = shutil.get_terminal_size().columns if self._live else 100
        line = f"  {seconds:3.0f} s  {self._text}"
        line = line if len(line) < width else f"{line[: width - 2]}…"
        _say(f"\r\x1b[K{line}" if self._live else line, end="" if self._live else "\n")


def _explained(step: list[str], log: Path) -> str:
    """Why a step failed: a sentence for a known reason, else the end of its output."""
    text = log.read_text(encoding="utf-8", errors="replace").strip()
    where = f"The full log is in {log}."
    for pattern, reason, advice in _REASONS:
        if re.search(pattern, text):
            return f"Cannot create the environment: {reason}\n{advice}\n{where}"
    last = [f"  | {line}" for line in text.splitlines()[-12:]]
    return "\n".join(["Cannot create the environment. This command failed:", f"  {' '.join(step)}", *last, where])


def _failed(error: OSError, folder: Path) -> str:
    return f"Cannot create the environment: {error.filename or folder}: {error.strerror or error}"


def _run_with_newer_python(extra: str, program: str, arguments: Sequence[str]) -> int:
    least = "{}.{}".format(*LEAST_PYTHON)
    for minor in range(NEWEST_MINOR_TRIED, LEAST_PYTHON[1] - 1, -1):
        newer = shutil.which(f"python3.{minor}")
        if newer and _starts(newer):
            _say("Python {}.{} is too old; using {}.".format(*sys.version_info[:2], newer))
            return _replace_process([newer, str(Path(__file__).resolve()), extra, program, *arguments])
    _say(f"Python {least} or later is required, but this is {sys.version.split()[0]} ({sys.executable}).")
    _say(f"Install `python{least}` or later on PATH, or run this command with it.")
    return 2


def _starts(python: str) -> bool:
    """Whether a Python starts: a name on PATH may be a shim of a version manager that refuses to."""
    try:
        probe = subprocess.run([python, "-c", ""], capture_output=True, check=False, timeout=_PROBE_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return False
    return probe.returncode == 0


def _replace_process(command: list[str]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "nt":  # os.execv there returns to the shell before the new process has ended
        signal.signal(signal.SIGINT, lambda *_: None)  # the new process gets it too, and decides on the status
        return subprocess.run(command, check=False).returncode
    return os.execv(command[0], command)  # noqa: S606  (an argument list, no shell)


@contextmanager
def _only_one(lock: Path) -> Iterator[IO[str]]:
    """Hold the lock file, so that two concurrent first runs do not create the same environment."""
    with lock.open("w") as handle:
        if not _locks(handle):
            _say(f"Waiting for another process that creates an environment in {lock.parent}")
            end = time.monotonic() + _LONGEST
            while not _locks(handle):
                if time.monotonic() > end:
                    raise _CannotMakeError(f"Another process has been at work in {lock.parent} for {_LONGEST:g} s")
                time.sleep(_TICK)
        yield handle


def _locks(handle: IO[str]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C through, to this process and those that it starts, whatever the caller holds back."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _terminating() -> Iterator[None]:
    """Let SIGTERM also end child processes, as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _signals_later() -> Iterator[None]:
    """Have Ctrl-C and SIGTERM wait for the end of the block. `signals_held_back` cannot be imported here.

    A mask would be inherited by the process that starts in the block.
    """
    came: list[int] = []
    handled = [number for number in (signal.SIGINT, signal.SIGTERM) if callable(signal.getsignal(number))]
    before = {number: signal.signal(number, lambda got, _: came.append(got)) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for each in came:
            signal.raise_signal(each)


def _say(text: str, end: str = "\n") -> None:
    encoding = sys.stderr.encoding or "ascii"
    sys.stderr.write(text.encode(encoding, "replace").decode(encoding) + end)
    sys.stderr.flush()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        _say("usage: python -m feedstock_tools.bootstrap build|test|dev PROGRAM [ARGUMENT ...]")
        sys.exit(2)
    sys.exit(run_in_environment(sys.argv[1], sys.argv[2], sys.argv[3:]))
