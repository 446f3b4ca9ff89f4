"""A package to be tested: the file, where its dependencies come from, and what it needs of the machine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.builds.engines.embedded.emulation import Emulator, find_emulator
from feedstock_tools.builds.stand_in.channel import is_stand_in, stand_in_channel_of
from feedstock_tools.channel.archive import read_documents, read_package
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.repodata import channel_url
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.folder import user_cache
from feedstock_tools.platforms import Platform
from feedstock_tools.versions import parse_version

__all__ = ["Subject", "subject_of"]

_VERSION = re.compile(r"\d+(\.\d+)*")
_CUDA = re.compile(r"__cuda\s*>=\s*(\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Subject:
    """A package and what its tests stand on.

    Attributes:
        sha256: of the file.
        channels: URLs to solve in, the first preferred; the package's own folder is the first where it is a channel.
        cache: where packages of remote channels are kept from test to test; None where all channels are folders, so
            that nothing has to be.
        cuda: the oldest CUDA version that the driver has to run, by the package's own dependencies; None for none.
        built_for: the CUDA version that it was built for; what it depends on may need a driver for it.
        benchmark: the commands of its benchmark, and what they need besides the package.
        emulator: what runs its tests where it is for another platform than this machine's.
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
        """The platform of the environments that it is tested in: this machine's for a package of none."""
        subdir = self.metadata.subdir
        return Platform.here() if subdir == "noarch" else Platform.parse(subdir)


def subject_of(path: Path, channels: Sequence[str], machine: Mapping[str, str]) -> Subject:
    """What is to be known of a package file before it is tested.

    Args:
        channels: where its dependencies come from; default: conda-forge, or the stand-in channel of this machine for a
            package that was built on one.

    Raises:
        WorkError: the file is no readable package.
        InputError: it is for another platform than this machine's, and nothing here runs programs of that.
    """
    metadata = read_package(path)
    emulator = _emulator(path, metadata, machine)
    given = tuple(channel_url(channel) for channel in channels)
    if not given and is_stand_in(metadata):
        platform = Platform.parse(metadata.subdir) if emulator else Platform.here()
        given = (stand_in_channel_of(machine, platform, _pythons(metadata), path.parent / ".cache").url,)
    own = path.resolve().parents[1]
    beside = (own.as_uri(),) if (own / "noarch" / "repodata.json").is_file() else ()
    all_channels = (*beside, *(given or (channel_url("conda-forge"),)))
    is_local = all(channel.startswith("file:") for channel in all_channels)
    benchmark = _benchmark(metadata)
    needs = [found[1] for spec in metadata.depends if (found := _CUDA.match(spec))]
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
    """What runs programs of the package's platform; None where this machine does."""
    here = Platform.here().subdir
    if metadata.subdir in (here, "noarch"):
        return None
    found = find_emulator(metadata.subdir, machine)
    if isinstance(found, str):
        raise InputError(f"the package is for {metadata.subdir}, and this machine is {here}: {found}", path=path)
    if is_stand_in(metadata) and _pythons(metadata):
        message = f"its tests run Python, of which the stand-in channel has no contents for {metadata.subdir}"
        raise InputError(message, path=path)
    return found


def _built_for(path: Path) -> str | None:
    """The CUDA version among the variant values that a package's hash was made of."""
    (text,) = read_documents(path, ["info/hash_input.json"]).values()
    try:
        values = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    found = values.get("cuda_compiler_version") if isinstance(values, dict) else None
    return found if isinstance(found, str) and _VERSION.fullmatch(found) else None


def _pythons(metadata: PackageMetadata) -> list[str]:
    """The Pythons that a package's environment may have, by its `python` and `python_abi` dependencies."""
    found = (re.match(r"python(?:_abi)?\s+(?:>=|==)?(\d+\.\d+)", spec) for spec in metadata.depends)
    return [match[1] for match in found if match]


def _benchmark(metadata: PackageMetadata) -> Mapping[str, object]:
    """What the recipe's `extra` says of the package's benchmark (`generate.benchmarks`), if it can be understood."""
    listed = metadata.extra.get("benchmarks")
    found = listed.get(metadata.name) if isinstance(listed, dict) else None
    return found if isinstance(found, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
