"""`build --all --fleet`: the packages, the table, the ledger and the plan of one machine."""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from feedstock_tools.builds.matrix.live import read_runs
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.files.temporary import remove
from tests.support import command
from tests.support.feedstocks import TinyFeedstock
from tests.support.fleets import Fleet, fleet_in
from tests.support.needs import needs
from tests.support.waiting import wait_until

pytestmark = needs("system", sys.platform == "linux", "looks at processes through /proc")
HOSTS = ("h1", "h2", "h3")
#: What the tiny feedstock builds.
ROWS = 4
#: A script that takes long enough for something to happen to it, and tells when it began.
SLOW = 'echo "$PKG_BUILD_STRING" >> "$RECIPE_DIR/../../../../../../begun"; sleep 4; mkdir'


@pytest.fixture(scope="module")
def of_all_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet of three hosts."""
    with fleet_in(tmp_path_factory.mktemp("fleet"), len(HOSTS)) as made:
        yield made


@pytest.fixture
def fleet(of_all_tests: Fleet) -> Fleet:
    """The fleet with all hosts there, none of which has begun a build."""
    for host in HOSTS:
        home = of_all_tests.local.home_of(host)
        (home / "begun").unlink(missing_ok=True)
        for attempt in (home / "work" / "attempts").iterdir():  # it would be given back
            remove(attempt)
        if of_all_tests.local.processes[host].poll() is not None:
            of_all_tests.local.start_host(host)
    of_all_tests.wait_for(len(HOSTS))
    return of_all_tests


def _done(feedstock: TinyFeedstock) -> Counter[str]:
    """How often each package was built."""
    return Counter(
        package.file for record in feedstock.records() if record.result == "done" for package in record.packages
    )


def _is_whole(feedstock: TinyFeedstock, packages: int = 6) -> None:
    """Every package is present once, verified, and nothing is left to build."""
    done = _done(feedstock)
    assert len(done) == packages
    assert set(done.values()) == {1}
    assert len(feedstock.packages()) == packages
    planned = feedstock.run("plan", "--channel", str(feedstock.channel), "--json")
    assert json.loads(planned.stdout)["todo"] == [], planned.stdout


def _begun(fleet: Fleet) -> list[str]:
    """The hosts that have begun a build."""
    return [host for host in HOSTS if (fleet.local.home_of(host) / "begun").exists()]


def _first_to_begin(fleet: Fleet) -> str:
    """A host that has begun a build: hosts take rows as they come, so that any of them may get none."""
    wait_until(lambda: _begun(fleet), 60)
    return _begun(fleet)[0]


def test_a_fleet_builds_what_one_machine_builds_and_a_plan_finds_nothing_left(
    fleet: Fleet, feedstock: TinyFeedstock
) -> None:
    run = fleet.build(feedstock)
    assert run.returncode == 0, run.stdout
    _is_whole(feedstock, 12)
    assert run.stdout.count(" done (") == ROWS
    assert {record.machine for record in feedstock.records()} <= {*HOSTS}
    assert not list((feedstock.artifacts / "quarantine").iterdir())
    logs = {record.log for record in feedstock.records()}
    assert all("building tiny-base" in (feedstock.artifacts / log).read_text() for log in logs if log)
    again = fleet.build(feedstock)
    assert again.returncode == 0, again.stdout
    assert "begins" not in again.stdout
    on_one_machine = feedstock.build("--all")
    assert on_one_machine.returncode == 0
    _is_whole(feedstock, 12)


def test_a_run_shows_its_hosts_and_gives_signs_of_life_for_their_builds(fleet: Fleet, feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(2)
    feedstock.edit("recipe/build-library.sh", "mkdir", SLOW)
    program = "from feedstock_tools.builds.runs import scheduler; scheduler._SIGN_EVERY = 0.1"
    words = feedstock.patched_build(program, "--all", f"--fleet={fleet.local.fleet.path}")
    run = command.start(words, feedstock.folder)
    artifacts = Artifacts(feedstock.artifacts)
    wait_until(lambda: any(each.rows for each in read_runs(artifacts)) or run.poll() is not None)
    (shown,) = read_runs(artifacts)
    assert {host.name for host in shown.hosts if host.present} == {*HOSTS}
    assert {row.host for row in shown.rows} <= {*HOSTS}
    output, _ = run.communicate()
    assert run.returncode == 0, output
    libraries = [record for record in feedstock.records() if record.output == "libtiny"]
    assert all(record.seen > record.started for record in libraries)


def test_a_killed_host_leaves_no_process_and_its_rows_begin_elsewhere(fleet: Fleet, feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(2)
    feedstock.edit("recipe/build-library.sh", "mkdir", SLOW)
    run = fleet.start(feedstock)
    killed = _first_to_begin(fleet)
    fleet.local.processes[killed].send_signal(signal.SIGKILL)
    assert fleet.wait_until_gone(killed, 60) < 5
    output, _ = run.communicate()
    assert run.returncode == 0, output
    _is_whole(feedstock)
    assert f"{killed}: the worker of its host ended, or is cut off" in output
    interrupted = [record for record in feedstock.records() if record.result == "interrupted"]
    assert {record.machine for record in interrupted} == {killed}


def test_a_row_of_a_host_that_is_stopped_begins_elsewhere_and_the_host_joins_again(
    fleet: Fleet, feedstock: TinyFeedstock
) -> None:
    feedstock.keep_outputs(2)
    feedstock.edit("recipe/build-library.sh", "mkdir", SLOW)
    run = fleet.start(feedstock)
    stopped = _first_to_begin(fleet)
    fleet.local.processes[stopped].send_signal(signal.SIGSTOP)
    others = [host for host in HOSTS if host != stopped]
    try:
        wait_until(lambda: {*_lines(fleet, stopped)} <= {line for host in others for line in _lines(fleet, host)}, 120)
    finally:
        fleet.local.processes[stopped].send_signal(signal.SIGCONT)
    output, _ = run.communicate()
    assert run.returncode == 0, output
    _is_whole(feedstock)
    assert f"{stopped}: the worker of its host ended, or is cut off" in output
    fleet.wait_for(len(HOSTS))


def test_a_client_that_goes_away_finds_its_builds_again(fleet: Fleet, feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(2)
    feedstock.edit("recipe/build-library.sh", "mkdir", SLOW)
    for number in (signal.SIGINT, signal.SIGKILL):
        run = fleet.start(feedstock)
        wait_until(lambda: len(_begun(fleet)) >= 2, 60)
        run.send_signal(number)
        output, _ = run.communicate()
        if number == signal.SIGINT:
            assert "to the fleet. Run the same command to continue" in output
    run = fleet.start(feedstock)
    output, _ = run.communicate()
    assert run.returncode == 0, output
    _is_whole(feedstock)
    starts = [line for host in HOSTS for line in _lines(fleet, host)]
    assert sorted(starts) == sorted(set(starts)), "a build was repeated"


def test_a_scheduler_that_is_killed_and_restarted_costs_no_build(fleet: Fleet, feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(2)
    feedstock.edit("recipe/build-library.sh", "mkdir", SLOW)
    run = fleet.start(feedstock)
    wait_until(lambda: len(_begun(fleet)) >= 2, 60)
    fleet.local.processes["hub"].kill()
    fleet.local.processes["hub"].wait()
    fleet.local.start_hub()
    output, _ = run.communicate()
    assert run.returncode == 0, output
    _is_whole(feedstock)
    starts = [line for host in HOSTS for line in _lines(fleet, host)]
    assert sorted(starts) == sorted(set(starts)), "a build was repeated"


def _lines(fleet: Fleet, host: str) -> list[str]:
    file = fleet.local.home_of(host) / "begun"
    return file.read_text().splitlines() if file.exists() else []
