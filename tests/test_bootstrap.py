"""The environment of a first run, made with the real venv and pip for a small project that needs no network."""

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools import bootstrap
from tests.support import command
from tests.support.needs import needs
from tests.support.paths import ROOT
from tests.support.waiting import wait_until

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "small"
version = "1"
"""

BACKEND = """
import zipfile
from pathlib import Path

def get_requires_for_build_editable(config_settings=None):
    return []

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(Path(wheel_directory, "small-1-py3-none-any.whl"), "w") as wheel:
        wheel.writestr("small.py", "print('small ran')")
        wheel.writestr("small-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: small\\nVersion: 1\\n")
        wheel.writestr("small-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("small-1.dist-info/RECORD", "")
    return "small-1-py3-none-any.whl"
"""


#: In place of Python's venv: quickly makes an environment without pip.
VENV = """
import sys
from pathlib import Path
assert sys.argv[1] == "--without-pip"
folder, base = Path(sys.argv[2]), Path(sys._base_executable)
(folder / "bin").mkdir(parents=True)
(folder / "bin" / "python").symlink_to(base)
(folder / "pyvenv.cfg").write_text(f"home = {base.parent}\\n")
"""
#: In place of pip, in the wheel of ensurepip: installs the small project, or fails as pip does.
PIP = """
import sys, sysconfig
from pathlib import Path
assert sys.argv[1] == "install" and Path(sys.argv[-1], "pyproject.toml").is_file(), sys.argv
if Path(sys.argv[-1], "pip-does.py").exists():
    exec(Path(sys.argv[-1], "pip-does.py").read_text())
Path(sysconfig.get_path("purelib"), "small.py").write_text("print('small ran')")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "feedstock_tools").mkdir()
    shutil.copy(ROOT / "feedstock_tools/bootstrap.py", tmp_path / "feedstock_tools")
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "backend.py").write_text(BACKEND)
    return tmp_path


