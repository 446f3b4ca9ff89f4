"""Uploads to S3: an interrupted one continues with the next part, and of two at once none is lost."""

# ruff: noqa: N803 - the names of S3's own arguments

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import md5
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from botocore.exceptions import ClientError

from feedstock_tools.channel import targets
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.targets import S3Target, _Object, _upload_by_parts
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import WorkError

PART = 100


class Bucket:
    """As much of S3 as an upload by parts needs.

    `left`: how many parts arrive before the connection is lost. `age`: that of all uploads. `meanwhile`: what another
    run does when the next part has arrived.
    """

    def __init__(self, left: int = 1000) -> None:
        self.left = left
        self.age = timedelta(days=2)
        self.meanwhile: list[Callable[[], object]] = []
        self.sent: list[int] = []
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.metadata: dict[str, dict[str, str]] = {}
        self.objects: dict[str, tuple[bytes, dict[str, str]]] = {}

    def create_multipart_upload(self, Bucket: str, Key: str, Metadata: dict[str, str]) -> dict[str, str]:
        name = f"{Key} {len(self.metadata)}"
        self.uploads[name], self.metadata[name] = {}, Metadata
        return {"UploadId": name}

    def list_multipart_uploads(self, Bucket: str, Prefix: str) -> dict[str, Any]:
        begun = datetime.now(UTC) - self.age
        return {"Uploads": [{"Key": name.split()[0], "UploadId": name, "Initiated": begun} for name in self.uploads]}

    def get_paginator(self, name: str) -> Bucket:
        assert name == "list_parts"
        return self

    def paginate(self, Bucket: str, Key: str, UploadId: str) -> list[dict[str, Any]]:
        return [
            {"Parts": [{"PartNumber": number, "ETag": tag(part)}]} for number, part in self.uploads[UploadId].items()
        ]

    def upload_part(self, Bucket: str, Key: str, UploadId: str, PartNumber: int, Body: bytes) -> dict[str, str]:
        if not self.left:
            raise OSError("the connection is lost")
        self.left -= 1
        self.sent.append(PartNumber)
        self._upload(UploadId)[PartNumber] = Body
        if self.meanwhile:
            self.meanwhile.pop()()
        return {"ETag": tag(Body)}

    def abort_multipart_upload(self, Bucket: str, Key: str, UploadId: str) -> None:
        del self.uploads[UploadId]

    def complete_multipart_upload(
        self, Bucket: str, Key: str, UploadId: str, MultipartUpload: Any, IfNoneMatch: str
    ) -> None:
        assert IfNoneMatch == "*"
        parts = self._upload(UploadId)
        del self.uploads[UploadId]
        assert [each["PartNumber"] for each in MultipartUpload["Parts"]] == sorted(parts)
        content = b"".join(parts[number] for number in sorted(parts))
        self.objects[Key] = content, self.metadata[UploadId]

    def _upload(self, name: str) -> dict[int, bytes]:
        if name not in self.uploads:
            raise ClientError({"Error": {"Code": "NoSuchUpload"}}, "UploadPart")
        return self.uploads[name]

    def head_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        return {"Metadata": self.objects[Key][1]}

    def copy_object(self, Bucket: str, Key: str, Metadata: dict[str, str], **_: Any) -> None:
        self.objects[Key] = self.objects[Key][0], Metadata


@pytest.mark.slow
def test_of_two_runs_at_once_none_loses_a_package_unknowingly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from moto.server import ThreadedMotoServer  # it takes a second

    for name, value in {"ACCESS_KEY_ID": "me", "SECRET_ACCESS_KEY": "key", "DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setattr(targets, "_PART", 5 << 20)
    packages = {name: write_package(tmp_path / name, PackageMetadata(name, "1", "0", 0, "noarch")) for name in "abcd"}
    small, large = (
        write_package(
            tmp_path / str(size), PackageMetadata("a", "1", "0", 0, "noarch"), [PackageFile("a", bytes(size))]
        )
        for size in (1, 6 << 20)
    )
    server = ThreadedMotoServer(port=0)
    server.start()
    try:
        url = "http://{}:{}".format(*server.get_host_and_port())
        runs = [S3Target("s3://packages/mine", url) for _ in packages]
        runs[0]._client.create_bucket(Bucket="packages")
        assert runs[0].there(["noarch/a-1-0.conda"]) == {}  # what all saw before they began
        barrier = Barrier(len(runs))

        def publish(run: S3Target, package: Path) -> str:
            barrier.wait()
            result = run.put(package, f"noarch/{package.name}", sha256_of(package))
            run.finish({f"noarch/{package.name}": sha256_of(package)})
            return result

        with ThreadPoolExecutor(len(runs)) as pool:
            assert set(pool.map(publish, runs, packages.values())) == {"published"}
        assert runs[1].put(packages["a"], "noarch/a-1-0.conda", sha256_of(packages["a"])) == "there"
        for other in (small, large):  # in one request, and by parts
            with pytest.raises(WorkError, match="a different package of this name, which another run published"):
                runs[2].put(other, "noarch/a-1-0.conda", sha256_of(other))
        listed = {f"noarch/{each.name}": sha256_of(each) for each in packages.values()}
        assert runs[3]._listed(["noarch"]) == listed
        place = runs[3]._object("noarch/a-1-0.conda").place
        client = runs[3]._client  # a service that writes in spite of the condition
        client.put_object(**place, Body=small.read_bytes(), Metadata={"sha256": sha256_of(small)})
        with pytest.raises(WorkError, match="with which another run replaced these: noarch/a-1"):
            runs[0].finish(listed)
        replaced = {"noarch/a-1-0.conda": sha256_of(small)}
        runs[2].finish(replaced)
        assert runs[3]._listed(["noarch"]) == {**listed, **replaced}
    finally:
        server.stop()


def tag(part: bytes) -> str:
    return f'"{md5(part, usedforsecurity=False).hexdigest()}"'


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "_PART", PART)


