"""Channels: their repodata, whether they answer, and their URLs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Protocol, TypeVar

from feedstock_tools.channel.metadata import DAMAGED, Record
from feedstock_tools.channel.properties import local_folder, why_no_channel
from feedstock_tools.channel.waiting import wait_for
from feedstock_tools.channel.web.asking import NoAnswerError, ask, rattler_client
from feedstock_tools.digests import package_hash
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.reading import read_bytes
from feedstock_tools.redaction import redacted

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


def read_records(channel: str, subdirs: Sequence[str], *, cache: Path | None = None) -> tuple[Record, ...]:
    """All packages of a channel in some subdirs, as its repodata has them, ordered by file name.

    A subdir that the channel does not have is empty, unless it is `noarch`.

    Args:
        cache: the folder that caches repodata of remote channels; default: none.

    Raises:
        WorkError: the channel cannot be reached, answers with an error, or its repodata is damaged.
    """
    url = channel_url(channel)
    folder = local_folder(url)
    if folder is None:
        with _cache_folder(cache) as kept:
            return tuple(record for subdir in subdirs for record in _fetched(url, subdir, kept))
    return tuple(record for subdir in subdirs for record in _lying_here(url, folder, subdir))


def builds_of(name: str, channel: str, subdirs: Sequence[str]) -> tuple[Record, ...]:
    """The builds of one package, without reading all of a remote channel; none if it has none.

    Raises:
        WorkError: the channel cannot be reached, answers with an error, or its repodata is damaged.
    """
    from rattler import Channel, Gateway, SourceConfig, Subdir
    from rattler.exceptions import GatewayError

    url = channel_url(channel)
    if local_folder(url) is not None:
        return tuple(record for record in read_records(url, subdirs) if record.name == name)

    async def query() -> list[tuple[str, str, str]]:
        # A plain file server breaks the second query of shards (see `_with_plain_repodata` in solving).
        gateway = Gateway(default_config=SourceConfig(sharded_enabled=False), client=rattler_client())
        places = [Subdir(subdir) for subdir in subdirs]
        answers = await gateway.query([Channel(url)], places, [name], recursive=False)
        return [(record.file_name, record.to_json(), record.subdir) for answer in answers for record in answer]

    try:
        found = wait_for(query(), f"{url} to answer", _SECONDS)
    except (GatewayError, OSError) as error:
        raise UnreadChannelError(f"cannot read the repodata of {redacted(url)}: {first_cause(error)}") from error
    return tuple(
        Record.from_repodata(file, json.loads(text), channel=url, subdir=subdir) for file, text, subdir in found
    )


@contextmanager
def _cache_folder(cache: Path | None) -> Iterator[Path]:
    if cache is not None:
        yield cache
        return
    with temporary_folder() as folder:
        yield folder


def _lying_here(url: str, folder: Path, subdir: str) -> list[Record]:
    """The packages of a subdir of a channel on this machine; none if it has no such subdir."""
    path = folder / subdir / "repodata.json"
    try:
        if not path.exists():
            raise FileNotFoundError
        document = json.loads(read_bytes(path, _LARGEST_REPODATA, within=None))
        sections = (document.get("packages") or {}, document.get("packages.conda") or {})
        return [
            Record.from_repodata(name, entry, channel=url, subdir=subdir)
            for section in sections
            for name, entry in sorted(section.items())
        ]
    except FileNotFoundError as error:
        if subdir == "noarch":
            raise WorkError("this is not a channel: it has no noarch/repodata.json", path=folder) from error
        return []
    except InputError as error:
        raise WorkError(f"cannot read the repodata: it {error.mistakes[0].message}", path=path) from error
    except DAMAGED as error:
        raise WorkError(f"the repodata is damaged: {error}", path=path) from error


def _fetched(url: str, subdir: str, cache: Path) -> list[Record]:
    """The packages of a subdir of a channel on a server; none if it has no such subdir."""

    from rattler import Channel, Subdir, fetch_repo_data
    from rattler.exceptions import FetchRepoDataError

    async def fetch() -> list[str]:
        parts = await fetch_repo_data(
            channels=[Channel(url)],
            platforms=[Subdir(subdir)],
            cache_path=cache,
            callback=None,
            client=rattler_client(),
        )
        return [record.to_json() for part in parts for record in part.load_all_records()]

    try:
        entries = [json.loads(text) for text in wait_for(fetch(), f"{url} to answer", _SECONDS)]
    except FetchRepoDataError as error:
        if subdir != "noarch" and str(error).startswith("repodata not found"):
            return []
        raise UnreadChannelError(
            f"cannot read the repodata of {redacted(url)}/{subdir}: {first_cause(error)}"
        ) from error
    except (OSError, ValueError) as error:
        raise UnreadChannelError(f"cannot read the repodata of {redacted(url)}/{subdir}: {error}") from error
    return sorted(
        (Record.from_repodata(entry["fn"], entry, channel=url, subdir=subdir) for entry in entries),
        key=lambda record: record.file_name,
    )


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
    try:
        reply = ask(url, seconds=_STATE_SECONDS, method="HEAD")
    except NoAnswerError:
        return None
    if reply.status != 200:
        return "" if reply.status == 404 else None
    words = [reply.headers.get("etag"), reply.headers.get("last-modified")]
    return " ".join(word for word in words if word) or None
