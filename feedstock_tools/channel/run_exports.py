"""The run exports of a package in a channel: from the channel's run_exports.json, else from the package itself."""

from __future__ import annotations

import bz2
import json
import threading
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from feedstock_tools.bounds.limits import most
from feedstock_tools.channel.archive import documents_of, read_package
from feedstock_tools.channel.metadata import DAMAGED, RunExports
from feedstock_tools.channel.waiting import wait_for
from feedstock_tools.channel.web.asking import NoAnswerError, ask, rattler_client
from feedstock_tools.errors import WorkError
from feedstock_tools.reading import read_bytes

_SECONDS = 60
_DOCUMENT = "info/run_exports.json"
#: Bytes of a list of run exports, several times those of conda-forge's largest one; and of what is read at most.
_LARGEST_LIST = 512 << 20
_LARGEST_ANSWER = 1 << 40
_ONE_AT_A_TIME = threading.Lock()


def run_exports_of(url: str) -> RunExports:
    """The run exports of the package at a URL.

    Raises:
        WorkError: neither the subdir's run_exports.json nor the package can be read.
    """
    subdir, _, file_name = url.rpartition("/")
    with _ONE_AT_A_TIME:  # the first caller reads it for the others
        listed = _listed(subdir)
    if file_name in listed:
        return RunExports.from_json(listed[file_name].get("run_exports") or {})
    path = _path(url)
    if path is not None:
        return read_package(path).run_exports
    return _from_remote_package(url)


def listed_run_exports(urls: Iterable[str]) -> dict[str, RunExports]:
    """The run exports of packages by URL, as far as they are cheap: from run_exports.json, or from a local file.

    Raises:
        WorkError: an existing run_exports.json or package cannot be read.
    """
    exports = {}
    for url in urls:
        subdir, _, file_name = url.rpartition("/")
        listed = _listed(subdir)
        if file_name in listed:
            exports[url] = RunExports.from_json(listed[file_name].get("run_exports") or {})
        elif (path := _path(url)) is not None and path.is_file():
            exports[url] = read_package(path).run_exports
    return exports


def _path(url: str) -> Path | None:
    return Path(unquote(urlsplit(url).path)) if url.startswith("file:") else None


@lru_cache(maxsize=16)
def _listed(subdir: str) -> Mapping[str, Any]:
    """The entries of a subdir's run_exports.json by file name; none if it has no such file."""
    for name in ("run_exports.json.bz2", "run_exports.json"):
        content = _content(f"{subdir}/{name}")
        if content is None:
            continue
        try:
            document = json.loads(_plain(content) if name.endswith(".bz2") else content)
            return {**(document.get("packages") or {}), **(document.get("packages.conda") or {})}
        except (OSError, *DAMAGED) as error:
            raise WorkError(f"cannot read {subdir}/{name}: {error}") from error
    return {}


def _plain(content: bytes) -> bytes:
    """The content of a compressed list, if it is not too large."""
    reader = bz2.BZ2Decompressor()
    plain = reader.decompress(content, max_length=_largest() + 1)
    if len(plain) > _largest():
        raise ValueError(f"it has more than {_LARGEST_LIST} bytes")
    return plain


def _content(url: str) -> bytes | None:
    """The content of a file of a channel; None if there is none."""
    path = _path(url)
    if path is not None:
        return read_bytes(path, _largest(), within=None) if path.exists() else None
    try:
        reply = ask(url, seconds=_SECONDS, largest=_largest())
    except NoAnswerError as error:
        if error.too_much:
            raise WorkError(f"cannot read {url}: {error}") from error
        return None
    return reply.content if reply.status == 200 else None


def _largest() -> int:
    """The bound of a list in bytes, times the user's factor."""
    return int(min(most(_LARGEST_LIST), _LARGEST_ANSWER))


def _from_remote_package(url: str) -> RunExports:
    """Fetch only the metadata of a package."""
    from rattler.package_streaming import PackageArchive

    async def read() -> bytes | None:
        archive = await PackageArchive.from_url(rattler_client(), url)
        return (await documents_of(archive, [_DOCUMENT], most(_LARGEST_LIST))).get(_DOCUMENT)

    try:
        content = wait_for(read(), f"{url} to be sent", _SECONDS)
        return RunExports.from_json(json.loads(content)) if content else RunExports()
    except Exception as error:  # rattler has no common base for these errors
        raise WorkError(f"cannot read the run exports of {url}: {error}") from error
