"""The steps that make a host: the same in roles and script, all undone, nothing secret but the host's certificate."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from feedstock_tools.builds.fleet.folder import FleetFolder, add_host, make_fleet, move_hub
from feedstock_tools.builds.fleet.provision import hosts
from feedstock_tools.builds.fleet.provision.ansible import write_project
from feedstock_tools.builds.fleet.provision.hosts import write_scripts
from feedstock_tools.builds.fleet.provision.inventory import Inventory
from feedstock_tools.builds.fleet.provision.playing import Played, reason_of, results_of
from feedstock_tools.builds.fleet.provision.script import provision_script
from feedstock_tools.builds.fleet.provision.settings import Plan
from feedstock_tools.builds.fleet.provision.setup import Setup, host_settings
from feedstock_tools.builds.fleet.provision.steps import FILES, checks_of, steps_of
from feedstock_tools.builds.fleet.provision.wheelhouse import Archive
from feedstock_tools.data import data_folder
from tests.support.needs import needs

ALL = Plan(
    "h1",
    "203.0.113.7:8786",
    cores=4,
    memory=8 << 30,
    gpus=1,
    container="podman",
    toolchain=("compilers", "openblas", "fftw", "hdf5"),
    modules=("gcc", "fftw/3.3"),
    debs="debs",
    bazel="6.1.0",
    bazel_file="bazel",
    numpy="1.26.4",
    is_hub=True,
)
WITHOUT_WINDOWS = needs("system", sys.platform != "win32", "bash, or Ansible, which does not run on Windows")


def _setup(plan: Plan = ALL) -> Setup:
    return Setup(plan, "mine", "abc", "def", "123")


def _shell_plan() -> Plan:
    return Plan("h2", "203.0.113.7:8786", supervisor="shell")


@WITHOUT_WINDOWS
@pytest.mark.parametrize("plan", [ALL, _shell_plan()], ids=["all", "least"])
def test_shellcheck_finds_nothing_in_the_script(tmp_path: Path, plan: Plan) -> None:
    (tmp_path / "provision.sh").write_text(provision_script(_setup(plan)))
    checker = Path(sys.executable).with_name("shellcheck")
    found = subprocess.run([str(checker), "provision.sh"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout


@WITHOUT_WINDOWS
@pytest.mark.slow
def test_ansible_lint_passes_the_playbooks_at_its_profile_for_production(tmp_path: Path) -> None:
    write_project(tmp_path, [_setup()], {})
    # The plays of all playbooks in one: ansible-lint starts Ansible once more for each playbook.
    plays = [(tmp_path / f"{name}.yml").read_text().removeprefix("---\n") for name in ("up", "down", "test")]
    (tmp_path / "all.yml").write_text("---\n" + "".join(plays))
    linter = Path(sys.executable).with_name("ansible-lint")
    command = [str(linter), "--offline", "--profile", "production", "--nocolor", "all.yml"]
    variables = {**os.environ, "PATH": f"{linter.parent}:{os.environ['PATH']}"}
    found = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
    assert f"0 failure(s), 0 warning(s) in {1} files processed" in found.stderr, found.stderr


def _functions(script: str) -> dict[str, list[str]]:
    """The commands of `up`, `down` and `checks`."""
    found = {name: script.partition(f"\n{name}() {{\n")[2].partition("\n}\n")[0] for name in ("up", "down", "checks")}
    return {name: shell.splitlines() for name, shell in found.items()}


def test_ansible_and_the_script_have_the_same_steps_for_each_host(tmp_path: Path) -> None:
    write_project(tmp_path, [_setup(), _setup(_shell_plan())], {})
    (play,) = yaml.safe_load((tmp_path / "up.yml").read_text())
    names = [step.name for step in steps_of(_setup())]
    assert [task["name"] for task in play["tasks"]][1:-2] == names
    assert [step.name for step in steps_of(_setup(_shell_plan()))] == names
    calls = "\n".join(_functions(provision_script(_setup()))["up"])
    on = [step.name for step in steps_of(_setup()) if step.on]
    assert re.findall(r"\|\| run '(.*?)' ", calls) == on
    assert {name for name in names if name not in on} == {
        f"{what} the loop of the {role}" for role in FILES for what in ("Write", "Run")
    }


def test_what_is_switched_off_is_no_step_but_removed_all_the_same() -> None:
    steps = _functions(provision_script(_setup(_shell_plan())))
    assert "Install compilers" not in "\n".join(steps["up"])
    assert not any("service feedstock" in line for line in steps["up"])
    for path in ("/opt/feedstock-tools/activate", "/etc/systemd/system/feedstock-tools-hub.service"):
        assert any(line.endswith(f" gone {path}") for line in steps["down"])


def test_each_step_that_makes_something_has_its_removal_in_the_opposite_order() -> None:
    down = _functions(provision_script(_setup()))["down"]
    undone = [step for step in steps_of(_setup()) if step.undo]
    assert down[:-1] == [f"  run 'Undo {step.name}' {step.undo}".strip() for step in reversed(undone)]
    for step in steps_of(_setup()):
        word, *arguments = step.call.split()
        if word in ("folder", "text", "sent") and not step.call.startswith("text /var/lib/feedstock-tools-fleet/fleet"):
            assert step.undo == f"gone {arguments[word == 'sent']}"
        elif word in ("account", "service", "loop"):
            assert step.undo.split() == [f"{word}_gone", *arguments]


def test_units_have_the_resources_and_no_environment_but_three_variables() -> None:
    unit = _setup().unit("worker")
    assert "\nMemoryMax=8589934592\n" in unit and "\nCPUQuota=400%\n" in unit
    assert "\nRestart=always\n" in unit and "\nKillMode=control-group\n" in unit and "\nUser=builder\n" in unit
    variables = re.findall(r" ([A-Z_]+)=", unit.partition("ExecStart=")[2].partition("\n")[0])
    assert "ExecStart=/usr/bin/env -i " in unit and variables == ["PATH", "HOME", "LANG"]
    assert "Environment" not in unit
    assert "MemoryMax" not in _setup().unit("hub")
    assert "MemoryMax" not in _setup(_shell_plan()).unit("worker")


def test_a_unit_changes_with_the_wheels_and_the_settings_so_that_its_service_starts_again() -> None:
    first = _setup()
    for other in (replace(first, wheels="other"), replace(first, folders="other")):
        assert other.unit("worker") != first.unit("worker")


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FleetFolder:
    """A fleet with two hosts, and with variables that are nobody's business."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GH_TOKEN", "ghp_notforhosts")
    made = make_fleet(tmp_path / "config" / "feedstock-tools" / "fleets" / "mine", "mine", ALL.hub)
    for host in ("h1", "h2"):
        add_host(made, host, {"root": ALL.root})
    return made


