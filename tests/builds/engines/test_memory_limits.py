"""A build is kept within its memory by a control group where possible, else by a limit on each process and polling; and
on cores of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from feedstock_tools.builds.engines.process import guard
from feedstock_tools.builds.engines.process.guard import Guard, MemoryGroup, OutOfMemoryError
from feedstock_tools.errors import WorkError
from tests.support.needs import lacks, needs

pytestmark = needs("system", sys.platform == "linux", "means of Linux")
LIMIT = 200 << 20
#: Waits for a line before it takes some MiB in each of some processes, writes to all of it, and keeps it.
TAKER = """
import os, sys, time
sys.stdin.readline()
mebibytes, processes = map(int, sys.argv[1:])
for _ in range(processes - 1):
    if os.fork() == 0:
        break
try:
    kept = b"x" * (mebibytes << 20)
    os.write(1, b"taken\\n")
except MemoryError:
    os.write(1, b"refused\\n")
time.sleep(30)
"""


class Tree:
    """A made-up file system of control groups, and the line of `/proc/self/cgroup` that names our own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = folder / "cgroup"
        self.own = folder / "self"
        self.root.mkdir()
        monkeypatch.setattr(guard, "_ROOT", self.root)
        monkeypatch.setattr(guard, "_OWN", self.own)

    def group(self, name: str, gives: str) -> Path:
        """A group of version 2 that passes some controllers on."""
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.subtree_control").write_text(gives)
        return folder


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    return Tree(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("own", "above", "where"),
    [
        ("cpu memory pids", "memory", "user.slice/session"),
        ("", "cpu memory", "user.slice"),  # a group with processes in it passes nothing on
        ("cpu", "cpu", None),
    ],
)
def test_version_2_is_taken_where_it_hands_on_memory(tree: Tree, own: str, above: str, where: str | None) -> None:
    (tree.root / "cgroup.controllers").write_text("cpu memory")
    tree.group("user.slice", above)
    tree.group("user.slice/session", own)
    tree.own.write_text("0::/user.slice/session\n")
    made = MemoryGroup.make(LIMIT)
    if where is None:
        assert made is None
        return
    assert made is not None
    assert (made.version, made.folder.parent) == (2, tree.root / where)
    assert (made.folder / "memory.max").read_text() == str(LIMIT)
    assert (made.folder / "memory.swap.max").read_text() == "0"
    assert made.take(4321)
    assert (made.folder / "cgroup.procs").read_text() == "4321"
    (made.folder / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert made.ran_out


def test_version_1_is_taken_where_memory_is_with_it(tree: Tree) -> None:
    (tree.root / "memory" / "box").mkdir(parents=True)
    tree.own.write_text("5:cpu:/\n4:memory:/box\n0::/\n")
    made = MemoryGroup.make(LIMIT)
    assert made is not None
    assert (made.version, made.folder.parent) == (1, tree.root / "memory" / "box")
    assert (made.folder / "memory.limit_in_bytes").read_text() == str(LIMIT)


def test_without_rights_to_make_a_group_there_is_none(tree: Tree) -> None:
    tree.own.write_text("0::/nowhere\n")
    assert MemoryGroup.make(LIMIT) is None
    tree.own.unlink()
    assert MemoryGroup.make(LIMIT) is None


@contextmanager
def taker(guard: Guard, mebibytes: int, processes: int = 1) -> Iterator[subprocess.Popen[str]]:
    """A process that is limited in memory before it takes any."""
    command = [sys.executable, "-c", TAKER, str(mebibytes), str(processes)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as process:
        try:
            guard.attach(process.pid)
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
            yield process
        finally:
            os.killpg(process.pid, 9)
            process.wait()
            guard.detach()


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize(("mebibytes", "said"), [(50, "taken"), (400, "refused")])
def test_without_a_group_a_process_gets_no_more_than_the_limit(
    monkeypatch: pytest.MonkeyPatch, mebibytes: int, said: str
) -> None:
    monkeypatch.setattr(MemoryGroup, "make", lambda limit: None)
    with taker(Guard(memory=LIMIT), mebibytes) as process:
        assert _first_line(process) == said


def test_without_a_group_processes_that_take_too_much_together_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryGroup, "make", lambda limit: None)
    guard = Guard(memory=LIMIT)
    with taker(guard, 120, processes=3) as process:
        for _ in range(3):
            assert _first_line(process) == "taken"
        time.sleep(0.3)
        with pytest.raises(OutOfMemoryError, match=r"more than its limit of 200 MiB"):
            guard.look()
        assert guard.peak > LIMIT


@pytest.mark.parametrize("lists", [True, False], ids=["children listed", "not listed"])
def test_the_memory_of_all_processes_counts_those_of_threads_too(
    monkeypatch: pytest.MonkeyPatch, *, lists: bool
) -> None:
    if lists and not guard._lists_children():
        lacks("system", "a kernel that lists the children of a thread")
    monkeypatch.setattr(guard, "_lists_children", lambda: lists)
    program = f"""if True:
        import subprocess, sys, threading
        run = lambda: subprocess.run([sys.executable, "-c", {TAKER!r}, "50", "2"], stdin=0)
        threading.Thread(target=run).start()
    """
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        watching = Guard()
        watching.attach(process.pid)
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert [process.stdout.readline() for _ in range(2)] == [b"taken\n"] * 2
        watching.look()
        assert watching.peak > 100 << 20
        for pid in (*guard._below(process.pid), process.pid):
            os.kill(pid, 9)


def test_a_group_of_this_machine_ends_what_takes_more() -> None:
    guard = Guard(memory=LIMIT)
    probe = MemoryGroup.make(LIMIT)
    if probe is None:
        lacks("system", "the right to make a control group")
    probe.remove()
    with taker(guard, 400) as process:
        assert _first_line(process) == ""  # killed before it could say anything
        assert guard.ran_out_of_memory


def test_builds_of_two_runs_are_bound_to_different_cores_while_some_are_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    with guard.cores_apart(tmp_path, (0, 1)) as first, guard.cores_apart(tmp_path, (0, 1)) as second:
        assert (sorted(first), sorted(second)) == ([0, 1], [2, 3])
        with guard.cores_apart(tmp_path, (0,)) as third:
            assert sorted(third) == [0]
    with guard.cores_apart(tmp_path, (1,)) as later, guard.cores_apart(tmp_path, (0, 1, 2)) as next_one:
        assert (sorted(later), sorted(next_one)) == ([1], [0, 2, 3])


def test_an_error_of_a_build_that_has_cores_is_not_hidden(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="its own"), guard.cores_apart(tmp_path, (0,)):
        raise WorkError("its own")