@pytest.fixture
def quick(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project, with stand-ins for venv and pip; the first test shows the real ones (POSIX)."""
    if os.name == "posix":
        programs = project / "programs"
        programs.mkdir()
        (programs / "venv.py").write_text(VENV)
        bundled = programs / "ensurepip" / "_bundled"
        bundled.mkdir(parents=True)
        (programs / "ensurepip" / "__init__.py").touch()
        with zipfile.ZipFile(bundled / "pip-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr("pip.py", PIP)
        monkeypatch.setenv("PYTHONPATH", str(programs))
    return project


@pytest.fixture
def ran(quick: Path) -> Path:
    """The same, with its environment made."""
    assert start(quick, *SMALL).stdout == "small ran\n"
    return quick


SMALL = ("build", "python", "-P", "-m", "small")


def start(project: Path, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(project / "feedstock_tools/bootstrap.py"), *arguments]
    return command.run(program, folder, variables=os.environ | {"PIP_NO_INDEX": "1"})


@pytest.mark.slow
def test_a_first_run_makes_the_environment_with_no_module_of_the_current_folder_and_a_second_uses_it(
    project: Path,
) -> None:
    feedstock = project / "feedstock"
    feedstock.mkdir()
    for module in ("venv", "ensurepip", "pip", "typing", "zipfile", "small"):
        (feedstock / f"{module}.py").write_text("raise SystemExit('this is a file of the feedstock')")
    first = start(project, *SMALL, folder=feedstock)
    assert (first.returncode, first.stdout) == (0, "small ran\n"), first.stderr
    assert "First run: creating an environment in" in first.stderr
    second = start(project, *SMALL)
    assert (second.returncode, second.stdout, second.stderr) == (0, "small ran\n", "")


def test_a_changed_declaration_creates_the_environment_again(quick: Path) -> None:
    assert start(quick, *SMALL).stdout == "small ran\n"
    (quick / "pyproject.toml").write_text(PYPROJECT + "[tool.ruff]\nline-length = 80\n")
    assert start(quick, *SMALL).stderr == "", "how code is checked changes no environment"
    (quick / "pyproject.toml").write_text(PYPROJECT + "dependencies = []\n")
    assert "First run" in start(quick, *SMALL).stderr


def test_what_pip_cannot_install_is_explained_and_leaves_no_environment(quick: Path) -> None:
    (quick / "pip-does.py").write_text("sys.exit('no backend today')")
    run = start(quick, *SMALL)
    assert run.returncode == 1
    assert "no backend today" in run.stderr
    assert "The full log is in" in run.stderr
    assert not any(path.is_dir() for path in (quick / ".environments").iterdir())


def test_without_a_program_it_says_how_it_is_used(project: Path) -> None:
    run = start(project, "build")
    assert run.returncode == 2
    assert "usage:" in run.stderr


def test_elsewhere_than_on_a_terminal_a_step_is_named_every_five_minutes(
    quick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, ready = start(quick, *SMALL).stderr.splitlines()
    assert first.startswith("First run: creating an environment in ")
    assert re.fullmatch(r"Environment ready after \d+ s; later runs reuse it\.", ready)
    status = bootstrap._Status(time.monotonic() - 301)
    status.show("collecting click")
    status.show("collecting rich")
    assert capsys.readouterr().err == "  301 s  collecting click\n"


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("Collecting rich>=13.7 (from feedstock-tools==0.1.0)", "collecting rich"),
        ("  Downloading x-1-py3-none-any.whl (25.3 MB)", "downloading x-1-py3-none-any.whl (25.3 MB)"),
        (
            "  Using cached click-8.5.1-py3-none-any.whl (110 kB)",
            "taking click-8.5.1-py3-none-any.whl from pip's cache",
        ),
        ("Building editable for feedstock-tools (pyproject.toml): started", "building feedstock-tools"),
        ("Installing collected packages: mdurl, click", "installing mdurl, click"),
        ("  Installing build dependencies: started", "installing what builds the package"),
        ("WARNING: Retrying (Retry(total=4)) after …", "the package index does not answer; trying again"),
        ("  Preparing metadata (pyproject.toml): started", None),
    ],
)
def test_a_line_of_pip_becomes_a_description(line: str, step: str | None) -> None:
    assert bootstrap._step(line) == step


@needs("system", os.name == "posix", "a terminal of POSIX")
def test_on_a_terminal_one_line_changes(quick: Path) -> None:
    ours, theirs = os.openpty()
    program = [sys.executable, str(quick / "feedstock_tools/bootstrap.py"), *SMALL]
    variables = os.environ | {"COLUMNS": "60", "TERM": "xterm"}
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=theirs, env=variables) as run:
        os.close(theirs)
        assert run.wait() == 0
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert "\r\x1b[K    0 s  creating it with venv\r\x1b[K" in shown
    assert "later runs reuse it.\r\n" in shown


@needs("system", os.name == "posix", "an environment links to its interpreter on POSIX")
def test_an_environment_whose_interpreter_is_gone_is_created_again(ran: Path) -> None:
    (python,) = ran.glob(".environments/build-*/bin/python")
    python.unlink()
    python.symlink_to("/gone/bin/python3")
    again = start(ran, *SMALL)
    assert (again.returncode, again.stdout) == (0, "small ran\n")
    assert "First run" in again.stderr


def test_an_environment_can_be_created_again_by_its_own_python(ran: Path) -> None:
    (python,) = ran.glob(".environments/build-*/bin/python")
    (ran / "pyproject.toml").write_text(PYPROJECT + "dependencies = []\n")
    run = command.run([str(python), str(ran / "feedstock_tools/bootstrap.py"), *SMALL], variables=os.environ)
    assert (run.returncode, run.stdout) == (0, "small ran\n"), run.stderr


@needs("system", os.name == "posix", "links of POSIX")
def test_an_environment_that_is_a_link_is_replaced_and_its_target_is_kept(ran: Path) -> None:
    (made,) = ran.glob(".environments/build-*/")
    made.rename(made.with_name("other"))
    made.symlink_to("other")
    (ran / "pyproject.toml").write_text(PYPROJECT + "dependencies = []\n")
    assert start(ran, *SMALL).stdout == "small ran\n"
    assert not made.is_symlink()
    assert (made.with_name("other") / "bin/python").exists()


def test_a_program_that_the_environment_lacks_is_named(ran: Path) -> None:
    run = start(ran, "build", "no-such-program")
    assert (run.returncode, run.stderr.splitlines()[0].rpartition("/")[2]) == (1, "no-such-program")


#: Runs a program as `build-locally.py` does, with Ctrl-C held back.
HOLDING = (
    "import runpy, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]); del sys.argv[0]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


@needs("system", os.name == "posix", "signals of POSIX")
@pytest.mark.parametrize("options", [[], ["-c", HOLDING]], ids=["free", "held"])
@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_set_up_that_is_interrupted_ends_with_all_it_started(
    quick: Path, sent: signal.Signals, status: int, options: list[str]
) -> None:
    does = "import os, time; Path(sys.argv[-1], 'pid').write_text(str(os.getpid())); time.sleep(60)"
    (quick / "pip-does.py").write_text(does)
    program = [sys.executable, *options, str(quick / "feedstock_tools/bootstrap.py"), *SMALL]
    run = command.start(program, variables=os.environ)
    wait_until(lambda: (quick / "pid").exists() and (quick / "pid").read_text() != "")
    run.send_signal(sent)
    said = run.communicate(timeout=120)[0]
    assert (run.returncode, "Traceback" in said) == (status, False)
    with pytest.raises(ProcessLookupError):
        os.kill(int((quick / "pid").read_text()), 0)
    (quick / "pip-does.py").unlink()
    assert start(quick, *SMALL).stdout == "small ran\n"


@needs("system", os.name == "posix", "process groups of POSIX")
def test_a_step_ends_although_a_process_that_it_started_holds_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "_AFTER_END", 0.1)
    with (tmp_path / "log").open("wb") as log, (tmp_path / "lock").open("w") as lock:
        status = bootstrap._run(["sh", "-c", "sleep 30 & echo left $!"], log, bootstrap._Status(0.0), lock)
    left = int((tmp_path / "log").read_text().split()[1])
    assert status == 0
    wait_until(lambda: not Path(f"/proc/{left}/cmdline").exists() or not Path(f"/proc/{left}/cmdline").read_bytes())


@needs("system", os.name == "posix", "signals of POSIX")
def test_ctrl_c_while_a_step_starts_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    sleeps = [sys.executable, "-c", "import time; time.sleep(60)"]
    with (tmp_path / "log").open("wb") as log, (tmp_path / "lock").open("w") as lock, pytest.raises(KeyboardInterrupt):
        bootstrap._run(sleeps, log, bootstrap._Status(0.0), lock)
    assert [process.returncode for process in started] == [-signal.SIGKILL]


def test_two_first_runs_at_once_make_one_environment(quick: Path) -> None:
    (quick / "pip-does.py").write_text("import time; time.sleep(1.5)")
    program = [sys.executable, str(quick / "feedstock_tools/bootstrap.py"), *SMALL]
    runs = [command.start(program, variables=os.environ) for _ in range(2)]
    said = sorted(run.communicate(timeout=120)[0] for run in runs)
    assert [run.returncode for run in runs] == [0, 0]
    assert said[0].startswith("First run: creating an environment")
    assert said[1].startswith("Waiting for another process that creates an environment in")
    assert [text.endswith("small ran\n") for text in said] == [True, True]


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        pytest.param("raise OSError(28, 'No space left on device', 'x')", "the disk is full.", id="full disk"),
        pytest.param(
            "sys.exit('WARNING: Retrying (Retry(total=0)) …\\nERROR: No matching distribution found for hatchling')",
            "the package index cannot be reached.",
            id="no network",
        ),
    ],
)
def test_a_known_reason_is_reported_in_one_message(quick: Path, does: str, reason: str) -> None:
    (quick / "pip-does.py").write_text(does)
    run = start(quick, *SMALL)
    message = [line for line in run.stderr.splitlines()[1:] if not line.startswith("    ")]
    assert (run.returncode, len(message)) == (1, 3)
    assert message[0] == f"Cannot create the environment: {reason}"
    assert message[2].startswith("The full log is in ")


def test_a_python_without_venv_gets_a_hint_what_to_install(quick: Path) -> None:
    (wheel,) = (quick / "programs" / "ensurepip" / "_bundled").iterdir()
    wheel.unlink()
    run = start(quick, *SMALL)
    assert run.returncode == 1
    assert "this Python has no venv.\nInstall it (Debian, Ubuntu: apt install python3-venv)" in run.stderr


def test_an_unwritable_checkout_has_its_environment_in_the_user_s_cache(
    quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (quick / ".environments").touch()  # a file: root cannot make a folder there either
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert start(quick, *SMALL).stdout == "small ran\n"
    assert len(list((tmp_path / "cache/feedstock-tools/environments").glob("*/build-*/bin/python"))) == 1
    assert start(quick, *SMALL).stderr == ""

    monkeypatch.setenv("XDG_CACHE_HOME", str(quick / ".environments"))
    run = start(quick, *SMALL)
    assert (run.returncode, run.stderr.count("\n")) == (1, 1)
    assert "these folders are not writable" in run.stderr


def test_where_there_is_no_checkout_nothing_is_made(project: Path) -> None:
    (project / "pyproject.toml").unlink()
    run = start(project, *SMALL)
    assert (run.returncode, run.stdout) == (2, "")
    assert "is not a checkout of feedstock-tools" in run.stderr
    assert not (project / ".environments").exists()


def test_python_3_7_reads_it() -> None:
    source = (ROOT / "feedstock_tools" / "bootstrap.py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 7))


def old_python(quick: Path, path: str) -> subprocess.CompletedProcess[str]:
    """Start it in an interpreter that reports the version 3.8."""
    file = str(quick / "feedstock_tools/bootstrap.py")
    code = f"""
import runpy, sys
sys.version_info, sys.version, sys.argv = (3, 8, 0), "3.8.0 (old)", [{file!r}, *sys.argv[1:]]
runpy.run_path({file!r}, run_name="__main__")
"""
    return command.run([sys.executable, "-c", code, *SMALL], variables=os.environ | {"PATH": path})


@needs("system", os.name == "posix", "links of POSIX to programs")
def test_an_old_python_takes_a_newer_one_on_path(quick: Path) -> None:
    newer = f"python3.{sys.version_info[1]}"
    (quick / "programs" / newer).symlink_to(sys.executable)
    (quick / "programs" / "python3.20").write_text("#!/bin/sh\necho a shim without a Python behind it >&2; exit 127\n")
    (quick / "programs" / "python3.20").chmod(0o755)
    run = old_python(quick, str(quick / "programs"))
    assert (run.returncode, run.stdout) == (0, "small ran\n"), run.stderr
    assert run.stderr.startswith(f"Python 3.8 is too old; using {quick}/programs/{newer}.")


def test_without_a_newer_python_an_old_one_says_what_it_needs(quick: Path) -> None:
    run = old_python(quick, str(quick / "nothing"))
    assert run.returncode == 2
    assert run.stderr.startswith("Python 3.11 or later is required, but this is 3.8.0")
