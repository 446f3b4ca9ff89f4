"""Building one row: skip finished outputs, run the engine on the rest, and deliver each package that it makes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from feedstock_tools.builds.channels import note_on_empty, note_on_script
from feedstock_tools.builds.engines.contract import (
    BuildRequest,
    Built,
    Event,
    Failed,
    Log,
    Output,
    Started,
    repeated_staging,
)
from feedstock_tools.builds.engines.embedded.emulation import Emulator
from feedstock_tools.builds.engines.embedded.engine import RattlerBuild
from feedstock_tools.builds.engines.embedded.other_addresses import other_addresses
from feedstock_tools.builds.engines.process.guard import Guard, OutOfMemoryError, OutOfTimeError, cores_apart
from feedstock_tools.builds.engines.process.supervision import signals_held_back
from feedstock_tools.builds.engines.variables import RowSetting, build_environment
from feedstock_tools.builds.ledger import BuildRecord
from feedstock_tools.builds.plan.row import Ended, Row
from feedstock_tools.builds.runs.delivery import as_built, deliver
from feedstock_tools.builds.runs.linking import needed_in
from feedstock_tools.builds.runs.logs import LogFile, Skipped, without_secrets
from feedstock_tools.builds.runs.row_build import RowBuild, claim
from feedstock_tools.builds.runs.shared import environments_of, folders_of, refuse_incomplete, seal
from feedstock_tools.builds.runs.site import Site, Station
from feedstock_tools.errors import FeedstockError, WorkError
from feedstock_tools.feedstock.folder import user_cache
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.planned import PlannedOutput
from feedstock_tools.redaction import redacted
from feedstock_tools.wording import middle_cut, size_text

#: A disk with fewer free bytes than this counts as full: no environment fits on it.
_FULL = 16 << 20
#: The guard's exception → the step that failed.
_BY_GUARD = {OutOfMemoryError: "memory", OutOfTimeError: "time"}
#: The begin of rattler-build's advice after a script that failed, which has the log alone.
_ADVICE = "Script execution failed."
#: Lines that tell an error, and those with which pip, CMake, ninja and conda-build end after any.
_ERROR = re.compile(
    r"\berror( \w+)?:|^([\w.]*\.)?\w+(Error|Exception)(:|$)|^CMake Error|\*\*\* |undefined reference to"
    r"|: command not found$|: not found$|No such file or directory|Permission denied|No space left on device",
    re.IGNORECASE,
)
_ENDING = re.compile(
    r"subprocess-exited-with-error|failed-wheel-build|Failed building wheel|^pip\._|metadata-generation-failed"
    r"|CalledProcessError: Command|returned non-zero exit status|\bError compiling objects|conda_build\.|^\+"
)
_MOST_ERRORS = 3
_OF_PIP = re.compile(r"PIP_|XDG_CACHE_HOME$")
_LONGEST_ERROR = 300
Watch = Callable[[Event], None]


def build_row(site: Site, station: Station, row: Row, stop: int | None, watch: Watch) -> Ended | None:
    """Build the missing outputs of a row. Returns None and does nothing while another run builds one of them.

    Args:
        row: a running one.
        stop: a descriptor that becomes readable when the run is over; None without one.
        watch: called with each event of the build.

    Raises:
        Stopped: the run is over.
    """
    claimed = claim(site.artifacts, station.ledger, row, station.channels.properties)
    if claimed is None:
        return None
    with claimed.locks as locks:
        done, wanted = claimed.done, claimed.wanted
        if not wanted:
            shutil.rmtree(site.artifacts.private(row.name), ignore_errors=True)
            return Ended(done, ())
        folder = site.artifacts.fresh_private(row.name)
        write_siblings(folder / "output", done, site.artifacts)
        running = row.at
        share = running.share
        cache = user_cache(station.machine, site.artifacts.cache)
        with (
            cores_apart(cache / "cores", share.cores[: share.jobs]) as cores,
            LogFile(site.artifacts.logs, row.name, running.log_limit) as log,
        ):
            guard = Guard(cores=cores, memory=share.memory, seconds=running.seconds, stop=stop)
            return _build(RowBuild(site, station, row, guard, log, locks), wanted, done, watch)


def _build(build: RowBuild, wanted: Sequence[PlannedOutput], done: Sequence[BuildRecord], watch: Watch) -> Ended:
    """Build the missing outputs of a row whose locks are held."""
    build.promises.update((record.output, as_built(build.outputs[record.output], record)) for record in done)
    repeated = [output for output in wanted if not build.row.wanted.shared.keys() & set(output.staging)]
    for warning in repeated_staging(build.station.engine, repeated):
        build.log.write(warning)
        watch(warning)
    request = _request(build, wanted)
    _run(build, request, watch)
    if build.failed is None:
        shutil.rmtree(request.folder, ignore_errors=True)
    else:
        build.site.artifacts.keep_private(build.row.name)
    return Ended(tuple(done), tuple(build.records), build.failed, tuple(build.log.last))


def _request(build: RowBuild, wanted: Sequence[PlannedOutput]) -> BuildRequest:
    site, station, share = build.site, build.station, build.row.at.share
    folder = site.artifacts.private(build.row.name)
    return BuildRequest(
        name=build.row.name,
        recipe=site.inputs.recipe,
        values=build.row.planned.values,
        target=site.target,
        builder=station.builder,
        channels=station.channels.urls,
        folder=folder,
        wanted=tuple(output.name for output in wanted),
        shared=folders_of(site.artifacts, build.row),
        only_shared=build.row.is_shared,
        rows=tuple(build.row.planned.outputs[0].rows),
        untested=tuple(output.name for output in wanted if build.why_untested(output)),
        emulator=station.emulator if isinstance(station.emulator, Emulator) else None,
        extra=station.channels.properties.marks,
        environment=environment_of(site, station, build.row.planned.cuda, folder, share.jobs),
        configuration=site.configuration,
        feedstock=site.feedstock,
        cores=share.jobs,
        memory=share.memory,
        epoch=site.epoch,
        for_pip={name: value for name, value in station.machine.items() if _OF_PIP.match(name)},
        other_addresses=other_addresses(site.inputs.recipe, site.artifacts.sources, station.machine)
        if isinstance(station.engine, RattlerBuild)
        else {},
        guard=build.guard,
    )


def environment_of(site: Site, station: Station, cuda: str | None, folder: Path, jobs: int) -> dict[str, str]:
    """The environment variables of a row's build: see `build_environment`."""
    cache = site.artifacts.package_cache(station.channels.properties)
    row = RowSetting(site.feedstock, site.configuration, cuda, folder, cache, jobs)
    return build_environment(station.machine, row)


