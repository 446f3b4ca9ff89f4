"""What faults cost a run on a fleet: rows that are lost, packages recorded twice, compiles that are repeated.

    python -m benchmarks.builds.fleets [FAULT]...

Three hosts on this machine build the tiny feedstock, each of whose compiles takes some seconds and notes that it has
begun; the fault comes when one has. `disk`: the folder of a host is a small tmpfs, which the compile fills (needs
root). `clock`: the clock of a host is three hours behind (needs libfaketime, at $LIBFAKETIME). `host`, `hub`, `client`:
killed; the latter two come back. `stop`: `fleet stop`, then the same command. `two`: two maintainers at once, of whom
one was invited and has a certificate of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from feedstock_tools.builds.fleet.folder import invite, join_fleet, open_fleet
from feedstock_tools.builds.fleet.local import WORKER
from feedstock_tools.processes import worker_command
from tests.support import command
from tests.support.channels import make_tiny_channel
from tests.support.feedstocks import TinyFeedstock, copy_of_tiny
from tests.support.fleets import Fleet, started_fleet, wait_for_hosts
from tests.support.paths import ROOT
from tests.support.waiting import wait_until

FAULTS = ("none", "disk", "clock", "host", "hub", "client", "stop", "two")
HOSTS = ("h1", "h2", "h3")
_PACKAGES = 6
_COMPILE = """echo "{name} $PKG_BUILD_STRING" >> "$RECIPE_DIR/../../../../../../begun"
[ "$(stat -f -c %T "$RECIPE_DIR")" != tmpfs ] || head -c 2G /dev/zero > filler
sleep 4
mkdir"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Try faults one after the other, with a line for each; 1 if one of them costs a package or a record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fault", nargs="*", help=f"one of {', '.join(FAULTS)}; default: all")
    results = []
    for fault in parser.parse_args(arguments).fault or FAULTS:
        with tempfile.TemporaryDirectory(prefix="fleets-") as folder, ExitStack() as stack:
            results.append(_tried(fault, Path(folder), stack))
    return 0 if all(results) else 1


def _tried(fault: str, folder: Path, stack: ExitStack) -> bool:
    make_tiny_channel(folder / "channel")
    feedstocks = [_feedstock(folder, name) for name in (("one", "two") if fault == "two" else ("one",))]
    if fault == "disk":
        small = folder / "hosts" / "h1" / "work"
        small.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600m", "tmpfs", str(small)], check=True)
        stack.callback(subprocess.run, ["umount", "--lazy", str(small)], check=True)
    fleet = stack.enter_context(started_fleet(folder, len(HOSTS), {}))
    if fault == "clock":
        _slow_clock(fleet)
    fleet.wait_for(len(HOSTS) - (fault == "clock"))
    maintainers = [fleet, _invited(fleet, folder / "theirs")] if fault == "two" else [fleet]
    began = time.monotonic()
    runs, goes_on = [one.start(each) for one, each in zip(maintainers, feedstocks, strict=True)], False
    wait_until(lambda: _begun(fleet))
    victim = next(iter(_begun(fleet)))
    if fault == "host":
        fleet.local.processes[victim].kill()
    elif fault == "hub":
        fleet.local.processes["hub"].kill()
        fleet.local.processes["hub"].wait()
        fleet.local.start_hub()
    elif fault == "client":
        runs[0].send_signal(signal.SIGKILL)
    elif fault == "stop":
        stop = command.tool("fleet", "stop", f"--fleet={fleet.local.fleet.path}")
        sys.stdout.write(command.run(stop, folder).stdout)
    outputs = [run.communicate()[0] for run in runs]
    statuses = [run.returncode for run in runs]
    if fault in ("client", "stop"):
        before = _begun(fleet)
        time.sleep(5)
        goes_on = fault == "stop" and _begun(fleet) != before
        ended = fleet.build(feedstocks[0])
        outputs, statuses = [*outputs, ended.stdout], [ended.returncode]
    seconds = time.monotonic() - began
    done = Counter((each.folder.parent.name, file) for each in feedstocks for file in _done(each))
    expected = _PACKAGES * len(feedstocks)
    left = sum(len(json.loads(_planned(each))["todo"]) for each in feedstocks)
    twice = sum(count > 1 for count in done.values())
    starts = Counter(line for lines in _begun(fleet).values() for line in lines)
    repeated = {line for line, count in starts.items() if count > 1}
    elsewhere = repeated - set(_begun(fleet).get({"host": victim, "disk": "h1"}.get(fault, ""), ()))
    unfit = [line for line in "\n".join(outputs).splitlines() if "disk is full" in line][:1]
    sys.stdout.write(
        f"{fault}: status {statuses}, {len(done)} of {expected} packages, {left} rows left, {twice} recorded twice, "
        f"{len(starts)} compiles, {len(repeated)} repeated ({len(elsewhere)} not of the host at fault), "
        f"by host { ({host: len(lines) for host, lines in _begun(fleet).items()}) }, {seconds:.1f} s, "
        f"load {os.getloadavg()[0]:.1f}{_turns(feedstocks)} {unfit or ''}{'the run went on' if goes_on else ''}\n"
    )
    sys.stdout.flush()
    whole = set(statuses) == {0} and len(done) == expected and not left and not twice and not goes_on
    if not whole:
        sys.stdout.write("\n".join(outputs))
    return whole and (not elsewhere or fault == "stop")


