"""Several rows at once: their packages, the limits of each build, the display, and how a failure affects others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from feedstock_tools.builds.ledger import Ledger
from tests.support import command
from tests.support.feedstocks import CPU, GPU, HERE, TinyFeedstock
from tests.support.needs import needs

pytestmark = needs("system", sys.platform == "linux", "holds processes by means of Linux")


def test_all_rows_are_built_each_package_once(whole_feedstock: TinyFeedstock) -> None:
    feedstock = whole_feedstock
    output = (feedstock.folder / "output.txt").read_text()
    assert "Left out: osx_64_" in output
    assert f"{GPU}_py3.12: done (" in output
    done = feedstock.records()
    assert len(done) == len({record.identity for record in done}) == len(feedstock.packages()) == 12
    assert {record.result for record in done} == {"done"}
    again = feedstock.build("--all", "--jobs", "2")
    assert again.returncode == 0
    assert "Nothing to do" in again.stdout
    assert len(feedstock.records()) == 12
    listed = json.loads(feedstock.run("plan", "--json", "--channel", str(feedstock.channel)).stdout)
    assert (listed["todo"], len(listed["up_to_date"]), list(listed["refused"])) == ([], 4, ["osx_64_"])


def test_the_ledger_says_what_a_build_was_given_and_made_of(gpu_feedstock: TinyFeedstock) -> None:
    by_name = {record.output: record for record in gpu_feedstock.records()}
    base = by_name["tiny-base"]
    assert set(base.inputs) == {"recipe", "variant", "files", "sources", "siblings", "engine", "channels", "form"}
    assert base.values["cuda_compiler_version"] == "11.2"
    assert base.cores
    assert base.memory_limit
    assert base.command.endswith(f"--channel {gpu_feedstock.channel}")
    with Ledger(gpu_feedstock.artifacts / "ledger.sqlite") as ledger:
        assert base.id is not None
        (host,) = ledger.environments(base.id)
    assert host.environment == "host"
    assert {package.name for package in host.packages} == {"python", "python_abi", "libtiny"}
    assert all(len(package.sha256) == 64 for package in host.packages)


def test_a_build_sees_its_share_of_the_cores(feedstock: TinyFeedstock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CPU_COUNT", raising=False)
    feedstock.keep_outputs(1)
    feedstock.edit("recipe/build-library.sh", "mkdir", 'echo "<$CPU_COUNT $(nproc)>"\nmkdir')
    run = feedstock.build(f"{CPU}_py3.11", "--cores", "1")
    assert "<1 1>" in run.stdout


def test_a_build_that_takes_too_much_memory_is_ended_and_tried_again_with_fewer_jobs(feedstock: TinyFeedstock) -> None:
    hungry = 'if test "$CPU_COUNT" -gt 1 || test -e $RECIPE_DIR/always; then head -c 500M /dev/zero | tail; fi\nmkdir'
    feedstock.edit("recipe/build-library.sh", "mkdir", hungry)
    (feedstock.folder / "recipe" / "always").touch()
    run = feedstock.build(f"{CPU}_py3.11", "--memory", "256 MiB", "--retries", "1")
    assert run.returncode == 1
    assert "attempt 2 follows" in run.stdout
    # Where no control group can be made, a program may meet its own limit first.
    assert "more memory than its limit of 256 MiB" in run.stdout or "it ran out of memory" in run.stdout
    assert [(record.attempt, record.result, record.memory_limit) for record in feedstock.records()] == [
        (1, "failed", 256 << 20),
        (2, "failed", 256 << 20),
    ]


def test_a_build_that_takes_too_long_is_ended_and_not_tried_again(feedstock: TinyFeedstock) -> None:
    feedstock.edit("recipe/build-library.sh", "mkdir", "sleep 987\nmkdir")
    began = time.monotonic()
    run = feedstock.build(f"{CPU}_py3.11", "--timeout", "2 s")
    assert run.returncode == 1
    assert "it was stopped after its time limit of 2 s" in run.stdout
    assert time.monotonic() - began < 30
    (record,) = feedstock.records()
    assert (record.output, record.result) == ("libtiny", "failed")


def _break_cpu(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(2)
    feedstock.edit("recipe/build-library.sh", "mkdir", "case $PKG_BUILD_STRING in cpu*) exit 7;; esac\nmkdir")


def test_a_failure_leaves_the_others_to_be_built(feedstock: TinyFeedstock) -> None:
    _break_cpu(feedstock)
    run = feedstock.build("--all", "--jobs", "2")
    assert run.returncode == 1
    assert len(feedstock.packages()) == 3
    assert [record.result for record in feedstock.records()].count("failed") == 1  # both rows need it, one builds it
    assert "not reached" in run.stdout


def test_with_fail_fast_nothing_is_begun_after_a_failure(feedstock: TinyFeedstock) -> None:
    _break_cpu(feedstock)
    run = feedstock.build(f"{CPU}_py3.11", GPU, "--fail-fast")
    assert run.returncode == 1
    assert [record.result for record in feedstock.records()][-1] == "failed"


@pytest.mark.parametrize(
    ("service", "begin", "end"),
    [("GITHUB_ACTIONS", "::group::== ", "::endgroup::"), ("TF_BUILD", "##[group]== ", "##[endgroup]")],
)
def test_a_service_folds_the_log_of_each_row(feedstock: TinyFeedstock, service: str, begin: str, end: str) -> None:
    feedstock.keep_outputs(2)
    run = feedstock.build(CPU, "--jobs", "2", environment={service: "true"})
    lines = run.stdout.splitlines()
    assert [line.startswith(begin) for line in lines].count(True) == lines.count(end) == 2
    first = next(at for at, line in enumerate(lines) if line.startswith(begin))
    assert "Starting build of 1 outputs" in lines[first : lines.index(end)]


@needs("system", hasattr(os, "openpty"), "a pseudo-terminal")
def test_a_terminal_shows_the_running_builds(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(2)
    manager, terminal = os.openpty()
    variables = command.environment(COLUMNS="150", TERM="xterm", GITHUB_ACTIONS="", TF_BUILD="")
    words = feedstock.command(CPU, "--jobs", "2")
    run = command.start(words, feedstock.folder, variables, stdout=terminal, stderr=terminal)
    os.close(terminal)
    shown = b""
    while True:
        try:
            chunk = os.read(manager, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(manager)
    assert run.wait() == 0, shown.decode()
    text = shown.decode()
    assert "elapsed" in text
    assert f"{HERE.name}_cpu_py3.11" in text
    assert "built libtiny-1.0.0" in text


def test_two_runs_of_several_rows_share_the_work(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(2)
    runs = [feedstock.start_build("--all", "--jobs", "2", "--json", stderr=subprocess.DEVNULL) for _ in range(2)]
    outputs = [json.loads(run.communicate()[0])["outputs"] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    new = [each["name"] + each["build"] for output in outputs for each in output if each["new"]]
    assert len(new) == len(set(new)) == 6
    index = json.loads((feedstock.artifacts / HERE.subdir / "repodata.json").read_text())["packages.conda"]
    assert sorted(index) == feedstock.packages()


def test_a_run_says_now_and_then_that_it_is_alive(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(1)
    feedstock.edit("recipe/build-library.sh", "mkdir", "sleep 1\nmkdir")
    program = "from feedstock_tools.builds.runs import scheduler; scheduler._SIGN_EVERY = 0.1"
    run = command.run(feedstock.patched_build(program, f"{CPU}_py3.11"), feedstock.folder)
    assert run.returncode == 0, run.stderr
    (library,) = feedstock.records()
    assert library.ended is not None
    assert library.started < library.seen <= library.ended


def test_a_plan_shows_order_needs_and_times(gpu_feedstock: TinyFeedstock) -> None:
    run = gpu_feedstock.run("plan", "--channel", str(gpu_feedstock.channel), GPU, "--markdown")
    assert run.returncode == 0, run.stderr
    (row,) = (line for line in run.stdout.splitlines() if line.startswith("| 1 |"))
    assert f"| {GPU}_py3.12 | tiny-base, tiny, tiny-gpu |" in row
    assert "| ? |" not in row
    assert "- 1 row to build, 1 up to date." in run.stdout
    assert not Path(gpu_feedstock.folder, "out").exists()
