"""Running a package's tests and benchmark: processes of their own, a log, and the results."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from feedstock_tools.builds.channels import open_channels
from feedstock_tools.builds.engines.embedded.emulation import Emulator, find_emulator
from feedstock_tools.builds.engines.process import child
from feedstock_tools.builds.engines.process.guard import Guard, OutOfTimeError
from feedstock_tools.builds.engines.process.program import write_order
from feedstock_tools.builds.engines.variables import PASSED_ON
from feedstock_tools.builds.runs.unsolved import last_question
from feedstock_tools.channel.folder import add_packages
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.reading import PACKAGE_SUFFIXES, read_documents, verify_package
from feedstock_tools.channel.properties import Channels, properties_by_marks
from feedstock_tools.channel.repodata import channel_url
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import FeedstockError, InputError, WorkError
from feedstock_tools.feedstock.folder import user_cache
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.pins.driver import probe
from feedstock_tools.platforms import Platform
from feedstock_tools.processes import worker_command
from feedstock_tools.versions import parse_version

_VERSION = re.compile(r"\d+(\.\d+)*")
_CUDA = re.compile(r"__cuda\s*>=\s*(\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Subject:
    """A package and the requirements of its tests.

    Attributes:
        sha256: the hash of the file.
        channels: URLs to solve in, the first has priority; the package's own folder comes first if it is a channel.
        cache: the cache of packages from remote channels; None if all channels are folders, so
            that none is needed.
        cuda: the oldest CUDA version that the driver must run, by the package's own dependencies; None for none.
        built_for: the CUDA version that it was built for; its dependencies may need a driver for it.
        benchmark: the commands of its benchmark, and their further requirements.
        emulator: the emulator for its tests if it is for another platform than this machine's.
    """

    path: Path
    metadata: PackageMetadata
    sha256: str
    channels: tuple[str, ...]
    cache: Path | None
    cuda: str | None
    built_for: str | None
    benchmark: tuple[str, ...]
    benchmark_needs: tuple[str, ...]
    emulator: Emulator | None = None

    @property
    def platform(self) -> Platform:
        """The platform of its test environments: this machine's for a noarch package."""
        subdir = self.metadata.subdir
        return Platform.here() if subdir == "noarch" else Platform.parse(subdir)


def subject_of(path: Path, channels: Sequence[str], machine: Mapping[str, str]) -> Subject:
    """Inspect a package file before it is tested.

    Args:
        channels: the channels of its dependencies; default: conda-forge, or the stand-in channel of this machine for a
            package that was built on one.
    """
    metadata = verify_package(path)
    emulator = _emulator(path, metadata, machine)
    urls = tuple(channel_url(channel) for channel in channels)
    built_on = properties_by_marks(metadata.extra)
    if not urls and built_on.made_here:
        platform = Platform.parse(metadata.subdir) if emulator else Platform.here()
        its_channels = Channels((built_on.origin,), built_on)
        fallback = path.parent / ".cache"
        urls = open_channels(its_channels, platform.subdir, _pythons(metadata), machine, fallback).urls
    own = path.resolve().parents[1]
    own_channel = (own.as_uri(),) if (own / "noarch" / "repodata.json").is_file() else ()
    all_channels = (*own_channel, *(urls or (channel_url("conda-forge"),)))
    is_local = all(channel.startswith("file:") for channel in all_channels)
    benchmark = _benchmark(metadata)
    needs = [match[1] for spec in metadata.depends if (match := _CUDA.match(spec))]
    return Subject(
        path=path.resolve(),
        metadata=metadata,
        sha256=sha256_of(path),
        channels=all_channels,
        cache=None if is_local else user_cache(machine, path.parent / ".cache") / "test-packages",
        cuda=max(needs, key=parse_version, default=None),
        built_for=_built_for(path),
        benchmark=_texts(benchmark.get("commands")),
        benchmark_needs=_texts(benchmark.get("requires")),
        emulator=emulator,
    )


