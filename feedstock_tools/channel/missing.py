"""The packages that a channel does not have yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.repodata import read_records
from feedstock_tools.digests import package_hash


class Promised(Protocol):
    """The known values of a package before it is built; `hash_input` is the text behind the hash in its build
    string."""

    @property
    def subdir(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def build_string(self) -> str: ...
    @property
    def hash_input(self) -> Mapping[str, str]: ...


_Package = TypeVar("_Package", bound=Promised)


def lacking(packages: Iterable[_Package], channels: Sequence[str]) -> tuple[_Package, ...]:
    """The packages that none of the channels has.

    A package counts as present in either form, `.conda` or `.tar.bz2`, and also if its
    hash differs only by the virtual packages that it depends on: conda-build hashes those that run exports bring in,
    such as `__glibc`, which are unknown before solving (conda_build/metadata.py, get_hash_contents).

    Raises:
        WorkError: a channel cannot be read.

    >>> feedstock = Path("solver-feedstock")
    >>> wanted = outputs(feedstock, read_configurations(feedstock))
    >>> lacking(wanted, ["./empty-channel"]) == wanted
    True
    """
    wanted = tuple(packages)
    subdirs = sorted({package.subdir for package in wanted} | {"noarch"})
    existing: dict[tuple[str, str, str], dict[str, Record]] = {}
    for channel in channels:
        for record in read_records(channel, subdirs):
            existing.setdefault((record.subdir, record.name, record.version), {})[record.build] = record
    return tuple(
        file for file in wanted if not _is_there(file, existing.get((file.subdir, file.name, file.version), {}))
    )


def _is_there(package: Promised, builds: Mapping[str, Record]) -> bool:
    return package.build_string in builds or any(_is_final(package, record) for record in builds.values())


def _is_final(package: Promised, record: Record) -> bool:
    """Whether a build is the package with the virtual packages that it depends on in its hash."""
    virtual = {spec.split(" ")[0]: spec for spec in record.depends if spec.startswith("__")}
    if not virtual or not package.hash_input:
        return False
    final = package_hash({**package.hash_input, **virtual})
    return record.build == package.build_string.replace(package_hash(package.hash_input), final)
