"""Targets for publishing packages: a folder, an S3 bucket, anaconda.org, prefix.dev, a quetz server.

Credentials come from the same places as for those services' own tools: environment variables, `RATTLER_AUTH_FILE` and
the keyring (read by rattler), and for S3 those of every AWS program. They are passed on and stored nowhere. Large
packages go to S3 by parts, and an interrupted upload continues with the next part.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from hashlib import md5, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from feedstock_tools.channel.folder import add_new_package, complete_index, other_form
from feedstock_tools.channel.http import NoAnswerError, ask
from feedstock_tools.channel.properties import STAND_IN, local_folder
from feedstock_tools.channel.repodata import PUBLIC_HOSTS, read_records
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.locks import SAID_AFTER, named_wait, say_wait
from feedstock_tools.processes import worker_command
from feedstock_tools.reading import open_file
from feedstock_tools.redaction import redacted
from feedstock_tools.wording import size_text

if TYPE_CHECKING:
    import subprocess

#: The hint if a target has a different package of the same name.
OTHER_PACKAGE = "Raise the build number, or remove the package there."
#: The time limits of an upload: for the service to answer, and for the package at a slow speed, in seconds and bytes a
#: second.
_ANSWER_SECONDS = 300.0
_SLOWEST = 64 * 1024
#: The time limit for asking a service about one file, or for reading that file at the speed above, in seconds.
_SECONDS = 30.0
_OK = 200

_FORMS = "a folder, file://…, s3://BUCKET/CHANNEL, anaconda:OWNER[/LABEL], prefix:CHANNEL or quetz:CHANNEL"
#: The form of a service's name, known or not; a single letter is a Windows drive.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9.+-]+:")
#: The address of a channel, with or without its scheme: a host contains a dot, or follows a scheme.
_HOST = re.compile(
    r"(?:https?://|(?=[\w-]+(?:\.[\w-]+)+/)|(?=prefix\.dev|anaconda\.org))(?P<host>[\w.-]+)/?(?P<path>.*?)/?"
)
#: Names of channels that are never meant as folders.
_NAMES = frozenset({"conda-forge", "defaults", "bioconda", "nvidia", "pytorch"})
#: The metadata key of an S3 object with the hash of its package.
_HASH = "sha256"
#: The condition that there is no object yet, and S3's answers where there is one, or where one is being written.
_ONLY_NEW = {"IfNoneMatch": "*"}
_LOST = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchUpload", "412", "409")
#: After this time an upload by parts was interrupted; before, another run may be sending them.
_INTERRUPTED_AFTER = timedelta(days=1)
#: Bytes of a part; S3 allows 10,000 parts of at least 5 MiB.
_PART = 64 << 20
#: The time limits for connecting and for the next bytes of an answer, in seconds, and the number of attempts.
_CONNECT_SECONDS = 30
_READ_SECONDS = 120
_ATTEMPTS = 4
#: The time limit for reading the metadata of all packages of a bucket, in seconds.
_INDEX_SECONDS = 3600
#: How often a bucket's index is written until it lists what was published, and up to how many seconds lie between.
_INDEX_ATTEMPTS, _INDEX_PAUSE = 6, 2.0
_ENTRIES = ("packages", "packages.conda")


class Target(Protocol):
    """A channel that packages can be published to."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        ...

    @property
    def on_this_machine(self) -> bool:
        """Whether nobody else can download from it."""
        ...

    def there(self, files: Iterable[str]) -> Mapping[str, str | None]:
        """Which of the given files (`<subdir>/<file name>`) it has, each with its SHA-256; None if it does not report
        hashes.

        Raises:
            WorkError: it cannot be reached.
        """
        ...

    def put(self, package: Path, file: str, sha256: str) -> str:
        """Add a package atomically; returns `published`.

        Returns `there` if the target already has it, and `there, not verified` if it has one of that name and does not
        report its hash.

        Raises:
            WorkError: it cannot be added, or a different one of its name exists; the reason contains no credentials.
        """
        ...

    def finish(self, digests: Mapping[str, str]) -> None:
        """After the last package: update its index, which must list these files with their SHA-256, unless the service
        does that.

        Raises:
            WorkError: it does not list them, or has another package under the name of one.
        """
        ...


