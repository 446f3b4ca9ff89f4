"""Shared builds: what rows inherit from one build, kept until all of its heirs are done.

The folder of a shared build is complete once it has its seal, which names what it seals and is written last, after the
disk has everything else. The ledger records the build as it records others; its package is the seal.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from feedstock_tools.builds.engines.contract import SOLVED, BuildRequest, Built
from feedstock_tools.builds.ledger import Ledger, PackageRecord
from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.builds.runs.delivery import SolvedIn, entered, solved_channels, solved_environments, wrong_channels
from feedstock_tools.builds.runs.row_build import RowBuild, shared_lock
from feedstock_tools.builds.runs.site import Site, Station
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import FeedstockError, WorkError
from feedstock_tools.feedstock.layout import SEAL, Artifacts
from feedstock_tools.files.locks import Locks, say_aside
from feedstock_tools.files.temporary import owned_name, remove
from feedstock_tools.platforms import Platform

#: The parts of a shared build's inputs that an edit of the recipe leaves as they are.
_LASTING = ("variant", "engine", "channels")
_SHOWN = 3


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


def refuse_incomplete(artifacts: Artifacts, row: Row) -> None:
    """Refuse to build a row from shared builds that are not as they were sealed.

    Raises:
        WorkError: one of them is not.
    """
    for name, identity in row.wanted.shared.items():
        folder = artifacts.shared(identity)
        if not _is_whole(folder, identity):
            locks = Locks.take(artifacts.locks, [shared_lock(identity)])
            if locks is not None:  # else another run makes it again
                with locks:
                    if not _is_whole(folder, identity):
                        remove(folder / SEAL)
            hint = "Run the command again to rebuild it."
            raise WorkError(f"the shared build of {name} was removed or changed", path=folder, hint=hint)


def environments_of(site: Site, station: Station, row: Row) -> dict[str, str] | None:
    """The packages that the environments of a shared build have if they are solved now, each with its digest.

    None if that is unknown.
    """
    from feedstock_tools.channel.solving import solve, virtual_packages

    if station.engine.own_channels:  # its heirs take packages that are made already
        return None
    (build,) = row.planned.outputs
    target = station.builder if site.target == "noarch" else site.target
    solved: dict[str, str] = {}
    try:
        for environment, specs in build.environments.items():
            platform = Platform.parse(station.builder if environment == "build" else target)
            virtual = virtual_packages(platform, cuda=row.planned.cuda)
            records = solve(specs, station.channels.urls, platform, virtual=virtual) if specs else ()
            for record in records:
                solved[f"{record.name} {record.version} {record.build} ({environment})"] = record.sha256
    except FeedstockError:
        return None
    return solved


def seal(build: RowBuild, event: Built, request: BuildRequest) -> None:
    """Seal the folder of a shared build that is complete, and record it as done.

    Raises:
        WorkError: its inputs have changed meanwhile, an environment is wrong, or it cannot be written.
    """
    build.refuse_changed(event.output)
    folder, wanted = event.package, build.row.wanted
    try:
        solved = json.loads((folder / SOLVED).read_bytes()) if (folder / SOLVED).is_file() else {}
        if wrong := list(
            wrong_channels(
                list(solved_channels(solved)), SolvedIn(request.output.as_uri(), build.station.channels), frozenset()
            )
        ):
            lines = "\n".join(f"  - {line}" for line in wrong)
            raise WorkError(f"the shared build of {event.output} used packages from the wrong channels:\n{lines}")
        content = {
            "name": event.output,
            "identity": wanted.identities[event.output],
            "inputs": dict(wanted.inputs[event.output]),
            "environments": build.environments,
            "contents": _contents(folder),
        }
        part = folder / owned_name()
        part.write_text(json.dumps(content), encoding="utf-8")
        if hasattr(os, "sync"):
            os.sync()
        state = part.stat()
        package = PackageRecord(
            channel=folder.parent.relative_to(build.site.artifacts.root).as_posix(),
            file=f"{folder.name}/{SEAL}",
            size=state.st_size,
            sha256=sha256_of(part),
            mtime_ns=state.st_mtime_ns,
        )
        entered(build, event, package, tuple(solved_environments(solved)), lambda: _renamed(part, folder / SEAL))
    except (OSError, ValueError) as error:
        raise WorkError(f"cannot seal a shared build: {error}", path=folder) from error


def _renamed(part: Path, seal: Path) -> Path:
    """Rename a seal that the disk has, and wait until the disk has its name: the ledger says so next."""
    part.rename(seal)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(seal.parent, os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return seal


def renewed(agenda: Agenda, artifacts: Artifacts, sites: Mapping[str, tuple[Site, Station]]) -> Agenda:
    """The same, in which kept shared builds run again whose environments would have other packages now."""
    outdated = []
    for row in agenda.kept:
        ((name, identity),) = row.wanted.identities.items()
        file = artifacts.shared(identity) / SEAL
        before = _read(file).get("environments")
        site = sites.get(row.configuration)
        now = environments_of(*site, row) if site is not None and before is not None else None
        if before is None or now is None:
            say_aside(f"{name}: whether the packages that it was built with are still the channel's is unknown")
        elif before != now:
            others = [each for each in now if before.get(each) != now[each]] or [
                each for each in before if each not in now
            ]
            more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
            say_aside(f"{name} is built again: the channels now have {', '.join(others[:_SHOWN])}{more} for it")
            with Locks.wait_for(artifacts.locks, [shared_lock(identity)]):
                remove(file)
            outdated.append(row)
    return agenda.once_more(outdated) if outdated else agenda


def remove_finished(artifacts: Artifacts, agenda: Agenda) -> None:
    """Remove the shared builds whose heirs are all done, and those that an edit has replaced."""
    current = {_lasting(unit.name, unit.inputs) for unit in agenda.units.values()}
    for file in artifacts.shared_builds.glob(f"*/{SEAL}"):
        sealed = _read(file)
        identity, unit = str(sealed.get("identity")), agenda.units.get(str(sealed.get("identity")))
        if unit is None and _lasting(str(sealed.get("name")), sealed.get("inputs") or {}) not in current:
            continue
        locks = Locks.take(artifacts.locks, [shared_lock(identity)])
        if locks is None:  # another run makes it again
            continue
        with locks, Ledger(artifacts.ledger) as ledger:
            if unit is None or all(ledger.done(heir) for heir in unit.heirs):
                remove(file.parent)


def _lasting(name: str, inputs: Mapping[str, str]) -> tuple[str | None, ...]:
    return name, *(inputs.get(part) for part in _LASTING)


def _is_whole(folder: Path, identity: str) -> bool:
    sealed = _read(folder / SEAL)
    try:
        return sealed.get("identity") == identity and sealed.get("contents") == _contents(folder)
    except OSError:
        return False


def _read(seal_file: Path) -> dict[str, Any]:
    try:
        content = json.loads(seal_file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _contents(folder: Path) -> str:
    """A hash over the names, sizes and times of what a shared build has left, without the files beside its folders."""
    digest = sha256()
    for place, folders, names in os.walk(folder):
        folders.sort()
        links = [name for name in folders if os.path.islink(f"{place}/{name}")]  # noqa: PTH114 - there may be a million
        for name in sorted([*links, *(names if place != str(folder) else ())]):
            state = os.lstat(f"{place}/{name}")
            path = f"{place[len(str(folder)) :]}/{name}"
            digest.update(
                f"{path}\0{state.st_size}\0{state.st_mtime_ns}\0{state.st_mode}\n".encode(errors="surrogateescape")
            )
    return digest.hexdigest()