def _emulator(path: Path, metadata: PackageMetadata, machine: Mapping[str, str]) -> Emulator | None:
    """The emulator for the package's platform; None if this machine needs none."""
    builder = Platform.here().subdir
    if metadata.subdir in (builder, "noarch"):
        return None
    emulator = find_emulator(metadata.subdir, machine)
    if isinstance(emulator, str):
        raise InputError(f"the package is for {metadata.subdir}, but this machine is {builder}: {emulator}", path=path)
    built_on = properties_by_marks(metadata.extra)
    if not all(built_on.runs_python(python) for python in _pythons(metadata)):
        message = (
            f"its tests run Python, for which the {built_on.origin} channel has only metadata on {metadata.subdir}"
        )
        raise InputError(message, path=path)
    return emulator


def _built_for(path: Path) -> str | None:
    """The CUDA version among the variant values in a package's hash."""
    (text,) = read_documents(path, ["info/hash_input.json"]).values()
    try:
        values = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    version = values.get("cuda_compiler_version") if isinstance(values, dict) else None
    return version if isinstance(version, str) and _VERSION.fullmatch(version) else None


def _pythons(metadata: PackageMetadata) -> list[str]:
    """The Pythons that a package's environment may have, by its `python` and `python_abi` dependencies."""
    matches = (re.match(r"python(?:_abi)?\s+(?:>=|==)?(\d+\.\d+)", spec) for spec in metadata.depends)
    return [match[1] for match in matches if match]


