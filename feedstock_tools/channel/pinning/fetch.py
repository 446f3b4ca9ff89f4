"""Fetching conda-forge's pinning from a channel into the user's cache."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Coroutine, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from feedstock_tools.channel.local import local_folder
from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.pinning.local import (
    ORIGIN_FILE,
    PINNING_FILE,
    PINNING_PACKAGE,
    Pinning,
    cached_pinnings,
    version_numbers,
)
from feedstock_tools.channel.repodata import channel_url, first_cause, read_records
from feedstock_tools.channel.waiting import wait_for
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.temporary import temporary_folder

__all__ = ["available_pinnings", "fetch_pinning"]

# Today's package has 300 files and less than half a megabyte.
_MOST_FILES = 20_000
_MOST_BYTES = 64 * 1024 * 1024
_RETRIES = 2
_SECONDS = 120

Answer = TypeVar("Answer")


def fetch_pinning(channel: str, cache: Path, version: str | None = None, *, seconds: float = _SECONDS) -> Pinning:
    """Fetch a version of the package conda-forge-pinning, unless it is already in the cache.

    The cache only changes once the package is complete and checked; other versions stay.

    Args:
        channel: a name such as `conda-forge`, a URL, or a folder.
        cache: the folder returned by `pinning_cache`.
        version: such as `2021.10.29.07.34.22`; default: the newest, which is always looked up in the channel.
        seconds: the time limit for each of the two transfers.

    Raises:
        InputError: `version` is not a version, or the channel does not have it.
        WorkError: the channel cannot be reached, or the package is damaged or would write outside its folder.
    """
    if version is not None:
        kept = _kept(cache, version)
        if kept is not None:
            return kept
    record = _choose(available_pinnings(channel, seconds=seconds), version, channel)
    kept = _kept(cache, record.version)
    if kept is not None and kept.sha256 == record.sha256:
        return kept
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with temporary_folder(cache) as work:
            package = _download(record, work, seconds)
            _unpack(package, work / "pinning", record)
            return _keep(work / "pinning", cache / record.version, record)
    except OSError as error:
        raise WorkError(f"cannot keep the pinning: {error.strerror or error}", path=cache) from error


def available_pinnings(channel: str, *, seconds: float = _SECONDS) -> tuple[Record, ...]:
    """The packages of the pinning that a channel has, the newest last.

    Raises:
        WorkError: the channel cannot be reached, answers with an error, or its repodata is damaged.
    """
    url = channel_url(channel)
    if local_folder(url) is not None:
        records = read_records(url, ["noarch"])
    else:
        with temporary_folder() as folder:
            records = _queried(url, folder, seconds)
    named = [record for record in records if record.name == PINNING_PACKAGE and version_numbers(record.version)]
    return tuple(
        sorted(named, key=lambda record: (version_numbers(record.version), record.build_number, record.timestamp))
    )


def _queried(url: str, cache: Path, seconds: float) -> tuple[Record, ...]:
    """The channel's entries for this one name; with sharded repodata, little else is transferred."""
    from rattler import Channel, Gateway, Subdir
    from rattler.exceptions import GatewayError

    async def query() -> list[str]:
        gateway = Gateway(cache_dir=cache)
        answer = await gateway.query([Channel(url)], [Subdir("noarch")], [PINNING_PACKAGE], recursive=False)
        return [record.to_json() for records in answer for record in records]

    try:
        entries = [json.loads(text) for text in _waited(query(), seconds)]
        return tuple(Record.from_repodata(entry["fn"], entry, channel=url, subdir="noarch") for entry in entries)
    except (GatewayError, RuntimeError, OSError, ValueError, KeyError) as error:
        raise WorkError(
            f"cannot read what packages {url} has: {_cause(error, seconds)}",
            hint="A fetched pinning can be used without the channel.",
        ) from error


def _choose(records: Sequence[Record], version: str | None, channel: str) -> Record:
    if version is not None and version_numbers(version) is None:
        raise InputError(
            f"'{version}' is not a version of {PINNING_PACKAGE}", hint="Versions look like 2021.10.29.07.34.22."
        )
    wanted = version_numbers(version) if version is not None else None
    matching = [record for record in records if wanted is None or version_numbers(record.version) == wanted]
    if matching:
        return matching[-1]
    if not records:
        raise InputError(f"the channel {channel} has no package {PINNING_PACKAGE}")
    older = [record.version for record in records if (version_numbers(record.version) or ()) < (wanted or ())]
    newer = [record.version for record in records if (version_numbers(record.version) or ()) > (wanted or ())]
    raise InputError(
        f"the channel {channel} has no {PINNING_PACKAGE} {version}",
        hint=f"The nearest versions there: {', '.join((*older[-1:], *newer[:1]))}.",
    )


