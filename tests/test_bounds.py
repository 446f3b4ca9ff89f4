"""Work that exceeds a bound of the operating system ends, and its parent reports it in one message."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from feedstock_tools.bounds.limits import Bounds
from tests.support import command
from tests.support.needs import needs
from tests.support.paths import ROOT
from tests.support.waiting import wait_until

pytestmark = needs("system", sys.platform == "linux", "only Linux has all of the limits")

#: Quickly exceeded. The system counts whole seconds, so that a limit below one ends a process after one.
NARROW = Bounds(step_seconds=0.5, seconds=0.7, step_memory=64 << 20, memory=256 << 20)


def program(statements: str, within: str = "NARROW") -> str:
    """The program that runs statements in a process that is held to bounds."""
    start = f"""
import os, time
from pathlib import Path
from feedstock_tools.bounds.limits import released, step
from feedstock_tools.bounds.supervision import hold
from feedstock_tools.bounds.limits import READING, VARIABLE, Bounds, widen
NARROW = {NARROW!r}
widen(os.environ.get(VARIABLE, ""))
hold({within})
"""
    return start + statements


def held(statements: str, within: str = "NARROW", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run statements in a process that is held to bounds."""
    words = [sys.executable, "-c", program(statements, within)]
    return command.run(words, variables=command.environment(**variables))


def test_the_status_and_the_output_are_those_of_the_work() -> None:
    run = held("print('done'); raise SystemExit(3)")
    assert (run.stdout, run.stderr, run.returncode) == ("done\n", "", 3)


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ("with step(Path('a')): sum([[1] * 1000] * 100_000, start=[])", "a: takes more than 0.5 s of processor time"),
        ("while True: pass", "takes more than 0.7 s of processor time"),
        ("with step(Path('a')): os.abort()", "a: takes more than 64 MiB of memory, or crashes"),
        ("with step(Path('a')): pass\nimport os\nos.abort()", "a: takes more than 256 MiB of memory, or crashes"),
    ],
)
def test_what_passes_a_bound_ends_with_one_message(statements: str, message: str) -> None:
    run = held(statements)
    assert run.returncode == 2
    assert run.stderr.startswith(f"error: {message}")
    assert "FEEDSTOCK_TOOLS_BOUNDS" in run.stderr
    assert run.stderr.count("\n") == 2


def test_a_step_that_asks_for_too_much_memory_is_an_error_with_its_file() -> None:
    run = held("with step(Path('a')): bytearray(10 ** 9)")
    assert "BoundError: a: takes more than 64 MiB of memory" in run.stderr


def test_steps_that_are_small_add_up_to_no_bound_of_a_step() -> None:
    run = held("kept = []\nfor _ in range(3):\n  with step(): kept.append(bytearray(25 << 20))\nprint(len(kept))")
    assert run.stdout == "3\n", run.stderr


def test_files_that_grow_and_many_open_files_are_refused(tmp_path: Path) -> None:
    run = held(f"open({str(tmp_path / 'grown')!r}, 'wb').truncate(10 ** 7)", "Bounds(file_size=10 ** 6)")
    assert "File too large" in run.stderr
    run = held("kept = [open('/dev/null') for _ in range(60)]", "Bounds(open_files=50)")
    assert "Too many open files" in run.stderr


def test_programs_that_a_bounded_process_starts_need_not_be_bound() -> None:
    limits = "import resource; print(resource.getrlimit(resource.RLIMIT_CPU)[0])"
    statements = f"""
import subprocess, sys
with released():
    subprocess.run([sys.executable, '-c', {limits!r}], check=True)
subprocess.run([sys.executable, '-c', {limits!r}], check=True)
"""
    assert held(statements).stdout.split() == ["-1", "1"]


def test_a_process_binds_itself_while_it_renders() -> None:
    statements = """
import resource
from feedstock_tools.bounds.limits import bounded, is_held, step
from feedstock_tools.bounds.limits import Bounds
def now(): return is_held(), resource.getrlimit(resource.RLIMIT_CPU)[0], resource.getrlimit(resource.RLIMIT_DATA)[0]
before = now()
with bounded(Bounds(seconds=100, memory=1 << 30)):
    print(now(), flush=True)
print(now() == before, flush=True)
with bounded(Bounds(step_seconds=0.5)), step():
    while True: pass
"""
    run = command.run([sys.executable, "-c", statements])
    assert run.stdout.splitlines() == [f"(True, 101, {1 << 30})", "True"], run.stderr
    assert run.returncode == -signal.SIGXCPU


