"""Reading channels from folders and from a local server that answers well, badly or not at all."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from rattler.index import index_fs

from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.repodata import UnreadChannelError, builds_of, channel_url, read_records, why_unreachable
from feedstock_tools.channel.solving import solve
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files import locks
from feedstock_tools.platforms import Platform
from tests.support.serving import Handler, failing, files, serving

LINUX = Platform.parse("linux-64")
SUBDIRS = ("linux-64", "noarch")


@pytest.fixture
def channel(tmp_path: Path) -> Path:
    folder = tmp_path / "channel"
    write_package(folder, PackageMetadata("one", "1.0", "h_0", 0, "linux-64", depends=("two >=2",)))
    write_package(folder, PackageMetadata("two", "2.0", "0", 0, "noarch", noarch="generic"))
    index_channel(folder)
    return folder


Serve = Callable[[Handler], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda handler: stack.enter_context(serving(handler))


def test_a_folder_and_a_server_have_the_same_records(channel: Path, serve: Serve) -> None:
    url = serve(files(channel))

    here = [(record.distribution, record.depends, record.sha256) for record in read_records(str(channel), SUBDIRS)]
    there = [(record.distribution, record.depends, record.sha256) for record in read_records(url, SUBDIRS)]
    assert [name for name, _, _ in here] == ["one-1.0-h_0", "two-2.0-0"]
    assert here == there
    assert why_unreachable(url) is None


def test_a_subdir_that_a_channel_does_not_have_is_empty(channel: Path, serve: Serve) -> None:
    url = serve(files(channel))

    assert read_records(str(channel), ["win-64"]) == read_records(url, ["win-64"]) == ()


def test_a_plain_file_server_with_shards_can_be_asked_twice(
    channel: Path, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "cache"))
    asyncio.run(index_fs(channel, write_zst=True, write_shards=True))
    url = serve(files(channel))

    for _ in range(3):
        assert [record.name for record in solve(["one"], [url], LINUX)] == ["one", "two"]


def test_a_server_with_errors_is_reported_with_its_answer(serve: Serve) -> None:
    url = serve(failing(500))

    assert why_unreachable(url) == "it answers with HTTP status 500"
    with pytest.raises(WorkError, match="500 Internal Server Error"):
        read_records(url, SUBDIRS)
    with pytest.raises(WorkError, match="500 Internal Server Error"):
        solve(["one"], [url], LINUX)


def test_a_server_that_is_not_there_is_reported() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        assert "refused" in (why_unreachable(url) or "")
        with pytest.raises(UnreadChannelError, match="refused"):
            read_records(url, SUBDIRS)


def test_a_server_that_says_nothing_is_given_up_on() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        began = time.monotonic()
        assert why_unreachable(f"http://127.0.0.1:{silent.getsockname()[1]}", seconds=0.3)
        assert time.monotonic() - began < 5


def entry(name: str = "one-1-0.conda", **changed: object) -> str:
    """Repodata with one package, some fields of which are changed."""
    whole = {"name": "one", "version": "1", "build": "0", "build_number": 0, "depends": [], **changed}
    return json.dumps({"packages.conda": {name: whole}})


DAMAGED = [
    *('{"packages.conda": {"one-1', "", "[]", '{"packages": {"one-1-0.tar.bz2": {}}}', '{"packages": [1]}'),
    *("[" * 100_000, entry(name="one\ud800"), entry(version="1\n"), entry(build="\x1b[31m0"), entry(build=["0"])),
    *(entry(depends=[1]), entry(depends="two"), entry(constrains={"two": 1}), entry(timestamp=float("inf"))),
    *(entry(build_number="x"), entry(size="x"), entry(sha256=5)),
]


BAD_RECORDS: list[dict[str, object] | None] = [
    None,
    {"build": "\x1b[31m0"},
    {"version": "1\n"},
    {"depends": ["a"] * 10_001},
    {"name": "\u202e\x07"},
]


@pytest.mark.parametrize("bad", BAD_RECORDS)
def test_a_bad_record_of_a_server_is_skipped_and_counted(
    channel: Path, serve: Serve, bad: dict[str, object] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = channel / "linux-64/repodata.json"
    document = json.loads(path.read_text())
    (known,) = document["packages.conda"].values()
    record = None if bad is None else {**known, "version": "9", "build": "0", **bad}
    document["packages.conda"]["one-9-0.conda"] = record
    path.write_text(json.dumps(document))
    told: list[str] = []
    monkeypatch.setattr(locks, "_tell", told.append)
    records = read_records(serve(files(channel)), SUBDIRS)
    if bad and "version" not in bad:  # of others rattler shows nothing, and says why
        builds = builds_of("one", serve(files(channel)), SUBDIRS)
        assert [record.distribution for record in builds] == ["one-1.0-h_0"]
    assert [record.distribution for record in records] == ["one-1.0-h_0", "two-2.0-0"]
    assert any("1 damaged record of http" in text for text in told)
    assert all(text.isprintable() for text in told)
    document["packages.conda"].pop("one-1.0-h_0.conda")
    path.write_text(json.dumps(document))
    with pytest.raises(UnreadChannelError, match="is damaged: linux-64"):
        read_records(serve(files(channel)), ["linux-64"])


@pytest.mark.parametrize("text", DAMAGED)
def test_damaged_repodata_is_reported_with_its_path(channel: Path, text: str) -> None:
    path = channel / "linux-64/repodata.json"
    path.write_text(text)

    with pytest.raises(WorkError, match="damaged") as raised:
        read_records(str(channel), SUBDIRS)
    assert raised.value.mistakes[0].path == path


def test_solving_with_truncated_repodata_fails_as_work_does(channel: Path) -> None:
    path = channel / "linux-64/repodata.json"
    path.write_text(path.read_text()[:100])

    with pytest.raises(WorkError, match="cannot read the channels"):
        solve(["one"], [str(channel)], LINUX)


def test_a_folder_that_is_not_a_channel_is_reported(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="not a channel"):
        read_records(str(tmp_path), SUBDIRS)
    assert why_unreachable(str(tmp_path)) == "there is no noarch/repodata.json in it"


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("conda-forge", "https://conda.anaconda.org/conda-forge"),
        ("https://example.org/mine/", "https://example.org/mine"),
        ("/srv/channel", "file:///srv/channel"),
    ],
)
def test_a_channel_is_named_in_three_ways(given: str, url: str) -> None:
    assert channel_url(given) == url


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        ("prefix.dev/me", "Write https://prefix.dev/me."),
        ("anaconda.org/me/label/dev", "Write https://conda.anaconda.org/me/label/dev."),
        ("prefix.dev", "Write https://prefix.dev/CHANNEL."),
    ],
)
def test_an_address_without_https_is_not_the_name_of_a_channel(address: str, hint: str) -> None:
    with pytest.raises(InputError, match="the address of a channel without https://") as raised:
        channel_url(address)
    assert raised.value.mistakes[0].hint == hint


def test_nothing_is_not_a_channel() -> None:
    with pytest.raises(InputError, match="a channel must be"):
        channel_url(" ")