def parse_target(text: str, server: str | None, machine: Mapping[str, str], here: Path) -> Target:
    """The target for a name.

    Args:
        text: see the forms in the documentation of `publish`.
        server: the URL of a private server; required for `quetz:`.
        machine: the environment variables with credentials.
        here: the base of relative paths.

    Raises:
        InputError: it is not a target, or needs a server.

    >>> parse_target("s3://packages/ours", None, os.environ, Path.cwd()).name
    's3://packages/ours'
    """
    kind, colon, rest = text.partition(":")
    if kind == "s3" and rest.startswith("//"):
        if not urlsplit(text).netloc:
            raise InputError(f"'{text}' names no bucket", hint="Write s3://BUCKET/CHANNEL.")
        return S3Target(text.rstrip("/"), server)
    if colon and kind in _SERVICES:
        return _service(kind, rest, server, machine)
    if not (here / text).is_dir():
        _refuse_names(text)
    if server:
        raise InputError("--server requires an s3://, anaconda:, prefix: or quetz: target")
    folder = local_folder(text) if kind == "file" else here / text
    if folder is None or (folder.exists() and not folder.is_dir()):
        raise InputError(f"'{text}' is not a folder", hint=f"A target is {_FORMS}.")
    return FolderTarget(folder.resolve())


def _refuse_names(text: str) -> None:
    """Refuse the name of a channel or service that is not written as a target, and would become a folder."""
    if text == STAND_IN.origin:
        hint = "Publish packages built on it to a folder of their own: ./stand-in-builds."
        raise InputError("nothing can be published to the stand-in channel", hint=hint)
    place = _HOST.fullmatch(text)
    if place is not None and place["host"] in PUBLIC_HOSTS:
        channel = place["path"].replace("/label/", "/") or "CHANNEL"
        raise InputError(
            f"'{text}' is the address of a channel", hint=f"Write {PUBLIC_HOSTS[place['host']]}:{channel}."
        )
    if place is not None and "://" not in text:
        raise InputError(f"'{text}' could be a server or a folder", hint=f"For a folder write ./{text}.")
    if text in _NAMES or place is not None or (_SCHEME.match(text) and not text.startswith("file:")):
        raise InputError(f"cannot publish to '{text}'", hint=f"A target is {_FORMS}.")


@dataclass(frozen=True, slots=True)
class FolderTarget:
    """A channel in a folder on this machine."""

    folder: Path
    on_this_machine = True

    @property
    def name(self) -> str:
        return self.folder.as_uri()

    def there(self, files: Iterable[str]) -> Mapping[str, str | None]:
        """From the files' own bytes."""
        digests: dict[str, str | None] = {}
        for file in files:
            path = next((path for form in (file, other_form(file)) if (path := self.folder / form).exists()), None)
            if path is None:
                continue
            try:
                digests[file] = sha256_of(path)
            except OSError as error:
                raise WorkError(f"cannot read: {error.strerror or error}", path=path) from error
        return digests

    def put(self, package: Path, file: str, sha256: str) -> str:
        return "published" if add_new_package(self.folder, package, sha256) else "there"

    def finish(self, digests: Mapping[str, str]) -> None:
        """`put` has updated the index, unless the previous run was killed before it did."""
        complete_index(self.folder)


@dataclass(frozen=True, slots=True)
class _Service:
    """A service that takes uploads over HTTP: its address, and where its own tools find the key.

    Attributes:
        server: the public service; None if there are only private servers.
        keys: environment variables; the first one that is set counts.
        channel: the URL of its packages, from the server, the channel and its label.
    """

    server: str | None
    keys: tuple[str, ...]
    channel: str


_SERVICES = {
    "anaconda": _Service(
        "https://api.anaconda.org", ("ANACONDA_API_TOKEN", "ANACONDA_API_KEY"), "https://conda.anaconda.org/{path}"
    ),
    "prefix": _Service("https://prefix.dev", ("PREFIX_API_KEY",), "{server}/{path}"),
    "quetz": _Service(None, ("QUETZ_API_KEY",), "{server}/get/{path}"),
}


def _service(kind: str, rest: str, server: str | None, machine: Mapping[str, str]) -> ServiceTarget:
    service = _SERVICES[kind]
    channel, _, label = rest.partition("/")
    if not channel or (label and kind != "anaconda") or "/" in label:
        raise InputError(f"'{kind}:{rest}' names no channel", hint=f"A target is {_FORMS}.")
    url = server or service.server
    if url is None:
        raise InputError(f"'{kind}:{rest}' needs the server's URL", hint="Give it with --server URL.")
    key = next((machine[name] for name in service.keys if machine.get(name)), None)
    path = f"{channel}/label/{label}" if label and label != "main" else channel
    read = service.channel.format(server=url.rstrip("/"), path=path)
    if kind == "anaconda" and server:  # a private server serves its channels below /conda
        read = f"{url.rstrip('/')}/conda/{path}"
    return ServiceTarget(kind, url.rstrip("/"), channel, label or "main", read, key, machine.get("RATTLER_AUTH_FILE"))


