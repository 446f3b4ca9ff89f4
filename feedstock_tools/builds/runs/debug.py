"""`--debug`: the environments and the work folder of one output, prepared as for a build, without running it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from feedstock_tools.builds.engines.contract import BuildRequest
from feedstock_tools.builds.engines.embedded.engine import RattlerBuild, request_file
from feedstock_tools.builds.ledger import BuildRecord, Ledger
from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.hosts import BUILD_SECONDS
from feedstock_tools.builds.plan.refusals import refuse
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.builds.plan.workspace import Workspace
from feedstock_tools.builds.runs.building import environment_of, write_siblings
from feedstock_tools.builds.runs.site import Site, Station, open_station, provide_compilers, site_of
from feedstock_tools.channel.pip import Watch, unwatched
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.planned import PlannedOutput
from feedstock_tools.files.locks import Locks, named_wait
from feedstock_tools.processes import worker_command

#: The time limit for creating the environments of an output, in seconds.
_SECONDS = 4 * 3600.0


@dataclass(frozen=True, slots=True)
class ReadyOutput:
    """An output prepared for building by hand.

    Attributes:
        stem: the name of its package file without extension.
        paths: role of a folder or file → its path; `work` is the folder to build in.
        environment: the variables for a shell there.
    """

    stem: str
    paths: Mapping[str, str]
    environment: Mapping[str, str]


def make_ready(workspace: Workspace, agenda: Agenda, wanted: str | None, watch: Watch = unwatched) -> ReadyOutput:
    """Create the environments of one output of one row, in a process of its own.

    Args:
        agenda: the agenda of the configurations to search for the output.
        wanted: the name of the output, its file name without extension, or a glob over these; the first output
            if None.
        watch: is called with the progress of a compiler's download.

    Raises:
        InputError: `wanted` selects several outputs or none, another engine builds the output, or nothing here compiles
            for its platform.
        WorkError: a sibling that it needs is not built yet, or the environments cannot be created.
    """
    row, output = _chosen_output(agenda.in_plan_order, wanted)
    engine = workspace.engines.engine_for(row.configuration, row.platform)
    if not isinstance(engine, RattlerBuild):
        hint = "The feedstock's own build-locally.py also has --debug." if engine.own_channels else None
        mistake = f"--debug requires the embedded engine, but {row.configuration} is built with {engine.name}"
        raise InputError(mistake, hint=hint)
    refuse(provide_compilers(workspace, [row], agenda.channels, watch), some=1, titles=agenda.titles)
    site = site_of(workspace, agenda, row)
    locks = Locks.wait_for(workspace.artifacts.locks, [f"row {row.name}"], BUILD_SECONDS)
    with Ledger(workspace.artifacts.ledger) as ledger, locks:
        station = open_station(site, ledger, engine, workspace.machine)
        return _made_ready(site, station, row, output)


def _made_ready(site: Site, station: Station, row: Row, output: PlannedOutput) -> ReadyOutput:
    builds = {name: station.ledger.done(identity) for name, identity in row.wanted.identities.items()}
    missing = [name for name in output.siblings if builds[name] is None]
    if missing:
        hint = f"Build them first: {row.configuration}"
        raise WorkError(f"{output.name} needs {', '.join(missing)} of the same variant", hint=hint)
    request = _request(site, station, row, output)
    done: list[BuildRecord] = [record for record in builds.values() if record]
    write_siblings(request.output, done, site.artifacts)
    paths = _set_up(request)
    site.artifacts.keep_private(row.name)
    return ReadyOutput(output.stem, paths, request.environment)


def _request(site: Site, station: Station, row: Row, output: PlannedOutput) -> BuildRequest:
    folder = site.artifacts.fresh_private(row.name)
    environment = environment_of(site, station, row.planned.cuda, folder, os.cpu_count() or 1)
    return BuildRequest(
        name=row.name,
        recipe=site.inputs.recipe,
        values=row.planned.values,
        target=site.target,
        builder=station.builder,
        channels=station.channels.urls,
        folder=folder,
        wanted=(output.name,),
        environment={**environment, "BUILD_WITH_CONDA_DEBUG": "1", "BUILD_OUTPUT_ID": output.name},
    )


def _chosen_output(rows: Sequence[Row], wanted: str | None) -> tuple[Row, PlannedOutput]:
    matching = [
        (row, output)
        for row in rows
        for output in row.planned.outputs
        if wanted is None or fnmatchcase(output.name, wanted) or fnmatchcase(output.stem, wanted)
    ]
    if not matching:
        names = sorted({output.name for row in rows for output in row.planned.outputs})
        raise InputError(f"there is no output '{wanted}'", hint=f"There are {', '.join(names)}.")
    different = {output.stem for _, output in matching}
    if len(different) > 1 and wanted is not None:
        listed = ", ".join(sorted(different))
        raise InputError(f"--debug sets up one output, but '{wanted}' matches {len(different)}: {listed}")
    return matching[0]


def _set_up(request: BuildRequest) -> Mapping[str, str]:
    """Create the environments in a process of its own; return their folders by role."""
    try:
        with request_file(request) as file, named_wait(f"the environments of {request.wanted[0]}", _SECONDS):
            done = subprocess.run(
                worker_command("feedstock_tools.builds.engines.embedded.debug_worker", str(file)),
                cwd=request.folder,
                env=dict(request.environment),
                stdout=subprocess.PIPE,
                stderr=sys.stderr,
                text=True,
                check=False,
                timeout=_SECONDS,
            )
    except subprocess.TimeoutExpired as error:
        reason = f"its environments have not been created within {_SECONDS:g} s"
        raise WorkError(reason, path=request.folder) from error
    if done.returncode:
        raise WorkError(f"cannot create the environments of {request.wanted[0]}", path=request.folder)
    paths: Mapping[str, str] = json.loads(done.stdout.splitlines()[-1])
    return paths
