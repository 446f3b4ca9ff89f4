"""Fetching versions of a package from a channel into the user's cache, of each only the files that are kept."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Coroutine, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from feedstock_tools.channel.calls import rattler_client, wait_for
from feedstock_tools.channel.fetched import FetchedPackage, PackageKind, fetched_version, version_numbers
from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.packages.reading import UNREADABLE, RefusedError, members
from feedstock_tools.channel.properties import local_folder
from feedstock_tools.channel.repodata import channel_url, first_cause, read_records
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.temporary import temporary_folder

# Today's packages have 300 files and less than half a megabyte.
_MOST_FILES = 20_000
_MOST_BYTES = 64 * 1024 * 1024
_SECONDS = 120

_Answer = TypeVar("_Answer")


def fetch_package(
    kind: PackageKind, channel: str, cache: Path, version: str | None = None, *, seconds: float = _SECONDS
) -> FetchedPackage:
    """Fetch a version of a package, unless it is already in the cache.

    The cache only changes once the package is complete and checked; other versions stay.

    Args:
        channel: a name such as `conda-forge`, a URL, or a folder.
        cache: the folder that keeps the versions.
        version: default: the newest, which is always looked up in the channel.
        seconds: the time limit for each of the two transfers.

    Raises:
        InputError: `version` is not a version, or the channel does not have it.
        WorkError: the channel cannot be reached, or the package is damaged or would write outside its folder.
    """
    if version is not None:
        kept = fetched_version(kind, cache, version)
        if kept is not None:
            return kept
    record = _choose(kind, available_packages(kind, channel, seconds=seconds), version, channel)
    kept = fetched_version(kind, cache, record.version)
    if kept is not None and kept.sha256 == record.sha256:
        return kept
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with temporary_folder(cache) as work:
            package = _download(record, work, seconds)
            _unpack(kind, package, work / "kept", record)
            return _keep(kind, work / "kept", cache / record.version, record)
    except OSError as error:
        raise WorkError(f"cannot keep the {kind.noun}: {error.strerror or error}", path=cache) from error


def available_packages(kind: PackageKind, channel: str, *, seconds: float = _SECONDS) -> tuple[Record, ...]:
    """The versions of a package that a channel has, the newest last."""
    url = channel_url(channel)
    if local_folder(url) is not None:
        records = read_records(url, ["noarch"])
    else:
        with temporary_folder() as folder:
            records = _queried(kind, url, folder, seconds)
    named = [record for record in records if record.name == kind.package and version_numbers(record.version)]
    return tuple(
        sorted(named, key=lambda record: (version_numbers(record.version), record.build_number, record.timestamp))
    )


def _queried(kind: PackageKind, url: str, cache: Path, seconds: float) -> tuple[Record, ...]:
    """The channel's entries for this one name; with sharded repodata, little else is transferred."""
    from rattler import Channel, Gateway, Subdir
    from rattler.exceptions import GatewayError

    async def query() -> list[str]:
        gateway = Gateway(cache_dir=cache, client=rattler_client())
        answer = await gateway.query([Channel(url)], [Subdir("noarch")], [kind.package], recursive=False)
        return [record.to_json() for records in answer for record in records]

    try:
        entries = [json.loads(text) for text in _waited(query(), seconds)]
        return tuple(Record.from_repodata(entry["fn"], entry, channel=url, subdir="noarch") for entry in entries)
    except (GatewayError, RuntimeError, OSError, ValueError, KeyError) as error:
        raise WorkError(
            f"cannot read what packages {url} has: {_cause(error, seconds)}",
            hint=f"A fetched {kind.noun} can be used without the channel, and so can a copy in a folder.",
        ) from error


def _choose(kind: PackageKind, records: Sequence[Record], version: str | None, channel: str) -> Record:
    if version is not None and version_numbers(version) is None:
        raise InputError(f"'{version}' is not a version of {kind.package}", hint=f"Versions look like {kind.example}.")
    wanted = version_numbers(version) if version is not None else None
    matching = [record for record in records if wanted is None or version_numbers(record.version) == wanted]
    if matching:
        return matching[-1]
    if not records:
        raise InputError(f"the channel {channel} has no package {kind.package}")
    older = [record.version for record in records if (version_numbers(record.version) or ()) < (wanted or ())]
    newer = [record.version for record in records if (version_numbers(record.version) or ()) > (wanted or ())]
    raise InputError(
        f"the channel {channel} has no {kind.package} {version}",
        hint=f"The nearest versions there: {', '.join((*older[-1:], *newer[:1]))}.",
    )


