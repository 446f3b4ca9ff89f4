"""Channels: their repodata and run exports, whether they answer, and their URLs."""

from __future__ import annotations

import bz2
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from feedstock_tools.bounds.limits import most
from feedstock_tools.channel.calls import rattler_client, unsharded_gateway, wait_for
from feedstock_tools.channel.metadata import DAMAGED, Record, RunExports
from feedstock_tools.channel.properties import local_folder, why_no_channel
from feedstock_tools.digests import package_hash
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.locks import say_aside
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.reading import read_bytes
from feedstock_tools.redaction import redacted
from feedstock_tools.wording import counted, shown

if TYPE_CHECKING:
    from rattler import SparseRepoData

#: Bytes of the repodata of a channel on this machine, several times those of conda-forge's largest subdir.
_LARGEST_REPODATA = 2 << 30
#: The time limit for reading the repodata of a channel, in seconds.
_SECONDS = 1200
_FIRST_ERROR = 400
#: HTTP's statuses for missing credentials.
_REFUSALS = (401, 403)
#: Hosts of public channels → the service, as `publish` names it.
PUBLIC_HOSTS = {
    "prefix.dev": "prefix",
    "repo.prefix.dev": "prefix",
    "anaconda.org": "anaconda",
    "api.anaconda.org": "anaconda",
    "conda.anaconda.org": "anaconda",
}
#: The time limit for a question whether repodata has changed, in seconds.
_STATE_SECONDS = 10
#: The time limit for a list of run exports, in seconds.
_LIST_SECONDS = 60
#: Bytes of a list of run exports, several times those of conda-forge's largest one; and of what is read at most.
_LARGEST_LIST = 512 << 20
_LARGEST_ANSWER = 1 << 40
_ONE_AT_A_TIME = threading.Lock()


class UnreadChannelError(WorkError):
    """The repodata of a channel on a server cannot be read."""


def channel_url(channel: str) -> str:
    """The URL of a channel given as a name (`conda-forge`), a URL, or a folder, without a trailing slash.

    >>> channel_url("https://example.org/my-channel/")
    'https://example.org/my-channel'

    Raises:
        InputError: `channel` has none of these forms, or is the address of a channel without `https://`.
    """
    from rattler import Channel
    from rattler.exceptions import InvalidChannelError

    if not channel.strip():
        raise InputError("a channel must be a name, a URL or a folder")
    folder = local_folder(channel)
    if folder is not None:
        return folder.as_uri()
    host, _, name = channel.partition("/")
    if service := PUBLIC_HOSTS.get(host):  # rattler would take it for the name of a channel at anaconda.org
        hint = f"Write https://{'conda.anaconda.org' if service == 'anaconda' else host}/{name or 'CHANNEL'}."
        raise InputError(f"'{channel}' is the address of a channel without https://", hint=hint)
    try:
        return Channel(channel).base_url.rstrip("/")
    except InvalidChannelError as error:
        raise InputError(f"'{channel}' is not a channel: {error}") from error


def why_unreachable(channel: str, *, seconds: float = 3.0) -> str | None:
    """None if a channel answers within some seconds, else the reason in a few words.

    A channel answers when the repodata of its `noarch` subdir, which every channel has, can be read in one of its
    forms.
    """
    folder = local_folder(channel)
    if folder is not None:
        return why_no_channel(folder)
    from feedstock_tools.channel.http import NoAnswerError, ask

    url = channel_url(channel)
    try:
        status = ask(f"{url}/noarch/repodata.json", seconds=seconds, method="HEAD").status
    except NoAnswerError as error:
        return str(error)
    if status < _FIRST_ERROR:
        return None
    if status in _REFUSALS and _is_open_to_rattler(url):
        return None
    return f"it answers with HTTP status {status}"


def _is_open_to_rattler(url: str) -> bool:
    """Whether rattler can read a channel that refuses us: it knows the keychain."""
    try:
        builds_of("feedstock-tools", url, ["noarch"])
    except WorkError:
        return False
    return True


def read_records(channel: str, subdirs: Sequence[str]) -> tuple[Record, ...]:
    """All packages of a channel in some subdirs, as its repodata has them, ordered by file name.

    A subdir that the channel does not have is empty, unless it is `noarch`.
    """
    url = channel_url(channel)
    folder = local_folder(url)
    if folder is None:
        with temporary_folder() as kept:
            return tuple(record for subdir in subdirs for record in _fetched(url, subdir, kept))
    return tuple(record for subdir in subdirs for record in _lying_here(url, folder, subdir))


