"""Servers that do not answer as they should, and files that nobody writes to: no wait goes on forever."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from feedstock_tools.channel import calls, repodata, targets
from feedstock_tools.channel import targets as uploads
from feedstock_tools.channel.calls import rattler_client
from feedstock_tools.channel.folder import add_packages, index_channel
from feedstock_tools.channel.http import NoAnswerError, ask, build_number
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.repodata import builds_of, read_records, repodata_state, run_exports_of, why_unreachable
from feedstock_tools.channel.solving import solve
from feedstock_tools.channel.targets import parse_target
from feedstock_tools.errors import FeedstockError, WorkError
from feedstock_tools.files import locks
from feedstock_tools.files.locks import Locks, locked
from tests.support.feedstocks import CPU, HERE, TinyFeedstock
from tests.support.needs import needs

Talk = Callable[[socket.socket], None]
OK = b"HTTP/1.1 200 OK\r\n"


def dripping(connection: socket.socket) -> None:
    """An answer that arrives byte by byte."""
    connection.sendall(OK + b"Content-Length: 100000\r\n\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.2)


def endless(begin: bytes, block: bytes) -> Talk:
    """An answer without an end."""

    def talk(connection: socket.socket) -> None:
        connection.sendall(begin)
        while True:
            connection.sendall(block)

    return talk


def saying(answer: bytes) -> Talk:
    """One answer, and the end of the connection."""
    return lambda connection: connection.sendall(answer)


def silent(connection: socket.socket) -> None:
    """No answer, while the connection stays open."""
    time.sleep(60)


#: Attack → what the server says after a request.
SERVERS: dict[str, Talk] = {
    "no answer": silent,
    "closed at once": saying(b""),
    "byte by byte": dripping,
    "endless headers": endless(OK, b"X-More: " + b"x" * 1000 + b"\r\n"),
    "an endless header": endless(OK + b"X: ", b"x" * 65536),
    "an endless answer": endless(OK + b"\r\n", b"x" * 65536),
    "an endless status line": endless(b"HTTP/1.1 ", b"2" * 65536),
    "endless provisional answers": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "an endless chunk": endless(OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"F" * 15 + b"\r\n", b"x" * 65536),
    "no HTTP": saying(b"220 smtp.example.org ESMTP\r\n"),
    "binary": saying(bytes(range(256)) * 100),
    "too short": saying(OK + b"Content-Length: 1000000\r\n\r\nshort"),
    "a negative length": saying(OK + b"Content-Length: -1\r\n\r\n"),
    "a huge length": saying(OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n"),
    "a redirect to itself": saying(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"),
    "a redirect to nowhere": saying(b"HTTP/1.1 302 Found\r\nLocation: http://[::bad\r\nContent-Length: 0\r\n\r\n"),
    "an unknown status": saying(b"HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n"),
}


@contextmanager
def serving(talk: Talk) -> Iterator[str]:
    """A server on loopback that answers every request in this way, until the end; its URL."""
    connections: list[socket.socket] = []
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def answer(connection: socket.socket) -> None:
            with suppress(OSError), closing(connection):
                connection.recv(65536)
                talk(connection)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connections.append(server.accept()[0])
                    threading.Thread(target=answer, args=(connections[-1],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        for each in (server, *connections):  # a client may read an endless answer in the background
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short limits."""
    monkeypatch.setattr(calls, "_REQUEST_SECONDS", 1)
    monkeypatch.setattr(calls, "_RETRIES", 0)
    monkeypatch.setattr(repodata, "_SECONDS", 3)


@pytest.mark.parametrize("server", SERVERS)
def test_no_server_is_waited_for_longer_than_the_limit(server: str) -> None:
    with serving(SERVERS[server]) as url:
        began = time.monotonic()
        with suppress(NoAnswerError):
            reply = ask(f"{url}/repodata.json", seconds=0.5, largest=1 << 20)
            assert len(reply.content) <= 1 << 20
        assert time.monotonic() - began < 2
        why = why_unreachable(url, seconds=0.5)
        assert why is None or ("Traceback" not in why and len(why) < 1000)
        assert time.monotonic() - began < 5


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("server", ["no answer", "byte by byte", "endless headers", "binary", "an unknown status"])
def test_reading_a_channel_ends_with_a_message(server: str) -> None:
    with serving(SERVERS[server]) as url:
        began = time.monotonic()
        reads: tuple[Callable[[], object], ...] = (
            lambda: read_records(url, ["noarch"]),
            lambda: builds_of("a", url, ["noarch"]),
            lambda: solve(["a"], [url], HERE),
        )
        for read in reads:
            with pytest.raises(FeedstockError) as caught:
                read()
            assert len(str(caught.value)) < 2000
        assert time.monotonic() - began < 30


@pytest.mark.usefixtures("_impatient")
def test_a_long_wait_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(locks, "SAID_AFTER", 0.2)
    monkeypatch.setattr(locks, "_tell", said.append)
    with serving(silent) as url, pytest.raises(NoAnswerError):
        ask(f"{url}/x", seconds=1)
    assert said == ["waiting for 127.0.0.1 to answer, for up to 1 s"]


def test_a_name_that_no_server_resolves_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getaddrinfo", lambda *_args, **_more: time.sleep(60))
    began = time.monotonic()
    with pytest.raises(WorkError, match=r"cannot read http://azure\.invalid/.*no answer within 0\.5 s"):
        build_number("conda-forge", "feedstock-builds", "demo-feedstock", server="http://azure.invalid", seconds=0.5)
    assert time.monotonic() - began < 10