def _download(record: Record, folder: Path, seconds: float) -> Path:
    """The package's file, with the size and hash from the channel's repodata."""
    suffix = ".tar.bz2" if record.file_name.endswith(".tar.bz2") else ".conda"
    target = folder / f"package{suffix}"
    channel = local_folder(record.channel)
    if channel is None:
        _transfer(record, target, seconds)
    elif PurePosixPath(record.file_name).name != record.file_name:
        raise WorkError(f"'{record.file_name}' is not a valid name of a package file", path=channel)
    else:
        shutil.copyfile(channel / record.subdir / record.file_name, target)
    size = target.stat().st_size
    if record.size and size != record.size:
        raise WorkError(f"{record.url} is damaged: it has {size} bytes instead of {record.size}")
    if record.sha256 and sha256(target.read_bytes()).hexdigest() != record.sha256:
        raise WorkError(f"{record.url} is damaged: its SHA-256 differs from the channel's repodata")
    return target


def _transfer(record: Record, target: Path, seconds: float) -> None:
    from rattler.package_streaming import download_to_writer

    with target.open("wb") as stream:
        writer = _Limited(stream)
        try:
            _waited(download_to_writer(rattler_client(), record.url, writer), seconds)
        except (RuntimeError, OSError, ValueError) as error:
            reason = f"it has more than {_MOST_BYTES} bytes" if writer.full else _cause(error, seconds)
            raise WorkError(f"cannot fetch {record.url}: {reason}") from error


class _Limited:
    """A stream that stops an endless transfer."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._left = _MOST_BYTES
        self.full = False

    def write(self, part: bytes) -> int:
        self._left -= len(part)
        if self._left < 0:
            self.full = True
            raise OSError("too large")
        return int(self._stream.write(part))


def _unpack(kind: PackageKind, package: Path, folder: Path, record: Record) -> None:
    """Write only the kept files of a package below `folder`."""
    try:
        files = _contents(kind, package)
    except RefusedError as error:
        raise WorkError(f"{record.url} is refused: {error}") from error
    except UNREADABLE as error:
        raise WorkError(f"{record.url} is not a readable package: {first_cause(error)}") from error
    for name in kind.needed:
        if name not in files:
            raise WorkError(f"{record.url} contains no {name}, so it is not a {kind.noun}")
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _contents(kind: PackageKind, package: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    left = _MOST_BYTES
    for entry, blocks in members(package, ("pkg", "info") if kind.keeps_info else ("pkg",)):
        if set(entry.name) & set("\\:"):
            raise RefusedError(f"on Windows it would write outside its folder, to {entry.name!r}")
        left -= entry.size
        if left < 0 or len(files) >= _MOST_FILES:
            raise RefusedError(f"it contains more than {_MOST_FILES} files or {_MOST_BYTES} bytes")
        if not kind.keeps(entry.name) or entry.kind == "folder":
            continue
        if entry.kind != "file":
            raise RefusedError(f"it contains a link instead of a file, {entry.name!r}")
        files[entry.name] = b"".join(blocks())
    return files


def _keep(kind: PackageKind, new: Path, place: Path, record: Record) -> FetchedPackage:
    """Move a complete version to its place; one of the same version from another channel is replaced."""
    origin = {"version": record.version, "build": record.build, "channel": record.channel, "sha256": record.sha256}
    (new / kind.origin).write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")
    try:
        if place.exists():
            place.replace(new.with_name("replaced"))
        new.replace(place)
    except OSError:
        # Another process that fetched the same package may have been faster.
        other = fetched_version(kind, place.parent, record.version)
        if other is None or other.sha256 != record.sha256:
            raise
    return FetchedPackage(place, record.version, record.channel, record.sha256)


def _waited(work: Coroutine[Any, Any, _Answer], seconds: float) -> _Answer:
    async def limited() -> _Answer:
        return await asyncio.wait_for(work, seconds)

    return wait_for(limited())


def _cause(error: BaseException, seconds: float) -> str:
    return f"no answer within {seconds:g} s" if isinstance(error, TimeoutError) else first_cause(error)
