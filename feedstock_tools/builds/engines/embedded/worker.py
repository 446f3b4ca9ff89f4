"""The process of one build by the embedded engine, started by `rattler`.

py-rattler-build holds the interpreter's lock for the whole of a build and cannot be interrupted, so a supervisor is
forked off before it is imported: it watches standard input, which only the parent of this process keeps open.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from feedstock_tools.bounds.limits import READING, VARIABLE, bounded, widen
from feedstock_tools.builds.engines import comparable
from feedstock_tools.builds.engines.contract import BuildRequest
from feedstock_tools.builds.engines.embedded import patchelf
from feedstock_tools.builds.engines.embedded.fixed_place import UNIT, at_fixed_place, keep_from_writing
from feedstock_tools.builds.engines.embedded.fixed_place import place_of as fixed_place_of
from feedstock_tools.builds.engines.embedded.other_addresses import with_other_addresses
from feedstock_tools.builds.engines.embedded.script_output import EngineLog, first_on_path, print_past_engine
from feedstock_tools.builds.engines.embedded.sharing import build_heir, build_shared, inherits, original_documents
from feedstock_tools.builds.engines.process.child import TEST_WORKER
from feedstock_tools.builds.engines.process.supervision import supervise
from feedstock_tools.channel.properties import WHEELS, cache_behind, properties_by_marks
from feedstock_tools.processes import worker_command
from feedstock_tools.recipe.v1_engine import ParsedV1, Rendering, parse_v1, read_v1, render_row
from feedstock_tools.yaml_reading.nodes import compose, is_mapping, members, place_of

if TYPE_CHECKING:
    from rattler_build.progress import LogEvent

#: The variable with the engine's folder of fetched packages.
_CACHE = "RATTLER_CACHE_DIR"
#: The index of a folder of packages.
_INDEX = "repodata.json"
#: The beginnings of the engine's messages, the step that failed, and our wording.
_REASONS = (
    ("Failed to resolve dependencies", "solve", "its environments cannot be solved"),
    ("Could not collect run exports", "packages", "a package of its environments cannot be unpacked"),
    ("Script failed", "script", "its build script failed"),
    ("failed to run test", "tests", "its tests failed"),
    ("Test failed", "tests", "its tests failed"),
)
#: The engine's own compression, which is undone at once.
QUICK = "conda:1"
_LEVEL = 9
_PATHS = "info/paths.json"


class _Events(EngineLog):
    """Writes events to standard output, among them the engine's log.

    Their readers know the private folder by its own path, not by that of the engine.
    """

    def __init__(self, folder: Path, place: Path) -> None:
        # Scripts and libraries that write to standard output must not disturb the events.
        self._pipe = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        self.descriptor = self._pipe.fileno()
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        self.stage = ""
        self._folder, self._place = str(folder), str(place)

    def send(self, *event: object) -> None:
        shown = [value.replace(self._place, self._folder) if isinstance(value, str) else value for value in event]
        self._pipe.write(json.dumps(shown) + "\n")
        self._pipe.flush()

    def say(self, message: str, step: str, level: str = "info") -> None:
        self.send("log", message, step, level)

    def on_log(self, event: LogEvent) -> None:
        self.stage = event.span or self.stage
        super().on_log(event)

    def on_download_complete(self, event: Any) -> None:
        self.say(f"Downloaded {event.url}", "download")


def main(request_file: str) -> int:
    """Supervise a build; the exit status is the build's. Events go to standard output, one JSON list a line.

    Args:
        request_file: JSON from `BuildRequest.to_json`.
    """
    widen(os.environ.get(VARIABLE, ""))  # a recipe that was planned with wider bounds needs them here
    request = BuildRequest.from_json(json.loads(Path(request_file).read_text()))

    def work() -> int:
        unit = UNIT if request.shared else ""
        place, cache = at_fixed_place(request.folder, Path(os.environ.get(_CACHE, request.folder)), unit)
        os.environ[_CACHE] = str(cache)
        linked = _linked(request.channels)
        if place != request.folder and linked is not None:
            with suppress(OSError):  # in a container it is mounted so
                keep_from_writing(linked)
        events = _Events(request.folder, place)
        print_past_engine(request.folder, sys.stderr.fileno(), events.descriptor, request.epoch, linked)
        patchelf.offer(request, request_file, first_on_path(request.folder))
        return build(request, events, place)

    return supervise(work, sys.stdin.fileno())


def _linked(channels: Sequence[str]) -> Path | None:
    """The folder that packages of a stand-in channel link to, if it is among the channels."""
    caches = (cache_behind(channel) for channel in channels)
    return next(((cache / WHEELS).resolve() for cache in caches if cache and (cache / WHEELS).is_dir()), None)


def build(request: BuildRequest, events: _Events, place: Path) -> int:
    """Render the row, build the wanted outputs in order, and stop at the first failure (status 1).

    Args:
        place: the path of the private folder for the engine.
    """
    from feedstock_tools.errors import FeedstockError
    from feedstock_tools.platforms import Platform

    platforms = Platform.parse(request.target), Platform.parse(request.builder)
    original = request.recipe.read_bytes()  # before another file is shown in its place
    try:
        with bounded(READING):
            recipe = _marked(read_v1(request.recipe), request)
            rendered = render_row(recipe, request.name, request.values, *platforms)
        if request.target not in (request.builder, "noarch"):
            from feedstock_tools.builds.engines.embedded.crossing import crossing

            rendered = [crossing(variant, rendered, request) for variant in rendered]
    except FeedstockError as error:
        events.send("failed", request.wanted[0], str(error), "engine")
        return 1
    if request.shared and place == request.folder:
        events.send(
            "failed", request.wanted[0], "this system cannot show its folder at the path of the others", "engine"
        )
        return 1
    if request.only_shared:
        return 0 if _attempted(request.wanted[0], events, lambda: build_shared(rendered, request, events, place)) else 1
    wanted = (variant for variant in rendered if variant.recipe.package.name in request.wanted)
    return 0 if all(_build_output(variant, rendered, request, events, place, original) for variant in wanted) else 1


def _marked(recipe: ParsedV1, request: BuildRequest) -> ParsedV1:
    """The recipe with the request's marks in `extra`, which becomes part of each package's about.json.

    And with the other addresses of its sources.
    """
    text = with_other_addresses(recipe.text, request.recipe, request.other_addresses)
    text = _with_extra(text, request.extra) if request.extra else text
    return recipe if text == recipe.text else parse_v1(text, request.recipe)


def _with_extra(text: str, extra: Mapping[str, str]) -> str:
    """The text of a recipe with more keys in its `extra` section, which is added if missing."""
    entries = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in extra.items()]
    section = members(compose(text)).get("extra")
    if section is None:
        return "\n".join([text.rstrip(), "extra:", *(f"  {entry}" for entry in entries), ""])
    lines = text.splitlines(keepends=True)
    place = place_of(section)
    before, after = lines[: place.line - 1], lines[place.line - 1 :]
    if not is_mapping(section):  # `extra:` with nothing in it
        return "".join([*before, f"extra: {{{', '.join(entries)}}}\n", *after[1:]])
    indent, first = after[0][: place.column - 1], after[0][place.column - 1 :]
    if first.startswith("{"):
        return "".join([*before, indent, "{", ", ".join(entries), ", ", first[1:], *after[1:]])
    return "".join([*before, *(f"{indent}{entry}\n" for entry in entries), *after])


def _build_output(
    variant: Rendering, row: Sequence[Rendering], request: BuildRequest, events: _Events, place: Path, original: bytes
) -> bool:
    from rattler_build import ToolConfiguration

    from feedstock_tools.builds.engines.comparable import hide_credentials
    from feedstock_tools.builds.engines.embedded.crossing import without_host_platform

    name = variant.recipe.package.name
    native = request.target in (request.builder, "noarch")
    tested = name not in request.untested
    test: Literal["native", "skip"] = "native" if tested and native else "skip"

    def make() -> Path:
        documents = {}
        if inherits(variant, request):
            package = build_heir(
                variant, row, request, events, place, test, os.environ.get("CONDA_OVERRIDE_CUDA") or None
            )
            documents = original_documents(package, variant, original)
        else:
            result = variant.run_build(
                ToolConfiguration(test_strategy=test, channel_priority="strict"),
                output_dir=place / request.output.name,
                channels=list(request.channels),
                progress_callback=events,
                no_build_id=True,
                package_format=QUICK,
            )
            package = request.folder / Path(result.packages[0]).relative_to(place)
        if not native:
            without_host_platform(package, request)
        hide_credentials(package, request.channels)
        _make_comparable(package, request, place, documents)
        # The engine has indexed what was packed again since; without an index it makes a new one for the next output.
        package.with_name(_INDEX).unlink(missing_ok=True)
        if tested and request.emulator and not _passes_emulated(package, request, events):
            raise _FailedTestsError(f"its tests failed under {request.emulator.program}")
        return package

    return _attempted(name, events, make)


class _FailedTestsError(Exception):
    """The tests of a package failed in another process."""


def _attempted(name: str, events: _Events, make: Callable[[], Path]) -> bool:
    """Make an output, or run a shared build; its events are sent. Returns whether it worked."""
    from rattler_build import RattlerBuildError

    from feedstock_tools.errors import FeedstockError

    events.send("started", name)
    events.stage = ""
    began = time.monotonic()
    try:
        made = make()
    except _FailedTestsError as error:
        events.send("failed", name, str(error), "tests")
    except (RattlerBuildError, FeedstockError, OSError, ValueError, RuntimeError) as error:
        events.send("failed", name, *_reason(error, events.stage))
    else:
        events.send("built", name, str(made), time.monotonic() - began)
        return True
    return False


def _make_comparable(package: Path, request: BuildRequest, place: Path, documents: Mapping[str, bytes]) -> None:
    """Pack a package again without what differs between two builds of the same inputs.

    Args:
        documents: what replaces some of its files first.
    """
    private = (place / request.output.name).as_uri()
    names = comparable.names_of(request.channels, private, properties_by_marks(request.extra))
    names[str(place)] = str(fixed_place_of(request.folder))  # which differs where the system allows no mount
    repacked(package, request.folder / "repacked", names, request.epoch, request.cores or 1, documents)


def _passes_emulated(package: Path, request: BuildRequest, events: _Events) -> bool:
    """Run the tests of a package for another platform, in a process of its own that can run its programs."""
    from feedstock_tools.channel.folder import index_channel

    assert request.emulator is not None  # noqa: S101  (asked by the caller)
    index_channel(request.output)
    order = request.folder / "emulated" / "test.json"
    order.parent.mkdir(exist_ok=True)
    channels = [request.output.as_uri(), *request.channels]
    content = {"package": str(package), "channels": channels, "emulator": request.emulator.to_json()}
    order.write_text(json.dumps(content), encoding="utf-8")
    events.send("log", f"Running tests under {request.emulator.program}", "feedstock-tools", "info")
    events.send("script", "tests")
    # Standard output is that of scripts here; the pipe tells the supervisor of the tests that this process still lives.
    with subprocess.Popen(worker_command(TEST_WORKER, str(order)), stdin=subprocess.PIPE) as process:
        return process.wait() == 0


def _reason(error: Exception, stage: str) -> tuple[str, str]:
    text = str(error).removeprefix("PyRattlerBuildError: ")
    for start, during, message in _REASONS:
        if start.lower() in text.lower():
            if during == "script" and "test" in stage.lower():
                during, message = "tests", "its tests failed"
            return f"{message} ({text})", during
    return text, "engine"


def repacked(
    package: Path,
    folder: Path,
    names: Mapping[str, str],
    epoch: int,
    threads: int,
    replaced: Mapping[str, bytes] = MappingProxyType({}),
) -> None:
    """Pack a package again: sorted, with one time and no owners, and with comparable metadata.

    Args:
        folder: for the unpacked files; it is removed afterwards.
        names: the URLs of channels that are folders, each with its name in packages (`names_of`).
        epoch: the time of everything in it, in seconds since 1970.
        threads: of the compression; they do not change its result.
        replaced: path in it → content that replaces the file's.

    Raises:
        RattlerBuildError, OSError: as the engine reports them.
    """
    from rattler_build import assemble_package, collect_files

    from feedstock_tools.channel.packages.archive import combine
    from feedstock_tools.channel.packages.reading import unpack_own

    try:
        contents = folder / "contents"
        unpack_own(package, contents)
        for name, content in replaced.items():
            (contents / name).write_bytes(content)
        documents = {**_comparable_documents(contents, names, epoch), **_with_bytecode(contents, epoch)}
        assembled = assemble_package(
            "contents",
            "0",
            "noarch",
            "0",
            folder / "packed",
            files=collect_files(contents, exclude_globs=["info/**"], include_hidden=True),
            compression_level=_LEVEL,
            timestamp=datetime.fromtimestamp(epoch, UTC),
            compression_threads=max(1, threads),
            detect_prefix=False,
        )
        combine(package, assembled.path, contents, documents, epoch)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _comparable_documents(contents: Path, names: Mapping[str, str], epoch: int) -> dict[str, bytes]:
    """The documents of an unpacked package that differ from build to build: path in it → comparable text."""
    files = {name: contents / name for name in comparable.NORMALISED}
    return {
        name: comparable.normalised_document(name, file.read_bytes(), names, epoch)
        for name, file in files.items()
        if file.is_file()
    }


def _with_bytecode(contents: Path, epoch: int) -> dict[str, bytes]:
    """Replace the `.pyc` files of an unpacked package by comparable ones; the documents that then change."""
    changed: dict[str, bytes] = {}
    for file in sorted(contents.rglob("__pycache__/*.pyc")):
        if file.is_symlink():
            continue
        source = file.parent.parent / f"{file.name.partition('.')[0]}.py"
        before = file.read_bytes()
        after = comparable.normalised_bytecode(before, source.relative_to(contents).as_posix(), epoch)
        if after != before:
            file.write_bytes(after)
            changed[file.relative_to(contents).as_posix()] = after
    paths = contents / _PATHS
    return {_PATHS: comparable.with_digests(paths.read_bytes(), changed)} if changed and paths.is_file() else {}
