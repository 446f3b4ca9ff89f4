"""`feedstock-tools fleet`, and what `build --fleet` says before anything begins."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from feedstock_tools.builds.fleet.folder import find_fleet, fleet_name, fleets_root
from feedstock_tools.builds.fleet.provision.inventory import read_inventory
from feedstock_tools.builds.ledger import BuildRecord, Ledger, now
from feedstock_tools.builds.plan.agenda import agenda
from feedstock_tools.builds.plan.hosts import Capacity
from feedstock_tools.builds.plan.workspace import open_workspace
from feedstock_tools.errors import InputError
from feedstock_tools.report.fleet import status_json, status_text
from tests.support import command
from tests.support.feedstocks import HERE, TinyFeedstock
from tests.support.fleets import Fleet, fleet_in
from tests.support.waiting import wait_until

GPU_ROWS, CPU_ROWS = f"{HERE.name}_cuda_compiler_version11.2", f"{HERE.name}_cuda_compiler_versionNone"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet of one host."""
    with fleet_in(tmp_path_factory.mktemp("fleet"), 1) as made:
        yield made


def _run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command.run(
        command.tool(*arguments), tmp_path, command.environment(XDG_CONFIG_HOME=str(tmp_path / "config"))
    )


def test_new_makes_what_the_hub_and_the_hosts_get(tmp_path: Path) -> None:
    made = _run(tmp_path, "fleet", "new", "mine", "--hub", "203.0.113.7:8786", "--host", "h1", "--host", "h2")
    assert made.returncode == 0, made.stderr
    folder = tmp_path / "config" / "feedstock-tools" / "fleets" / "mine"
    assert f"feedstock-tools fleet hub {folder / 'hub'} 203.0.113.7:8786" in made.stdout
    assert f"feedstock-tools fleet worker {folder / 'hosts' / 'h2'}" in made.stdout
    again = _run(tmp_path, "fleet", "new", "mine", "--hub", "203.0.113.7:8786")
    assert again.returncode == 2
    assert "there is a fleet in this folder already" in again.stderr
    assert _run(tmp_path, "fleet", "new", "other", "--hub", "203.0.113.7").returncode == 2


def test_a_fleet_without_jobs_keeps_its_keys(tmp_path: Path) -> None:
    assert _run(tmp_path, "fleet", "new", "mine", "--hub", "203.0.113.7:8786").returncode == 0
    down = _run(tmp_path, "fleet", "cluster", "down", "--fleet=mine")
    assert down.returncode == 2
    assert "the fleet mine has no jobs" in down.stderr
    assert (tmp_path / "config" / "feedstock-tools" / "fleets" / "mine" / "authority.key").exists()


def test_without_a_cluster_nothing_is_made(tmp_path: Path) -> None:
    jobs = "{cores: 2, memory: 4 GiB, time: 1 h}"
    (tmp_path / "inventory.yml").write_text(
        f"all:\n  vars:\n    fleet_name: mine\n    fleet_cluster: {{cpu: {jobs}}}\n"
    )
    variables = command.environment(XDG_CONFIG_HOME=str(tmp_path / "config"), PATH=str(tmp_path))
    up = command.run(command.tool("fleet", "cluster", "up", "--fleet=inventory.yml"), tmp_path, variables)
    assert up.returncode == 2, up.stdout + up.stderr
    assert "there is no sbatch on PATH" in up.stderr
    assert not (tmp_path / "config").exists()


def test_the_jobs_of_a_cluster_are_shown() -> None:
    jobs = {
        "cpu": {"jobs": {"17": True, "18": False}, "problem": ""},
        "gpu": {"jobs": {}, "problem": "it refuses a job"},
    }
    shown = status_text({}, {}, {}, jobs).splitlines()
    assert shown[-2:] == ["jobs cpu: connected: 17; waiting: 18", "jobs gpu: none; it refuses a job"]
    assert status_json({}, {}, {}, jobs)["jobs"]["cpu"]["jobs"] == {"17": True, "18": False}


def test_status_shows_the_hosts(fleet: Fleet, tmp_path: Path) -> None:
    shown = _run(tmp_path, "fleet", "status", f"--fleet={fleet.local.fleet.path}")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[2].split()[:3] == ["h1", "present", "linux-64"]
    document = json.loads(_run(tmp_path, "fleet", "status", f"--fleet={fleet.local.fleet.path}", "--json").stdout)
    (host,) = document["hosts"]
    assert host["present"] and host["builds"] == {} and host["unfit"] is None
    stopped = _run(tmp_path, "fleet", "stop", f"--fleet={fleet.local.fleet.path}")
    assert stopped.stdout == "No run is under way.\n"


