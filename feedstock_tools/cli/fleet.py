"""`feedstock-tools fleet`: machines that build together: their certificates, programs, state, and jobs of a cluster."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Group
from feedstock_tools.cli.opening import tidy
from feedstock_tools.cli.printing import say, say_note, say_result
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.wording import counted, shown_log, table

if TYPE_CHECKING:
    from feedstock_tools.builds.fleet import FleetFolder, Inventory, Link, Played

_HOSTS = click.argument("hosts", nargs=-1, metavar="[HOST]...")
_FLEET = options.fleet("the only one")
_INVENTORY_FILE = options.fleet("none")
_MACHINES = options.option(
    "--machines", metavar="PROGRAM", meaning="Program that makes and ends the machines: PROGRAM up|down FLEET"
)
_TELL_HUB = "A hub on another machine hears it from `fleet up`, or a copy of the folder hub."
_HUB = options.option(
    "--hub", required=True, metavar="HOST:PORT", meaning="Where the hub will listen, for hosts and client"
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
@_HUB
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
    say(f"  feedstock-tools fleet hub {shlex.quote(str(fleet.for_hub))} {hub}")
    for host in fleet.hosts:
        folder = shlex.quote(str(fleet.for_host(host)))
        say(f"  feedstock-tools fleet worker {folder}   # on {host}, with a copy of this folder")


@fleet.command("join", short_help="Take part in a fleet that another maintainer has made.")
@click.argument("name")
@_HUB
@options.option(
    "--authority",
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    meaning="The authority.crt of the fleet, from who has made it",
)
def join(name: str, hub: str, authority: Path) -> None:
    """Make a key of your own, which stays on this machine, and a certificate that the other maintainer invites."""
    refuse_without_extra()
    from feedstock_tools.builds.fleet import fleets_root, join_fleet

    certificate = join_fleet(fleets_root(os.environ) / name, name, hub, authority)
    say(f"Send {certificate} to who has made the fleet. They run:")
    say(f"  feedstock-tools fleet invite YOUR-NAME {shlex.quote(certificate.name)} --fleet={name}")


@fleet.command("invite", short_help="Let another maintainer build on a fleet.")
@click.argument("name")
@click.argument("certificate", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_FLEET
def invite(name: str, certificate: Path, fleet: str | None) -> None:
    """Let the hub trust the CERTIFICATE that `fleet join` has made for NAME, until `fleet remove NAME`."""
    from feedstock_tools.builds.fleet import invite as trust

    found = chosen_fleet(fleet)
    trust(found, name, certificate)
    say(f"Invited {name} to the fleet {found.name}. {_TELL_HUB}")


@fleet.command("remove", short_help="No longer let a maintainer build on a fleet.")
@click.argument("name")
@_FLEET
def remove_(name: str, fleet: str | None) -> None:
    """Let the hub no longer trust the certificate of NAME. The builds of that maintainer go on until `fleet stop`."""
    from feedstock_tools.builds.fleet import remove_maintainer

    found = chosen_fleet(fleet)
    remove_maintainer(found, name)
    say(f"Removed {name} from the fleet {found.name}. {_TELL_HUB}")


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
    from feedstock_tools.builds.fleet import why_unfit
    from feedstock_tools.report.fleet import status_json, status_text

    found = chosen_fleet(fleet)
    with _linked(found) as link:
        hosts, runs, jobs = link.hosts, link.runs(), link.jobs
    reasons = why_unfit(found)
    away = {host: reasons.get(host, "") for host in found.hosts if host not in hosts}
    say_result((status_json if as_json else status_text)(hosts, away, runs, jobs))
    if link.dashboard and not as_json:
        port, hub = link.dashboard, found.hub.rpartition(":")[0]
        say(f"dashboard: http://127.0.0.1:{port} on the hub: ssh -L {port}:127.0.0.1:{port} {hub}")
    return 0 if hosts else 1


@fleet.command("logs", short_help="Show what the build of a row prints.")
@click.argument("row")
@_FLEET
def logs(row: str, fleet: str | None) -> None:
    """Show what the build of a row has printed on its host, and follow it until it ends or Ctrl-C.

    `fleet status` shows the rows that are being built.
    """
    with _linked(chosen_fleet(fleet)) as link:
        for content in link.log_of(row):
            say(shown_log(content.decode(errors="replace")), nl=False)


@fleet.command("stop", short_help="End a run on a fleet.")
@click.argument("run", required=False)
@_FLEET
def stop(run: str | None, fleet: str | None) -> int:
    """End a run, the only one without RUN: its builds on the hosts, its rows that wait, and the command that began it.

    `fleet status` shows the runs. The hosts stay up.
    """
    with _linked(chosen_fleet(fleet)) as link:
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


@fleet.group("cluster", short_help="Let jobs of a cluster build.")
def cluster() -> None:
    """Let jobs of a Slurm cluster build: those that `fleet_cluster` in the inventory allows.

    The hub submits them while rows wait, and ends those that have nothing to do. PBS, LSF, SGE and HTCondor were not
    tried.
    """


@cluster.command("up", short_help="Make the fleet of an inventory, and start its hub here.")
@_INVENTORY_FILE
def cluster_up(fleet: str | None) -> None:
    """Make the fleet of an inventory, or bring it up to date, and start its hub on this machine unless it runs.

    Where the kinds of job have changed, the hub begins again, and so do the builds of its jobs.
    """
    refuse_without_extra("dask_jobqueue")
    from feedstock_tools.builds.fleet import end_hub, ensure_hub, job_kinds, kind_of, read_cluster, write_kinds

    settings = read_cluster(inventory_of(fleet))
    kinds = [kind_of(name, given) for name, given in settings.kinds.items()]
    for kind in kinds:
        if shutil.which(kind.submits) is None:
            hint = "Run this where the cluster's commands are: on a login node."
            raise InputError(f"there is no {kind.submits} on PATH", hint=hint)
    made = _named_fleet(settings.name, settings.hub)
    before = job_kinds(made.for_hub)
    write_kinds(made, kinds)
    if before and before != job_kinds(made.for_hub):
        end_hub(made)
    if ensure_hub(made):
        say(f"The hub of the fleet {made.name} runs at {made.hub}")
    for kind in kinds:
        say(f"{kind.name}: {kind.least} to {counted(kind.most, 'job')}")
    say(f"  feedstock-tools build --all --fleet={made.name}")


@cluster.command("down", short_help="End the jobs of a fleet and its hub.")
@_FLEET
def cluster_down(fleet: str | None) -> None:
    """End the hub that `fleet cluster up` has started here, which ends all its jobs; then remove their files.

    The keys of the fleet go too, unless it has other hosts.
    """
    from feedstock_tools.builds.fleet import end_hub, job_kinds, write_kinds
    from feedstock_tools.files.temporary import remove

    found = chosen_fleet(fleet)
    if not job_kinds(found.for_hub):
        raise InputError(f"the fleet {found.name} has no jobs", hint="`feedstock-tools fleet cluster up` makes some.")
    end_hub(found)
    if found.hosts:
        write_kinds(found, ())
        remove(found.path / "jobs")
    else:
        remove(found.path)
    say(f"Ended the hub of the fleet {found.name} and its jobs.")


@contextmanager
def _linked(fleet: FleetFolder) -> Iterator[Link]:
    """A connection to a fleet.

    Raises:
        WorkError: it cannot be reached, or one of its machines answers with a reason or with what cannot be true.
    """
    from feedstock_tools.builds.fleet import Away, Damaged, Link, Refused

    with Link(fleet) as link:
        try:
            yield link
        except (Away, Damaged, Refused) as error:
            raise WorkError(f"the fleet {fleet.name} does not do it: {error}") from error


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
        hint = "`feedstock-tools fleet cluster down` removes it; hosts know their hub."
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
        InputError: it names none, since Ansible runs what an inventory says; or there is no such file; or it is the
            name of a fleet, and the file of that name may be a stranger's.
    """
    from feedstock_tools.builds.fleet import fleet_names

    hint = "Name one: --fleet=inventory.yml. docs/fleet.md has examples."
    if fleet in (None, options.ONLY_FLEET, *fleet_names(os.environ)):
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