def test_a_long_block_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(locks, "SAID_AFTER", 0.1)
    monkeypatch.setattr(locks, "_tell", said.append)
    with locks.named_wait("git commit to end", 60):
        time.sleep(0.5)
    with locks.named_wait("something quick", None):
        pass
    time.sleep(0.3)
    assert said == ["waiting for git commit to end, for up to 60 s"]


def test_the_limit_of_a_wait_for_hours_is_not_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(locks, "_tell", said.append)
    locks.say_wait("a package to be read", 14400)
    assert said == ["waiting for a package to be read, for up to 4 h 00 min"]


def test_a_bucket_that_never_answers_is_named_and_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gpu_feedstock: TinyFeedstock
) -> None:
    said: list[str] = []
    monkeypatch.setattr(locks, "SAID_AFTER", 0.2)
    monkeypatch.setattr(locks, "_tell", said.append)
    monkeypatch.setattr(targets, "_READ_SECONDS", 1)
    monkeypatch.setattr(targets, "_ATTEMPTS", 1)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "a-key-that-is-not-shown")
    package = next(gpu_feedstock.artifacts.glob("*/*.conda"))
    began = time.monotonic()
    with serving(silent) as url:
        bucket = targets.S3Target("s3://bucket/channel", url)
        for ask_bucket in (
            lambda: bucket.there(["noarch/a-1-0.conda"]),
            lambda: bucket.put(package, f"noarch/{package.name}", "abc"),
        ):
            with pytest.raises(WorkError, match="s3://bucket/channel") as caught:
                ask_bucket()
            assert "a-key" not in str(caught.value)
    assert time.monotonic() - began < 30
    assert said[0] == "waiting for s3://bucket/channel to list its packages"
    assert said[1] == f"waiting for noarch/{package.name} to be sent to s3://bucket/channel"


def test_an_upload_to_a_server_that_never_answers_ends(
    gpu_feedstock: TinyFeedstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(uploads, "_ANSWER_SECONDS", 2.0)
    monkeypatch.setattr(uploads, "SAID_AFTER", 0.5)
    monkeypatch.setattr(locks, "_tell", said.append)
    package = next(gpu_feedstock.artifacts.glob("*/*.conda"))
    with serving(silent) as url:
        target = parse_target("prefix:mine", url, {"PREFIX_API_KEY": "a-key-that-is-not-shown"}, Path())
        began = time.monotonic()
        with pytest.raises(WorkError, match="prefix:mine has not taken a package within 2 s") as caught:
            target.put(package, f"{HERE.subdir}/{package.name}", "abc")
    assert time.monotonic() - began < 10
    assert "a-key" not in str(caught.value)
    assert len(said) == 1
    assert said[0].startswith("waiting for prefix:mine to take a package of ")


def test_questions_to_a_server_that_never_answers_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feedstock_tools.channel.repodata._STATE_SECONDS", 1)
    monkeypatch.setattr("feedstock_tools.channel.repodata._LIST_SECONDS", 1)
    with serving(silent) as url:
        began = time.monotonic()
        assert repodata_state(url, ["noarch"]) is None
        with pytest.raises(WorkError, match="cannot read the run exports"):
            run_exports_of(f"{url}/noarch/a-1-0.conda")
    assert time.monotonic() - began < 10


def test_a_lock_that_another_holds_is_not_waited_for_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(locks, "SAID_AFTER", 0.1)
    monkeypatch.setattr(locks, "_tell", said.append)
    with locked(tmp_path):
        with pytest.raises(WorkError, match="another process has held its lock"), locked(tmp_path, 0.5):
            pass
        assert said == [f"waiting for another process that writes to {tmp_path}, for up to 0.5 s"]
    with Locks.wait_for(tmp_path, ["a"]), pytest.raises(WorkError, match="another run has been at work"):
        Locks.wait_for(tmp_path, ["a"], 0.3)


@pytest.mark.parametrize("name", ["a-1.0-0.conda", "a-1.0-0.tar.bz2", "repodata.json"])
def test_a_fifo_in_a_channel_is_refused(name: str, tmp_path: Path) -> None:
    package = write_package(tmp_path / "elsewhere", PackageMetadata("b", "1.0", "0", 0, "noarch"))
    (tmp_path / "channel" / "noarch").mkdir(parents=True)
    os.mkfifo(tmp_path / "channel" / "noarch" / name)
    works: tuple[Callable[[], object], ...] = (
        lambda: index_channel(tmp_path / "channel"),
        lambda: add_packages(tmp_path / "channel", [package]),
        lambda: parse_target(str(tmp_path / "channel"), None, {}, tmp_path).there([f"noarch/{name}"]),
    )
    for work in works:
        with pytest.raises(FeedstockError):
            work()


@pytest.mark.parametrize("place", ["ledger.sqlite", "logs", ".lock", "noarch/repodata.json", ".cache"])
def test_a_fifo_among_the_artifacts_ends_a_command(place: str, feedstock: TinyFeedstock) -> None:
    path = feedstock.artifacts / place
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    began = time.monotonic()
    for words in (("status",), ("build", f"{CPU}_py3.11", "--channel", str(feedstock.channel), "--timeout", "20 s")):
        run = feedstock.run(*words)
        assert "Traceback" not in run.stderr
    assert time.monotonic() - began < 60


@needs("system", sys.platform != "win32", "limits of a process")
def test_too_few_open_files_are_an_error_before_the_engine_panics() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    calls._client.cache_clear()
    resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/dev/fd").iterdir()]) + 5, before[1]))
    try:
        with pytest.raises(WorkError, match="channels cannot be read: Too many open files"):
            rattler_client()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    rattler_client()