def _run(build: RowBuild, request: BuildRequest, watch: Watch) -> None:
    """Run the engine and process its events; a build that is cut short is recorded as interrupted."""
    try:
        if request.only_shared:
            build.environments = environments_of(build.site, build.station, build.row)
        refuse_incomplete(build.site.artifacts, build.row)
        with build.station.engine.build(request) as events:
            for event in without_secrets(events, build.station.machine, lambda: build.log.is_full):
                if isinstance(event, Skipped):
                    build.log.skip(event.size)
                    continue
                build.log.write(event)
                _take(build, event, request, watch)
    except (FeedstockError, OSError) as error:  # a full disk, for example
        during = next((name for kind, name in _BY_GUARD.items() if isinstance(error, kind)), "feedstock-tools")
        name = build.running.output if build.running else build.next_output()
        failed = Failed(name, redacted(str(error)), during)
        build.fail(failed)
        watch(failed)
    except BaseException:
        with signals_held_back(), suppress(WorkError):
            build.end("interrupted", "the run was stopped")
        shutil.rmtree(request.folder, ignore_errors=True)
        raise


def _take(build: RowBuild, event: Event, request: BuildRequest, watch: Watch) -> None:
    if isinstance(event, Started):
        watch(event)
        build.begin(event.output)
    elif isinstance(event, Built):
        (seal if request.only_shared else deliver)(build, event, request)
        watch(event)
    elif isinstance(event, Failed):
        failed = replace(event, reason=redacted(_explained(build, event)))
        build.fail(failed)
        watch(failed)
    else:
        if isinstance(event, Log):
            build.log_of_output.append(event.text)
            build.needed += needed_in(event.text)
            if event.text.strip().startswith(_ADVICE):
                return
        elif isinstance(event, Output):
            build.printed.add(event.content)
            if build.station.engine.name != "rattler-build":  # which reports in messages of its own
                build.needed += needed_in(event.content.decode(errors="replace"))
        watch(event)


