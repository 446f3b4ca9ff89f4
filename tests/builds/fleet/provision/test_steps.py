"""The steps that make a host: the same in roles and script, all undone, nothing secret but the host's certificate."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from feedstock_tools.builds.fleet.folder import FleetFolder, add_host, make_fleet, move_hub
from feedstock_tools.builds.fleet.provision.ansible import write_project
from feedstock_tools.builds.fleet.provision.checks import CHECKS
from feedstock_tools.builds.fleet.provision.hosts import write_scripts
from feedstock_tools.builds.fleet.provision.inventory import Inventory
from feedstock_tools.builds.fleet.provision.playing import results_of
from feedstock_tools.builds.fleet.provision.reasons import reason_of
from feedstock_tools.builds.fleet.provision.roles import HOST_FILES, ROLES
from feedstock_tools.builds.fleet.provision.script import provision_script
from feedstock_tools.builds.fleet.provision.settings import Plan
from feedstock_tools.builds.fleet.provision.steps import Account, Folder, Sent, Service, Shell, Text, Values
from feedstock_tools.builds.fleet.provision.values import Payload, host_settings, values_of
from feedstock_tools.builds.fleet.provision.wheelhouse import Archive
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
    bazel="6.1.0",
    bazel_file="bazel",
    numpy="1.26.4",
    is_hub=True,
)
WITHOUT_WINDOWS = needs("system", sys.platform != "win32", "bash, or Ansible, which does not run on Windows")


def _values(plan: Plan = ALL) -> Values:
    payload = Payload("wheelhouse.tar", "abc", "debs.tar", "def")
    return values_of(plan, "mine", payload, {"worker": "worker", "hub": "hub"}, "123", "1.0")


def _shell_plan() -> Plan:
    return Plan("h2", "203.0.113.7:8786", supervisor="shell")


@WITHOUT_WINDOWS
@pytest.mark.parametrize("plan", [ALL, _shell_plan()], ids=["all", "least"])
def test_shellcheck_finds_nothing_in_the_script(tmp_path: Path, plan: Plan) -> None:
    (tmp_path / "provision.sh").write_text(provision_script(_values(plan), "1.0"))
    checker = Path(sys.executable).with_name("shellcheck")
    found = subprocess.run([str(checker), "provision.sh"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout


@WITHOUT_WINDOWS
@pytest.mark.slow
def test_ansible_lint_passes_the_playbooks_at_its_profile_for_production(tmp_path: Path) -> None:
    write_project(tmp_path, {"h1": _values()}, {"h1": provision_script(_values(), "1.0")})
    # The plays of all playbooks in one: ansible-lint starts Ansible once more for each playbook.
    plays = [(tmp_path / f"{name}.yml").read_text().removeprefix("---\n") for name in ("up", "down", "test")]
    (tmp_path / "all.yml").write_text("---\n" + "".join(plays))
    linter = Path(sys.executable).with_name("ansible-lint")
    command = [str(linter), "--offline", "--profile", "production", "--nocolor", "all.yml"]
    variables = {**os.environ, "PATH": f"{linter.parent}:{os.environ['PATH']}"}
    found = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
    assert f"0 failure(s), 0 warning(s) in {1 + 5 + 2} files processed" in found.stderr, found.stderr


def test_ansible_and_the_script_have_the_same_steps(tmp_path: Path) -> None:
    write_project(tmp_path, {"h1": _values()}, {})
    tasks = [
        f"{role.name}: {task['name']}"
        for role in ROLES
        for task in yaml.safe_load((tmp_path / "roles" / role.name / "tasks" / "main.yml").read_text())
        if "ansible.builtin.meta" not in task
    ]
    script = provision_script(_values(), "1.0")
    steps = [step.strip("'").replace("'\"'\"'", "'") for step in re.findall(r"^  step (.*)$", script, re.MULTILINE)]
    shell_only = [task for task in tasks if "loop of" in task]
    assert steps == [task for task in tasks if task not in shell_only]
    assert len(shell_only) == 4


def test_what_is_switched_off_is_no_step_but_removed_all_the_same() -> None:
    script = provision_script(_values(_shell_plan()), "1.0")
    assert "toolchain: Install compilers" not in script
    assert "systemctl enable" not in script.partition("\nup() {")[2].partition("\ndown() {")[0]
    for path in ("/opt/feedstock-tools/activate", "/etc/systemd/system/feedstock-tools-hub.service"):
        assert f"  gone {path}\n" in script


def test_each_step_has_its_removal() -> None:
    down = provision_script(_values(), "1.0").partition("\ndown() {")[2].partition("\n}\n")[0]
    for role in ROLES:
        for step in role.steps:
            if isinstance(step, Folder | Text | Sent) and not step.path.endswith("-fleet/fleet"):
                path = step.path.replace("{{ fleet_root }}", ALL.root)
                assert f"  gone {path}\n" in f"{down}\n"
            elif isinstance(step, Account):
                assert "  account_gone builder\n" in down
            elif isinstance(step, Service):
                assert f"  service_gone {step.unit}\n" in down
            elif isinstance(step, Shell) and step.undo:
                assert f"$(undo_{role.name}_" in down


def test_no_statement_is_read_as_a_template_of_ansible() -> None:
    for role in ROLES:
        for step in role.steps:
            if isinstance(step, Shell):
                left = re.sub(r"\{\{ fleet_\w+ \}\}", "", step.statements)
                assert not re.search(r"\{\{|\{%|\{#", left), step.name


def test_units_have_the_resources_and_no_environment_but_three_variables() -> None:
    values = _values()
    unit = str(values["fleet_unit_worker"])
    assert "\nMemoryMax=8589934592\n" in unit and "\nCPUQuota=400%\n" in unit
    assert "\nRestart=always\n" in unit and "\nKillMode=control-group\n" in unit and "\nUser=builder\n" in unit
    variables = re.findall(r" ([A-Z_]+)=", unit.partition("ExecStart=")[2].partition("\n")[0])
    assert "ExecStart=/usr/bin/env -i " in unit and variables == ["PATH", "HOME", "LANG"]
    assert "Environment" not in unit
    assert "MemoryMax" not in str(values["fleet_unit_hub"])
    assert "MemoryMax" not in str(_values(_shell_plan())["fleet_unit_worker"])


def test_a_unit_changes_with_the_wheels_and_the_settings_so_that_its_service_starts_again() -> None:
    first, given = _values()["fleet_unit_worker"], {"worker": "worker", "hub": "hub"}
    for payload, digest in ((Payload("w", "other"), "123"), (Payload("w", "abc"), "other")):
        assert values_of(ALL, "mine", payload, given, digest, "1.0")["fleet_unit_worker"] != first


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
    assert files.keys() == {"provision.sh", "wheelhouse.tar", *(f"worker/{name}" for name in HOST_FILES)}
    secrets = {
        path.name if path.parent == fleet.path else path.relative_to(fleet.path).as_posix(): path.read_bytes()
        for path in fleet.path.rglob("*.key")
    }
    assert len(secrets) == 6  # of the authority, the client, the orders, the hub, and two hosts
    for name, path in files.items():
        content = path.read_bytes()
        assert b"ghp_notforhosts" not in content and str(tmp_path).encode() not in content, name
        held = {key for key, secret in secrets.items() if secret in content}
        assert held == ({"hosts/h2/own.key"} if name == "worker/own.key" else set()), name
    assert os.name == "nt" or files["worker/own.key"].stat().st_mode & 0o77 == 0


def test_ansible_sends_the_same_files_and_no_others(tmp_path: Path) -> None:
    write_project(tmp_path, {"h1": _values()}, {})
    sources = {
        task["ansible.builtin.copy"]["src"]
        for role in ROLES
        for task in yaml.safe_load((tmp_path / "roles" / role.name / "tasks" / "main.yml").read_text())
        if "src" in task.get("ansible.builtin.copy", {})
    }
    given = {f"{{{{ fleet_given_worker }}}}/{name}" for name in HOST_FILES}
    hub = {f"{{{{ fleet_given_hub }}}}/{name}" for name in ("authority.crt", "own.crt", "own.key")}
    archives = {"{{ fleet_wheelhouse }}", "{{ fleet_debs_archive }}", "{{ fleet_bazel_file }}"}
    assert sources == given | hub | archives


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
    (tmp_path / "provision.sh").write_text(provision_script(_values(), "1.0"))
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
    assert {check.name for check in CHECKS} == set(
        re.findall(r"report \"\$\?\" (\S+)", provision_script(_values(), "1"))
    )
    least = re.findall(r"report \"\$\?\" (\S+)", provision_script(_values(_shell_plan()), "1"))
    assert least == ["hello-world", "service"]


@needs("system", sys.platform == "linux", "Linux, whose bash ends a function at its first error")
def test_a_check_fails_with_the_first_of_its_statements_that_fails(tmp_path: Path) -> None:
    for program in ("gcc", "g++", "gfortran", "nvidia-smi", "runuser"):
        (tmp_path / program).write_text(f"#!/bin/sh\necho {program} is broken\nexit 3\n")
        (tmp_path / program).chmod(0o755)
    definitions = provision_script(_values(), "1.0").partition("\n[[ $# == 1 ]]")[0]
    (tmp_path / "checks.sh").write_text(f"{definitions}\ntest\n")
    variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ran = subprocess.run(["bash", "checks.sh"], cwd=tmp_path, env=variables, capture_output=True, text=True, check=True)
    results = {line.split("\t")[1]: line.split("\t")[::2] for line in ran.stdout.splitlines()}
    assert {check: word for check, (word, _) in results.items()} == dict.fromkeys(results, "failed")
    assert results.keys() == {check.name for check in CHECKS}
    assert results["compilers"][1] == "gcc is broken"
    assert results["gpu"][1] == "0 of 1: runuser is broken"
