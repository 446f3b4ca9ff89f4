"""Which packages only time stamps choose: an oracle that is independent of how the program finds them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rattler import Channel, Gateway, RepoDataRecord, SparseRepoData

from feedstock_tools.channel.calls import wait_for
from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.repodata import channel_url, read_records
from feedstock_tools.channel.solving import Question, plain_errors, solved_records
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.platforms import Platform


def decided_by_time(
    specs: Sequence[str], channels: Sequence[str], platform: Platform, *, virtual: Sequence[str] = ()
) -> tuple[tuple[Record, Record], ...]:
    """Pairs of packages between which only time stamps decide in an environment.

    The environment is solved twice, with the time stamps of all packages rising and then falling in the order of their
    names, versions and builds. If nothing depends on the order in which packages were built, the result is empty. A
    package that only one of the two environments has is paired with itself.
    """
    subdirs = (platform.subdir, "noarch")
    by_channel = [(channel_url(channel), read_records(channel, subdirs)) for channel in channels]
    ordered = sorted(
        (record for _, records in by_channel for record in records), key=lambda record: record.distribution
    )
    places = {record: place for place, record in enumerate(ordered, 1)}
    answers = []
    for sign, offset in ((1, 0), (-1, len(ordered) + 1)):
        with temporary_folder() as folder:
            stamps = {record: (offset + sign * place) * 1000 for record, place in places.items()}
            sources = _sources_in_memory(folder, by_channel, subdirs, stamps)
            question = Question(tuple(specs), platform, tuple(virtual))
            with plain_errors():
                solved = wait_for(solved_records(question, sources, Gateway()))
            answers.append({record.name: record for record in map(_record, solved)})
    rising, falling = answers
    names = sorted(rising.keys() | falling.keys())
    pairs = ((rising.get(name) or falling[name], falling.get(name) or rising[name]) for name in names)
    return tuple(
        (first, other)
        for name, (first, other) in zip(names, pairs, strict=True)
        if first.url != other.url or name not in rising or name not in falling
    )


def _sources_in_memory(
    folder: Path,
    by_channel: Sequence[tuple[str, Sequence[Record]]],
    subdirs: Sequence[str],
    stamps: Mapping[Record, int],
) -> list[SparseRepoData]:
    """The channels' repodata with other time stamps."""
    sources = []
    for number, (url, records) in enumerate(by_channel):
        for subdir in subdirs:
            entries = {
                record.file_name: record.to_repodata() | {"timestamp": stamps[record]}
                for record in records
                if record.url.startswith(f"{url}/{subdir}/")
            }
            path = folder / f"{number}-{subdir}.json"
            bz2 = {name: entry for name, entry in entries.items() if name.endswith(".tar.bz2")}
            conda = {name: entry for name, entry in entries.items() if name not in bz2}
            path.write_text(json.dumps({"packages": bz2, "packages.conda": conda}), encoding="utf-8")
            sources.append(SparseRepoData(Channel(url), subdir, path))
    return sources


def _record(record: RepoDataRecord) -> Record:
    url, _, file_name = record.url.rpartition("/")
    channel, _, subdir = url.rpartition("/")
    return Record.from_repodata(file_name, json.loads(record.to_json()), channel=channel, subdir=subdir)
