"""Shared builds: what rows inherit from one build, kept until all of its heirs are done.

The folder of a shared build is complete once it has its seal, which is written last, after the disk has everything
else. The ledger records the build as it records others; its package is the seal, so a build counts as done as long as
that is unchanged.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from feedstock_tools.builds.engines.contract import SOLVED, BuildRequest, Built
from feedstock_tools.builds.ledger import Ledger, PackageRecord
from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.builds.runs.delivery import (
    SolvedIn,
    entered,
    solved_channels,
    solved_environments,
    wrong_channels,
)
from feedstock_tools.builds.runs.row_build import RowBuild
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.files.temporary import owned_name, remove

SEAL = "sealed.json"


def folders_of(artifacts: Artifacts, row: Row) -> dict[str, Path]:
    """The folders of the shared builds that a row inherits from, by name; of a shared build its own, which is emptied.

    Raises:
        WorkError: it cannot be created.
    """
    if not row.is_shared:
        return {name: artifacts.shared(identity) for name, identity in row.wanted.shared.items()}
    ((name, identity),) = row.wanted.identities.items()
    folder = artifacts.shared(identity)
    remove(folder)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise WorkError(f"cannot create a folder for the build: {error.strerror or error}", path=folder) from error
    return {name: folder}


def refuse_incomplete(folders: Mapping[str, Path]) -> None:
    """Refuse to build rows from shared builds that are not as they were sealed.

    Raises:
        WorkError: one of them is not.
    """
    for name, folder in folders.items():
        try:
            whole = json.loads((folder / SEAL).read_bytes())["contents"] == _contents(folder)
        except (OSError, ValueError, LookupError, TypeError):
            whole = False
        if not whole:
            (folder / SEAL).unlink(missing_ok=True)
            hint = "Run the command again to rebuild it."
            raise WorkError(f"the shared build of {name} was removed or changed", path=folder, hint=hint)


def seal(build: RowBuild, event: Built, request: BuildRequest) -> None:
    """Seal the folder of a shared build that is complete, and record it as done.

    Raises:
        WorkError: its inputs have changed meanwhile, an environment is wrong, or it cannot be written.
    """
    build.refuse_changed(event.output)
    folder, wanted = event.package, build.row.wanted
    solved = json.loads((folder / SOLVED).read_bytes()) if (folder / SOLVED).is_file() else {}
    solved_in = SolvedIn(request.output.as_uri(), build.station.channels)
    if wrong := list(wrong_channels(list(solved_channels(solved)), solved_in, frozenset())):
        lines = "\n".join(f"  - {line}" for line in wrong)
        raise WorkError(f"the shared build of {event.output} used packages from the wrong channels:\n{lines}")
    content = {
        "name": event.output,
        "identity": wanted.identities[event.output],
        "inputs": dict(wanted.inputs[event.output]),
        "contents": _contents(folder),
    }
    part = folder / owned_name()
    try:
        part.write_text(json.dumps(content), encoding="utf-8")
        os.sync()
        state = part.stat()
    except OSError as error:
        raise WorkError(f"cannot write the seal of a shared build: {error.strerror or error}", path=folder) from error
    package = PackageRecord(
        channel=folder.parent.relative_to(build.site.artifacts.root).as_posix(),
        file=f"{folder.name}/{SEAL}",
        size=state.st_size,
        sha256=sha256_of(part),
        mtime_ns=state.st_mtime_ns,
    )
    entered(build, event, package, tuple(solved_environments(solved)), lambda: part.rename(folder / SEAL))


def remove_finished(artifacts: Artifacts, agenda: Agenda) -> None:
    """Remove the shared builds whose heirs are all done, whichever run has built them."""
    kept = {identity: folder for identity in agenda.heirs if (folder := artifacts.shared(identity)).is_dir()}
    if not kept:
        return
    with Ledger(artifacts.ledger) as ledger:
        for identity, folder in kept.items():
            if all(ledger.done(heir) for heir in agenda.heirs[identity]):
                remove(folder)


def _contents(folder: Path) -> list[int]:
    """The number of files in a folder of a shared build, and their bytes, without those beside them."""
    sizes = [
        os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118 - there may be a million
        for entry in sorted(folder.iterdir())
        if entry.is_dir()
        for place, _, names in os.walk(entry)
        for name in names
    ]
    return [len(sizes), sum(sizes)]
