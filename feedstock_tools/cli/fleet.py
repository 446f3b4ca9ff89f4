"""`feedstock-tools fleet`: machines that build together: their certificates, their programs, their state."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import click

from feedstock_tools.cli import fleet_hosts, options
from feedstock_tools.cli.commands import Group
from feedstock_tools.cli.fleet_extra import chosen_fleet, linked, refuse_without_extra
from feedstock_tools.cli.fleet_slurm import command as slurm
from feedstock_tools.cli.printing import say, say_json
from feedstock_tools.wording import counted

_HELP = {"help_option_names": ["-h", "--help"]}


@click.group("fleet", cls=Group, context_settings=_HELP)
def command() -> None:
    """Build on other machines: `feedstock-tools build --all --fleet`.

    A hub carries requests between the client, which is this machine, and the hosts, which build. It needs the extra
    `fleet`: pip install 'feedstock-tools[fleet]'.
    """


command.add_command(slurm)


@command.command("new", short_help="Make the keys and certificates of a fleet.")
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
    from feedstock_tools.builds.fleet.folder import add_host, fleets_root, make_fleet

    if not hub.rpartition(":")[0] or not hub.rpartition(":")[2].isdigit():
        raise click.UsageError("--hub takes the address and the port of the hub, such as 203.0.113.7:8786")
    fleet = make_fleet(fleets_root(os.environ) / name, name, hub)
    for host in hosts:
        add_host(fleet, host, {"root": root})
    say(f"Made the fleet {name} in {fleet.path}")
    say(f"  feedstock-tools fleet hub {fleet.for_hub} {hub}")
    for host in fleet.hosts:
        say(f"  feedstock-tools fleet worker {fleet.for_host(host)}   # on {host}, with a copy of this folder")


@command.command("hub", short_help="Serve as the hub of a fleet.")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("address", metavar="HOST:PORT")
def hub(folder: Path, address: str) -> int:
    """Serve as the hub of a fleet, with the files in FOLDER, until Ctrl-C or SIGTERM."""
    refuse_without_extra()
    from feedstock_tools.builds.fleet.hub import main

    return main(str(folder), address)


@command.command("worker", short_help="Build on this machine for a fleet.")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
def worker(folder: Path) -> int:
    """Build on this machine what the client of a fleet orders, with the files in FOLDER, until Ctrl-C or SIGTERM."""
    refuse_without_extra()
    from feedstock_tools.builds.fleet.worker import main

    return main(str(folder))


@command.command("status", short_help="Show the hosts of a fleet and what they do.")
@options.fleet("inventory.yml here, else the only one")
@options.as_json
def status(fleet: str | None, as_json: bool) -> int:
    """Show the hosts of a fleet: whether they are connected, what they have, and what they build."""
    from feedstock_tools.report.fleet import status_json, status_text

    with linked(chosen_fleet(fleet)) as link:
        listing = link.listing
    if as_json:
        say_json(status_json(listing))
    else:
        say(status_text(listing))
    return 0 if any(host.is_present for host in listing.hosts.values()) else 1


@command.command("stop", short_help="End all builds of a fleet.")
@options.fleet("inventory.yml here, else the only one")
def stop(fleet: str | None) -> int:
    """End the builds that go on in a fleet; their hosts stay up. The next run begins these rows again."""
    from feedstock_tools.builds.fleet.carrying.link import Away
    from feedstock_tools.builds.fleet.trust.signing import Refused

    ended = 0
    with linked(chosen_fleet(fleet)) as link:
        for host in link.listing.hosts.values():
            for attempt in host.attempts:
                with suppress(Away, Refused):
                    link.ask(host.name, "stop" if attempt.get("runs") else "forget", {"attempt": attempt["attempt"]})
                    ended += bool(attempt.get("runs"))
    say(f"Asked {counted(ended, 'build')} to end.")
    return 0


@command.command("try", short_help="Run a fleet on this machine, to try one.")
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
    import tempfile

    from feedstock_tools.builds.engines.process.supervision import signals_as_exit
    from feedstock_tools.builds.fleet.folder import fleets_root
    from feedstock_tools.builds.fleet.local import local_fleet
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


for _each in fleet_hosts.COMMANDS:
    command.add_command(_each)