@dataclass(frozen=True, slots=True)
class ServiceTarget:
    """A channel of a service; rattler-build does the uploads. `read` is the URL of its packages."""

    kind: str
    server: str = field(repr=False)
    channel: str
    label: str
    read: str = field(repr=False)
    key: str | None = field(default=None, repr=False)
    auth_file: str | None = None
    on_this_machine = False

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.channel}" + (f"/{self.label}" if self.label != "main" else "")

    def there(self, files: Iterable[str]) -> Mapping[str, str | None]:
        """From its repodata, which some services update minutes after an upload."""
        wanted = frozenset(files)
        subdirs = sorted({file.partition("/")[0] for file in wanted} | {"noarch"})
        try:
            records = read_records(self.read, subdirs)
        except WorkError as error:
            if "repodata not found" in str(error) or "404" in str(error):
                return {}  # nothing has been uploaded yet
            raise
        listed = {f"{record.subdir}/{record.file_name}": record.sha256 for record in records}
        return {file: listed[file] for file in wanted if file in listed}

    def put(self, package: Path, file: str, sha256: str) -> str:
        """If the service refuses, the file that it serves under this name shows whether it has the
        package."""
        order = {
            "kind": self.kind,
            "package": str(package),
            "server": self.server,
            "channel": self.channel,
            "label": self.label,
            "key": self.key,
            "auth_file": self.auth_file,
        }
        command = worker_command("feedstock_tools.channel.upload_worker")
        done = self._uploaded(command, json.dumps(order), package.stat().st_size)
        if done.returncode == 0:
            return "published"
        served = _served(f"{self.read}/{file}", package.stat().st_size)
        if served == sha256:
            return "there"
        if served is not None:
            raise WorkError(f"{self.name} has a different package of this name: {file}", hint=OTHER_PACKAGE)
        reason = redacted(done.stdout.strip()) or f"the upload ended with status {done.returncode}"
        if "already exists" in reason:
            return "there, not verified"
        raise WorkError(f"{self.name} refused {file}: {reason}")

    def _uploaded(self, command: Sequence[str], order: str, size: int) -> subprocess.CompletedProcess[str]:
        import subprocess

        seconds = _ANSWER_SECONDS + size / _SLOWEST
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with process:
            try:
                try:
                    output, _ = process.communicate(order, timeout=min(SAID_AFTER, seconds))
                except subprocess.TimeoutExpired:
                    say_wait(f"{self.name} to take a package of {size_text(size)}", seconds)
                    output, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired as error:
                hint = "Run the command again: packages that have arrived are left alone."
                raise WorkError(f"{self.name} has not taken a package within {seconds:.0f} s", hint=hint) from error
            finally:
                process.kill()
        return subprocess.CompletedProcess(command, process.returncode, output)

    def finish(self, digests: Mapping[str, str]) -> None:
        """Services index uploads themselves."""


def _served(url: str, size: int) -> str | None:
    """The SHA-256 of the file at a URL; None if there is none, or if it has more than `size` bytes.

    A larger file is another one, whatever its hash.
    """
    digest = sha256()
    try:
        reply = ask(url, seconds=_SECONDS + size / _SLOWEST, largest=size, take=digest.update)
    except NoAnswerError as error:
        return "" if error.too_much else None
    return digest.hexdigest() if reply.status == _OK else None


