"""`feedstock-tools fleet`: machines that build together: their certificates, programs and state, and jobs of Slurm."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Group
from feedstock_tools.cli.opening import tidy
from feedstock_tools.cli.printing import say, say_note, say_result
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.wording import counted, table

if TYPE_CHECKING:
    from feedstock_tools.builds.fleet import FleetFolder, Inventory, Job, Played

_HOSTS = click.argument("hosts", nargs=-1, metavar="[HOST]...")
_FLEET = options.fleet("the only one")
_INVENTORY_FILE = options.fleet("none")
_MACHINES = options.option(
    "--machines",
    metavar="PROGRAM",
    meaning="Program that makes and ends the machines: PROGRAM up|down FLEET",
)
_FOLDER = click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))


@click.group("fleet", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def fleet() -> None:
    """Build on other machines: `feedstock-tools build --all --fleet`.

    Dask's scheduler, on the hub, gives the rows of the clients, such as this machine, to the hosts, which build. It
    needs the extra `fleet`: pip install 'feedstock-tools[fleet]'.
    """


@fleet.command("new", short_help="Make the keys and certificates of a fleet.")
@click.argument("name")
@options.option("--hub", required=True, metavar="HOST:PORT", meaning="Where the hub will listen, for hosts and client")
@options.option("--host", "hosts", metavar="NAME", repeatable=True, meaning="A host to make a certificate for")
@options.option("--root", default="/var/lib/feedstock-tools", metavar="DIR", meaning="Folder of a host for its builds")
def new(name: str, hub: str, hosts: tuple[str, ...], root: str) -> None:
    """Make the authority of a fleet in a private folder, and the files for its hub and its hosts.

    Copy the folder `hub` to the machine of the hub, and each folder `hosts/NAME` to that host; nothing else leaves this
    machine.
    """
    refuse_without_extra()
    from feedstock_tools.builds.fleet import add_host, fleets_root, make_fleet

    if not hub.rpartition(":")[0] or not hub.rpartition(":")[2].isdigit():
        raise click.UsageError("--hub takes the address and the port of the hub, such as 203.0.113.7:8786")
    fleet = make_fleet(fleets_root(os.environ) / name, name, hub)
    for host in hosts:
        add_host(fleet, host, {"root": root})
    say(f"Made the fleet {name} in {fleet.path}")
    say(f"  feedstock-tools fleet hub {fleet.for_hub} {hub}")
    for host in fleet.hosts:
        say(f"  feedstock-tools fleet worker {fleet.for_host(host)}   # on {host}, with a copy of this folder")


@fleet.command("hub", short_help="Serve as the hub of a fleet.")
@_FOLDER
@click.argument("address", metavar="HOST:PORT")
def hub(folder: Path, address: str) -> int:
    """Serve as the hub of a fleet, with the files in FOLDER, until Ctrl-C or SIGTERM."""
    refuse_without_extra()
    from feedstock_tools.builds.fleet import serve_hub

    return serve_hub(str(folder), address)


@fleet.command("worker", short_help="Build on this machine for a fleet.")
@_FOLDER
def worker(folder: Path) -> int:
    """Build on this machine what the client of a fleet orders, with the files in FOLDER, until Ctrl-C or SIGTERM."""
    refuse_without_extra()
    from feedstock_tools.builds.fleet import serve_host

    return serve_host(str(folder))


@fleet.command("status", short_help="Show the hosts of a fleet and what they do.")
@_FLEET
@options.as_json
def status(fleet: str | None, as_json: bool) -> int:
    """Show the hosts of a fleet: whether they are connected, what they have, and what they build."""
    from feedstock_tools.builds.fleet import Link, why_unfit
    from feedstock_tools.report.fleet import status_json, status_text

    found = chosen_fleet(fleet)
    with Link(found) as link:
        hosts, runs = link.hosts, link.runs()
    reasons = why_unfit(found)
    away = {host: reasons.get(host, "") for host in found.hosts if host not in hosts}
    say_result((status_json if as_json else status_text)(hosts, away, runs))
    return 0 if hosts else 1


@fleet.command("stop", short_help="End a run on a fleet.")
@click.argument("run", required=False)
@_FLEET
def stop(run: str | None, fleet: str | None) -> int:
    """End a run, the only one without RUN: its builds on the hosts, its rows that wait, and the command that began it.

    `fleet status` shows the runs. The hosts stay up.
    """
    from feedstock_tools.builds.fleet import Link

    with Link(chosen_fleet(fleet)) as link:
        runs = link.runs()
        if not runs and run is None:
            say("No run is under way.")
            return 0
        if run is None and len(runs) > 1:
            raise InputError("several runs are under way", hint=f"Name one: {', '.join(sorted(runs))}.")
        name = run or next(iter(runs))
        if name not in runs:
            hint = f"There are: {', '.join(sorted(runs))}." if runs else "No run is under way."
            raise InputError(f"there is no run {name!r} on this fleet", hint=hint)
        ended = link.stop(name)
    say(f"Stopped the run {name}: {counted(ended, 'build')} ended, {counted(runs[name], 'row')} not built.")
    return 0


@fleet.command("try", short_help="Run a fleet on this machine, to try one.")
@options.option(
    "--hosts",
    type=click.IntRange(1, 16),
    default=2,
    metavar="N",
    meaning="How many workers run here as hosts, each building one row at a time in a folder of its own",
    default_text="2",
)
def try_(hosts: int) -> None:
    """Run a hub and some workers on this machine until Ctrl-C, as the fleet `local`.

    Example: `feedstock-tools fleet try --hosts 4` in one terminal, and in another one, in a feedstock:
    `feedstock-tools build --all --fleet=local`. Afterwards, nothing of the fleet is left.
    """
    refuse_without_extra()
    from feedstock_tools.builds.engines.process.supervision import signals_as_exit
    from feedstock_tools.builds.fleet import fleets_root, local_fleet
    from feedstock_tools.files.temporary import remove

    folder = fleets_root(os.environ) / "local"
    remove(folder)
    with tempfile.TemporaryDirectory() as root, signals_as_exit():
        try:
            with local_fleet(folder, Path(root), hosts):
                say(f"The fleet local has {hosts} hosts. End it with Ctrl-C.")
                say("  feedstock-tools build --all --fleet=local")
                while True:
                    time.sleep(1)
        finally:
            remove(folder)


@fleet.command("up", short_help="Make the machines of an inventory hosts of a fleet.")
@_HOSTS
@_INVENTORY_FILE
@_MACHINES
@options.option(
    "--script",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    meaning="Write the same steps as a script for each host, with its files, and do nothing else",
)
def up(hosts: tuple[str, ...], fleet: str | None, machines: str | None, script: Path | None) -> int:
    """Install this program, a worker and what builds need on the hosts of an inventory; all of them without HOST.

    A second `up` changes nothing. It runs Ansible, which reaches the hosts by SSH.
    """
    from feedstock_tools.builds.fleet import up as make_hosts
    from feedstock_tools.builds.fleet import write_scripts

    tidy()
    _called(machines, "up", fleet)
    chosen = _chosen(fleet, hosts)
    if script is not None:
        for folder in write_scripts(chosen, script, os.environ, say):
            say(f"Wrote {folder}. Copy it to the machine, and run there as root: bash provision.sh up")
        return 0
    return _report(make_hosts(chosen, os.environ, _progress), "up")


@fleet.command("down", short_help="Remove all that `up` has made on hosts.")
@_HOSTS
@_INVENTORY_FILE
@_MACHINES
def down(hosts: tuple[str, ...], fleet: str | None, machines: str | None) -> int:
    """End the builds on the hosts and remove all that `up` has made there, also after an `up` that was interrupted.

    Packages that the client has not fetched yet are lost.
    """
    from feedstock_tools.builds.fleet import down as remove

    chosen = _chosen(fleet, hosts)
    status = _report(remove(chosen, os.environ, _progress), "down")
    if status == 0:
        _called(machines, "down", fleet)
    return status


@fleet.command("test", short_help="Try what builds need on the hosts.")
@_HOSTS
@_INVENTORY_FILE
@options.as_json
def test(hosts: tuple[str, ...], fleet: str | None, as_json: bool) -> int:
    """Try on each host a hello-world, its service, compilers, libraries and GPUs, as its inventory switches them on."""
    from feedstock_tools.builds.fleet import check

    played, tests = check(_chosen(fleet, hosts), os.environ, _quiet if as_json else _progress)
    if as_json:
        found = [{"host": each.host, "check": each.check, "passed": each.passed, "found": each.found} for each in tests]
        say_result({"checks": found, "failed": {host.host: host.error for host in played if host.error is not None}})
    else:
        rows = [(each.host, each.check, "ok" if each.passed else "failed", each.found) for each in tests]
        say(table(("host", "check", "result", "found"), rows))
        _report(played, "test")
    return 0 if all(each.passed for each in tests) and all(host.error is None for host in played) else 1


@fleet.command("wheelhouse", short_help="Fetch the wheels that hosts install.")
@options.option(
    "--python", metavar="VERSION", default="3.11", meaning="Version of Python, such as 3.11", default_text="3.11"
)
@options.option("--machine", metavar="NAME", meaning="Machine of the hosts, such as aarch64", default_text="this one's")
@options.option("--numpy", metavar="VERSION", default="", meaning="Version of NumPy for the role toolchain")
def wheelhouse(python: str, machine: str | None, numpy: str) -> None:
    """Fetch this program at this version, and all that it needs on hosts, into the user's cache, and print the archive.

    `up` does it by itself. Afterwards it needs no package index.
    """
    from feedstock_tools.builds.fleet import Target
    from feedstock_tools.builds.fleet import wheelhouse as archive_of_wheels

    tidy()
    target = Target(python, machine or platform.machine(), numpy)
    say(str(archive_of_wheels(target, os.environ, say_note).path))


def _chosen(fleet: str | None, hosts: Sequence[str]) -> Inventory:
    from feedstock_tools.builds.fleet import chosen_hosts, read_inventory

    refuse_without_extra()
    return chosen_hosts(read_inventory(inventory_of(fleet), os.environ), hosts)


def _called(machines: str | None, command: str, fleet: str | None) -> None:
    """Call the program that makes machines, if there is one.

    Raises:
        InputError: there is no such program.
        WorkError: it failed.
    """
    if machines is None:
        return
    from feedstock_tools.builds.fleet import fleet_name

    path = Path(machines)
    program = str(path.absolute()) if path.is_file() else shutil.which(machines)
    if program is None:
        raise InputError("there is no such program", path=path, hint="--machines takes a program's name or path.")
    command_line = [sys.executable, program] if program.endswith(".py") else [program]
    ended = subprocess.run([*command_line, command, fleet_name(inventory_of(fleet))], check=False)
    if ended.returncode != 0:
        raise WorkError(f"`{machines} {command}` ended with status {ended.returncode}")


def _progress(text: str) -> None:
    say_note(f"  {text}")


def _quiet(text: str) -> None:
    """Print nothing."""


def _report(played: Sequence[Played], command: str) -> int:
    for host in played:
        said = "given back" if command == "down" else f"changed={host.changed}"
        done = said if host.error is None else f"failed: {host.error}"
        if command != "test" or host.error is not None:
            say(f"{host.host}: {done}")
    failed = sum(host.error is not None for host in played)
    if failed and command != "test":
        say(f"{failed} of {len(played)} hosts failed. Run `feedstock-tools fleet {command}` again: it continues there.")
    return 1 if failed else 0


@fleet.group("slurm", short_help="Let jobs of a Slurm cluster build.")
def slurm() -> None:
    """Let jobs of a Slurm cluster build: those that `fleet_slurm` in the inventory allows.

    `build --all --fleet` submits them while rows wait. A job that has nothing to do ends by itself.
    """


@slurm.command("up", short_help="Make the fleet of an inventory, start its hub, submit its first jobs.")
@_INVENTORY_FILE
def slurm_up(fleet: str | None) -> None:
    """Make the fleet of an inventory, or bring it up to date.

    Starts its hub on this machine unless it answers, and submits the least number of jobs of each kind.
    """
    refuse_without_extra("dask_jobqueue")
    from feedstock_tools.builds.fleet import ensure_hub, jobs_of, kind_of, read_slurm, submit_jobs, write_kinds

    settings = read_slurm(inventory_of(fleet))
    kinds = [kind_of(name, given) for name, given in settings.kinds.items()]
    jobs = jobs_of(settings.name, os.environ)  # refuses where there is no Slurm, before anything is made
    made = _named_fleet(settings.name, settings.hub)
    write_kinds(made, kinds)
    if ensure_hub(made):
        say(f"The hub of the fleet {made.name} runs at {made.hub}")
    for kind in kinds:
        living = sum(job.lives and job.host.rpartition("-")[0] == kind.name for job in jobs)
        submitted = submit_jobs(made, kind, kind.least - living, os.environ)
        numbers = f": submitted {', '.join(submitted.values())}" if submitted else ""
        say(f"{kind.name}: up to {kind.most} jobs while rows wait{numbers}")
    say(f"  feedstock-tools build --all --fleet={made.name}")


@slurm.command("status", short_help="Show the jobs of a fleet.")
@_FLEET
@options.as_json
def slurm_status(fleet: str | None, as_json: bool) -> int:
    """Show the jobs of a fleet, with those that ended a few minutes ago; exit code 1 if none waits or runs."""
    from feedstock_tools.builds.fleet import jobs_of
    from feedstock_tools.report.fleet import jobs_json, jobs_text

    jobs = jobs_of(chosen_fleet(fleet).name, os.environ)
    say_result((jobs_json if as_json else jobs_text)(jobs))
    return 0 if any(job.lives for job in jobs) else 1


@slurm.command("down", short_help="End the jobs of a fleet and its hub.")
@_FLEET
def slurm_down(fleet: str | None) -> None:
    """End all jobs of a fleet, and its hub if `fleet slurm up` started it here; then remove their files.

    The keys of the fleet go too, unless it has other hosts.
    """
    from feedstock_tools.builds.fleet import cancel, end_hub, job_kinds, jobs_of, remove_jobs, remove_kinds
    from feedstock_tools.files.temporary import remove

    found = chosen_fleet(fleet)
    if not job_kinds(found):
        raise InputError(f"the fleet {found.name} has no jobs", hint="`feedstock-tools fleet slurm up` submits them.")
    living = [job for job in jobs_of(found.name, os.environ) if job.lives]
    cancel([job.number for job in living], os.environ)
    _wait_for_end(found, living)
    ended = end_hub(found)
    remove_jobs(found, ())
    remove_kinds(found)
    if not found.hosts:
        remove(found.path)
    hub = " and its hub" if ended else ""
    say(f"Ended {len(living)} jobs of the fleet {found.name}{hub}.")


def _wait_for_end(fleet: FleetFolder, jobs: list[Job]) -> None:
    """Wait until the jobs have ended: they remove what they have on their nodes.

    Raises:
        WorkError: some go on.
    """
    from feedstock_tools.builds.fleet import jobs_of

    numbers, end = {job.number for job in jobs}, time.monotonic() + 120
    while numbers:
        left = {job.number for job in jobs_of(fleet.name, os.environ) if not job.is_over}
        numbers &= left
        if numbers and time.monotonic() > end:
            hint = "Run the command again when the cluster has ended them."
            raise WorkError(f"the jobs {', '.join(sorted(numbers))} have not ended yet", hint=hint)
        if numbers:
            time.sleep(1)


def _named_fleet(name: str, hub: str | None) -> FleetFolder:
    """The fleet of a name, made if there is none.

    Raises:
        InputError: there is one with another hub.
    """
    from feedstock_tools.builds.fleet import fleets_root, free_port, make_fleet, open_fleet
    from feedstock_tools.processes import this_machine

    path = fleets_root(os.environ) / name
    if not (path / "fleet.json").exists():
        return make_fleet(path, name, hub or f"{this_machine()}:{free_port()}")
    fleet = open_fleet(path)
    if hub not in (None, fleet.hub):
        hint = "`feedstock-tools fleet slurm down` removes it; hosts know their hub."
        raise InputError(f"the fleet {name} has its hub at {fleet.hub}, not at {hub}", hint=hint)
    return fleet


def chosen_fleet(given: str | None) -> FleetFolder:
    """The fleet that is named on the command line; without a name the user's only one.

    Raises:
        InputError: there is none, or the extra is not installed.
    """
    refuse_without_extra()
    from feedstock_tools.builds.fleet import find_fleet

    return find_fleet("" if given in (None, options.ONLY_FLEET) else str(given), Path.cwd(), os.environ)


def inventory_of(fleet: str | None) -> Path:
    """The inventory that `--fleet` names.

    Raises:
        InputError: it names none, since Ansible runs what an inventory says; or there is no such file.
    """
    hint = "Name one: --fleet=inventory.yml. docs/fleet.md has examples."
    if fleet in (None, options.ONLY_FLEET):
        raise InputError("no inventory is named", hint=hint)
    path = Path(str(fleet))
    if not path.is_file():
        raise InputError("there is no inventory", path=path, hint=hint)
    return path


def refuse_without_extra(*more: str) -> None:
    """Refuse to go on without the packages of the extra `fleet`.

    Args:
        more: packages that this command needs besides.

    Raises:
        InputError: one is missing.
    """
    missing = [name for name in ("distributed", "cryptography", *more) if find_spec(name) is None]
    if missing:
        hint = "Install the extra: pip install 'feedstock-tools[fleet]'"
        raise InputError(f"a fleet needs {' and '.join(missing)}", hint=hint)