def builds_of(name: str, channel: str, subdirs: Sequence[str]) -> tuple[Record, ...]:
    """The builds of one package, without reading all of a remote channel; none if it has none.

    Raises:
        WorkError: the channel cannot be reached, answers with an error, or its repodata is damaged.
    """
    from rattler import Channel, Subdir
    from rattler.exceptions import GatewayError

    url = channel_url(channel)
    if local_folder(url) is not None:
        return tuple(record for record in read_records(url, subdirs) if record.name == name)

    async def query() -> list[tuple[str, str, str]]:
        places = [Subdir(subdir) for subdir in subdirs]
        answers = await unsharded_gateway().query([Channel(url)], places, [name], recursive=False)
        return [(record.file_name, record.to_json(), record.subdir) for answer in answers for record in answer]

    try:
        found = wait_for(query(), f"{url} to answer", _SECONDS)
    except (GatewayError, OSError) as error:
        raise UnreadChannelError(f"cannot read the repodata of {redacted(url)}: {first_cause(error)}") from error
    entries = ((file, json.loads(text), subdir) for file, text, subdir in found)
    return tuple(_sound_records(entries, url))


def _lying_here(url: str, folder: Path, subdir: str) -> list[Record]:
    """The packages of a subdir of a channel on this machine; none if it has no such subdir."""
    path = folder / subdir / "repodata.json"
    try:
        if not path.exists():
            raise FileNotFoundError
        document = json.loads(read_bytes(path, _LARGEST_REPODATA, within=None))
        entries = [each for section in _sections(document) for each in sorted(section.items())]
    except FileNotFoundError as error:
        if subdir == "noarch":
            raise WorkError("this is not a channel: it has no noarch/repodata.json", path=folder) from error
        return []
    except InputError as error:
        raise WorkError(f"cannot read the repodata: it {error.mistakes[0].message}", path=path) from error
    except DAMAGED as error:
        raise WorkError(f"the repodata is damaged: {error}", path=path) from error
    records, damage = _read_records(((name, entry, subdir) for name, entry in entries), url)
    if damage:
        raise WorkError(f"the repodata is damaged: {damage[0]}", path=path)
    return records


def _fetched(url: str, subdir: str, cache: Path) -> list[Record]:
    """The packages of a subdir of a channel on a server; none if it has no such subdir."""

    from rattler import Channel, Subdir, fetch_repo_data
    from rattler.exceptions import FetchRepoDataError

    async def fetch(kept: Path) -> list[SparseRepoData]:
        return await fetch_repo_data(
            channels=[Channel(url)], platforms=[Subdir(subdir)], cache_path=kept, callback=None, client=rattler_client()
        )

    try:
        parts = wait_for(fetch(cache), f"{url} to answer", _SECONDS)
        try:
            found = [json.loads(record.to_json()) for part in parts for record in part.load_all_records()]
            entries = [(entry["fn"], entry) for entry in found]
        except (OSError, ValueError):  # rattler gives no record of repodata with a bad one
            with temporary_folder() as folder:
                wait_for(fetch(folder), f"{url} to answer", _SECONDS)
                (path,) = (each for each in folder.glob("*.json") if not each.name.endswith(".info.json"))
                document = json.loads(read_bytes(path, _LARGEST_REPODATA, within=folder))
            entries = [each for section in _sections(document) for each in section.items()]
    except FetchRepoDataError as error:
        if subdir != "noarch" and str(error).startswith("repodata not found"):
            return []
        raise UnreadChannelError(
            f"cannot read the repodata of {redacted(url)}/{subdir}: {first_cause(error)}"
        ) from error
    except (OSError, *DAMAGED) as error:
        raise UnreadChannelError(f"cannot read the repodata of {redacted(url)}/{subdir}: {error}") from error
    records = _sound_records(((name, entry, subdir) for name, entry in entries), url)
    return sorted(records, key=lambda record: record.file_name)


