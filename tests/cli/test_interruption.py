"""Ctrl-C at any moment of a command: one message, no traceback, the status 130."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import command
from tests.support.feedstocks import CPU, TinyFeedstock
from tests.support.needs import needs

pytestmark = [pytest.mark.usefixtures("unmeasured"), needs("system", sys.platform != "win32", "SIGINT for one process")]

#: Prints a line once Ctrl-C is handled, before any module of the command is imported.
READY = """
from feedstock_tools.cli.interruption import end_at_once
end_at_once()
print("ready", flush=True)
"""


#: Waits there for Ctrl-C: a busy machine may send it only when the command has ended. In short sleeps, since a signal
#: that comes just before a sleep does not end it.
READY_AND_WAITS = READY + "import time\nwhile True:\n    time.sleep(0.05)\n"


def interrupted(program: list[str], folder: Path, seconds: float, more: int = 0) -> subprocess.CompletedProcess[str]:
    """A command that gets SIGINT some time after it began, and `more` of them at once."""
    with command.start(program, folder, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(seconds)
        for _ in range(1 + more):
            process.send_signal(signal.SIGINT)
        try:
            output, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(program, process.returncode, output, errors)


#: Seconds between the moments at which a command is interrupted, and by how much they differ between commands.
APART, LATER = 0.1, 0.05


@pytest.mark.parametrize(
    ("arguments", "later"),
    [(["build", "--list"], 0), (["status"], LATER), (["rehearse"], LATER), (["outputs"], 0)],
)
def test_an_interrupted_command_prints_one_message(
    gpu_feedstock: TinyFeedstock, arguments: list[str], later: float
) -> None:
    forge = gpu_feedstock.folder / "conda-forge.yml"
    forge.write_text(f"{forge.read_text() if forge.exists() else ''}conda_build_tool: rattler-build\n")
    ended = []
    for moment in range(4):
        seconds = moment * APART + later if moment else 0
        program = command.patched(READY if seconds else READY_AND_WAITS, *arguments)
        run = interrupted(program, gpu_feedstock.folder, seconds, more=moment % 3)
        ended.append(run.returncode)
        if run.returncode == 130:
            assert run.stderr.strip() in ("Interrupted.", ""), moment  # nothing if it has its result already
        else:  # it had its result already
            assert run.returncode in (0, 1, 2), run.stderr
            assert "Traceback" not in run.stderr
            assert "Interrupted" not in run.stderr
    assert ended[0] == 130


#: A bounded command whose engine crashes when it is interrupted.
CRASHES = """
import os, signal, time
from feedstock_tools.bounds.limits import READING
from feedstock_tools.bounds.supervision import hold
hold(READING)
signal.signal(signal.SIGINT, lambda *_: os.abort())
print("ready", flush=True)
time.sleep(600)
"""


def test_an_interrupted_command_whose_engine_crashes_is_no_bad_input(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CRASHES],
        cwd=tmp_path,
        env=command.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "")


def test_a_process_that_ignores_ctrl_c_goes_on_doing_so(gpu_feedstock: TinyFeedstock) -> None:
    process = subprocess.Popen(
        command.tool("build", "--list"),
        cwd=gpu_feedstock.folder,
        env=command.environment(),
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) == 0


def test_ctrl_c_while_python_shuts_down_changes_nothing(gpu_feedstock: TinyFeedstock) -> None:
    gpu_feedstock.edit("recipe/build-library.sh", "mkdir", "sleep 987\nmkdir")  # it cannot end by itself
    with subprocess.Popen(
        command.patched(READY, "build", f"{CPU}_py3.11"),
        cwd=gpu_feedstock.folder,
        env=command.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        assert process.stdout.readline()  # the build has begun
        process.send_signal(signal.SIGINT)
        while process.stderr.readline().strip() != "Interrupted.":
            assert process.poll() is None
        while process.poll() is None:  # to the very end
            process.send_signal(signal.SIGINT)
        assert process.returncode == 130
        assert process.stderr.read() == ""


def test_ctrl_c_before_it_is_handled_ends_a_command_without_a_traceback() -> None:
    program = """
import sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "feedstock_tools.cli.interruption":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
import feedstock_tools.__main__
"""
    run = command.run([sys.executable, "-c", program])
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "Interrupted.\n")
