"""Which packages a channel does not have yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from feedstock_tools.channel.repodata import read_records

__all__ = ["lacking"]


def lacking(paths: Iterable[str], channels: Sequence[str]) -> frozenset[str]:
    """Those of the paths (`<subdir>/<file name>`) that none of the channels has.

    A package counts as there whichever of its two forms the channel has, `.conda` or `.tar.bz2`.

    Raises:
        WorkError: a channel cannot be read.
    """
    wanted = frozenset(paths)
    subdirs = sorted({path.partition("/")[0] for path in wanted} | {"noarch"})
    there = {
        f"{record.subdir}/{_stem(record.file_name)}"
        for channel in channels
        for record in read_records(channel, subdirs)
    }
    return frozenset(path for path in wanted if _stem(path) not in there)


def _stem(name: str) -> str:
    return name.removesuffix(".conda").removesuffix(".tar.bz2")
