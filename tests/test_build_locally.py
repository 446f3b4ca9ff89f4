"""`build-locally.py` alone in a feedstock: with feedstock-tools installed, on PATH, or neither; with an old Python."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import command
from tests.support.feedstocks import HERE, copy_of_tiny
from tests.support.needs import needs
from tests.support.paths import ROOT

SCRIPT = ROOT / "build-locally.py"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A feedstock with the script."""
    folder = copy_of_tiny(tmp_path / "feedstock")
    shutil.copy(SCRIPT, folder)
    return folder


def start(
    folder: Path, *arguments: str, python: tuple[str, ...] = (sys.executable,), path: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the copy without this checkout in PYTHONPATH."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return command.run([*python, str(folder / SCRIPT.name), *arguments], folder, {**variables, "PATH": path})


def program(folder: Path, text: str) -> Path:
    """A `feedstock-tools` that runs these lines."""
    folder.mkdir()
    (folder / "feedstock-tools").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "feedstock-tools").chmod(0o755)
    return folder


def test_it_runs_what_is_installed_for_its_python(copied: Path) -> None:
    run = start(copied, "--list", path=os.environ["PATH"])
    assert run.returncode == 0, run.stderr
    assert f"{HERE.name}_cuda11.2" in run.stdout
    assert "Usage: build-locally.py" in start(copied, "--help").stdout
    assert not list(copied.rglob(".environments")), "it makes no environment"


def test_a_file_of_the_feedstock_is_not_taken_for_a_module(copied: Path) -> None:
    for name in ("click.py", "json.py", "feedstock_tools.py", "runpy.py"):
        (copied / name).write_text("raise SystemExit('this is not ours')\n")
    assert start(copied, "--list").returncode == 0


def test_the_command_on_path_is_used_if_its_python_has_none(copied: Path, tmp_path: Path) -> None:
    folder = program(tmp_path / "bin", 'echo "called with $*"; exit 3')
    run = start(copied, "--all", "--jobs", "2", python=(sys.executable, "-S"), path=str(folder))
    assert (run.returncode, run.stdout) == (3, "called with build --all --jobs 2\n")


@needs("system", os.name == "posix", "a script with the path of its interpreter")
def test_a_command_on_path_whose_python_is_gone_is_named(copied: Path, tmp_path: Path) -> None:
    folder = program(tmp_path / "bin", "")
    (folder / "feedstock-tools").write_text(f"#!{tmp_path}/gone/python\n")
    run = start(copied, "--list", python=(sys.executable, "-S"), path=str(folder))
    assert run.returncode == 2
    assert run.stderr.startswith(f"error: {folder / 'feedstock-tools'} does not start: No such file or directory")


def test_without_either_it_says_what_to_install(copied: Path) -> None:
    run = start(copied, "--all", python=(sys.executable, "-S"))
    assert run.returncode == 2
    first, second, third = run.stderr.splitlines()
    assert first == "error: feedstock-tools is not installed for this Python, and it is not on PATH."
    assert sys.executable in second
    assert "pip install PATH" in third


def test_an_installation_without_its_dependencies_is_named(copied: Path) -> None:
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = command.run([sys.executable, "-S", str(copied / SCRIPT.name), "--list"], copied, variables)
    assert run.returncode == 2
    assert run.stderr.startswith("error: feedstock-tools is installed without click, which it needs.")


def test_an_old_python_takes_what_is_on_path_or_says_what_it_needs(copied: Path, tmp_path: Path) -> None:
    code = "import runpy, sys; sys.version_info = (3, 8, 1); runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    python = (sys.executable, "-c", code)
    run = start(copied, "--list", python=python)
    assert run.returncode == 2
    assert "(3.8.1); feedstock-tools needs 3.11 or later." in run.stderr
    assert start(copied, python=python, path=str(program(tmp_path / "bin", "exit 0"))).returncode == 0


def test_pythons_that_are_long_past_can_read_it() -> None:
    source = SCRIPT.read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 4))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.AnnAssign)]
    old = shutil.which("python2.7")
    if old and subprocess.run([old, "-V"], capture_output=True, check=False).returncode == 0:
        subprocess.run([old, "-m", "py_compile", shutil.copy(SCRIPT, os.environ["XDG_CACHE_HOME"])], check=True)


def test_in_its_repository_it_runs_the_environment_of_the_checkout(tmp_path: Path) -> None:
    package = tmp_path / "feedstock_tools"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copy(SCRIPT, tmp_path)
    (package / "bootstrap.py").write_text("def run_in_environment(*what):\n    print(what)\n    return 4\n")
    run = start(tmp_path, "--all")
    assert run.returncode == 4
    assert run.stdout == "('build', 'python', ['-P', '-m', 'feedstock_tools.cli.build_locally', '--all'])\n"


def with_ctrl_c(script: Path, before: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script after statements, in a process that does not ignore Ctrl-C."""
    code = f"import os, runpy, signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n{before}\n"
    code += "runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    return command.run([sys.executable, "-c", code, str(script), *arguments], script.parent)


@needs("system", os.name == "posix", "signals of POSIX")
def test_ctrl_c_while_the_installed_program_is_imported_is_answered_by_it(copied: Path) -> None:
    before = "run = runpy.run_module\ndef interrupted(*a, **k):\n    os.kill(os.getpid(), 2)\n    run(*a, **k)\n"
    run = with_ctrl_c(copied / SCRIPT.name, f"{before}runpy.run_module = interrupted", "--list")
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "Interrupted.\n")


@needs("system", os.name == "posix", "signals of POSIX")
def test_ctrl_c_before_the_environment_s_python_has_started_is_answered_by_it(tmp_path: Path) -> None:
    """By the code of the environment: the package in the current folder is not imported."""
    package = tmp_path / "feedstock_tools"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copy(SCRIPT, tmp_path)
    (package / "bootstrap.py").write_text(
        "import os, sys\n"
        "def run_in_environment(extra, program, arguments):\n"
        "    os.kill(os.getpid(), 2)\n"
        "    os.execv(sys.executable, [sys.executable, *arguments])\n"
    )
    run = with_ctrl_c(tmp_path / SCRIPT.name, "", "--list")
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "Interrupted.\n")


@needs("system", os.name == "posix", "signals of POSIX")
def test_ctrl_c_is_left_to_the_program_on_path(copied: Path, tmp_path: Path) -> None:
    folder = program(tmp_path / "bin", 'sleep 30 & trap "kill $! 2>/dev/null; exit 7" INT; echo ready; wait $!')
    code = "import runpy, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); del sys.argv[0]; "
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", code, str(copied / SCRIPT.name)],
        cwd=copied,
        env={"PATH": f"{folder}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=120)[1] == ""
        assert process.returncode == 7