def upload(bucket: Bucket, package: Path, sha256: str = "abc") -> None:
    _upload_by_parts(_Object(bucket, "packages", "mine/a.conda"), package, sha256)


def test_an_interrupted_upload_continues_with_the_next_part(tmp_path: Path) -> None:
    package = tmp_path / "a.conda"
    package.write_bytes(bytes(range(250)) * 2)
    bucket = Bucket(left=3)
    with pytest.raises(OSError, match="lost"):
        upload(bucket, package)
    bucket.left = 1000
    upload(bucket, package)
    assert bucket.sent == [1, 2, 3, 4, 5]
    assert bucket.objects["mine/a.conda"] == (package.read_bytes(), {"sha256": "abc"})
    assert not bucket.uploads


def test_the_parts_of_another_package_are_not_taken(tmp_path: Path) -> None:
    package = tmp_path / "a.conda"
    package.write_bytes(b"a" * 250)
    bucket = Bucket(left=1)
    with pytest.raises(OSError, match="lost"):
        upload(bucket, package)
    bucket.left = 1000
    package.write_bytes(b"b" * 250)
    upload(bucket, package, "def")
    assert bucket.objects["mine/a.conda"] == (b"b" * 250, {"sha256": "def"})
    assert not bucket.uploads


def test_an_upload_without_parts_is_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been begun for another build, with whose hash the object would appear."""
    package = tmp_path / "a.conda"
    package.write_bytes(b"a" * 250)
    bucket = Bucket(left=0)
    with pytest.raises(OSError, match="lost"):
        upload(bucket, package)
    bucket.left = 1000
    monkeypatch.delattr(Bucket, "copy_object")  # which would set the right hash later
    package.write_bytes(b"b" * 250)
    upload(bucket, package, "def")
    assert bucket.objects["mine/a.conda"] == (b"b" * 250, {"sha256": "def"})
    assert not bucket.uploads


@pytest.mark.parametrize("content", [b"a", b"b"], ids=["the same", "another"])
def test_an_upload_of_another_run_goes_on(content: bytes, tmp_path: Path) -> None:
    """Of two runs that send a package of one name at once, the second takes nothing away from the first."""
    first, second = (tmp_path / name for name in ("a.conda", "b.conda"))
    first.write_bytes(b"a" * 250)
    second.write_bytes(content * 250)
    bucket = Bucket()
    bucket.age = timedelta(minutes=5)
    bucket.meanwhile.append(lambda: upload(bucket, second, "def"))
    with suppress(ClientError):  # the second was faster with the same parts
        upload(bucket, first)
    assert bucket.objects["mine/a.conda"][0] in (first.read_bytes(), second.read_bytes())
    assert len(bucket.uploads) == 0


@pytest.mark.parametrize(("is_there", "said"), [(True, "a different package of this name"), (False, "another run is")])
def test_who_loses_a_race_is_told(is_there: bool, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lost:
        def __getattr__(self, name: str) -> Callable[..., Any]:
            def call(**_: Any) -> dict[str, Any]:
                if name == "head_object" and is_there:
                    return {"Metadata": {"sha256": "of another"}}
                code = "404" if name == "head_object" else "NoSuchUpload"
                raise ClientError({"Error": {"Code": code}}, name)

            return call

    package = tmp_path / "a.conda"
    package.write_bytes(b"a" * 250)
    monkeypatch.setattr(S3Target, "_client", Lost())
    with pytest.raises(WorkError, match=said):
        S3Target("s3://packages/mine", None).put(package, "noarch/a.conda", "abc")


def test_a_package_with_another_end_gets_its_own_hash(tmp_path: Path) -> None:
    package = tmp_path / "a.conda"
    package.write_bytes(b"a" * 250)
    bucket = Bucket(left=1)
    with pytest.raises(OSError, match="lost"):
        upload(bucket, package)
    bucket.left = 1000
    package.write_bytes(b"a" * 100 + b"b" * 150)
    upload(bucket, package, "def")
    assert bucket.objects["mine/a.conda"] == (package.read_bytes(), {"sha256": "def"})
