"""The builds that a search found, as conda prints them and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable

from feedstock_tools.pins.graph.search import Found


def found_table(builds: Iterable[Found]) -> str:
    """The table of `conda search` (conda/cli/main_search.py), with a fifth column: the CUDA version of a build.

    >>> record = Record.from_repodata("cudnn-8.2.1-cuda11.3_0.conda", {"name": "cudnn", "version": "8.2.1",
    ...     "build": "cuda11.3_0", "build_number": 0}, channel="https://repo.anaconda.com/pkgs/main", subdir="linux-64")
    >>> print(found_table([Found(record, "pkgs/main", "11.3")]))
    # Name                       Version           Build  Channel               CUDA
    cudnn                          8.2.1      cuda11.3_0  pkgs/main             11.3
    """
    lines = [_line("# %-18s", "Name", "Version", "Build", "Channel", "CUDA")]
    for build in builds:
        record = build.record
        lines.append(_line("%-20s", record.name, record.version, record.build, build.channel, build.toolkit or ""))
    return "\n".join(lines)


def _line(first: str, name: str, version: str, build: str, channel: str, toolkit: str) -> str:
    return f"{first % name} {version:>15} {build:>15}  {channel:<20}  {toolkit}".rstrip()


def found_json(builds: Iterable[Found]) -> str:
    """A list of builds, with the repodata entry of each."""
    return json.dumps(
        [
            {
                **build.record.to_repodata(),
                "fn": build.record.file_name,
                "url": build.record.url,
                "channel": build.channel,
                "cuda": build.toolkit,
            }
            for build in builds
        ],
        indent=2,
    )
