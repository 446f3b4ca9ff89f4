"""Machines that become hosts for real: three with roots, addresses and process spaces of their own, and no network."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from feedstock_tools.builds.fleet.provision.hosts import check, chosen_hosts, down, up, write_scripts
from feedstock_tools.builds.fleet.provision.inventory import Inventory
from tests.support import command
from tests.support.hosts import BareHost, why_no_hosts
from tests.support.light_wheels import light_wheels
from tests.support.needs import needs
from tests.support.once import made_once
from tests.support.provisioned import Provisioned, differences, provisioned

pytestmark = [needs("system", why_no_hosts() is None, f"bare hosts ({why_no_hosts()})"), pytest.mark.slow]

#: Where a person copies the script of a host to, and its files.
_ON_HOST = "/root/provision"


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's cache with wheels of hosts that are soon installed; `test_systemd.py` installs the real ones."""
    return made_once(tmp_path_factory, "light-wheels-of-hosts", light_wheels)


def _no_words(text: str) -> None:
    """Progress is not what these tests are about."""


def test_three_machines_become_hosts_and_are_given_back(tmp_path: Path, cache: Path) -> None:
    with provisioned(["h1", "h2", "h3"], tmp_path, cache) as made:
        made.hosts["h3"].run("echo umask 077 >>.bashrc")
        before = {name: host.listing() for name, host in made.hosts.items()}
        by_ansible = chosen_hosts(made.read(), ["h1", "h2"])
        by_script = chosen_hosts(made.read(), ["h3"])

        _interrupt_up_at(made, "Make the folder of settings")
        first = up(by_ansible, made.environment, _no_words)
        assert [(host.error, host.changed > 10) for host in first] == [(None, True)] * 2

        made.hosts["h1"].reboot()
        again = up(by_ansible, made.environment, _no_words)
        assert [host.changed for host in again] == [1, 0]  # the loop of the worker, and nothing

        _send_script(made, by_script, made.hosts["h3"])
        assert int(_script(made.hosts["h3"], "up")[-1].removeprefix("changed=")) > first[0].changed
        assert _script(made.hosts["h3"], "up")[-1] == "changed=0"
        of_script = {path: entry for path, entry in made.hosts["h3"].listing().items() if not path.startswith("root/")}
        of_ansible = {path: entry for path, entry in made.hosts["h2"].listing().items() if not path.startswith("root/")}
        assert differences(of_ansible, of_script, of_hosts=True) == []

        played, tests = check(by_ansible, made.environment, _no_words)
        assert [host.error for host in played] == [None, None]
        assert [(each.host, each.check, each.passed) for each in tests] == [
            (host, check, True) for host in ("h1", "h2") for check in ("hello-world", "service")
        ]

        assert [host.error for host in down(by_ansible, made.environment, _no_words)] == [None, None]
        _give_back_by_script(made.hosts["h3"])
        for name, host in made.hosts.items():
            assert differences(before[name], host.listing()) == [], name
            assert not host.run("pgrep", "-f", "feedstock").stdout


def test_an_up_that_was_killed_leaves_nothing_after_down(tmp_path: Path, cache: Path) -> None:
    with provisioned(["h1"], tmp_path, cache) as made:
        host, inventory = made.hosts["h1"], made.read()
        before = host.listing()
        for step in ("Make the account", "Install feedstock-tools"):
            _send_script(made, inventory, host)
            _kill_script_at(host, step)
            _give_back_by_script(host)
            assert differences(before, host.listing()) == [], step


def test_a_machine_in_use_is_refused_and_unchanged(tmp_path: Path, cache: Path) -> None:
    with provisioned(["h1"], tmp_path, cache) as made:
        host = made.hosts["h1"]
        (host.root / "opt/feedstock-tools").mkdir()
        before = host.listing()
        (refused,) = up(made.read(), made.environment, _no_words)
        assert refused.error is not None
        assert "/opt/feedstock-tools is there already, and no fleet made it" in refused.error
        assert differences(before, host.listing()) == []
        (left,) = down(made.read(), made.environment, _no_words)
        assert left.error is None
        assert differences(before, host.listing()) == []


def _interrupt_up_at(made: Provisioned, step: str) -> None:
    """Press Ctrl-C when a step of `fleet up` begins."""
    words = command.tool("fleet", "up", f"--fleet={made.inventory}", "h1", "h2")
    with subprocess.Popen(
        words,
        env=dict(made.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert any(step in line for line in process.stdout)
        os.killpg(process.pid, signal.SIGINT)
        said = process.stdout.read()
    assert (process.returncode, said.splitlines()[-1]) == (130, "Interrupted.")


def _send_script(made: Provisioned, inventory: Inventory, host: BareHost) -> None:
    """Write the script of a host and copy it there, as a person would."""
    (written,) = write_scripts(inventory, made.inventory.parent / "scripts", made.environment, _no_words)
    subprocess.run(["cp", "-r", str(written), str(host.root / _ON_HOST.lstrip("/"))], check=True)


def _script(host: BareHost, command: str) -> list[str]:
    """Run the script of a host there; the lines that it has printed."""
    ended = host.run("bash", f"{_ON_HOST}/provision.sh", command)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.splitlines()


def _kill_script_at(host: BareHost, step: str) -> None:
    """Kill `up` alone when a step begins: what it has started goes on, as after an `up` whose client is gone."""
    command = ["ssh", *host.ssh_options, f"root@{host.address}", "bash", f"{_ON_HOST}/provision.sh", "up"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert any(step in line for line in process.stdout)
        host.run("pkill", "-KILL", "-o", "-f", "'provision.sh up'")
        process.communicate()


def _give_back_by_script(host: BareHost) -> None:
    assert _script(host, "down")[-1] != "no fleet has made anything here"
    host.run("rm", "-r", _ON_HOST)
