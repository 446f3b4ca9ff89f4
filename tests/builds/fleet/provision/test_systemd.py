"""A host with a real systemd: its worker is a service that a kill, a reboot and a build do not take from us."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from feedstock_tools import __version__
from feedstock_tools.builds.fleet.folder import FleetFolder, open_fleet
from feedstock_tools.builds.fleet.local import HUB, free_port
from feedstock_tools.processes import worker_command
from tests.support import command
from tests.support.feedstocks import TinyFeedstock
from tests.support.fleets import wait_for_hosts
from tests.support.needs import needs
from tests.support.provisioned import wheels_in
from tests.support.systemd_host import SystemdHost, systemd_host, why_no_systemd_host
from tests.support.waiting import wait_until

pytestmark = [
    needs("system", why_no_systemd_host() is None, f"a host with systemd ({why_no_systemd_host()})"),
    pytest.mark.slow,
]
UNIT = "feedstock-tools-worker"
#: The exposure that `systemd-analyze security` gives the unit, from 0 to 10.
MOST_EXPOSED = 3.0
#: The private folders of systemd's own services, named anew at each start, and what its timer copies at midnight.
_OF_SYSTEMD = re.compile(r"var/tmp/systemd-private-\w+-systemd-|var/backups/")
SLOW = "sleep 8; mkdir"


@dataclass(frozen=True)
class _Provisioned:
    """A host that `fleet up` has provisioned, its fleet, and the folder and the variables of the client."""

    host: SystemdHost
    fleet: FleetFolder
    folder: Path
    variables: dict[str, str]

    def asked(self, *words: str) -> str:
        """What a command on the host prints."""
        ran = self.host.run(*words)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    @property
    def main(self) -> str:
        """The number of the worker's process there."""
        return self.asked("systemctl", "show", "--property=MainPID", "--value", UNIT)

    def processes(self) -> set[str]:
        """The processes of the service, by their numbers there."""
        return set(self.host.run("cat", f"/sys/fs/cgroup/system.slice/{UNIT}.service/cgroup.procs").stdout.split())


def _inventory(host: SystemdHost, here: str) -> str:
    options = "-F /dev/null -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    return f"""
all:
  vars:
    fleet_name: units
    fleet_hub: {here}:{free_port()}
    ansible_user: root
    ansible_ssh_private_key_file: {host.key}
    ansible_ssh_common_args: {options}
  hosts:
    {host.name}: {{ansible_host: {host.address}}}
"""


@pytest.fixture(scope="module")
def provisioned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Provisioned]:
    """The host and its hub; after the tests, `fleet down` leaves what was there before."""
    folder = tmp_path_factory.mktemp("systemd")
    cache = wheels_in(tmp_path_factory)
    variables = command.environment(XDG_CONFIG_HOME=str(folder / "config"), XDG_CACHE_HOME=str(cache))
    with systemd_host(f"fts{os.getpid() % 100_000}", folder) as (host, links):
        before = host.listing()
        (folder / "inventory.yml").write_text(_inventory(host, links.here))
        up = _run(folder, variables, "up")
        fleet = open_fleet(folder / "config" / "feedstock-tools" / "fleets" / "units")
        hub = subprocess.Popen(worker_command(HUB, str(fleet.for_hub), fleet.hub), stdout=subprocess.DEVNULL)
        try:
            assert up.returncode == 0, up.stdout + up.stderr
            wait_for_hosts(fleet, 1)
            yield _Provisioned(host, fleet, folder, variables)
        finally:
            hub.kill()
            hub.wait()
        down = _run(folder, variables, "down")
        assert down.returncode == 0, down.stdout + down.stderr
        assert not fleet.path.exists(), "nobody can use a certificate that stayed on a disk"
        after = host.listing()
        changed = {path for path in after.keys() | before.keys() if after.get(path) != before.get(path)}
        assert {path for path in changed if not _OF_SYSTEMD.match(path)} == set()


def _run(folder: Path, variables: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return command.run(command.tool("fleet", *words, "--fleet=inventory.yml"), folder, variables)


def test_a_second_up_changes_nothing_and_fleet_test_finds_all_well(provisioned: _Provisioned) -> None:
    again = _run(provisioned.folder, provisioned.variables, "up")
    assert again.stdout == f"{provisioned.host.name}: changed=0\n"
    tested = _run(provisioned.folder, provisioned.variables, "test", "--json")
    assert tested.returncode == 0, tested.stdout
    checks = {each["check"]: each["found"] for each in json.loads(tested.stdout)["checks"]}
    assert re.fullmatch(r"\d+M free in /var/lib/feedstock-tools", checks.pop("disk"))
    hello = f"hello from feedstock-tools {__version__}"
    assert checks == {"machine": "", "hello-world": hello, "service": "active"}


def test_the_worker_is_a_service_with_three_variables_that_is_little_exposed(provisioned: _Provisioned) -> None:
    environment = provisioned.asked("cat", f"/proc/{provisioned.main}/environ")
    assert {line.partition("=")[0] for line in environment.strip("\0").split("\0")} == {"PATH", "HOME", "LANG"}
    shown = provisioned.asked("systemctl", "show", "--property=Restart,KillMode,User", UNIT)
    assert set(shown.splitlines()) == {"Restart=always", "KillMode=control-group", "User=builder"}
    rated = provisioned.asked("systemd-analyze", "security", "--no-pager", UNIT)
    level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", rated)
    assert level is not None and float(level[1]) <= MOST_EXPOSED, rated[-200:]


def test_a_killed_worker_leaves_no_process_and_is_back_for_the_rest(
    provisioned: _Provisioned, feedstock: TinyFeedstock
) -> None:
    feedstock.edit("recipe/build-library.sh", "mkdir", SLOW)
    words = feedstock.command("--all", f"--fleet={provisioned.fleet.path}")
    run = command.start(words, feedstock.folder)
    wait_until(lambda: provisioned.host.run("pgrep", "-x", "sleep").returncode == 0, 120)
    before = provisioned.processes()
    assert len(before) > 3
    assert provisioned.host.run("kill", "-KILL", provisioned.main).returncode == 0
    wait_until(lambda: before.isdisjoint(provisioned.processes()), 5)
    output, _ = run.communicate()
    assert run.returncode == 0, output
    assert len(feedstock.packages()) == 12
    assert "interrupted" in {record.result for record in feedstock.records()}


def test_after_a_reboot_there_is_the_service_and_nothing_else(provisioned: _Provisioned) -> None:
    provisioned.host.reboot()
    wait_for_hosts(provisioned.fleet, 1)
    assert provisioned.asked("systemctl", "is-active", UNIT) == "active"
    of_user = set(provisioned.asked("pgrep", "-u", "builder").split())
    assert of_user and of_user == provisioned.processes()
    assert provisioned.host.run("systemctl", "--failed", "--no-legend").stdout == ""