def test_a_host_gets_its_own_certificate_and_nothing_else_that_is_secret(
    fleet: FleetFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "wheels.tar"
    archive.write_bytes(b"wheels")
    where = "feedstock_tools.builds.fleet.provision.hosts.wheelhouse"
    monkeypatch.setattr(where, lambda *_: Archive(archive, "abc"))
    inventory = Inventory(tmp_path / "inventory.yml", "mine", (_shell_plan(),))
    (folder,) = write_scripts(inventory, tmp_path / "scripts", os.environ, lambda _: None)
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    assert files.keys() == {"provision.sh", "wheelhouse.tar", *(f"worker/{name}" for name in FILES["worker"])}
    secrets = {
        path.name if path.parent == fleet.path else path.relative_to(fleet.path).as_posix(): path.read_bytes()
        for path in fleet.path.rglob("*.key")
    }
    assert len(secrets) == 5  # of the authority, the client, the hub, and two hosts
    for name, path in files.items():
        content = path.read_bytes()
        assert b"ghp_notforhosts" not in content and str(tmp_path).encode() not in content, name
        held = {key for key, secret in secrets.items() if secret in content}
        assert held == ({"hosts/h2/own.key"} if name == "worker/own.key" else set()), name
    assert os.name == "nt" or files["worker/own.key"].stat().st_mode & 0o77 == 0


def test_why_a_host_is_unfit_is_noted_until_it_is_fit(
    fleet: FleetFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = [Played("h1", 0, None), Played("h2", 0, "Check that the machine suits: its clock")]
    monkeypatch.setattr(hosts, "play", lambda *_: ran)
    inventory = Inventory(tmp_path / "inventory.yml", "mine", (replace(_shell_plan(), name="h1"), _shell_plan()))
    printed = fleet.path / "provision" / "scripts" / "h1.test"
    printed.parent.mkdir(parents=True)
    printed.write_text("ok\tmachine\t\nfailed\tdisk\t5M free in /srv\nfailed\thello-world\t\n")
    hosts.check(inventory, os.environ, lambda _: None)
    assert hosts.why_unfit(fleet) == {"h1": "disk: 5M free in /srv", "h2": "Check that the machine suits: its clock"}
    ran[1] = Played("h2", 0, None)
    (printed.parent / "h2.test").write_text("ok\tmachine\t\n")
    hosts.check(inventory, os.environ, lambda _: None)
    assert hosts.why_unfit(fleet).keys() == {"h1"}


def test_a_certificate_stays_until_it_is_almost_over(fleet: FleetFolder) -> None:
    certificate = fleet.for_host("h1") / "own.crt"
    before = certificate.read_bytes()
    add_host(fleet, "h1", host_settings(ALL))
    assert certificate.read_bytes() == before
    certificate.write_bytes(b"damaged")
    add_host(fleet, "h1", host_settings(ALL))
    assert certificate.read_bytes() not in (before, b"damaged")
    moved = move_hub(fleet, "203.0.113.8:1")
    assert b"203.0.113.8:1" in (add_host(moved, "h1", {"root": ALL.root}) / "host.json").read_bytes()


@WITHOUT_WINDOWS
def test_the_script_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "provision.sh").write_text(provision_script(_setup()))
    for words in ([], ["away"], ["up", "down"]):
        ended = subprocess.run(
            [str(shutil.which("bash")), "provision.sh", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 2
        assert "usage: provision.sh up|down|test" in ended.stderr


def test_what_ansible_says_becomes_results() -> None:
    said = """\
TASK [base : Check that the machine suits and is free] *************************
fatal: [h3]: UNREACHABLE! => {"changed": false, "msg": "Task failed: Failed to connect", "unreachable": true}
TASK [base : Send the wheels] **************************************************
fatal: [h2]: FAILED! => {"changed": true, "msg": "non-zero return code", "rc": 1, "stderr": "no python3", "stdout": ""}
h1                         : ok=21   changed=16   unreachable=0    failed=0    skipped=4    rescued=0    ignored=0
h2                         : ok=1    changed=0    unreachable=0    failed=1    skipped=0    rescued=0    ignored=0
h3                         : ok=0    changed=0    unreachable=1    failed=0    skipped=0    rescued=0    ignored=0
"""
    one, two, three, four = results_of(said.splitlines(), ["h1", "h2", "h3", "h4"])
    assert (one.changed, one.error) == (16, None)
    assert (two.error, two.absent) == ("Send the wheels: no python3", False)
    assert (three.error, three.absent) == ("cannot be reached by SSH: Failed to connect", True)
    assert four.error == "Ansible ended before it was done"


_SSH = "Task failed: Failed to connect to the host via ssh: "


@pytest.mark.parametrize(
    ("message", "found", "advice"),
    [
        (f"{_SSH}me@h: Permission denied (publickey,password).", "me@h: Permission denied", "ansible_password"),
        ("Invalid/incorrect password: Permission denied, please try again.", "incorrect password", "ansible_password"),
        (f"{_SSH}ssh: connect to host h port 22: Connection refused", "port 22: Connection refused", "machine runs"),
        (f"{_SSH}ssh: connect to host h port 22: No route to host", "No route to host", "its address (ansible_host"),
        (f"{_SSH}ssh: connect to host h port 22: Connection timed out", "timed out", "firewall"),
        (f"{_SSH}ssh: Could not resolve hostname h: Name or service not known", "resolve hostname h", "ansible_host"),
        (f"{_SSH}a warning\nHost key verification failed.", "Host key verification failed", "known_hosts"),
        ("Task failed: Missing sudo password", "Missing sudo password", "ansible_become_password"),
        ("Task failed: Incorrect sudo password", "Incorrect sudo password", "ansible_become_password"),
        ("OSError: [Errno 28] No space left on device: '/tmp/x'", "No space left on device", "df -h"),
        ("E: You don't have enough free space in /var/cache/apt/archives/.", "enough free space in /var", "df -h"),
    ],
)
def test_a_failure_is_one_line_with_what_was_tried_and_what_to_do(message: str, found: str, advice: str) -> None:
    absent = message.startswith(_SSH)
    reason = reason_of(json.dumps({"msg": message}), "Send the wheels", absent=absent)
    assert reason.startswith("cannot be reached by SSH: " if absent else "Send the wheels: ")
    assert found in reason and advice in reason and "\n" not in reason and "Task failed" not in reason


def test_checks_are_made_where_their_switch_is_on() -> None:
    assert [name for name, _ in checks_of(_shell_plan())] == ["machine", "disk", "hello-world", "service"]
    tools = (data_folder("templates") / "fleet-provision.sh").read_text()
    for name, function in checks_of(ALL):
        assert f"check {name} {function}" in _functions(provision_script(_setup()))["checks"]
        assert f"\n{function}() {{" in tools


@needs("system", sys.platform == "linux", "Linux")
@pytest.mark.parametrize(
    ("settings", "now", "reason"),
    [
        ({"python": "3.99"}, 0, "the wheels are for 3.99: set fleet_python"),
        ({"machine": "aarch64"}, 0, "the wheels are for aarch64: set fleet_machine: x86_64"),
        ({"cores": 4096}, 0, "cores, not 4096: set fleet_cores"),
        ({"memory": 1 << 50}, 0, "of memory, not 1073741824M: set fleet_memory"),
        ({}, 3 * 3600, "the clock of this host is 180 minutes behind that of the client: set it"),
        ({}, 5, ""),
    ],
)
def test_a_machine_that_does_not_suit_says_why(tmp_path: Path, settings: dict[str, Any], now: int, reason: str) -> None:
    here = {"python": f"3.{sys.version_info.minor}", "machine": platform.machine(), **settings}
    definitions = provision_script(_setup(replace(_shell_plan(), **here))).partition("\n[[ ($# ==")[0]
    (tmp_path / "suits.sh").write_text(f"{definitions}\nsuits\n")
    variables = {**os.environ, "fleet_now": str(int(time.time()) + now)}
    ran = subprocess.run(["bash", "suits.sh"], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert (ran.returncode, reason in ran.stderr) == (int(bool(reason)), True), ran.stderr


@needs("system", sys.platform == "linux", "Linux, whose bash ends a function at its first error")
def test_a_check_fails_with_the_first_of_its_statements_that_fails(tmp_path: Path) -> None:
    for program in ("gcc", "g++", "gfortran", "nvidia-smi", "runuser"):
        (tmp_path / program).write_text(f"#!/bin/sh\necho {program} is broken\nexit 3\n")
        (tmp_path / program).chmod(0o755)
    definitions = provision_script(_setup()).partition("\n[[ ($# ==")[0]
    (tmp_path / "checks.sh").write_text(f"{definitions}\nset +e\nchecks\n")
    variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ran = subprocess.run(["bash", "checks.sh"], cwd=tmp_path, env=variables, capture_output=True, text=True, check=True)
    results = {line.split("\t")[1]: line.split("\t")[::2] for line in ran.stdout.splitlines()}
    assert {check: word for check, (word, _) in results.items()} == dict.fromkeys(results, "failed")
    assert results.keys() == {name for name, _ in checks_of(ALL)}
    assert results["compilers"][1] == "gcc is broken"
    assert results["gpu"][1] == "0 of 1: runuser is broken"
