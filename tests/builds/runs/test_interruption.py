"""A build that is stopped, killed or out of disk space leaves nothing behind, and the next run completes it."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import environment
from tests.support.feedstocks import HERE, STUBBORN, TinyFeedstock
from tests.support.needs import lacks, needs
from tests.support.waiting import processes_below, wait_until

pytestmark = [
    pytest.mark.usefixtures("unmeasured"),
    needs("system", sys.platform == "linux", "looks at processes through /proc"),
]
NAME = f"{HERE.name}_cpu_py3.11"


#: Seconds after which a build hangs that should have ended, on a machine that is busy with other things.
LONGEST = 120


@pytest.fixture
def stubborn(feedstock: TinyFeedstock) -> TinyFeedstock:
    """A feedstock whose first output never finishes by itself."""
    feedstock.keep_outputs(1)
    feedstock.edit("recipe/build-library.sh", "mkdir", STUBBORN)
    return feedstock


@pytest.fixture
def begun(stubborn: TinyFeedstock) -> Iterator[subprocess.Popen[str]]:
    """Its build, under way."""
    run = stubborn.start_build(NAME, "--retries", "0")
    try:
        # The script may begin before the run has recorded it.
        wait_until(lambda: run.poll() is not None or ((stubborn.folder / "begun").exists() and stubborn.records()))
        assert run.poll() is None, run.communicate()[0]
        yield run
    finally:
        run.kill()
        run.communicate()
        for pid in processes_below(stubborn.artifacts):
            os.kill(pid, signal.SIGKILL)


def _results(feedstock: TinyFeedstock) -> list[tuple[str, str]]:
    return [(record.output, record.result) for record in feedstock.records()]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_build_that_is_asked_to_end_takes_everything_with_it(
    stubborn: TinyFeedstock, begun: subprocess.Popen[str], number: int, status: int
) -> None:
    begun.send_signal(number)
    output, _ = begun.communicate(timeout=LONGEST)
    assert begun.returncode == status, output
    assert processes_below(stubborn.artifacts) == {}
    assert stubborn.packages() == []
    assert _results(stubborn) == [("libtiny", "interrupted")]
    assert not [path for path in (stubborn.artifacts / ".work").iterdir() if path.name != "locks"]


def test_a_build_whose_parent_is_killed_ends_with_everything_it_started(
    stubborn: TinyFeedstock, begun: subprocess.Popen[str]
) -> None:
    begun.kill()
    begun.wait()
    wait_until(lambda: not processes_below(stubborn.artifacts))
    assert stubborn.packages() == []
    stubborn.edit("recipe/build-library.sh", STUBBORN, "mkdir")
    assert stubborn.build(NAME).returncode == 0
    assert _results(stubborn) == [("libtiny", "interrupted"), ("libtiny", "done")]


def test_a_build_that_is_killed_itself_is_a_failure(stubborn: TinyFeedstock, begun: subprocess.Popen[str]) -> None:
    threads = Path(f"/proc/{begun.pid}/task").glob("*/children")
    (child,) = (int(child) for children in threads for child in children.read_text().split())
    os.kill(child, signal.SIGKILL)
    output, _ = begun.communicate(timeout=LONGEST)
    assert begun.returncode == 1
    assert "the engine's process ended with signal 9" in output
    assert not [line for line in processes_below(stubborn.artifacts).values() if "conda_build" in line]
    assert stubborn.packages() == []


def test_a_build_that_leaves_a_server_running_does_not_keep_it(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(1)
    feedstock.edit("recipe/build-library.sh", "mkdir", "setsid sleep 987 > /dev/null 2>&1 &\nmkdir")
    assert feedstock.build(NAME).returncode == 0
    assert processes_below(feedstock.artifacts) == {}


def test_a_full_disk_is_a_clear_failure(feedstock: TinyFeedstock) -> None:
    feedstock.edit("recipe/build-library.sh", "mkdir", "head -c 3000000 /dev/urandom > $PREFIX/large\nmkdir")
    limit = 1_000_000
    run = subprocess.run(
        feedstock.command(NAME),
        cwd=feedstock.folder,
        env=environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "Traceback" not in run.stderr + run.stdout
    assert "libtiny failed" in run.stdout
    assert feedstock.packages() == []


@pytest.mark.parametrize("size", ["24k", "120k", "240k"])
def test_a_disk_that_fills_up_anywhere_leaves_a_channel_that_is_whole(feedstock: TinyFeedstock, size: str) -> None:
    """The artifacts lie on a small file system, which only a privileged user can make."""
    feedstock.artifacts.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(feedstock.artifacts)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        lacks("system", "the right to mount a small file system")
    try:
        run = feedstock.build(NAME)
        assert run.returncode == 1
        assert "Traceback" not in run.stderr
        assert run.stderr.startswith("error: ") or " failed: " in run.stdout
        index = feedstock.artifacts / HERE.subdir / "repodata.json"
        indexed = json.loads(index.read_text())["packages.conda"] if index.is_file() else {}
        assert sorted(indexed) == feedstock.packages()
        assert not list(feedstock.artifacts.glob("*/.*.part"))
    finally:
        subprocess.run(["umount", str(feedstock.artifacts)], check=True)
    assert feedstock.build(NAME).returncode == 0
    assert len(feedstock.packages()) == 3