def _feedstock(folder: Path, name: str) -> TinyFeedstock:
    (folder / name).mkdir()
    made = TinyFeedstock(copy_of_tiny(folder / name / f"{name}-feedstock"), folder / "channel")
    made.keep_outputs(2)
    made.edit("recipe/build-library.sh", "mkdir", _COMPILE.format(name=name))
    return made


def _invited(fleet: Fleet, folder: Path) -> Fleet:
    """The fleet as a second maintainer has it, with a certificate of their own."""
    mine = fleet.local.fleet
    invite(mine, "anna", join_fleet(folder, "local", mine.hub, mine.path / "authority.crt"))
    theirs = open_fleet(folder)
    wait_for_hosts(theirs, len(HOSTS))
    return Fleet(replace(fleet.local, fleet=theirs))


def _slow_clock(fleet: Fleet) -> None:
    """Start a host anew with a clock that is three hours behind."""
    fleet.local.end("h1")
    home = fleet.local.home_of("h1")
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(home)}
    late = {"LD_PRELOAD": os.environ["LIBFAKETIME"], "FAKETIME": "-3h", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    with (home / "messages").open("ab") as messages:
        fleet.local.processes["h1"] = subprocess.Popen(
            worker_command(WORKER, str(fleet.local.fleet.for_host("h1"))),
            env={**variables, **late},
            stdout=messages,
            stderr=messages,
        )


def _begun(fleet: Fleet) -> dict[str, list[str]]:
    """The compiles that hosts have begun."""
    files = {host: fleet.local.home_of(host) / "begun" for host in HOSTS}
    return {host: file.read_text().splitlines() for host, file in files.items() if file.exists()}


def _done(feedstock: TinyFeedstock) -> list[str]:
    return [package.file for each in feedstock.records() if each.result == "done" for package in each.packages]


def _planned(feedstock: TinyFeedstock) -> str:
    return feedstock.run("plan", "--channel", str(feedstock.channel), "--json").stdout


def _turns(feedstocks: Sequence[TinyFeedstock]) -> str:
    """Of two runs, when each had its first and its last package."""
    if len(feedstocks) < 2:
        return ""
    ends = [sorted(str(each.ended)[11:19] for each in made.records() if each.result == "done") for made in feedstocks]
    return "; packages from " + " and ".join(f"{each[0]} to {each[-1]}" for each in ends if each)


if __name__ == "__main__":
    sys.exit(main())