def test_the_user_lifts_the_bounds_for_one_run() -> None:
    slow = "import time\nwith step():\n  while time.process_time() < 1.1: pass\nprint('done')"  # else it ends after 1 s
    assert held(slow, FEEDSTOCK_TOOLS_BOUNDS="10").stdout == "done\n"
    large = "with step():\n  kept = bytearray(100 << 20)\nprint('done')"
    assert "takes more than 64 MiB of memory" in held(large).stderr
    assert held(large, FEEDSTOCK_TOOLS_BOUNDS="off").stdout == "done\n"


def test_a_wrong_wish_is_bad_input() -> None:
    run = command.run(command.tool("outputs"), variables=command.environment(FEEDSTOCK_TOOLS_BOUNDS="many"))
    assert run.returncode == 2
    assert "FEEDSTOCK_TOOLS_BOUNDS is 'many'" in run.stderr


def test_the_child_ends_with_its_parent() -> None:
    statements = "print(os.getpid(), flush=True)\ntime.sleep(60)"
    process = command.start([sys.executable, "-c", program(statements, "READING")])
    assert process.stdout is not None
    child = int(process.stdout.readline())
    assert child != process.pid
    process.kill()
    process.communicate()
    wait_until(lambda: not _runs(child))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_parent_reaches_the_child(number: signal.Signals) -> None:
    statements = "print('here', flush=True)\nwhile True: time.sleep(0.05)"
    process = command.start([sys.executable, "-c", program(statements, "READING")])
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode == 128 + number


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


#: Starts a thread: the work then goes to a process apart.
THREAD = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()\n"


def called(statements: str, threads: bool) -> subprocess.CompletedProcess[str]:
    """Run statements in a program that uses the library, with or without threads."""
    start = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from functools import partial
from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.errors import FeedstockError
from tests.support.bounded_works import *
"""
    start += THREAD if threads else ""
    return command.run([sys.executable, "-W", "always", "-c", start + statements])


@pytest.mark.parametrize("threads", [False, True], ids=["without threads", "with threads"])
def test_a_library_call_gets_its_value_or_its_error_back(threads: bool) -> None:
    run = called(
        """
pid, folder, value = run_bounded(partial(about, {"a": 1}))
print(pid != os.getpid(), folder == os.getcwd(), value)
os.chdir("/")
print(run_bounded(partial(about, "b"))[1])
for work in (refused, endless, greedy, crashes):
    try:
        run_bounded(work, Bounds(step_seconds=0.5, step_memory=64 << 20))
    except FeedstockError as error:
        print(type(error).__name__, str(error).splitlines()[0])
print("still here")
""",
        threads,
    )
    assert run.stdout.splitlines() == [
        "True True {'a': 1}",
        "/",
        "InputError a:3: is wrong",
        "BoundError b: takes more than 0.5 s of processor time",
        "BoundError c: takes more than 64 MiB of memory",
        "BoundError takes more than 2048 MiB of memory, or crashes its reader",
        "still here",
    ], run.stderr
    assert "ResourceWarning" not in run.stderr, "the process apart ends with the program"


def test_calls_leave_no_file_open() -> None:
    """A child inherits the open files of its program, and may have 512."""
    statements = """
for _ in range(20):
    run_bounded(partial(about, 1))
    try:
        run_bounded(refused)
    except FeedstockError:
        pass
print(len(os.listdir("/proc/self/fd")))
"""
    assert int(called(statements, threads=False).stdout) < 20


def test_threads_call_at_the_same_time() -> None:
    statements = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    found = list(pool.map(lambda number: run_bounded(partial(about, [number] * 100_000)), range(24)))
print([value[0] for _, _, value in found] == list(range(24)), len({pid for pid, _, _ in found}))
"""
    assert called(statements, threads=True).stdout == "True 24\n"


def test_the_process_apart_is_started_again_after_somebody_ended_it() -> None:
    statements = """
from feedstock_tools.bounds import apart
print(run_bounded(partial(about, 1))[2])
apart._apart.process.kill()
print(run_bounded(partial(about, 2))[2])
apart._apart.process.kill()
apart._apart.process.wait()
print(run_bounded(partial(about, 3))[2])
"""
    assert called(statements, threads=True).stdout.split() == ["1", "2", "3"]


