"""Many pieces of work in bound children: results as they come, an own bound for each piece, no failure for others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import command
from tests.support.needs import needs
from tests.support.waiting import wait_until

pytestmark = needs("system", sys.platform == "linux", "Linux, which enforces all bounds")

_PROGRAM = """
import json, os, sys, time
from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds import limits, pool
from feedstock_tools.bounds.pool import each_bounded
from feedstock_tools.errors import FeedstockError, InputError
limits._SHORTEST_WAIT, limits._SLOWER, pool._LOOK_EVERY = 4.0 if "wait" in sys.argv else 60.0, 0, 0.1
bounds = Bounds(seconds=0.5, memory=300 * 1024 * 1024)
seen = []
def work(piece):
    seen.append(piece)
    if piece == "burn":
        while True: pass
    if piece == "eat":
        return len([bytes(10**6) for _ in range(10**6)])
    if piece == "refuse":
        raise InputError("refused")
    if piece == "fault":
        raise ZeroDivisionError("ours")
    if piece == "die":
        os._exit(7)
    if piece == "wait":
        time.sleep(600)
    if piece == "slow":
        time.sleep(0.5)
    if piece == "third":
        end = time.process_time() + 0.27
        while time.process_time() < end: pass
    if piece == "large":
        return "x" * 10**6
    return [os.getpid(), len(seen)]
found = []
for piece, result in each_bounded(work, sys.argv[2:], int(sys.argv[1]), bounds):
    found.append([piece, str(result).splitlines()[0][:80] if isinstance(result, FeedstockError) else result])
print(json.dumps(found))
"""


def outcomes(jobs: int, *pieces: str) -> list[tuple[str, object]]:
    run = command.run([sys.executable, "-c", _PROGRAM, str(jobs), *pieces])
    assert run.returncode == 0, run.stderr
    return [(piece, result) for piece, result in json.loads(run.stdout)]


@pytest.mark.parametrize(
    ("piece", "reason"),
    [
        ("burn", "takes more than 0.5 s of processor time"),
        ("eat", "takes more than 300 MiB of memory, or crashes its reader"),
        ("refuse", "refused"),
        ("fault", "ZeroDivisionError: ours"),
        ("die", "the work ended without a result"),
        ("wait", "the work has not ended in time: it waits for something"),
    ],
)
def test_a_piece_that_fails_is_only_its_own_result(piece: str, reason: str) -> None:
    (before, _), (failed, why), (after, _) = outcomes(1, "a", piece, "b")
    assert (before, failed, why, after) == ("a", piece, reason, "b")


def test_a_child_does_one_piece_after_another_with_an_own_time_for_each() -> None:
    # the system ends a child after a whole second: all of them take longer
    found = outcomes(1, "third", "third", "third", "third")
    assert [result[1] for _, result in found if isinstance(result, list)] == [1, 2, 3, 4]


def test_results_come_as_they_are_done() -> None:
    found = outcomes(2, "slow", "a", "b", "large", "c")
    assert [piece for piece, _ in found] == ["a", "b", "large", "c", "slow"]
    assert dict(found)["large"] == "x" * 10**6


def test_no_work_is_no_result() -> None:
    assert outcomes(3) == []


def test_children_end_with_the_one_who_wants_their_results() -> None:
    program = _PROGRAM.replace("found.append(", "print(os.getpid(), flush=True); time.sleep(60); found.append(")
    parent = subprocess.Popen(
        [sys.executable, "-c", program, "2", "a", "slow"], stdout=subprocess.PIPE, env=command.environment(), text=True
    )
    assert parent.stdout is not None
    parent.stdout.readline()
    children = subprocess.run(["pgrep", "-P", str(parent.pid)], capture_output=True, text=True, check=False).stdout
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert children
    wait_until(lambda: not any(Path(f"/proc/{child}").exists() for child in children.split()), 60)
