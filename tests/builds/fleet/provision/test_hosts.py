"""Machines that become hosts for real, with roots, addresses and process spaces of their own, and no network."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from feedstock_tools.builds.fleet.provision.hosts import check, chosen_hosts, down, up, write_scripts
from feedstock_tools.builds.fleet.provision.inventory import Inventory
from tests.support import command
from tests.support.hosts import BareHost, why_no_hosts
from tests.support.light_wheels import light_wheels
from tests.support.listings import differences
from tests.support.needs import needs
from tests.support.once import made_once
from tests.support.provisioned import Provisioned, provisioned

pytestmark = [needs("system", why_no_hosts() is None, f"bare hosts ({why_no_hosts()})"), pytest.mark.slow]

#: Where a person copies the script of a host to, and its files.
_ON_HOST = "/root/provision"


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's cache with wheels of hosts that are soon installed; `test_systemd.py` installs the real ones."""
    return made_once(tmp_path_factory, "light-wheels-of-hosts", light_wheels)


def _no_words(text: str) -> None:
    """Progress is not what these tests are about."""


def test_machines_become_hosts_or_say_why_not_and_are_given_back(tmp_path: Path, cache: Path) -> None:
    """One by Ansible, one by its script; two are in use, one refuses the key, one is cut off, a disk becomes full."""
    names = ["h1", "used", "theirs", "strange", "cut", "full", "h2"]
    settings = {"fleet_toolchain": ["fftw"], "fleet_debs": "debs"}
    _large_package(tmp_path / "debs", "libfftw3-dev")
    with provisioned(names, tmp_path, cache, {"full": "40M"}, **settings) as made:
        _make_unsuitable(made)
        made.hosts["h2"].run("echo umask 077 >>.bashrc")
        before = {name: host.listing() for name, host in made.hosts.items()}
        inventory = made.read()
        by_ansible, by_script = chosen_hosts(inventory, ["h1"]), chosen_hosts(inventory, ["h2"])

        _interrupt_up_at(made, "Make the folder of settings")
        _say_why_not(made, names[:-1])
        made.hosts["h1"].reboot()
        assert [host.changed for host in up(by_ansible, made.environment, _no_words)] == [1]  # the loop of the worker

        _send_script(made, by_script, made.hosts["h2"])
        _leave_nothing_when_killed(made.hosts["h2"])
        assert int(_script(made.hosts["h2"], "up")[-1].removeprefix("changed=")) > 10
        assert _script(made.hosts["h2"], "up")[-1] == "changed=0"
        of_script = {path: entry for path, entry in made.hosts["h2"].listing().items() if not path.startswith("root/")}
        of_ansible = {path: entry for path, entry in made.hosts["h1"].listing().items() if not path.startswith("root/")}
        assert differences(of_ansible, of_script, of_hosts=True) == []

        played, tests = check(by_ansible, made.environment, _no_words)
        assert [host.error for host in played] == [None]
        found = [(each.check, each.passed) for each in tests]
        well = [(name, True) for name in ("machine", "disk", "hello-world", "service")]
        assert found == [*well, ("fftw", False)]  # the package is another's

        made.hosts["cut"].heal()
        given_back = down(chosen_hosts(inventory, names[:-1]), made.environment, _no_words)
        assert {host.host for host in given_back if host.error is not None} == {"strange", "theirs"}
        assert _script(made.hosts["h2"], "down")[-1] != "changed=0"
        made.hosts["h2"].run("rm", "-r", _ON_HOST)
        for name, host in made.hosts.items():
            assert differences(before[name], host.listing()) == [], name
            assert name == "strange" or not host.run("pgrep", "-f", "feedstock").stdout


def _make_unsuitable(made: Provisioned) -> None:
    """Two machines are in use, one refuses the key, and one is cut off."""
    (made.hosts["used"].root / "opt/feedstock-tools").mkdir()
    (made.hosts["theirs"].root / "var/lib/feedstock-tools-fleet").mkdir()
    (made.hosts["theirs"].root / "var/lib/feedstock-tools-fleet/fleet").write_text("others\n")
    (made.hosts["strange"].root / "root/.ssh/authorized_keys").write_text("")
    made.hosts["cut"].cut()


def _say_why_not(made: Provisioned, names: Sequence[str]) -> None:
    """`fleet up` names each host that fails with what to do, and goes on with the other."""
    words = command.tool("fleet", "up", f"--fleet={made.inventory}", *names)
    ended = command.run(words, made.inventory.parent, dict(made.environment))
    assert ended.returncode == 1, ended.stdout + ended.stderr
    *lines, last = ended.stdout.splitlines()
    said = dict(line.split(": ", 1) for line in lines)
    assert last.startswith("5 of 6 hosts failed.")
    assert re.fullmatch(r"changed=\d\d", said.pop("h1"))
    address = made.hosts["cut"].address
    expected = {
        "used": ("/opt/feedstock-tools is there already, and no fleet made it", "remove it"),
        "theirs": ("this host belongs to the fleet others", "run `fleet down` for that one first"),
        "strange": ("Permission denied (publickey", "Check ansible_host, ansible_user and its key or password"),
        "cut": (f"cannot be reached by SSH: ssh: connect to host {address} port 22: ", "Check that the machine runs"),
        "full": ("Install compilers and libraries: ", "No space left on device", "Free some there"),
    }
    assert said.keys() == expected.keys()
    for name, texts in expected.items():
        assert said[name].startswith("failed: ") and all(text in said[name] for text in texts), said[name]


def _leave_nothing_when_killed(host: BareHost) -> None:
    """Kill the script of a host at some steps of `up`, and give the host back each time."""
    before = host.listing()
    for step in ("Make the account", "Install feedstock-tools"):
        _kill_script_at(host, step)
        assert _script(host, "down")[-1] != "no fleet has made anything here"
        assert differences(before, host.listing()) == [], step


def _large_package(folder: Path, name: str) -> None:
    """Make a package of the distribution's kind that unpacks to more than a small disk holds."""
    content = folder / name
    (content / "DEBIAN").mkdir(parents=True)
    about = (
        f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: large\n"
    )
    (content / "DEBIAN" / "control").write_text(about)
    with (content / "zeros").open("wb") as zeros:
        zeros.truncate(48 << 20)
    subprocess.run(
        ["dpkg-deb", "-Zgzip", "-z1", "--build", name, f"{name}_1_all.deb"],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    shutil.rmtree(content)


def _interrupt_up_at(made: Provisioned, step: str) -> None:
    """Press Ctrl-C when a step of `fleet up` begins."""
    words = command.tool("fleet", "up", f"--fleet={made.inventory}", "h1")
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
