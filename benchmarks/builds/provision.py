"""Machines made into hosts and given back: how long it takes, and what stays when `up` is broken off (Linux, as root).

    python -m benchmarks.builds.provision times      three bare hosts: up, up again, test, after a reboot, down
    python -m benchmarks.builds.provision ansible    one host: `fleet up` killed at each task, then `fleet down`
    python -m benchmarks.builds.provision script     the same with the script of the host

It needs `python -m maintenance.host_root`, and a package index for the wheels, which are not part of the times.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from feedstock_tools.builds.fleet.provision.hosts import check, down, up, write_scripts
from feedstock_tools.builds.fleet.provision.wheelhouse import Target, wheelhouse
from feedstock_tools.data import cache_root
from tests.support.command import tool
from tests.support.hosts import BareHost, why_no_hosts
from tests.support.provisioned import Provisioned, differences, provisioned

_CACHE = Path("/var/tmp/feedstock-tools/cache")  # noqa: S108 - kept for the next time


def _times(folder: Path) -> None:
    with provisioned(["h1", "h2", "h3"], folder, _CACHE) as made:
        before = {name: host.listing() for name, host in made.hosts.items()}
        inventory = made.read()
        steps: Sequence[tuple[str, Callable[[], object]]] = (
            ("up", lambda: up(inventory, made.environment, _quiet)),
            ("up again", lambda: up(inventory, made.environment, _quiet)),
            ("test", lambda: check(inventory, made.environment, _quiet)[0]),
            ("reboot of h1", made.hosts["h1"].reboot),
            ("up after it", lambda: up(inventory, made.environment, _quiet)),
            ("down", lambda: down(inventory, made.environment, _quiet)),
        )
        for name, step in steps:
            began = time.monotonic()
            played = step()
            shown = [f"{host.host} changed={host.changed} {host.error or ''}" for host in played or ()]  # type: ignore[attr-defined]
            print(f"{name}: {time.monotonic() - began:.1f} s  {'; '.join(shown)}", flush=True)
        left = {name: differences(before[name], host.listing()) for name, host in made.hosts.items()}
        print(f"left: {left}")


def _quiet(text: str) -> None:
    """Print no progress."""


def _broken_off(
    folder: Path, command: Callable[[Provisioned, str], list[str]], ending: Callable[[Provisioned], None]
) -> None:
    """Break `up` off at each of its steps, in a host that is given back each time."""
    with provisioned(["h1"], folder, _CACHE) as made:
        before = made.hosts["h1"].listing()
        steps = _steps(command(made, "up"), made.environment)
        ending(made)
        print(
            f"{len(steps)} steps; left after the whole: {differences(before, made.hosts['h1'].listing())}", flush=True
        )
        for number, step in enumerate(steps):
            _killed_at(command(made, "up"), made.environment, number, made.hosts["h1"])
            there = len(differences(before, made.hosts["h1"].listing()))
            ending(made)
            left = differences(before, made.hosts["h1"].listing())
            print(f"{number + 1:2} {step}: {there} differences, after down {left}", flush=True)


def _steps(command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [line.strip() for line in (run.stdout + run.stderr).splitlines() if _is_step(line)]


def _is_step(line: str) -> bool:
    return re.match(r"(\s+)?(base|container|toolchain|hub|worker) ?: ", line) is not None


def _killed_at(command: Sequence[str], environment: Mapping[str, str], number: int, host: BareHost) -> None:
    """Kill all of the client's processes when a step begins; what has begun on the host goes on."""
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        seen = 0
        for line in process.stdout or ():
            seen += _is_step(line)
            if seen > number:
                break
        if "provision.sh" in command[-1]:
            host.run("pkill", "-KILL", "-o", "-f", "'provision.sh up'")
        os.killpg(process.pid, signal.SIGKILL)


def _by_ansible(made: Provisioned, command: str) -> list[str]:
    return tool("fleet", command, f"--fleet={made.inventory}")


def _given_back(made: Provisioned) -> None:
    (played,) = down(made.read(), made.environment, _quiet)
    if played.error is not None:
        raise RuntimeError(played.error)


def _by_script(made: Provisioned, command: str) -> list[str]:
    host = made.hosts["h1"]
    if not (host.root / "root/provision").exists():
        (written,) = write_scripts(made.read(), made.inventory.parent / "scripts", made.environment, _quiet)
        subprocess.run(["cp", "-r", str(written), str(host.root / "root/provision")], check=True)
    return ["ssh", *host.ssh_options, f"root@{host.address}", f"bash /root/provision/provision.sh {command}"]


def _given_back_by_script(made: Provisioned) -> None:
    subprocess.run(_by_script(made, "down"), check=True, capture_output=True)
    made.hosts["h1"].run("rm", "-r", "/root/provision")


def main(words: Sequence[str]) -> None:
    """Measure, or break off."""
    if (reason := why_no_hosts()) is not None:
        sys.exit(f"not here: {reason}")
    if len(words) != 1 or words[0] not in ("times", "ansible", "script"):
        sys.exit(str(__doc__))
    wheelhouse(Target("3.11", "x86_64"), cache_root({"XDG_CACHE_HOME": str(_CACHE)}), print)
    with tempfile.TemporaryDirectory() as name:
        if words[0] == "times":
            _times(Path(name))
        elif words[0] == "ansible":
            _broken_off(Path(name), _by_ansible, _given_back)
        else:
            _broken_off(Path(name), _by_script, _given_back_by_script)


if __name__ == "__main__":
    main(sys.argv[1:])
