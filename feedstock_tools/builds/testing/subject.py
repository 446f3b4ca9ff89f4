"""A package to be tested: the file, the channels of its dependencies, and its requirements on the machine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.builds.channels import open_channels
from feedstock_tools.builds.engines.embedded.emulation import Emulator, find_emulator
from feedstock_tools.channel.archive import read_documents, read_package
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.properties import Channels, properties_by_marks
from feedstock_tools.channel.repodata import channel_url
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.folder import user_cache
from feedstock_tools.platforms import Platform
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

    Raises:
        WorkError: the file is not a readable package.
        InputError: it is for another platform than this machine's, and this machine has no emulator for it.
    """
    metadata = read_package(path)
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
    """The package's benchmark in the recipe's `extra` (`generate.benchmarks`), if valid."""
    listed = metadata.extra.get("benchmarks")
    benchmark = listed.get(metadata.name) if isinstance(listed, dict) else None
    return benchmark if isinstance(benchmark, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