def _kept(cache: Path, version: str) -> Pinning | None:
    wanted = version_numbers(version)
    return next((kept for kept in cached_pinnings(cache) if version_numbers(kept.version or "") == wanted), None)


def _download(record: Record, folder: Path, seconds: float) -> Path:
    """The package's file, with the size and hash from the channel's repodata."""
    suffix = ".tar.bz2" if record.file_name.endswith(".tar.bz2") else ".conda"
    target = folder / f"package{suffix}"
    here = local_folder(record.channel)
    if here is None:
        _transfer(record, target, seconds)
    elif PurePosixPath(record.file_name).name != record.file_name:
        raise WorkError(f"'{record.file_name}' is not a valid name of a package file", path=here)
    else:
        shutil.copyfile(here / record.subdir / record.file_name, target)
    size = target.stat().st_size
    if record.size and size != record.size:
        raise WorkError(f"{record.url} is damaged: it has {size} bytes instead of {record.size}")
    if record.sha256 and sha256(target.read_bytes()).hexdigest() != record.sha256:
        raise WorkError(f"{record.url} is damaged: its SHA-256 differs from the channel's repodata")
    return target


def _transfer(record: Record, target: Path, seconds: float) -> None:
    from rattler.networking.client import Client
    from rattler.package_streaming import download_to_writer

    with target.open("wb") as stream:
        writer = _Limited(stream)
        try:
            _waited(download_to_writer(Client.default_client(_RETRIES), record.url, writer), seconds)
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


def _unpack(package: Path, folder: Path, record: Record) -> None:
    """Write only the files of the pinning below `folder`."""
    try:
        files = wait_for(_contents(package))
    except _RefusedError as error:
        raise WorkError(f"{record.url} is refused: {error}") from error
    except Exception as error:  # rattler raises several types, among them plain Exception, for a damaged archive
        raise WorkError(f"{record.url} is not a readable package: {first_cause(error)}") from error
    if PINNING_FILE not in files:
        raise WorkError(f"{record.url} contains no {PINNING_FILE}, so it is not a pinning")
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class _RefusedError(Exception):
    """A package with members that a pinning must not have."""


async def _contents(package: Path) -> dict[str, bytes]:
    from rattler.package_streaming import PackageArchive

    archive = await PackageArchive.from_path(package)
    files: dict[str, bytes] = {}
    left = _MOST_BYTES
    async for entry in archive.stream("pkg"):
        if not _stays_inside(entry.name):
            raise _RefusedError(f"it would write outside its folder, to {entry.name!r}")
        left -= entry.size  # of all members, since skipped ones are decompressed too
        if left < 0 or len(files) >= _MOST_FILES:
            raise _RefusedError(f"it contains more than {_MOST_FILES} files or {_MOST_BYTES} bytes")
        if not (entry.name == PINNING_FILE or entry.name.startswith("share/conda-forge/")):
            continue
        if entry.is_link:
            raise _RefusedError(f"it contains a link instead of a file, {entry.name!r}")
        if not entry.is_file:
            continue
        files[entry.name] = await entry.read()
    return files


def _stays_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and not set(name) & set("\\:\0")


def _keep(new: Path, place: Path, record: Record) -> Pinning:
    """Move a complete pinning to its place; one of the same version from another channel is replaced."""
    origin = {"version": record.version, "build": record.build, "channel": record.channel, "sha256": record.sha256}
    (new / ORIGIN_FILE).write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")
    try:
        if place.exists():
            place.replace(new.with_name("replaced"))
        new.replace(place)
    except OSError:
        # Another process that fetched the same package may have been faster.
        other = _kept(place.parent, record.version)
        if other is None or other.sha256 != record.sha256:
            raise
    return Pinning(place / PINNING_FILE, record.version, record.channel, record.sha256)


def _waited(work: Coroutine[Any, Any, Answer], seconds: float) -> Answer:
    async def limited() -> Answer:
        return await asyncio.wait_for(work, seconds)

    return wait_for(limited())


def _cause(error: BaseException, seconds: float) -> str:
    return f"no answer within {seconds:g} s" if isinstance(error, TimeoutError) else first_cause(error)