def test_a_run_that_is_stopped_ends_and_begins_nothing(fleet: Fleet, feedstock: TinyFeedstock, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    feedstock.edit("recipe/build-library.sh", "mkdir", f"echo it has begun; echo x >> {begun}; sleep 600; mkdir")
    option = f"--fleet={fleet.local.fleet.path}"
    run = command.start(feedstock.command("--all", option), feedstock.folder, command.environment())
    wait_until(begun.exists, 120)
    status = json.loads(_run(tmp_path, "fleet", "status", option, "--json").stdout)
    (name,), (row,) = status["runs"], (each["row"] for each in status["hosts"][0]["builds"].values())
    logs = command.start(command.tool("fleet", "logs", row, option), tmp_path, command.environment())
    nowhere = _run(tmp_path, "fleet", "logs", "other", option)
    assert (nowhere.returncode, f"There are: {row}." in nowhere.stderr) == (2, True), nowhere.stderr
    assert name.startswith("tiny-feedstock-")
    other = _run(tmp_path, "fleet", "stop", "another", option)
    assert (other.returncode, "there is no run 'another'" in other.stderr) == (2, True), other.stderr
    stopped = _run(tmp_path, "fleet", "stop", name, option)
    assert f"Stopped the run {name}: 1 build ended" in stopped.stdout, stopped.stderr
    output, _ = run.communicate()
    assert run.returncode == 1, output
    assert f"the run {name} was stopped" in output
    followed, _ = logs.communicate()
    assert logs.returncode == 0 and "it has begun" in followed, followed
    wait_until(lambda: not fleet.builds_of("h1"), 60)
    assert begun.read_text() == "x\n"
    assert not feedstock.packages()


def test_a_fleet_that_does_not_answer_is_named(tmp_path: Path) -> None:
    assert _run(tmp_path, "fleet", "new", "mine", "--hub", "127.0.0.1:1").returncode == 0
    shown = _run(tmp_path, "fleet", "status")
    assert shown.returncode == 1
    assert "the scheduler of the fleet at 127.0.0.1:1 cannot be reached" in shown.stderr


def test_a_row_that_no_host_can_build_is_left_out_or_refused(fleet: Fleet, feedstock: TinyFeedstock) -> None:
    osx = next((feedstock.folder / ".ci_support").glob("osx*"))
    assert osx.stem == "osx_64_"
    option = f"--fleet={fleet.local.fleet.path}"
    run = command.run(feedstock.command("osx_64_", option), feedstock.folder, command.environment())
    assert run.returncode == 2, run.stdout
    assert "osx_64_cpu cannot be built" in run.stderr
    assert not feedstock.packages()


def test_a_row_that_is_too_large_for_every_host_is_refused_if_named_and_left_out_of_all(
    fleet: Fleet, feedstock: TinyFeedstock
) -> None:
    _remember_memory(feedstock, {GPU_ROWS: 1 << 40, CPU_ROWS: 1 << 20})
    option = f"--fleet={fleet.local.fleet.path}"
    reason = f"it needs 1280.00 GiB of memory, and no host that builds for {HERE.subdir} has more than"
    named = command.run(feedstock.command(CPU_ROWS, GPU_ROWS, option), feedstock.folder, command.environment())
    assert named.returncode == 2, named.stdout
    assert f"linux_64_cuda11.2 cannot be built on this fleet: {reason}" in named.stderr
    assert not feedstock.packages()
    run = fleet.build(feedstock)
    assert run.returncode == 0, run.stdout
    assert f"Left out: linux_64_cuda11.2 cannot be built on this fleet: {reason}" in run.stdout
    built = {record.configuration for record in feedstock.records() if record.packages}
    assert built == {CPU_ROWS}
    left = feedstock.run("plan", CPU_ROWS, "--channel", str(feedstock.channel), "--json")
    assert json.loads(left.stdout)["todo"] == [], left.stdout


def _remember_memory(feedstock: TinyFeedstock, peaks: Mapping[str, int]) -> None:
    """Record earlier builds of all rows: configuration → their peak memory in bytes."""
    workspace = open_workspace(feedstock.folder, None, [str(feedstock.channel)], os.environ)
    planned = agenda(workspace, workspace.chosen(list(peaks)), Capacity.of_machine())
    with Ledger(workspace.artifacts.ledger) as ledger:
        for row in planned.todo:
            for output in row.wanted.missing:
                earlier = BuildRecord(
                    "earlier", row.configuration, row.name, output.name, "done", now(), "", "earlier", ()
                )
                done = replace(ledger.begin(earlier), result="done", ended=now(), peak_memory=peaks[row.configuration])
                ledger.finish(done)


def test_a_fleet_is_meant_by_its_inventory_its_folder_or_its_name(tmp_path: Path) -> None:
    for name in ("mine", "inventory"):
        assert _run(tmp_path, "fleet", "new", name, "--hub", "127.0.0.1:1").returncode == 0
    variables = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    with pytest.raises(InputError, match="no fleet is named"):
        find_fleet("", tmp_path, variables)
    (tmp_path / "inventory.yml").write_text("all:\n  hosts: {}\n")
    assert find_fleet("inventory.yml", tmp_path, variables).name == "inventory"
    (tmp_path / "gpus.yml").write_text("all:\n  vars:\n    fleet_name: mine\n")
    assert find_fleet("gpus.yml", tmp_path, variables).name == "mine"
    assert find_fleet("mine", tmp_path, variables).name == "mine"
    assert find_fleet(str(find_fleet("mine", tmp_path, variables).path), tmp_path, variables).name == "mine"
    with pytest.raises(InputError, match="there is no inventory, folder or fleet 'nobody'"):
        find_fleet("nobody", tmp_path, variables)
    shutil.copytree(find_fleet("mine", tmp_path, variables).path, tmp_path / "theirs")
    assert find_fleet("./theirs", tmp_path, variables).name == "mine"
    (tmp_path / "bad.yml").write_text("all:\n  vars:\n    fleet_name: ../up\n")
    with pytest.raises(InputError, match="cannot be the name"):
        fleet_name(tmp_path / "bad.yml")


def test_an_inventory_is_never_found_in_a_folder(tmp_path: Path) -> None:
    assert _run(tmp_path, "fleet", "new", "mine", "--hub", "127.0.0.1:1").returncode == 0
    variables = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    feedstock, mine = tmp_path / "feedstock", find_fleet("", tmp_path, variables).path
    for name in ("inventory.yml", ".", "theirs", "mine"):
        shutil.copytree(mine, feedstock / name, dirs_exist_ok=True)
    assert find_fleet("", feedstock, variables).path == mine
    assert find_fleet("mine", feedstock, variables).path == mine
    relative = fleets_root({"XDG_CONFIG_HOME": ".", "HOME": str(tmp_path)})
    assert relative.is_absolute(), "the current folder may be a feedstock"
    for name in ("inventory.yml", "theirs"):
        with pytest.raises(InputError, match="there is no inventory, folder or fleet"):
            find_fleet(name, feedstock, variables)
    for words in (["up"], ["down"], ["test"], ["cluster", "up"]):
        run = _run(feedstock, "fleet", *words)
        assert run.returncode == 2 and "no inventory is named" in run.stderr, run.stderr
    shutil.rmtree(feedstock / "mine")
    (feedstock / "mine").write_text("all: {hosts: {h1: {ansible_connection: local}}}\n")
    # the name of a fleet, and of a file of the feedstock
    run = command.run(command.tool("fleet", "test", "--fleet=mine"), feedstock, command.environment(**variables))
    assert run.returncode == 2 and "no inventory is named" in run.stderr, run.stderr


def test_an_inventory_that_may_be_executed_is_read(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    inventory = tmp_path / "inventory.yml"
    hosts = 'all: {vars: {fleet_hub: "127.0.0.1:1"}, hosts: {one: {ansible_connection: local}}}'
    inventory.write_text(f"#!{program}\n{hosts}\n")
    inventory.chmod(0o755)
    assert [host.name for host in read_inventory(inventory, os.environ).hosts] == ["one"]
    assert not (tmp_path / "ran").exists()


def test_a_host_that_is_away_is_shown_with_the_reason_that_was_found() -> None:
    away = {"h1": "its clock is 180 s behind", "h2": ""}
    lines = status_text({}, away, {}, {}).splitlines()[2:]
    assert [line.strip() for line in lines] == ["h1    away: its clock is 180 s behind", "h2    away"]
    assert [each["unfit"] for each in status_json({}, away, {}, {})["hosts"]] == ["its clock is 180 s behind", None]


def test_a_host_says_how_many_shared_builds_it_keeps() -> None:
    hosts: dict[str, dict[str, list[str]]] = {"h1": {"keeps": ["0123456789ab"]}, "h2": {"keeps": []}}
    assert status_text(hosts, {}, {}, {}).splitlines()[5:] == ["h1 keeps 1 shared build for rows to come"]
    assert [each["keeps"] for each in status_json(hosts, {}, {}, {})["hosts"]] == [["0123456789ab"], []]
