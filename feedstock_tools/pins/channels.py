"""Channels by the names that conda prints, and the builds of a package in them, with the CUDA toolkit of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.properties import local_folder
from feedstock_tools.channel.repodata import channel_url, read_records
from feedstock_tools.channel.specs import admits, read_spec
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.pins.graph.kinds import newest_first
from feedstock_tools.platforms import Platform
from feedstock_tools.redaction import without_credentials
from feedstock_tools.versions import minor_of

#: The channels of `defaults` on Linux (conda/base/constants.py, DEFAULT_CHANNELS_UNIX).
_DEFAULTS = ("https://repo.anaconda.com/pkgs/main", "https://repo.anaconda.com/pkgs/r")
#: Hosts that conda omits from a channel's name.
_HOSTS = frozenset({"conda.anaconda.org", "repo.anaconda.com"})


def channel_urls(channel: str) -> tuple[str, ...]:
    """The URLs of a channel given as a name, URL or folder."""
    if channel == "defaults":
        return _DEFAULTS
    if channel.startswith("pkgs/"):
        return (f"https://repo.anaconda.com/{channel}",)
    return (channel_url(channel),)


def channel_anywhere(channel: str) -> str:
    """A channel in a form that works from any folder: a name or URL unchanged, a folder as its URL."""
    folder = local_folder(channel)
    return channel if folder is None else folder.as_uri()


def channel_title(channel: str) -> str:
    """The name of a channel, for tables: `pkgs/main`, `conda-forge`; for a folder its last part, or two within a
    `pkgs`.

    >>> channel_title("https://repo.anaconda.com/pkgs/main/")
    'pkgs/main'
    """
    if "://" not in channel and local_folder(channel) is None:
        return channel
    url = urlsplit(without_credentials(f"{channel_url(channel)}/"))
    parts = [part for part in url.path.split("/") if part]
    if url.scheme == "file":
        return "/".join(parts[-2:] if parts[-2:-1] == ["pkgs"] else parts[-1:]) or channel
    path = "/".join(parts)
    return path if url.hostname in _HOSTS else f"{url.hostname}/{path}"


#: `cuda11.3_0`, `cuda112py39h…_0`, `py3.9_cuda11.7_cudnn8.5.0_0`, `gpu_cuda128…`, but not `cuda_0` or `cudnn8`.
_IN_BUILD = re.compile(r"(?:^|[^a-z])cuda_?(?:(\d+)\.(\d+)|(\d{2})(\d)(?!\d))")
_IN_BUILD_OLD = re.compile(r"(?:^|[^a-z])cuda_?([89])(\d)(?!\d)")
_PACKAGES = frozenset({"cudatoolkit", "cuda-version", "pytorch-cuda", "cuda-cudart", "__cuda"})
_OWN = frozenset({"cudatoolkit", "cuda-version", "pytorch-cuda", "cuda-toolkit"})
_VERSION = re.compile(r"(\d+\.\d+|\d+)")


def toolkit_of(record: Record) -> str | None:
    """The toolkit by major and minor version (`11.2`), or as much of it as the metadata has (`12`); None if it uses
    none.

    The build string comes first, since it names the toolkit of the build, whereas a dependency names versions it may
    run with.
    """
    if record.name in _OWN:
        return minor_of(record.version)
    match = _IN_BUILD.search(record.build) or _IN_BUILD_OLD.search(record.build)
    if match:
        major, minor = (group for group in match.groups() if group is not None)
        return f"{major}.{minor}"
    specs = {
        name: text for spec in record.depends for name, _, text in [spec.partition(" ")] if name in _PACKAGES and text
    }
    for name in ("cudatoolkit", "cuda-version", "pytorch-cuda", "cuda-cudart", "__cuda"):
        version = _VERSION.search(specs.get(name, ""))
        if version:
            return version[1]
    return None


@dataclass(frozen=True, slots=True)
class FoundBuild:
    """One build: its record, the channel's name as conda prints it, and its toolkit."""

    record: Record
    channel: str
    toolkit: str | None


def search(spec: str, channels: Sequence[str], platform: Platform) -> tuple[FoundBuild, ...]:
    """The builds of a package, in the order of `conda search`: by name, version and build string.

    Args:
        spec: a match specification, whose name may have `*`: `cudnn`, `cudnn >=8`, `cuda*`, `tensorflow=2.6=cuda112*`.

    Raises:
        InputError: the specification or a channel is invalid.
        WorkError: no channel has such a package, or one cannot be read.
    """
    subdirs = (platform.subdir, "noarch")
    names: set[str] = set()
    builds: list[FoundBuild] = []
    accepts = _Accepts(spec)
    for channel in channels:
        for url in channel_urls(channel):
            title = channel_title(url if channel == "defaults" else channel)
            for record in read_records(url, subdirs):
                names.add(record.name)
                if accepts(record):
                    builds.append(FoundBuild(record, title, toolkit_of(record)))
    if not builds:
        near = get_close_matches(accepts.name, names, n=3)
        where = ", ".join(channel_title(channel) for channel in channels)
        hint = f"The nearest are: {', '.join(near)}." if near else None
        raise WorkError(f"there is no '{spec}' for {platform} in {where}", hint=hint)
    return _ordered(builds)


def of_toolkit(builds: Iterable[FoundBuild], cuda: str) -> tuple[FoundBuild, ...]:
    """The builds for a toolkit: `11.2`, or `11` for all of 11.x.

    Raises:
        WorkError: there is none.
    """
    kept = tuple(build for build in builds if build.toolkit and f"{build.toolkit}.".startswith(f"{cuda}."))
    if not kept:
        raise WorkError(f"there is no build for CUDA {cuda}")
    return kept


class _Accepts:
    def __init__(self, spec: str) -> None:
        text = spec.strip()
        self.name = text.split(" ")[0].split("=")[0].split("<")[0].split(">")[0].split("!")[0].split("[")[0].lower()
        if not self.name:
            raise InputError(f"'{spec}' names no package", hint="Write cudnn, 'cudnn >=8', or 'cuda*'.")
        # The name is matched separately: rattler's name patterns differ from conda's in some cases.
        rest = text[len(self.name) :]
        self._rest = read_spec(f"x{rest}") if rest.strip() else None

    def __call__(self, record: Record) -> bool:
        if not fnmatchcase(record.name, self.name):
            return False
        if self._rest is None:
            return True
        version, build, number = self._rest.version, self._rest.build, self._rest.build_number
        return (
            (version is None or (_is_version(record.version) and admits(version, record.version)))
            and (build is None or fnmatchcase(record.build, build))
            and (number is None or str(record.build_number) == number)
        )


def _ordered(builds: Sequence[FoundBuild]) -> tuple[FoundBuild, ...]:
    """By name, version and build; invalid versions come before valid ones."""
    versions = newest_first("version", (build.record.version for build in builds if _is_version(build.record.version)))
    places = {version: -place for place, version in enumerate(versions)}
    before = -len(versions)
    return tuple(
        sorted(
            builds, key=lambda build: (build.record.name, places.get(build.record.version, before), build.record.build)
        )
    )


def _is_version(text: str) -> bool:
    try:
        return admits("*", text)
    except InputError:
        return False
