"""`--debug`: the environments and the work folder of one output, made ready as for a build that is not run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from feedstock_tools.builds.engines.contract import BuildRequest, Engine
from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.plan.workspace import Setting
from feedstock_tools.builds.runs.inputs import Inputs
from feedstock_tools.builds.runs.observer import Console
from feedstock_tools.builds.runs.row import write_siblings
from feedstock_tools.builds.runs.run import choose_for
from feedstock_tools.builds.runs.site import make_ground
from feedstock_tools.builds.stand_in.choice import channels_identity
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput, PlannedRow
from feedstock_tools.locks import Locks
from feedstock_tools.workers import worker_command

__all__ = ["debug_output"]


def debug_output(
    setting: Setting,
    engine: Engine,
    chosen: Sequence[PlannedConfiguration],
    wanted: str | None,
    console: Console,
    *,
    interactive: bool,
) -> int:
    """Set up one output of one row; in a terminal, open a shell in its work folder and give that shell's exit status.

    Outputs of the same row that it needs are to be built already.

    Args:
        wanted: the name of the output, the name of its file without the ending, or a glob over these; the first output
            for None.

    Raises:
        InputError: more than one configuration, row or output is meant, or none.
        WorkError: a sibling is not built yet, or the environments cannot be made.
    """
    configuration, row, output = _one(chosen, wanted)
    choice = choose_for(setting, configuration, engine, console)
    base = channels_identity(setting.machine, configuration.platform, choice)
    locks = Locks.wait_for(setting.artifacts.locks, [f"row {row.name}"])
    with Ledger(setting.artifacts.ledger) as ledger, locks:
        ground = make_ground(setting, engine, configuration, choice, base, ledger, Inputs(setting))
        known = {each.name: ledger.done(ground.identities(each)) for each in row.outputs}
        missing = [name for name in output.siblings if known[name] is None]
        if missing:
            hint = f"Build them first: {configuration.name}"
            raise WorkError(f"{output.name} needs {', '.join(missing)} of the same variant", hint=hint)
        folder = setting.artifacts.fresh_private(row.name)
        write_siblings(folder / "output", [record for record in known.values() if record], setting.artifacts)
        request = BuildRequest(
            name=row.name,
            recipe=setting.recipe,
            values=row.values,
            target=ground.target,
            builder=ground.builder,
            channels=ground.channels,
            folder=folder,
            wanted=(output.name,),
            environment={
                **ground.environment(row, folder, os.cpu_count() or 1),
                "BUILD_WITH_CONDA_DEBUG": "1",
                "BUILD_OUTPUT_ID": output.name,
            },
        )
        paths = _set_up(request)
    console.say(f"\n{output.stem} is ready to be built by hand.")
    for what, path in paths.items():
        console.say(f"  {what:12} {path}")
    console.say(f"\n  cd {paths['work']} && source build_env.sh && bash -x ./conda_build.sh")
    if not interactive:
        return 0
    shell = ["bash", "--rcfile", "build_env.sh", "-i"]
    return subprocess.run(shell, cwd=paths["work"], env=dict(request.environment), check=False).returncode


def _one(
    chosen: Sequence[PlannedConfiguration], wanted: str | None
) -> tuple[PlannedConfiguration, PlannedRow, PlannedOutput]:
    found = [
        (configuration, row, output)
        for configuration in chosen
        for row in configuration.rows
        for output in row.outputs
        if wanted is None or fnmatchcase(output.name, wanted) or fnmatchcase(output.stem, wanted)
    ]
    if not found:
        names = sorted({output.name for each in chosen for row in each.rows for output in row.outputs})
        raise InputError(f"no output is called '{wanted}'", hint=f"There are {', '.join(names)}.")
    different = {output.stem for _, _, output in found}
    if len(different) > 1 and wanted is not None:
        listed = ", ".join(sorted(different))
        raise InputError(f"--debug sets up one output, and '{wanted}' means {len(different)}: {listed}")
    return found[0]


def _set_up(request: BuildRequest) -> Mapping[str, str]:
    """Let a process of its own make the environments; the folders that came of it, by what they are."""
    request_file = request.folder / "request.json"
    request_file.write_text(json.dumps(request.to_json()))
    done = subprocess.run(
        worker_command("feedstock_tools.builds.engines.embedded.debug_worker", str(request_file)),
        cwd=request.folder,
        env=dict(request.environment),
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
        check=False,
    )
    if done.returncode:
        raise WorkError(f"the environments of {request.wanted[0]} could not be made", path=request.folder)
    paths: Mapping[str, str] = json.loads(done.stdout.splitlines()[-1])
    return paths