def write_siblings(output: Path, done: Sequence[BuildRecord], artifacts: Artifacts) -> None:
    """Put the row's finished packages into the private channel, and share the folder of fetched sources."""
    try:
        artifacts.sources.mkdir(parents=True, exist_ok=True)
        (output / "noarch").mkdir(parents=True)
        # Not to a link: a container has the folder itself and no other link to it.
        (output / "src_cache").symlink_to(artifacts.sources.resolve())
        for package in (package for record in done for package in record.packages):
            place = output / package.file
            place.parent.mkdir(exist_ok=True)
            shutil.copyfile(artifacts.root / package.channel / package.file, place)
    except OSError as error:
        raise WorkError(f"cannot create a folder for the build: {error.strerror or error}", path=output) from error


def _explained(build: RowBuild, event: Failed) -> str:
    """A reason with more detail than the engine's own: no memory, no disk space, no solution."""
    if build.guard.ran_out_of_memory:
        limit = build.row.at.share.memory >> 20
        return f"{event.reason}\nIts processes needed more memory than its limit of {limit} MiB"
    root = build.site.artifacts.root
    free = shutil.disk_usage(root).free
    full = f"the disk is full: {size_text(free)} are free in {root}" if free < _FULL else ""
    if event.during not in ("solve", "packages"):
        return f"{_with_note(build, event)}\nNote: {full}" if full else _with_note(build, event)
    if full:
        return full
    from feedstock_tools.builds.runs.unsolved import explain_solve, explain_unpacking

    explain = explain_solve if event.during == "solve" else explain_unpacking
    why = explain(build.log_of_output, build.site.target, build.station.channels.urls)
    properties = build.station.channels.properties
    if why and why.startswith("no channel has ") and properties.limit:
        why = f"{why}\n{properties.limit} {properties.remedy}"
    return f"{event.reason}\n{why}" if why else event.reason


def _with_note(build: RowBuild, event: Failed) -> str:
    """A failure of a script or test: its errors, and what its channels may have lacked or why it cannot be tested.

    A download that failed: its address, and why, where the engine names none.
    """
    from feedstock_tools.builds.runs.unsolved import explain_fetch, named_in

    if event.during == "tests":
        return "\n".join([event.reason, *errors_in(build.printed)])
    if "Overlinking against" in event.reason and build.station.channels.properties.made_here:
        return f"{event.reason}\nNote: packages of the stand-in channel, glibc's too, have no libraries to compare with"
    if event.during != "script":
        unnamed = event.during == "engine" and "://" not in event.reason
        why = explain_fetch(build.log_of_output) if unnamed else None
        return f"{why} ({event.reason})" if why else event.reason

    station, output = build.station, build.outputs.get(event.output)
    required, printed = named_in(build.log_of_output), [*build.printed]
    note = note_on_script(station.channels, printed, required, build.row.planned.cuda, station.machine)
    note = note or (build.why_untested(output) if output else None) or note_on_empty(station.channels, required)
    return "\n".join([event.reason, *errors_in(printed), *([f"Note: {note}"] if note else [])])


def errors_in(printed: Iterable[str]) -> list[str]:
    """The last lines that tell why a script failed, of what it printed; the very last one if none does.

    >>> errors_in(["a.c:1:1: error: unknown type", "make: *** [a.o] Error 1", "+ exit 2"])
    ['a.c:1:1: error: unknown type', 'make: *** [a.o] Error 1']
    """
    lines = [line.rstrip() for line in printed if line.strip()]
    found = [at for at, line in enumerate(lines) if _ERROR.search(line.strip()) and not _ENDING.search(line.strip())]
    told = [_whole(lines, at) for at in found] or [line.strip() for line in lines[-1:]]
    return [middle_cut(text, _LONGEST_ERROR) for text in list(dict.fromkeys(told))[-_MOST_ERRORS:]]


def _whole(lines: Sequence[str], at: int) -> str:
    """A line, with those below it that belong to it, as CMake has its messages."""
    first = lines[at].strip()
    if not first.startswith("CMake Error"):
        return first
    indent = len(lines[at]) - len(lines[at].lstrip()) + 2
    below = next((end for end in range(at + 1, len(lines)) if lines[end][:indent].strip()), len(lines))
    return " ".join([first, *(line.strip() for line in lines[at + 1 : below])])
