"""The builds of a package in a channel: the table of `conda search`, with the toolkit of each build."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.repodata import read_records
from feedstock_tools.channel.specs import admits, read_spec
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.pins.graph.channels import channel_title, channel_urls
from feedstock_tools.pins.graph.kinds import newest_first
from feedstock_tools.pins.graph.toolkit import toolkit_of
from feedstock_tools.platforms import Platform


@dataclass(frozen=True, slots=True)
class Found:
    """One build: its record, the channel's name as conda prints it, and its toolkit."""

    record: Record
    channel: str
    toolkit: str | None


def search(spec: str, channels: Sequence[str], platform: Platform) -> tuple[Found, ...]:
    """The builds of a package, in the order of `conda search`: by name, version and build string.

    Args:
        spec: a match specification, whose name may have `*`: `cudnn`, `cudnn >=8`, `cuda*`, `tensorflow=2.6=cuda112*`.

    Raises:
        InputError: the specification or a channel is invalid.
        WorkError: no channel has such a package, or one cannot be read.
    """
    subdirs = (platform.subdir, "noarch")
    names: set[str] = set()
    builds: list[Found] = []
    accepts = _Accepts(spec)
    for channel in channels:
        for url in channel_urls(channel):
            title = channel_title(url if channel == "defaults" else channel)
            for record in read_records(url, subdirs):
                names.add(record.name)
                if accepts(record):
                    builds.append(Found(record, title, toolkit_of(record)))
    if not builds:
        near = get_close_matches(accepts.name, names, n=3)
        where = ", ".join(channel_title(channel) for channel in channels)
        hint = f"The nearest are: {', '.join(near)}." if near else None
        raise WorkError(f"there is no '{spec}' for {platform} in {where}", hint=hint)
    return _ordered(builds)


def of_toolkit(builds: Iterable[Found], cuda: str) -> tuple[Found, ...]:
    """The builds for a toolkit: `11.2`, or `11` for all of 11.x.

    Raises:
        WorkError: there is none.
    """
    kept = tuple(build for build in builds if build.toolkit and f"{build.toolkit}.".startswith(f"{cuda}."))
    if not kept:
        raise WorkError(f"there is no build for CUDA {cuda}")
    return kept


class _Accepts:
    """Whether a record matches a specification."""

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


def _ordered(builds: Sequence[Found]) -> tuple[Found, ...]:
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