def _sections(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    return document.get("packages") or {}, document.get("packages.conda") or {}


def _sound_records(entries: Iterable[tuple[str, Mapping[str, Any], str]], url: str) -> list[Record]:
    """The records of a channel on a server, whose damaged ones are left out and counted: others own it.

    Args:
        entries: file name, entry and subdir of each package.

    Raises:
        UnreadChannelError: all are damaged.
    """
    records, damage = _read_records(entries, url)
    if damage and not records:
        raise UnreadChannelError(f"the repodata of {redacted(url)} is damaged: {damage[0]}")
    if damage:
        skipped = f"{counted(len(damage), 'damaged record')} of {redacted(url)} skipped"
        say_aside(f"{skipped}, the first in {damage[0]}")
    return records


def _read_records(entries: Iterable[tuple[str, Mapping[str, Any], str]], url: str) -> tuple[list[Record], list[str]]:
    """The sound records of a channel, and of each damaged one its file with the reason."""
    records, damage = [], []
    for file_name, entry, subdir in entries:
        try:
            records.append(Record.from_repodata(file_name, entry, channel=url, subdir=subdir))
        except DAMAGED as error:
            if not isinstance(entry, dict):
                reason = "it is not a mapping"
            elif isinstance(error, KeyError):
                reason = f"it has no {error}"
            else:
                reason = str(error)
            damage.append(f"{subdir}/{shown(file_name)}: {shown(reason)}")
    return records, damage


def first_cause(error: BaseException) -> str:
    """The last informative cause in rattler's chain of causes, which is the original one."""
    lines = [line.removeprefix("Caused by: ").strip() for line in str(error).splitlines()]
    return next((line for line in reversed(lines) if line and line != "Body:"), type(error).__name__)


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
    existing: dict[tuple[str, str, str], list[Record]] = {}
    for channel in channels:
        for record in read_records(channel, subdirs):
            existing.setdefault((record.subdir, record.name, record.version), []).append(record)
    return tuple(
        package
        for package in wanted
        if not any(
            record.build == package.build_string or _is_final(package, record)
            for record in existing.get((package.subdir, package.name, package.version), ())
        )
    )


def _is_final(package: Promised, record: Record) -> bool:
    """Whether a build is the package with the virtual packages that it depends on in its hash."""
    virtual = {spec.split(" ")[0]: spec for spec in record.depends if spec.startswith("__")}
    if not virtual or not package.hash_input:
        return False
    final = package_hash({**package.hash_input, **virtual})
    return record.build == package.build_string.replace(package_hash(package.hash_input), final)


def repodata_state(channel: str, subdirs: Sequence[str]) -> str | None:
    """A text that changes with the repodata of a channel; None if its server does not report it.

    For a channel on this machine it is a hash over its files, for others the server's headers.
    """
    folder = local_folder(channel)
    state = [channel_url(channel)]
    for subdir in sorted(subdirs):
        if folder is not None:
            path = folder / subdir / "repodata.json"
            if path.is_file():
                with path.open("rb") as stream:
                    state.append(f"{subdir} {file_digest(stream, sha256).hexdigest()}")
        else:
            answer = _state_on_server(f"{channel_url(channel)}/{subdir}/repodata.json")
            if answer is None:
                return None
            state.append(f"{subdir} {answer}")
    return "\n".join(state)


def _state_on_server(url: str) -> str | None:
    """The tag and modification time of a file on a server; '' if there is no such file."""
    from feedstock_tools.channel.http import NoAnswerError, ask

    try:
        reply = ask(url, seconds=_STATE_SECONDS, method="HEAD")
    except NoAnswerError:
        return None
    if reply.status != 200:
        return "" if reply.status == 404 else None
    words = [reply.headers.get("etag"), reply.headers.get("last-modified")]
    return " ".join(word for word in words if word) or None


def run_exports_of(url: str) -> RunExports:
    """The run exports of the package at a URL."""
    subdir, _, file_name = url.rpartition("/")
    with _ONE_AT_A_TIME:  # the first caller reads it for the others
        listed = _listed(subdir)
    if file_name in listed:
        return RunExports.from_json(listed[file_name].get("run_exports") or {})
    path = local_folder(url)
    return _from_remote_package(url) if path is None else _from_package(path)


def listed_run_exports(urls: Iterable[str]) -> dict[str, RunExports]:
    """The run exports of packages by URL, as far as they are cheap: from run_exports.json, or from a local file."""
    exports = {}
    for url in urls:
        subdir, _, file_name = url.rpartition("/")
        listed = _listed(subdir)
        if file_name in listed:
            exports[url] = RunExports.from_json(listed[file_name].get("run_exports") or {})
        elif (path := local_folder(url)) is not None and path.is_file():
            exports[url] = _from_package(path)
    return exports


def _from_package(path: Path) -> RunExports:
    from feedstock_tools.channel.packages.reading import read_package

    return read_package(path).run_exports


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
    from feedstock_tools.channel.http import NoAnswerError, ask

    path = local_folder(url)
    if path is not None:
        return read_bytes(path, _largest(), within=None) if path.exists() else None
    try:
        reply = ask(url, seconds=_LIST_SECONDS, largest=_largest())
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
        left = most(_LARGEST_LIST)
        async for entry in archive.stream("info"):
            left -= entry.size  # skipped entries are decompressed too
            if left < 0:
                raise ValueError(f"its metadata has more than {_LARGEST_LIST} bytes")
            if entry.name == "info/run_exports.json":
                return await entry.read()
        return None

    try:
        content = wait_for(read(), f"{url} to be sent", _LIST_SECONDS)
        return RunExports.from_json(json.loads(content)) if content else RunExports()
    except Exception as error:  # rattler has no common base for these errors
        raise WorkError(f"cannot read the run exports of {url}: {error}") from error
