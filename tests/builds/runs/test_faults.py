"""What can go wrong around a run: it is killed; its ledger, logs or channel break; the clock jumps. Nothing is lost."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from feedstock_tools.builds.ledger import FORM, Ledger
from feedstock_tools.digests import sha256_of
from tests.support import command
from tests.support.feedstocks import CPU, GPU, HERE, STUBBORN, TinyFeedstock
from tests.support.needs import needs
from tests.support.waiting import processes_below, wait_until

pytestmark = [
    pytest.mark.usefixtures("unmeasured"),
    needs("system", sys.platform == "linux", "looks at processes through /proc"),
]


def indexed(feedstock: TinyFeedstock) -> dict[str, str]:
    """Package → hash, by the channel's index."""
    return {name: entry["sha256"] for name, entry in feedstock.index().items()}


def done(feedstock: TinyFeedstock) -> list[tuple[str, str]]:
    """Identity and hash of each package that the ledger has as done."""
    if not (feedstock.artifacts / "ledger.sqlite").exists():
        return []
    with Ledger(feedstock.artifacts / "ledger.sqlite") as ledger:
        records = [record for record in ledger.builds() if record.result == "done"]
        return [(record.identity, package.sha256) for record in records for package in record.packages]


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_loses_nothing_and_builds_nothing_twice(feedstock: TinyFeedstock) -> None:
    chance = random.Random(20)  # noqa: S311 - moments, not secrets
    known: dict[str, str] = {}
    midway = 0
    for _ in range(5):
        run = feedstock.start_build("--all", "--jobs", "2")
        assert run.stdout is not None
        awaited = chance.choice((": begins", ": built "))  # then at a random moment, on machines of any speed
        next((line for line in run.stdout if awaited in line), "it had nothing to do")
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(chance.uniform(0, 0.7))
        run.kill()
        run.communicate()
        for name, sha256 in indexed(feedstock).items():
            assert sha256_of(feedstock.artifacts / HERE.subdir / name) == sha256
        recorded = done(feedstock)
        assert len(recorded) == len(dict(recorded))
        assert known.items() <= dict(recorded).items()  # done outputs stay done, with the same package
        midway += 0 < len(recorded) < 12
        known = dict(recorded)
    assert midway, "every run was killed before its first package or after its last"
    run = feedstock.start_build("--all", "--jobs", "2")
    output, _ = run.communicate()
    assert run.returncode == 0, output
    recorded = done(feedstock)
    assert len(recorded) == len(dict(recorded)) == len(feedstock.packages()) == 12
    assert known.items() <= dict(recorded).items()
    assert sorted(sha256 for _, sha256 in recorded) == sorted(indexed(feedstock).values())
    assert not list(feedstock.artifacts.glob("*/.*.part"))


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_several_builds_that_ignore_signals_leave_nothing_behind(
    feedstock: TinyFeedstock, number: int, status: int
) -> None:
    stubborn = STUBBORN.replace('"$RECIPE_DIR/../begun"', '"$RECIPE_DIR/../begun-$PKG_BUILD_STRING"')
    feedstock.edit("recipe/build-library.sh", "mkdir", stubborn)
    run = feedstock.start_build("--all", "--jobs", "2")
    try:
        # The scripts may begin before the run has recorded them.
        wait_until(
            lambda: (
                run.poll() is not None
                or (len(list(feedstock.folder.glob("begun-*"))) == 2 and len(feedstock.records()) == 2)
            )
        )
        run.send_signal(number)
        if number == signal.SIGINT:  # as people press Ctrl-C
            time.sleep(0.1)
            run.send_signal(number)
        output, _ = run.communicate(timeout=120)
        assert run.returncode == status, output
        assert ("Ending 2 builds. Finished packages stay" in output) == (number != signal.SIGKILL)
        wait_until(lambda: not processes_below(feedstock.artifacts))
        with Ledger(feedstock.artifacts / "ledger.sqlite") as ledger:
            results = [record.result for record in ledger.builds()]
        assert results == ["running" if number == signal.SIGKILL else "interrupted"] * 2
    finally:
        run.kill()
        for pid in processes_below(feedstock.artifacts):
            os.kill(pid, signal.SIGKILL)