@dataclass(frozen=True)
class S3Target:
    """A channel in an S3 bucket, at Amazon's or at `server`; one client, which takes 0.15 s to make, asks for all."""

    url: str
    server: str | None
    on_this_machine = False

    @property
    def name(self) -> str:
        return self.url

    def there(self, files: Iterable[str]) -> Mapping[str, str | None]:
        """From the hash that `put` stores with an object, else by reading it."""
        digests: dict[str, str | None] = {}
        with _explained(self.url), named_wait(f"{self.url} to list its packages", None):
            for file in files:
                target = self._object(file)
                head = _head(target)
                if head is None:
                    target = self._object(other_form(file))
                    head = _head(target)
                if head is not None:
                    digests[file] = head["Metadata"].get(_HASH) or _hash_of_object(target)
        return digests

    def put(self, package: Path, file: str, sha256: str) -> str:
        """An S3 object is either complete or missing. A large one is continued after an interruption."""
        with _explained(self.url), named_wait(f"{file} to be sent to {self.url}", None):
            target = self._object(file)
            try:
                if package.stat().st_size <= _PART:
                    with open_file(package, within=None) as body:
                        target.client.put_object(**target.place, Body=body, **_ONLY_NEW, **_metadata(sha256))
                else:
                    _upload_by_parts(target, package, sha256)
            except Exception as error:
                if _code_of(error) not in _LOST:
                    raise
                head = _head(target)  # another run has put one there since `there`
                if head is None:
                    message = f"{self.url}: another run is publishing {file}"
                    raise WorkError(message, hint="Run the command again.") from error
                if (head["Metadata"].get(_HASH) or _hash_of_object(target)) != sha256:
                    message = f"{self.url} has a different package of this name, which another run published: {file}"
                    raise WorkError(message, hint=OTHER_PACKAGE) from error
                return "there"
        return "published"

    def finish(self, digests: Mapping[str, str]) -> None:
        """Write the repodata of every subdir, again if another run has written it without these files meanwhile.

        A service that does not check and write in one step may have let another run replace a package since `put`.
        """
        anew = False
        for left in reversed(range(_INDEX_ATTEMPTS)):
            try:
                self._index(anew=anew)
            except WorkError:  # the indexer overwrites no repodata that has changed since it was read
                if not left:
                    raise
            replaced = [file for file, digest in self.there(digests).items() if digest != digests[file]]
            if replaced:
                message = f"{self.url} has different packages, with which another run replaced these: "
                raise WorkError(message + ", ".join(replaced), hint=OTHER_PACKAGE)
            listed = self._listed({file.partition("/")[0] for file in digests})
            missing = [file for file, digest in digests.items() if listed.get(file) != digest]
            if not missing:
                return
            anew = any(file in listed for file in missing)  # otherwise the indexer keeps what it has of a name
            time.sleep(random.uniform(0, _INDEX_PAUSE))  # noqa: S311 - two runs must not meet again
        raise WorkError(f"{self.url}: its index lacks {', '.join(missing)}", hint="Run the command again.")

    def _listed(self, subdirs: Iterable[str]) -> Mapping[str, str | None]:
        """The files in the repodata of subdirs, with their SHA-256."""
        found: dict[str, str | None] = {}
        with _explained(self.url):
            for subdir in subdirs:
                target = self._object(f"{subdir}/repodata.json")
                if _head(target) is not None:
                    document = json.loads(target.client.get_object(**target.place)["Body"].read())
                    entries = [each for key in _ENTRIES for each in (document.get(key) or {}).items()]
                    found |= {f"{subdir}/{name}": entry.get("sha256") for name, entry in entries}
        return found

    def _index(self, *, anew: bool) -> None:
        from rattler.index import S3Credentials, index_s3

        from feedstock_tools.channel.calls import wait_for

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
            index = index_s3(self.url, s3_credentials, write_zst=True, write_shards=False, force=anew)
            wait_for(index, f"the index of {self.url} to be written", _INDEX_SECONDS)

    def _object(self, file: str) -> _Object:
        url = urlsplit(self.url)
        return _Object(self._client, url.netloc, f"{url.path.strip('/')}/{file}".lstrip("/"))

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


def _head(target: _Object) -> Any:
    """The metadata of an S3 object; None if there is none."""
    try:
        return target.client.head_object(**target.place)
    except Exception as error:
        if _code_of(error) in ("404", "NoSuchKey", "NotFound"):
            return None
        raise


def _code_of(error: Exception) -> str | None:
    """The code in an answer of S3; None of any other error."""
    from botocore.exceptions import ClientError

    return error.response.get("Error", {}).get("Code") if isinstance(error, ClientError) else None


def _hash_of_object(target: _Object) -> str:
    digest = sha256()
    for chunk in target.client.get_object(**target.place)["Body"].iter_chunks(1 << 20):
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
    whole = {"UploadId": upload, "MultipartUpload": {"Parts": sent}}
    target.client.complete_multipart_upload(**target.place, **whole, **_ONLY_NEW)
    head = target.client.head_object(**target.place)
    if head["Metadata"].get(_HASH) != sha256:  # the upload was begun for another build of this package
        replaced = {"CopySource": target.place, "MetadataDirective": "REPLACE", **_metadata(sha256)}
        target.client.copy_object(**target.place, **replaced)


def _begun(target: _Object, package: Path) -> tuple[str | None, dict[int, str]]:
    """An upload all of whose parts are those of a package, with their numbers and tags.

    Others to the same place are removed once they are old: they are of another package, or may be, since they have no
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
        if datetime.now(UTC) - each["Initiated"] > _INTERRUPTED_AFTER:
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


@contextmanager
def _explained(url: str) -> Iterator[None]:
    """Raise the answer of S3 or the indexer as a `WorkError`; botocore's messages contain no credentials."""
    try:
        yield
    except (WorkError, InputError):
        raise
    except Exception as error:  # boto3 and the indexer raise several kinds
        raise WorkError(f"{url}: {error}") from error