def _benchmark(metadata: PackageMetadata) -> Mapping[str, object]:
    """The package's benchmark in the recipe's `extra` (`generate.texts.rendering.benchmark_lines`), if valid."""
    listed = metadata.extra.get("benchmarks")
    benchmark = listed.get(metadata.name) if isinstance(listed, dict) else None
    return benchmark if isinstance(benchmark, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


#: The variable by which the driver shows a process some of the GPUs.
VISIBLE = "CUDA_VISIBLE_DEVICES"
#: The further variables of the machine's environment for a test on a GPU.
_FOR_GPUS = ("CUDA_DEVICE_ORDER", VISIBLE, "LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES")
#: Integers beyond this limit, and values that are not numbers, cannot be compared.
_LARGEST = sys.float_info.max
#: rattler-build's message if the environment of a test cannot be solved.
_NO_ENVIRONMENT = "failed to setup test environment"
#: Called with what the programs of a test print, a message on a line of its own.
Log = Callable[[bytes], None]
#: The last lines of an output that may explain a failure, and the longest line with a figure in bytes.
_LAST_LINES = 400
_LONGEST_FIGURE = 1 << 16


@dataclass(frozen=True, slots=True)
class Gpus:
    """The available GPUs: `NVIDIA H200 (9.0)` for each, the driver's version (`575.51.03`), the CUDA that it runs.

    `visible` is the value of `CUDA_VISIBLE_DEVICES` for a process that should see these; None: unchanged.
    """

    names: tuple[str, ...]
    driver: str
    cuda: str
    visible: str | None = None

    def __str__(self) -> str:
        return ", ".join(self.names)


def find_gpus() -> Gpus:
    """Query the driver.

    Raises:
        WorkError: there is no driver or no GPU, with the reason.
    """
    machine = probe()
    if machine.problem is not None or machine.cuda is None:
        raise WorkError(machine.problem or "the driver does not report which CUDA it runs")
    names = tuple(f"{device.name} ({device.capability})" for device in machine.devices)
    return Gpus(names, machine.driver or "", machine.cuda)


def one_by_one(gpus: Gpus, machine: Mapping[str, str]) -> tuple[Gpus, ...]:
    """Each GPU by itself, for a test of its own.

    Args:
        machine: the environment, which may show this process some of the machine's GPUs, by number or name.
    """
    shown = [device.strip() for device in machine.get(VISIBLE, "").split(",") if device.strip()]
    numbers = shown or [str(number) for number in range(len(gpus.names))]
    return tuple(
        replace(gpus, names=(name,), visible=number) for name, number in zip(gpus.names, numbers, strict=False)
    )


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions for tests.

    Attributes:
        gpus: the GPUs for solving environments and for the tests; None: solved for a machine whose driver runs the
            package's CUDA version, so that a GPU build is tested on a machine without a GPU too.
        seconds: the time limit for the tests of a package, or for one command of its benchmark; None for no limit.
        stop: a file descriptor that becomes readable when the run is over; None if there is none.
    """

    gpus: Gpus | None
    machine: Mapping[str, str]
    seconds: float | None = None
    stop: int | None = None


def run_own_tests(subject: Subject, conditions: Conditions, log: Log) -> float:
    """Run a package's own tests in fresh environments; return their duration in seconds.

    Raises:
        WorkError: a test fails, takes too long, or its environment cannot be created; the log has the details.
        Stopped: the run is over.
    """
    with temporary_folder() as folder:
        request = folder / "request.json"
        emulator = subject.emulator.to_json() if subject.emulator else None
        order = {"package": str(subject.path), "channels": list(subject.channels), "emulator": emulator}
        request.write_text(json.dumps(order))
        last_lines = child.LastLines(_LAST_LINES)

        def read(output: bytes) -> None:
            last_lines.add(output)
            log(output)

        began = time.monotonic()
        if _run(worker_command(child.TEST_WORKER, str(request)), subject, conditions, folder, read):
            why = _why_unsolved(subject, [*last_lines], folder)
            raise WorkError("its tests failed" + (f": {why}" if why else ""))
        return time.monotonic() - began


def _why_unsolved(subject: Subject, lines: Sequence[str], folder: Path) -> str | None:
    """Why the environment of a test could not be created, which rattler-build does not report; None for another
    failure."""
    from feedstock_tools.channel.solving import solve

    question = last_question(lines)
    if question is None or not any(_NO_ENVIRONMENT in line for line in lines[-3:]):
        return None
    _, virtual, _, specs = question
    add_packages(folder / "channel", [subject.path])
    try:
        solve(specs, [(folder / "channel").as_uri(), *subject.channels], subject.platform, virtual=virtual)
    except FeedstockError as error:
        return f"cannot create an environment for them: {error}"
    return None


def run_benchmark(subject: Subject, conditions: Conditions, log: Log) -> dict[str, dict[str, Any]]:
    """Run the benchmark of a package in a fresh environment; each figure by name, as `{"value": 1.5, "unit": "s"}`.

    Raises:
        WorkError: its environment cannot be created, a command fails or takes too long, or it prints no figure.
        Stopped: the run is over.
    """
    figures: dict[str, dict[str, Any]] = {}

    lines = child.Lines(_LONGEST_FIGURE)

    def read(output: bytes) -> None:
        log(output)
        for line in lines.feed(output).splitlines():
            figures.update(_figure(line))

    with temporary_folder() as folder:
        prefix = _installed(subject, conditions.gpus, folder)
        for command in subject.benchmark:
            log(f"+ {command}\n".encode())
            words = ("bash", "-e", "-c", f"{_activation(prefix)}\n{command}\n")
            worker = write_order(folder, words, folder, "nothing", None)
            if _run(worker, subject, conditions, folder, read):
                raise WorkError(f"the benchmark's '{command}' failed")
            read(b"\n")
    if not figures:
        raise WorkError(
            "the benchmark printed no figure", hint='A figure is a line {"name": "…", "value": 1, "unit": "s"}'
        )
    return figures


def _figure(line: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        content = json.loads(line) if line.startswith(b"{") else None
    except (ValueError, RecursionError):
        return
    if not isinstance(content, dict):
        return
    name, value, unit = (content.get(key) for key in ("name", "value", "unit"))
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST
    if is_number and isinstance(name, str) and isinstance(unit, str):
        yield name, {"value": value, "unit": unit}


def _run(command: Sequence[str], subject: Subject, conditions: Conditions, folder: Path, log: Log) -> int:
    """Run a worker and pass its output to `log`; return its exit status."""
    guard = Guard(seconds=conditions.seconds, stop=conditions.stop)
    environment = _environment(subject, conditions, folder)
    try:
        with child.started(command, folder=folder, environment=environment, guard=guard) as process:
            for output in child.whole_lines(child.output_of(process, guard)):
                log(output)
            return child.status_of(process, guard)
    except OutOfTimeError as error:
        raise WorkError(f"it was stopped after its time limit of {guard.seconds:g} s, which --timeout sets") from error


def _environment(subject: Subject, conditions: Conditions, folder: Path) -> dict[str, str]:
    machine, gpus = conditions.machine, conditions.gpus
    kept = {name: value for name, value in machine.items() if name in PASSED_ON or name in _FOR_GPUS}
    if gpus and gpus.visible is not None:
        kept[VISIBLE] = gpus.visible
    if gpus:
        kept["PATH"] = _path_with_gpus(kept, folder)
    kept |= {"TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
    kept["CONDA_OVERRIDE_CUDA"] = _cuda(subject, gpus) or ""
    kept["RATTLER_CACHE_DIR"] = str(_cache(subject, folder))
    return kept


def _path_with_gpus(kept: Mapping[str, str], folder: Path) -> str:
    """A search path whose `bash` passes on the variables for a test on a GPU, since rattler-build clears the
    environment."""
    path = kept.get("PATH", os.defpath)
    programs = folder / "programs"
    bash = shutil.which("bash", path=path)
    if bash is None:
        return path
    programs.mkdir(exist_ok=True)
    exports = "".join(f"export {name}={shlex.quote(kept[name])}\n" for name in _FOR_GPUS if name in kept)
    (programs / "bash").write_text(f'#!/bin/sh\n{exports}exec {shlex.quote(bash)} "$@"\n', encoding="utf-8")
    (programs / "bash").chmod(0o755)
    return f"{programs}{os.pathsep}{path}"


def _cuda(subject: Subject, gpus: Gpus | None) -> str | None:
    versions = [version for version in (subject.built_for, subject.cuda) if version]
    return gpus.cuda if gpus else max(versions, key=parse_version, default=None)


def _cache(subject: Subject, folder: Path) -> Path:
    return subject.cache or folder / "cache"


def clear_cache(subjects: Iterable[Subject]) -> None:
    """Before the first test of a run: remove the tested packages, and those built beside them, from the cache.

    The cache is keyed by name, and other builds of a package may have had the same name.
    """
    for subject in subjects:
        if subject.cache is None:
            continue
        folders = (unquote(urlsplit(url).path) for url in subject.channels if url.startswith("file:"))
        names = {subject.path.name, *(path.name for place in folders for path in Path(place).glob("*/*"))}
        stems = {name.removesuffix(suffix) for name in names for suffix in PACKAGE_SUFFIXES if name.endswith(suffix)}
        for path in (subject.cache / "pkgs").glob("*"):
            if any(path.name.startswith(stem) for stem in stems):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _installed(subject: Subject, gpus: Gpus | None, folder: Path) -> Path:
    """An environment with the package and the requirements of its benchmark."""
    from feedstock_tools.channel.solving import install, solve, virtual_packages

    add_packages(folder / "channel", [subject.path])
    metadata = subject.metadata
    specs = [f"{metadata.name} =={metadata.version} {metadata.build}", *subject.benchmark_needs]
    glibc = platform.libc_ver()[1] or "2.17"
    virtual = virtual_packages(subject.platform, cuda=_cuda(subject, gpus), glibc=glibc)
    channels = ((folder / "channel").as_uri(), *subject.channels)
    prefix = folder / "environment"
    cache = _cache(subject, folder) / "pkgs"
    install(solve(specs, channels, subject.platform, virtual=virtual), prefix, subject.platform, cache=cache)
    return prefix


def _activation(prefix: Path) -> str:
    place = shlex.quote(str(prefix))
    return (
        f'export CONDA_PREFIX={place} PATH={place}/bin:"$PATH"\n'
        f'for script in {place}/etc/conda/activate.d/*.sh; do [ -f "$script" ] && . "$script" || true; done'
    )