def test_the_process_apart_imports_what_earlier_calls_used_whether_they_succeeded_or_not() -> None:
    statements = """
for succeeds, module in ((True, "colorsys"), (False, "chunk")):
    try:
        run_bounded(partial(imports, module, succeeds))
    except FeedstockError as error:
        print(error)
    print(run_bounded(partial(knows, module)))
print(run_bounded(partial(knows, "nntplib")))
"""
    assert called(statements, threads=True).stdout.split() == ["True", "imported", "True", "False"]


def test_wider_bounds_reach_the_process_apart() -> None:
    statements = """
from feedstock_tools.bounds.limits import widen
widen("10")
print(run_bounded(greedy, Bounds(step_memory=64 << 20)))
"""
    assert called(statements, threads=True).stdout == "150000000\n"


@pytest.mark.parametrize("threads", [False, True], ids=["without threads", "with threads"])
def test_bounded_work_ends_with_its_program(tmp_path: Path, threads: bool) -> None:
    start = THREAD if threads else ""
    statements = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from functools import partial
from feedstock_tools.bounds.supervision import run_bounded
from tests.support.bounded_works import sleeps
{start}
run_bounded(partial(sleeps, {str(tmp_path / "pid")!r}))
"""
    process = command.start([sys.executable, "-c", statements])
    wait_until(lambda: (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text() != "")
    child = int((tmp_path / "pid").read_text())
    process.kill()
    process.communicate()
    wait_until(lambda: not _runs(child))


def test_processor_time_counts_for_each_call_alone() -> None:
    statements = """
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.bounds.limits import Bounds
import time

def works():
    end = time.process_time() + 0.36
    while time.process_time() < end: pass

for _ in range(3):
    run_bounded(works, Bounds(seconds=0.5))
print("done")
"""
    assert command.run([sys.executable, "-c", statements]).stdout == "done\n"


@pytest.mark.parametrize("threads", [False, True], ids=["without threads", "with threads"])
def test_the_library_takes_bounds_as_a_parameter(threads: bool, tmp_path: Path) -> None:
    channel = tmp_path / "noarch" / "repodata.json"
    channel.parent.mkdir()
    channel.write_text('{"packages": {}}')
    statements = f"""
from pathlib import Path
from feedstock_tools.api import Bounds, check, explain, outputs, read_configurations, rehearse, rerender

feedstock = Path({str(ROOT / "tests" / "rerender" / "solver-feedstock")!r})
here, bounded = rerender(feedstock), rerender(feedstock, bounds=Bounds())
print(here.files == bounded.files, bool(bounded.changes()))
chosen = read_configurations(feedstock)[:1]
key = sorted(here.configurations[0].values)[0]
calls = {{
    "outputs": partial(outputs, feedstock, chosen),
    "explain": partial(explain, feedstock, key),
    "check": partial(check, feedstock, chosen),
    "rehearse": partial(rehearse, feedstock, chosen, [{channel.parent.parent.as_uri()!r}]),
}}
for name, call in calls.items():
    print(name, call() == call(bounds=Bounds()))
for name, call in {{"rerender": partial(rerender, feedstock), **calls}}.items():
    try:
        call(bounds=Bounds(open_files=3))
    except (FeedstockError, OSError) as error:
        print(name, "Too many open files" in str(error))
"""
    run = called(statements, threads)
    calls = ["outputs True", "explain True", "check True", "rehearse True"]
    assert run.stdout.splitlines() == ["True True", *calls, "rerender True", *calls], run.stderr


@pytest.mark.parametrize("threads", [False, True], ids=["without threads", "with threads"])
def test_work_that_waits_for_something_ends(tmp_path: Path, threads: bool) -> None:
    statements = f"""
import time
from feedstock_tools.bounds import limits
limits._SHORTEST_WAIT, limits._SLOWER = 3.0, 0
began = time.monotonic()
try:
    run_bounded(partial(sleeps, {str(tmp_path / "pid")!r}))
except FeedstockError as error:
    print(error, time.monotonic() - began < 20)
"""
    run = called(statements, threads)
    assert run.stdout == "the work has not ended within 3 s: it waits for something True\n", run.stderr
    child = int((tmp_path / "pid").read_text())
    wait_until(lambda: not _runs(child))


def test_a_command_that_waits_for_something_ends() -> None:
    statements = """
import time
from feedstock_tools.bounds import supervision
from feedstock_tools.bounds.limits import READING
supervision._LONGEST_COMMAND = 1.0
supervision.hold(READING)
time.sleep(600)
"""
    began = time.monotonic()
    run = command.run([sys.executable, "-c", statements])
    assert time.monotonic() - began < 30
    assert (run.returncode, run.stderr.startswith("error: the command has not ended within")) == (1, True)
