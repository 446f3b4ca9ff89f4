"""Publishing: to a folder, to S3, and to services that speak over HTTP as the real ones do."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.builds.ledger import Ledger, TestRecord, now
from feedstock_tools.channel.archive import read_package, write_package
from feedstock_tools.channel.metadata import PackageFile
from feedstock_tools.channel.repodata import read_records
from feedstock_tools.channel.targets import parse_target
from feedstock_tools.errors import WorkError
from tests.support.feedstocks import HERE, TinyFeedstock

KEY = "a-key-that-is-shown-nowhere"
BUILT = f"{HERE.name}_cuda11.2_py3.11"


def publish(feedstock: TinyFeedstock, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return feedstock.run("publish", *arguments, "--channel", str(feedstock.channel), **environment)


def results(run: subprocess.CompletedProcess[str]) -> set[str]:
    assert run.returncode == 0, run.stdout + run.stderr
    return {package["result"] for package in json.loads(run.stdout)["packages"]}


@dataclass
class Service:
    """The packages that a service received. `limit`: how many it accepts; `listing`: its repodata is up to date;
    `shown`: it gives packages to everybody; `login`: the user and password that it wants with each request."""

    url: str
    packages: dict[str, bytes] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    limit: int | None = None
    listing: bool = True
    shown: bool = True
    login: str = ""
    received: list[str] = field(default_factory=list)

    def take(self, name: str, content: bytes) -> int:
        if self.limit is not None and len(self.received) >= self.limit:
            return 403
        if name in self.packages:
            return 409
        self.packages[name] = content
        self.received.append(name)
        return 201

    def repodata(self, subdir: str, folder: Path) -> bytes | None:
        """The repodata of the uploaded packages; a channel without packages is unknown to the service."""
        entries = {}
        for name, content in self.packages.items():
            (folder / name).write_bytes(content)
            metadata = read_package(folder / name)
            if metadata.subdir == subdir:
                entries[name] = {
                    **{"name": metadata.name, "version": metadata.version, "build": metadata.build},
                    **{"build_number": metadata.build_number, "subdir": subdir, "depends": list(metadata.depends)},
                    **{"size": len(content), "sha256": sha256(content).hexdigest()},
                }
        if not self.packages or not self.listing:
            return None
        return json.dumps({"info": {"subdir": subdir}, "packages": {}, "packages.conda": entries}).encode()


def received(asked: BaseHTTPRequestHandler) -> bytes:
    """The body of a request, in one piece or in chunks."""
    if asked.headers.get("Transfer-Encoding") != "chunked":
        return asked.rfile.read(int(asked.headers.get("Content-Length") or 0))
    body = b""
    while length := int(asked.rfile.readline(), 16):
        body += asked.rfile.read(length)
        asked.rfile.readline()
    asked.rfile.readline()
    return body


@contextmanager
def served(kind: str, folder: Path) -> Iterator[Service]:
    """A service of a kind on loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = received(self)
            wanted = f"Basic {b64encode(service.login.encode()).decode()}" if service.login else ""
            let_in = not wanted or self.headers["Authorization"] == wanted
            status, content = route(self, body) if let_in else (401, b"")
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PATCH = answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    def route(asked: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        if asked.path.endswith("/repodata.json"):
            found = service.repodata(asked.path.split("/")[-2], folder)
            return (200, found) if found else (404, b"")
        if asked.command == "GET" and asked.path.endswith(".conda"):
            content = service.packages.get(asked.path.rpartition("/")[2]) if service.shown else None
            return (200, content) if content else (404, b"")
        if asked.command in ("GET", "HEAD") and "repodata" in asked.path:
            return 404, b""
        return SPOKEN[kind](service, asked, body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service = Service(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()


def form(asked: BaseHTTPRequestHandler, body: bytes) -> dict[str, tuple[str | None, bytes]]:
    """The parts of a multipart form: name → file name and content."""
    message = message_from_bytes(
        f"Content-Type: {asked.headers['Content-Type']}\r\n\r\n".encode() + body, _class=EmailMessage, policy=default
    )
    found = {}
    for part in message.iter_parts():
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        found[str(part.get_param("name", header="content-disposition"))] = (part.get_filename(), content)
    return found


def prefix(service: Service, asked: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
    """prefix.dev: one form with the file, whose hash is among the part's headers."""
    assert asked.path == "/api/v1/upload/mine"
    service.keys.add(asked.headers["Authorization"])
    name, content = form(asked, body)["file"]
    return service.take(str(name), content), b""


def quetz(service: Service, asked: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
    """quetz: the file is the body, its name and hash are in the address."""
    place, _, query = asked.path.partition("?")
    assert place.startswith("/api/channels/mine/upload/")
    assert f"sha256={sha256(body).hexdigest()}" in query
    service.keys.add(asked.headers["X-API-Key"])
    return service.take(place.rpartition("/")[2], body), b""


def anaconda(service: Service, asked: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
    """anaconda.org: package, release, a staged file, its upload to storage, and a commit."""
    first, _, rest = asked.path.strip("/").partition("/")
    if first == "storage":
        name = rest
        return service.take(name, form(asked, body)["file"][1]), b""
    service.keys.add(asked.headers["Authorization"])
    if first == "stage":
        name = rest.rpartition("/")[2]
        assert json.loads(body)["channels"] == ["main"]
        if name in service.packages:
            return 409, b"{}"
        if service.limit is not None and len(service.received) >= service.limit:
            return 403, b"{}"
        staged = {"post_url": f"{service.url}/storage/{name}", "form_data": {"key": name}, "dist_id": "1"}
        return 200, json.dumps(staged).encode()
    return (404 if asked.command == "GET" else 200), b"{}"


SPOKEN = {"anaconda": anaconda, "prefix": prefix, "quetz": quetz}
KEYS = {"anaconda": "ANACONDA_API_TOKEN", "prefix": "PREFIX_API_KEY", "quetz": "QUETZ_API_KEY"}


def test_a_folder_becomes_a_channel_that_solves(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    assert results(publish(gpu_feedstock, str(tmp_path / "channel"), BUILT, "--json")) == {"published"}
    records = read_records(str(tmp_path / "channel"), [HERE.subdir, "noarch"])
    assert sorted(record.file_name for record in records) == gpu_feedstock.packages()


def test_what_the_target_has_is_left(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    publish(gpu_feedstock, str(tmp_path / "channel"), BUILT)
    assert results(publish(gpu_feedstock, str(tmp_path / "channel"), BUILT, "--json")) == {"there"}


def test_a_dry_run_puts_nothing_anywhere(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    run = publish(gpu_feedstock, str(tmp_path / "channel"), BUILT, "--dry-run", "--json")
    assert results(run) == {"to be published"}
    assert not (tmp_path / "channel").exists()


def test_a_tampered_package_is_refused_and_nothing_goes(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    package = next(gpu_feedstock.artifacts.glob(f"{HERE.subdir}/*.conda"))
    state = package.stat()
    content = bytearray(package.read_bytes())
    content[-1] ^= 1  # of the same size, and put back in time
    package.write_bytes(content)
    os.utime(package, ns=(state.st_atime_ns, state.st_mtime_ns))
    run = publish(gpu_feedstock, str(tmp_path / "channel"), BUILT)
    assert run.returncode == 1
    assert f"{package.name} has changed since it was built" in run.stderr
    assert not (tmp_path / "channel").exists()


def test_another_package_of_the_same_name_is_not_replaced(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    publish(gpu_feedstock, str(tmp_path / "channel"), BUILT)
    package = next((tmp_path / "channel").glob(f"{HERE.subdir}/*.conda"))
    package.write_bytes(b"another")
    run = publish(gpu_feedstock, str(tmp_path / "channel"), BUILT)
    assert run.returncode == 1
    assert f"different packages with these names: {HERE.subdir}/{package.name}" in run.stderr
    assert package.read_bytes() == b"another"


def test_a_configuration_that_is_not_complete_does_not_go(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    run = publish(gpu_feedstock, str(tmp_path / "channel"), BUILT, f"{HERE.name}_cpu")
    assert run.returncode == 1
    assert "is not complete" in run.stderr
    assert not (tmp_path / "channel").exists()


def test_untested_packages_do_not_go(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    with sqlite3.connect(gpu_feedstock.artifacts / "ledger.sqlite") as ledger:
        ledger.execute("UPDATE builds SET marks = ?", (json.dumps({"tests": "left out", "tests-reason": "no GPU"}),))
    run = publish(gpu_feedstock, str(tmp_path / "channel"), BUILT)
    assert run.returncode == 1
    assert "not tested: no GPU" in run.stderr
    assert "test NAME" in run.stderr


def test_without_a_name_rows_with_untested_packages_are_left_out(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    assert gpu_feedstock.build(f"{HERE.name}_cuda11.2").returncode == 0
    marks = json.dumps({"tests": "left out", "tests-reason": "no GPU"})
    with sqlite3.connect(gpu_feedstock.artifacts / "ledger.sqlite") as ledger:
        ledger.execute("UPDATE builds SET marks = ? WHERE row LIKE '%_py3.12'", (marks,))
    run = publish(gpu_feedstock, str(tmp_path / "channel"))
    assert run.returncode == 0, run.stderr
    assert "Left out with all of their rows: " in run.stdout
    assert "not tested: no GPU" in run.stdout
    went = sorted(path.name for path in (tmp_path / "channel").glob("*/*.conda"))
    with Ledger(gpu_feedstock.artifacts / "ledger.sqlite") as ledger:
        tested = [package.file for build in ledger.builds() if "tests" not in build.marks for package in build.packages]
    assert went == sorted(Path(file).name for file in tested)
    assert 0 < len(went) < len(gpu_feedstock.packages())


def test_packages_that_failed_their_last_test_do_not_go(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    with Ledger(gpu_feedstock.artifacts / "ledger.sqlite") as ledger:
        package = ledger.builds()[0].packages[0]

        def tested(result: str, reason: str = "") -> TestRecord:
            return TestRecord(
                package.sha256,
                channel=package.channel,
                file=package.file,
                started=now(),
                result=result,
                reason=reason,
                log="",
                machine="here",
            )

        for result, reason in (("passed", ""), ("failed", "its tests failed")):
            ledger.record_test(tested(result, reason))
        run = publish(gpu_feedstock, str(tmp_path / "channel"), BUILT)
        assert run.returncode == 1
        assert f"{package.file} was rejected by the last `test`: its tests failed" in run.stderr
        ledger.record_test(tested("passed"))
    assert publish(gpu_feedstock, str(tmp_path / "channel"), BUILT).returncode == 0


def test_stand_in_builds_stay_on_the_machine(gpu_feedstock: TinyFeedstock) -> None:
    with sqlite3.connect(gpu_feedstock.artifacts / "ledger.sqlite") as ledger:
        ledger.execute("UPDATE builds SET marks = ?", (json.dumps({"channel": "stand-in"}),))
    run = publish(gpu_feedstock, "prefix:mine", BUILT)
    assert run.returncode == 2
    assert "cannot leave this machine" in run.stderr


@pytest.mark.parametrize("kind", sorted(SPOKEN))
def test_a_service_gets_what_an_interrupted_run_left(kind: str, gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    with served(kind, tmp_path / "served") as service:
        arguments = (f"{kind}:mine", BUILT, "--server", service.url, "--json")
        service.limit = 1
        first = publish(gpu_feedstock, *arguments, **{KEYS[kind]: KEY})
        assert first.returncode == 1
        assert "refused" in first.stderr
        service.limit = None
        assert results(publish(gpu_feedstock, *arguments, **{KEYS[kind]: KEY})) == {"there", "published"}
        assert sorted(service.received) == gpu_feedstock.packages()
        assert {key.removeprefix("Bearer ").removeprefix("token ") for key in service.keys} == {KEY}
        assert KEY not in first.stdout + first.stderr


@pytest.mark.parametrize(
    ("kind", "same", "shown", "status", "said"),
    [
        ("anaconda", True, True, 0, "  there\n"),
        ("quetz", True, True, 0, "  there\n"),
        ("quetz", False, True, 1, "has a different package of this name"),
        ("prefix", True, False, 0, "there, not verified"),
        ("quetz", True, False, 1, "refused"),  # whose answer does not get through rattler-build
    ],
)
def test_a_name_that_a_service_has_and_does_not_list_yet(
    kind: str, same: bool, shown: bool, status: int, said: str, gpu_feedstock: TinyFeedstock, tmp_path: Path
) -> None:
    (tmp_path / "served").mkdir()
    built = next(gpu_feedstock.artifacts.glob(f"{HERE.subdir}/*.conda"))
    other = write_package(tmp_path, read_package(built), [PackageFile("other", b"")])
    with served(kind, tmp_path / "served") as service:
        service.packages[built.name] = (built if same else other).read_bytes()
        service.listing, service.shown = False, shown
        run = publish(gpu_feedstock, f"{kind}:mine", BUILT, "--server", service.url, **{KEYS[kind]: KEY})
    assert run.returncode == status, run.stderr
    assert said in run.stdout + run.stderr


def test_a_server_that_wants_a_password_gets_it_from_its_url(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    with served("quetz", tmp_path / "served") as service:
        service.login = "me:wo@rd-that-nobody-sees"
        guarded = service.url.replace("://", "://me:wo%40rd-that-nobody-sees@")
        runs = [
            publish(gpu_feedstock, "quetz:mine", BUILT, "--server", server, "--json", QUETZ_API_KEY=KEY)
            for server in (service.url, guarded, guarded)
        ]
    assert (runs[0].returncode, "401" in runs[0].stderr) == (1, True), runs[0].stderr
    assert [results(run) for run in runs[1:]] == [{"published"}, {"there"}]
    assert service.keys == {KEY}
    said = "".join(run.stdout + run.stderr for run in runs)
    assert not any(secret in said for secret in (KEY, "rd-that-nobody-sees"))
    ledger = (gpu_feedstock.artifacts / "ledger.sqlite").read_bytes()
    assert b"rd-that-nobody-sees" not in ledger


def test_a_library_call_shows_no_password_of_a_server(tmp_path: Path) -> None:
    target = parse_target("prefix:mine", "http://me:word-nobody-sees@127.0.0.1:1", {"PREFIX_API_KEY": KEY}, tmp_path)
    assert "nobody-sees" not in repr(target)
    with pytest.raises(WorkError) as caught:
        target.there(["noarch/a-1-0.conda"])
    assert "nobody-sees" not in str(caught.value)


def test_a_service_needs_a_key(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    with served("prefix", tmp_path / "served") as service:
        run = publish(gpu_feedstock, "prefix:mine", BUILT, "--server", service.url, HOME=str(tmp_path))
    assert run.returncode == 1
    assert "API key" in run.stderr


@pytest.mark.slow
def test_s3_becomes_a_channel(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    import boto3
    from moto.server import ThreadedMotoServer  # it takes a second

    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    environment = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": KEY, "AWS_DEFAULT_REGION": "us-east-1"}
    try:
        client = boto3.client(
            "s3",
            endpoint_url=f"http://{host}:{port}",
            aws_access_key_id="me",
            aws_secret_access_key=KEY,
            region_name="us-east-1",
        )
        client.create_bucket(Bucket="packages")
        arguments = ("s3://packages/mine", BUILT, "--server", f"http://{host}:{port}", "--json")
        assert results(publish(gpu_feedstock, *arguments, **environment)) == {"published"}
        assert results(publish(gpu_feedstock, *arguments, **environment)) == {"there"}
        keys = [entry["Key"] for entry in client.list_objects_v2(Bucket="packages")["Contents"]]
        (first, *_) = [key for key in keys if key.endswith(".conda")]
        content = client.get_object(Bucket="packages", Key=first)["Body"].read()
        client.put_object(Bucket="packages", Key=first, Body=content)  # as another tool would, without its hash
        assert results(publish(gpu_feedstock, *arguments, **environment)) == {"there"}
        for left in (first, f"mine/{HERE.subdir}/repodata.json"):  # as a run leaves it that was cut off before these
            client.delete_object(Bucket="packages", Key=left)
        assert results(publish(gpu_feedstock, *arguments, **environment)) == {"published", "there"}
        body = client.get_object(Bucket="packages", Key=f"mine/{HERE.subdir}/repodata.json")["Body"].read()
        client.put_object(Bucket="packages", Key=first, Body=b"another")
        other = publish(gpu_feedstock, *arguments, **environment)
    finally:
        server.stop()
    here = [name for name in gpu_feedstock.packages() if f"mine/{HERE.subdir}/{name}" in keys]
    assert here
    assert other.returncode == 1
    assert f"different packages with these names: {first.removeprefix('mine/')}" in other.stderr
    assert KEY not in other.stdout + other.stderr
    assert sorted(json.loads(body)["packages.conda"]) == here
    assert "mine/noarch/repodata.json" in keys


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("ftp://somewhere/else", "cannot publish to"),
        ("conda:mine", "cannot publish to"),
        ("s3://", "names no bucket"),
        ("quetz:mine", "needs the server's URL"),
        ("prefix:", "names no channel"),
        ("prefix:a/b", "names no channel"),
    ],
)
def test_a_target_that_is_none_is_explained(target: str, said: str, gpu_feedstock: TinyFeedstock) -> None:
    run = publish(gpu_feedstock, target, BUILT)
    assert run.returncode == 2
    assert said in run.stderr
    assert "Traceback" not in run.stderr
