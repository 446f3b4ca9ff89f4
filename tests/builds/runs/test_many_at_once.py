"""Several rows at once: what is built, what each build is held to, what is shown, what a failure does to others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from feedstock_tools.builds.ledger import BuildRecord, Ledger

from ..conftest import HERE, ROOT, Feedstock

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="holds processes by means of Linux")
CPU = f"{HERE.name}_cpu"
GPU = f"{HERE.name}_cuda11.2"


def records(feedstock: Feedstock) -> tuple[BuildRecord, ...]:
    """Every build in the ledger."""
    with Ledger(feedstock.artifacts / "ledger.sqlite") as ledger:
        return ledger.builds()


def test_all_rows_are_built_each_package_once(feedstock: Feedstock) -> None:
    run = feedstock.build("--all", "--jobs", "2")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "Left out: osx_64_" in run.stdout
    assert f"{HERE.name}_cuda_compiler_version11.2_py3.12: done (" in run.stdout
    done = records(feedstock)
    assert len(done) == len({record.identity for record in done}) == len(feedstock.packages()) == 12
    assert {record.result for record in done} == {"done"}
    again = feedstock.build("--all", "--jobs", "2")
    assert again.returncode == 0
    assert "Nothing to do" in again.stdout
    assert len(records(feedstock)) == 12
    listed = json.loads(
        subprocess.run(
            [sys.executable, "-m", "feedstock_tools", "plan", "--json", "--channel", str(feedstock.channel)],
            cwd=feedstock.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    assert (listed["todo"], len(listed["up_to_date"]), list(listed["refused"])) == ([], 4, ["osx_64_"])


def test_the_ledger_says_what_a_build_was_given_and_made_of(gpu_feedstock: Feedstock) -> None:
    by_name = {record.output: record for record in records(gpu_feedstock)}
    base = by_name["tiny-base"]
    assert set(base.inputs) == {"recipe", "variant", "files", "sources", "siblings", "engine", "channels"}
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


def test_a_build_sees_its_share_of_the_cores(feedstock: Feedstock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CPU_COUNT", raising=False)
    feedstock.edit("recipe/build-library.sh", "mkdir", 'echo "<$CPU_COUNT $(nproc)>"\nmkdir')
    run = feedstock.build(f"{CPU}_py3.11", "--cores", "1")
    assert "<1 1>" in run.stdout


def test_a_build_that_takes_too_much_memory_is_ended_and_tried_again_with_fewer_jobs(feedstock: Feedstock) -> None:
    hungry = 'if test "$CPU_COUNT" -gt 1 || test -e $RECIPE_DIR/always; then head -c 900M /dev/zero | tail; fi\nmkdir'
    feedstock.edit("recipe/build-library.sh", "mkdir", hungry)
    (feedstock.folder / "recipe" / "always").touch()
    run = feedstock.build(f"{CPU}_py3.11", "--memory", "400 MiB", "--retries", "1")
    assert run.returncode == 1
    assert "attempt 2 follows" in run.stdout
    assert "more memory than its limit of 400 MiB" in run.stdout
    assert [(record.attempt, record.result, record.memory_limit) for record in records(feedstock)] == [
        (1, "failed", 400 << 20),
        (2, "failed", 400 << 20),
    ]


def test_a_build_that_takes_too_long_is_ended_and_not_tried_again(feedstock: Feedstock) -> None:
    feedstock.edit("recipe/build-library.sh", "mkdir", "sleep 987\nmkdir")
    began = time.monotonic()
    run = feedstock.build(f"{CPU}_py3.11", "--timeout", "2 s")
    assert run.returncode == 1
    assert "it took longer than the 2 s that a build may take" in run.stdout
    assert time.monotonic() - began < 30
    (record,) = records(feedstock)
    assert (record.output, record.result) == ("libtiny", "failed")


def _break_cpu(feedstock: Feedstock) -> None:
    feedstock.edit("recipe/build-library.sh", "mkdir", "case $PKG_BUILD_STRING in cpu*) exit 7;; esac\nmkdir")


def test_a_failure_leaves_the_others_to_be_built(feedstock: Feedstock) -> None:
    _break_cpu(feedstock)
    run = feedstock.build("--all", "--jobs", "2")
    assert run.returncode == 1
    assert len(feedstock.packages()) == 7
    assert [record.result for record in records(feedstock)].count("failed") == 1  # both rows need it, one tries it
    assert "not reached" in run.stdout


def test_with_fail_fast_nothing_is_begun_after_a_failure(feedstock: Feedstock) -> None:
    _break_cpu(feedstock)
    run = feedstock.build(f"{CPU}_py3.11", GPU, "--fail-fast")
    assert run.returncode == 1
    assert [record.result for record in records(feedstock)][-1] == "failed"


@pytest.mark.parametrize(
    ("service", "begin", "end"),
    [("GITHUB_ACTIONS", "::group::== ", "::endgroup::"), ("TF_BUILD", "##[group]== ", "##[endgroup]")],
)
def test_a_service_folds_the_log_of_each_row(feedstock: Feedstock, service: str, begin: str, end: str) -> None:
    run = feedstock.build(CPU, "--jobs", "2", environment={service: "true"})
    lines = run.stdout.splitlines()
    assert [line.startswith(begin) for line in lines].count(True) == lines.count(end) == 2
    first = next(at for at, line in enumerate(lines) if line.startswith(begin))
    assert "Starting build of 1 outputs" in lines[first : lines.index(end)]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_a_terminal_shows_the_running_builds(feedstock: Feedstock) -> None:
    manager, terminal = os.openpty()
    run = subprocess.Popen(
        feedstock.command(CPU, "--jobs", "2"),
        cwd=feedstock.folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "150",
            "TERM": "xterm",
            "GITHUB_ACTIONS": "",
            "TF_BUILD": "",
        },
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
    )
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
    assert f"{HERE.name}_cuda_compiler_versionNone_py3.11" in text
    assert "built libtiny-1.0.0" in text


def test_two_runs_of_several_rows_share_the_work(feedstock: Feedstock) -> None:
    runs = [
        subprocess.Popen(
            feedstock.command("--all", "--jobs", "2", "--json"),
            cwd=feedstock.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(2)
    ]
    outputs = [json.loads(run.communicate()[0])["outputs"] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    new = [each["name"] + each["build"] for output in outputs for each in output if each["new"]]
    assert len(new) == len(set(new)) == 12
    index = json.loads((feedstock.artifacts / HERE.subdir / "repodata.json").read_text())["packages.conda"]
    assert sorted(index) == feedstock.packages()


def test_a_run_says_now_and_then_that_it_is_alive(feedstock: Feedstock) -> None:
    feedstock.edit("recipe/build-library.sh", "mkdir", "sleep 1\nmkdir")
    program = (
        "from feedstock_tools.builds import scheduling; scheduling._SIGN_EVERY = 0.1; import runpy;"
        "runpy.run_module('feedstock_tools', run_name='__main__', alter_sys=True)"
    )
    subprocess.run(
        [sys.executable, "-c", program, *feedstock.command(f"{CPU}_py3.11")[3:]],
        cwd=feedstock.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
    )
    library = next(record for record in records(feedstock) if record.output == "libtiny")
    assert library.ended is not None
    assert library.started < library.seen <= library.ended


def test_a_plan_tells_order_needs_and_times(gpu_feedstock: Feedstock) -> None:
    command = [
        sys.executable,
        "-m",
        "feedstock_tools",
        "plan",
        "--channel",
        str(gpu_feedstock.channel),
        GPU,
        "--markdown",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, cwd=gpu_feedstock.folder, env=environment, capture_output=True, text=True, check=True)
    (row,) = (line for line in run.stdout.splitlines() if line.startswith("| 1 |"))
    assert f"| {HERE.name}_cuda_compiler_version11.2_py3.12 | tiny-base, tiny, tiny-gpu |" in row
    assert "| ? |" not in row
    assert "- 1 row to build, 1 up to date." in run.stdout
    assert not Path(gpu_feedstock.folder, "out").exists()
