"""A channel in an S3 bucket: large packages go there by parts, and an interrupted upload goes on with the next part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import md5
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.locks import named_wait
from feedstock_tools.reading import open_file

#: The metadata key of an S3 object with the hash of its package.
_HASH = "sha256"
#: Bytes of a part; S3 allows 10,000 parts of at least 5 MiB.
_PART = 64 << 20
#: The time limits for connecting and for the next bytes of an answer, in seconds, and the number of attempts.
_CONNECT_SECONDS = 30
_READ_SECONDS = 120
_ATTEMPTS = 4
#: The time limit for reading the metadata of all packages of a bucket, in seconds.
_INDEX_SECONDS = 3600


@dataclass(frozen=True)
class S3Target:
    """A channel in an S3 bucket, at Amazon's or at `server`; one client, which takes 0.15 s to make, asks for all."""

    url: str
    server: str | None
    on_this_machine = False

    @property
    def name(self) -> str:
        """See `Target`."""
        return self.url

    def there(self, files: Iterable[str]) -> Mapping[str, str | None]:
        """See `Target`: from the hash that `put` stores with an object, else by reading it."""
        client, bucket = self._client, urlsplit(self.url).netloc
        digests: dict[str, str | None] = {}
        with _explained(self.url), named_wait(f"{self.url} to list its packages", None):
            for file in files:
                head = _head(client, bucket, self._key(file))
                if head is not None:
                    recorded = head["Metadata"].get(_HASH)
                    digests[file] = recorded or _hash_of_object(client, bucket, self._key(file))
        return digests

    def put(self, package: Path, file: str, sha256: str) -> str:
        """See `Target`: an S3 object is either complete or missing. A large one is continued after an interruption."""
        with _explained(self.url), named_wait(f"{file} to be sent to {self.url}", None):
            target = _Object(self._client, urlsplit(self.url).netloc, self._key(file))
            if package.stat().st_size <= _PART:
                target.client.upload_file(str(package), target.bucket, target.key, ExtraArgs=_metadata(sha256))
            else:
                _upload_by_parts(target, package, sha256)
        return "published"

    def finish(self) -> None:
        """See `Target`: write the repodata of every subdir."""
        from rattler.index import S3Credentials, index_s3

        from feedstock_tools.channel.waiting import wait_for

        client, credentials = self._client, self._session.get_credentials()
        if credentials is None:
            raise WorkError(f"{self.url}: there are no credentials for S3")
        key = credentials.get_frozen_credentials()
        with _explained(self.url):
            s3_credentials = S3Credentials(
                endpoint_url=client.meta.endpoint_url,
                region=client.meta.region_name or "us-east-1",
                access_key_id=key.access_key,
                secret_access_key=key.secret_key,
                session_token=key.token,
                addressing_style="path" if self.server else "virtual-host",
            )
            # A bucket may have no object below noarch/ yet, but a channel needs its repodata.
            index = index_s3(self.url, s3_credentials, write_zst=True, write_shards=False)
            wait_for(index, f"the index of {self.url} to be written", _INDEX_SECONDS)

    def _key(self, file: str) -> str:
        return f"{urlsplit(self.url).path.strip('/')}/{file}".lstrip("/")

    @cached_property
    def _session(self) -> Any:
        try:
            import boto3
        except ImportError as error:
            raise InputError("publishing to S3 needs boto3", hint="pip install 'feedstock-tools[s3]'") from error
        return boto3.session.Session()

    @cached_property
    def _client(self) -> Any:
        session = self._session
        with _explained(self.url):
            from botocore.config import Config

            patient = Config(
                connect_timeout=_CONNECT_SECONDS,
                read_timeout=_READ_SECONDS,
                retries={"max_attempts": _ATTEMPTS, "mode": "standard"},
            )
            return session.client("s3", endpoint_url=self.server, config=patient)


def _head(client: Any, bucket: str, key: str) -> Any:
    """The metadata of an S3 object; None if there is none."""
    from botocore.exceptions import ClientError

    try:
        return client.head_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in ("404", "NoSuchKey", "NotFound"):
            return None
        raise


def _hash_of_object(client: Any, bucket: str, key: str) -> str:
    from hashlib import sha256

    digest = sha256()
    for chunk in client.get_object(Bucket=bucket, Key=key)["Body"].iter_chunks(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class _Object:
    """An object of a bucket, and the client to ask for it."""

    client: Any
    bucket: str
    key: str

    @property
    def place(self) -> dict[str, str]:
        """As arguments of the client."""
        return {"Bucket": self.bucket, "Key": self.key}


def _metadata(sha256: str) -> dict[str, Any]:
    return {"Metadata": {_HASH: sha256}}


def _upload_by_parts(target: _Object, package: Path, sha256: str) -> None:
    """Upload a package; parts that an interrupted upload of the same package has left there are not sent again."""
    upload, uploaded = _begun(target, package)
    if upload is None:
        upload = target.client.create_multipart_upload(**target.place, **_metadata(sha256))["UploadId"]
    sent = []
    for number, part in _parts(package):
        etag = uploaded.get(number)
        if etag is None:
            answer = target.client.upload_part(**target.place, UploadId=upload, PartNumber=number, Body=part)
            etag = answer["ETag"]
        sent.append({"PartNumber": number, "ETag": etag})
    target.client.complete_multipart_upload(**target.place, UploadId=upload, MultipartUpload={"Parts": sent})
    head = target.client.head_object(**target.place)
    if head["Metadata"].get(_HASH) != sha256:  # the upload was begun for another build of this package
        source = {"Bucket": target.bucket, "Key": target.key}
        target.client.copy_object(**target.place, CopySource=source, MetadataDirective="REPLACE", **_metadata(sha256))


def _begun(target: _Object, package: Path) -> tuple[str | None, dict[int, str]]:
    """An interrupted upload all of whose parts are those of a package, with their numbers and tags.

    Other interrupted uploads to the same place are removed: they are of another package, or may be, since they have no
    parts.
    """
    listed = target.client.list_multipart_uploads(Bucket=target.bucket, Prefix=target.key).get("Uploads") or []
    for each in listed:
        if each["Key"] != target.key:
            continue
        upload = each["UploadId"]
        uploaded = {
            part["PartNumber"]: part["ETag"]
            for page in target.client.get_paginator("list_parts").paginate(**target.place, UploadId=upload)
            for part in page.get("Parts") or []
        }
        if _are_of(uploaded, package):
            return upload, uploaded
        target.client.abort_multipart_upload(**target.place, UploadId=upload)
    return None, {}


def _are_of(uploaded: Mapping[int, str], package: Path) -> bool:
    """Whether an upload has parts, and all are those of a package: S3 tags a part with its MD5."""
    if not uploaded:
        return False
    tags = {
        number: md5(part, usedforsecurity=False).hexdigest() for number, part in _parts(package) if number in uploaded
    }
    return tags == {number: etag.strip('"') for number, etag in uploaded.items()}


def _parts(package: Path) -> Iterator[tuple[int, bytes]]:
    """The parts of a package, numbered from 1."""
    with open_file(package, within=None) as stream:
        number = 0
        while part := stream.read(_PART):
            number += 1
            yield number, part


class _explained:  # noqa: N801 - reads as a function at its uses
    """Raise the answer of S3 or the indexer as a `WorkError`; botocore's messages contain no credentials."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, (WorkError, InputError)):
            raise WorkError(f"{self._url}: {error}") from error