def test_a_log_folder_that_is_removed_does_not_end_a_build(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(2)
    feedstock.edit("recipe/build-library.sh", "mkdir", 'rm -r "$RECIPE_DIR/../build_artifacts/logs"\nmkdir')
    run = feedstock.build(f"{CPU}_py3.11")
    assert run.returncode == 0, run.stdout + run.stderr
    assert len(done(feedstock)) == 2
    assert "Nothing to do" in feedstock.build(f"{CPU}_py3.11").stdout


def test_a_ledger_of_another_form_ends_the_run_before_anything_is_built(feedstock: TinyFeedstock) -> None:
    feedstock.artifacts.mkdir()
    connection = sqlite3.connect(feedstock.artifacts / "ledger.sqlite")
    connection.execute(f"PRAGMA user_version = {FORM + 1}")
    connection.close()
    run = feedstock.build("--all", "--jobs", "2")
    assert run.returncode == 1
    assert "another version of feedstock-tools wrote this ledger" in run.stderr
    assert feedstock.packages() == []


def test_a_ledger_that_is_locked_while_builds_run_ends_them_with_a_message(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(1)
    feedstock.edit("recipe/build-library.sh", "mkdir", 'touch "$RECIPE_DIR/../begun"\nsleep 0.5\nmkdir')
    program = "from feedstock_tools.builds.ledger import database; database._WAIT_SECONDS = 0.2"
    rows = (f"{GPU}_py3.11", f"{CPU}_py3.11", "--jobs", "2")
    run = command.start(feedstock.patched_build(program, *rows), feedstock.folder)
    wait_until(lambda: (feedstock.folder / "begun").exists() or run.poll() is not None)
    holder = sqlite3.connect(feedstock.artifacts / "ledger.sqlite", isolation_level=None, timeout=10)
    holder.execute("BEGIN EXCLUSIVE")
    output, _ = run.communicate(timeout=120)
    holder.close()
    assert run.returncode == 1, output
    assert "Another program holds it" in output
    assert "Traceback" not in output
    wait_until(lambda: not processes_below(feedstock.artifacts))
    assert feedstock.build(*rows).returncode == 0
    assert len(done(feedstock)) == len(feedstock.packages()) == 2


def test_a_broken_package_in_the_channel_is_named_and_nothing_is_lost(gpu_feedstock: TinyFeedstock) -> None:
    broken = gpu_feedstock.artifacts / HERE.subdir / "other-1.0-0.conda"
    broken.write_bytes(b"not a package")
    next(gpu_feedstock.artifacts.glob("*/tiny-gpu-*.conda")).unlink()
    run = gpu_feedstock.build(f"{GPU}_py3.11")
    assert run.returncode == 1
    assert str(broken) in run.stdout
    assert "Remove the damaged package" in run.stdout
    assert len(gpu_feedstock.packages()) == 4
    broken.unlink()
    assert gpu_feedstock.build(f"{GPU}_py3.11").returncode == 0
    assert sorted(indexed(gpu_feedstock)) == gpu_feedstock.packages()
    assert len(dict(done(gpu_feedstock))) == len(gpu_feedstock.packages()) == 4


@pytest.mark.parametrize("listed", [True, False], ids=["the index agrees", "the index has another hash"])
@pytest.mark.parametrize(
    "content", [b"PK\3\4 half of it", b"<html>Not found</html>", b""], ids=["cut", "page", "empty"]
)
def test_a_package_that_cannot_be_unpacked_is_named(
    content: bytes, listed: bool, feedstock: TinyFeedstock, tiny_channel: Path, tmp_path: Path, within_limits: None
) -> None:
    channel = Path(shutil.copytree(tiny_channel, tmp_path / "channel"))
    (broken,) = channel.glob("*/tiny-compiler-*.conda")
    broken.write_bytes(content)
    if listed:
        index = json.loads((broken.parent / "repodata.json").read_text())
        index["packages.conda"][broken.name] |= {"sha256": sha256_of(broken), "size": len(content), "md5": None}
        (broken.parent / "repodata.json").write_text(json.dumps(index))
    run = TinyFeedstock(feedstock.folder, channel).build(f"{CPU}_py3.11", "--retries", "0")
    assert run.returncode == 1
    assert "a package of its environments cannot be unpacked" in run.stdout
    assert f"{broken}: this is not a readable conda package" in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


def test_a_package_that_breaks_in_the_channel_is_built_again(gpu_feedstock: TinyFeedstock) -> None:
    (package,) = gpu_feedstock.artifacts.glob("*/libtiny-*.conda")
    package.write_bytes(package.read_bytes()[:100])
    assert gpu_feedstock.build(f"{GPU}_py3.11").returncode == 0
    assert indexed(gpu_feedstock)[package.name] == sha256_of(package)


def test_a_clock_that_jumps_changes_nothing_in_what_is_done(gpu_feedstock: TinyFeedstock) -> None:
    connection = sqlite3.connect(gpu_feedstock.artifacts / "ledger.sqlite")
    connection.execute(
        "UPDATE builds SET started = '2099-01-01T00:00:00.000+00:00', ended = '1999-01-01T00:00:00.000+00:00'"
    )
    connection.commit()
    connection.close()
    for package in gpu_feedstock.artifacts.glob("*/*.conda"):
        os.utime(package, (4_000_000_000, 4_000_000_000))
    assert "Nothing to do" in gpu_feedstock.build(f"{GPU}_py3.11").stdout
    gpu_feedstock.edit("recipe/recipe.yaml", 'pin_subpackage("tiny", exact=true) }}', 'pin_subpackage("tiny") }}')
    run = gpu_feedstock.build(f"{GPU}_py3.11")
    assert run.returncode == 0, run.stdout
    assert "Nothing to do" not in run.stdout
    assert "Nothing to do" in gpu_feedstock.build(f"{GPU}_py3.11").stdout


#: Runs the command line with a clock that jumps once the log of the first build has begun.
JUMPING = """
import time
from datetime import datetime, timedelta
from feedstock_tools.builds.runs import logs as row_log
from feedstock_tools.builds.ledger import records
logged, real = [], time.time
class Jumping(datetime):
    @classmethod
    def now(cls, zone=None):
        return datetime.now(zone) + (timedelta(hours={hours}) if len(logged) > 3 else timedelta())
class Logging(Jumping):
    @classmethod
    def now(cls, zone=None):
        logged.append(1)
        return super().now(zone)
records.datetime, row_log.datetime = Jumping, Logging
time.time = lambda: real() + ({hours} * 3600 if len(logged) > 3 else 0)
"""


@pytest.mark.parametrize("hours", [-5, 5])
def test_a_clock_that_jumps_during_a_run_ends_no_build_and_makes_no_time_negative(
    feedstock: TinyFeedstock, hours: int
) -> None:
    feedstock.keep_outputs(2)
    program = feedstock.patched_build(JUMPING.format(hours=hours), GPU, "--jobs", "2", "--timeout", "10 min")
    run = command.run(program, feedstock.folder)
    assert run.returncode == 0, run.stdout + run.stderr
    with Ledger(feedstock.artifacts / "ledger.sqlite") as ledger:
        records = ledger.builds()
    assert {record.result for record in records} == {"done"}
    assert all(0 <= record.seconds < 300 for record in records if record.seconds is not None)
    jumped = [record for record in records if record.ended and abs(_hours(record.started, record.ended)) > 4]
    assert jumped, "the clock was to jump while a build ran"
    status = feedstock.run("status", GPU, "--channel", str(feedstock.channel), "--json")
    assert status.returncode == 0, status.stderr
    (configuration,) = json.loads(status.stdout)["configurations"]
    assert configuration["state"] == "done"
    assert 0 <= configuration["seconds"] < 600
    assert "Nothing to do" in feedstock.build(GPU).stdout


def _hours(begin: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds() / 3600


def test_a_recipe_that_is_edited_during_a_run_is_not_taken_for_what_was_built(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(1)
    edit = 'case $PKG_BUILD_STRING in cpu*) echo "# edited" >> "$RECIPE_DIR/build-library.sh";; esac\nmkdir'
    feedstock.edit("recipe/build-library.sh", "mkdir", edit)
    before = (feedstock.folder / "recipe" / "build-library.sh").read_text()
    run = feedstock.build(f"{GPU}_py3.11", f"{CPU}_py3.11")
    assert run.returncode == 1
    assert "have changed since the run began" in run.stdout
    assert len(done(feedstock)) == 1
    (feedstock.folder / "recipe" / "build-library.sh").write_text(before)  # the very inputs that were planned
    listed = feedstock.build("--list", "--json", CPU)
    assert json.loads(listed.stdout)[0]["built"] is False


def test_files_that_are_merely_touched_during_a_run_change_nothing(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(2)
    feedstock.edit("recipe/build-library.sh", "mkdir", 'touch "$RECIPE_DIR/recipe.yaml"\nmkdir')
    run = feedstock.build(f"{CPU}_py3.11")
    assert run.returncode == 0, run.stdout
    assert "Nothing to do" in feedstock.build(f"{CPU}_py3.11").stdout


def test_a_script_may_leave_files_in_the_recipes_folder(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(2)
    feedstock.edit("recipe/build-library.sh", "mkdir", 'echo MIT > "$RECIPE_DIR/collected.txt"\nmkdir')
    run = feedstock.build(f"{CPU}_py3.11")
    assert run.returncode == 0, run.stdout
    assert (feedstock.folder / "recipe" / "collected.txt").is_file()


def test_a_rerender_and_a_rebase_that_change_nothing_leave_a_build_done(gpu_feedstock: TinyFeedstock) -> None:
    fresh = gpu_feedstock.folder.with_name("again")
    shutil.copytree(gpu_feedstock.folder, fresh, symlinks=True)
    for path in fresh.rglob("*"):  # as git checks them out
        if "build_artifacts" not in path.parts and path.is_file():
            os.utime(path)
    for configuration in (fresh / ".ci_support").glob("*.yaml"):
        configuration.write_text("# rerendered\n" + configuration.read_text())
    Path(fresh, "README.md").write_text("rebased")
    run = TinyFeedstock(fresh, gpu_feedstock.channel).build(f"{GPU}_py3.11")
    assert "Nothing to do" in run.stdout


def test_an_output_folder_among_the_recipes_files_is_refused(feedstock: TinyFeedstock) -> None:
    run = feedstock.build(f"{CPU}_py3.11", "--output-dir", "recipe/out")
    assert run.returncode == 2
    assert "the artifacts folder cannot be inside the recipe folder" in run.stderr
