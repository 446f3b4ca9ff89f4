"""`feedstock-tools fleet slurm`: hosts of a fleet that are jobs of a Slurm cluster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Group
from feedstock_tools.cli.fleet_extra import inventory_of, refuse_without_extra
from feedstock_tools.cli.printing import say, say_json
from feedstock_tools.errors import InputError, WorkError

if TYPE_CHECKING:
    from feedstock_tools.builds.fleet.cluster.queue import Job
    from feedstock_tools.builds.fleet.folder import FleetFolder


@click.group("slurm", cls=Group, short_help="Let jobs of a Slurm cluster build.")
def command() -> None:
    """Let jobs of a Slurm cluster build: those that `fleet_slurm` in the inventory allows.

    `build --all --fleet` submits them while rows wait. A job that has nothing to do ends by itself.
    """


@command.command("up", short_help="Make the fleet of an inventory, start its hub, submit its first jobs.")
@options.fleet("inventory.yml")
def up(fleet: str | None) -> None:
    """Make the fleet of an inventory, or bring it up to date.

    Starts its hub on this machine unless it answers, and submits the least number of jobs of each kind.
    """
    refuse_without_extra("dask_jobqueue")
    from feedstock_tools.builds.fleet.cluster.folder import write_kinds
    from feedstock_tools.builds.fleet.cluster.hub_process import ensure_hub
    from feedstock_tools.builds.fleet.cluster.pool import submit_jobs
    from feedstock_tools.builds.fleet.cluster.queue import jobs_of
    from feedstock_tools.builds.fleet.cluster.script import kind_of
    from feedstock_tools.builds.fleet.cluster.settings import read_slurm

    settings = read_slurm(inventory_of(fleet))
    kinds = [kind_of(name, given) for name, given in settings.kinds.items()]
    jobs = jobs_of(settings.name, os.environ)  # refuses where there is no Slurm, before anything is made
    made = _fleet(settings.name, settings.hub)
    write_kinds(made, kinds)
    if ensure_hub(made):
        say(f"The hub of the fleet {made.name} runs at {made.hub}")
    for kind in kinds:
        living = sum(job.lives and job.host.rpartition("-")[0] == kind.name for job in jobs)
        submitted = submit_jobs(made, kind, kind.least - living, os.environ)
        numbers = f": submitted {', '.join(submitted.values())}" if submitted else ""
        say(f"{kind.name}: up to {kind.most} jobs while rows wait{numbers}")
    say(f"  feedstock-tools build --all --fleet={made.name}")


@command.command("status", short_help="Show the jobs of a fleet.")
@options.fleet("inventory.yml here, else the only one")
@options.as_json
def status(fleet: str | None, as_json: bool) -> int:
    """Show the jobs of a fleet, with those that ended a few minutes ago; exit code 1 if none waits or runs."""
    from feedstock_tools.builds.fleet.cluster.queue import jobs_of
    from feedstock_tools.cli.fleet_extra import chosen_fleet
    from feedstock_tools.report.fleet import jobs_json, jobs_text

    jobs = jobs_of(chosen_fleet(fleet).name, os.environ)
    if as_json:
        say_json(jobs_json(jobs))
    else:
        say(jobs_text(jobs))
    return 0 if any(job.lives for job in jobs) else 1


@command.command("down", short_help="End the jobs of a fleet and its hub.")
@options.fleet("inventory.yml here, else the only one")
def down(fleet: str | None) -> None:
    """End all jobs of a fleet, and its hub if `fleet slurm up` started it here; then remove their files.

    The keys of the fleet go too, unless it has other hosts.
    """
    from feedstock_tools.builds.fleet.cluster.folder import job_kinds, remove_jobs, remove_kinds
    from feedstock_tools.builds.fleet.cluster.hub_process import end_hub
    from feedstock_tools.builds.fleet.cluster.queue import cancel, jobs_of
    from feedstock_tools.cli.fleet_extra import chosen_fleet
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
    import time

    from feedstock_tools.builds.fleet.cluster.queue import jobs_of

    numbers, end = {job.number for job in jobs}, time.monotonic() + 120
    while numbers:
        left = {job.number for job in jobs_of(fleet.name, os.environ) if not job.is_over}
        numbers &= left
        if numbers and time.monotonic() > end:
            hint = "Run the command again when the cluster has ended them."
            raise WorkError(f"the jobs {', '.join(sorted(numbers))} have not ended yet", hint=hint)
        if numbers:
            time.sleep(1)


def _fleet(name: str, hub: str | None) -> FleetFolder:
    """The fleet of a name, made if there is none.

    Raises:
        InputError: there is one with another hub.
    """
    from feedstock_tools.builds.fleet.folder import fleets_root, make_fleet, open_fleet
    from feedstock_tools.builds.fleet.local import free_port
    from feedstock_tools.processes import this_machine

    path = fleets_root(os.environ) / name
    if not (path / "fleet.json").exists():
        return make_fleet(path, name, hub or f"{this_machine()}:{free_port()}")
    fleet = open_fleet(path)
    if hub not in (None, fleet.hub):
        hint = "`feedstock-tools fleet slurm down` removes it; hosts know their hub."
        raise InputError(f"the fleet {name} has its hub at {fleet.hub}, not at {hub}", hint=hint)
    return fleet
