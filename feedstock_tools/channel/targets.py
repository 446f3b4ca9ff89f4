"""Targets for publishing packages: a folder, an S3 bucket, anaconda.org, prefix.dev, a quetz server.

Credentials come from the same places as for those services' own tools: environment variables, `RATTLER_AUTH_FILE` and
the keyring (read by rattler), and for S3 those of every AWS program. They are passed on and stored nowhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from feedstock_tools.channel.folder import add_packages, complete_index
from feedstock_tools.channel.local import local_folder
from feedstock_tools.channel.properties import STAND_IN
from feedstock_tools.channel.repodata import PUBLIC_HOSTS, read_records
from feedstock_tools.channel.upload.s3 import S3Target
from feedstock_tools.channel.web.asking import NoAnswerError, ask
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.locks import SAID_AFTER, say_wait
from feedstock_tools.redaction import redacted
from feedstock_tools.units import size_text
from feedstock_tools.workers import worker_command

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

    def finish(self) -> None:
        """After the last package: update its index, unless the service does that."""
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
    """Refuse the name of a channel or service that is not written as a target, and would become a folder.

    Raises:
        InputError: it is such a name; the hint says how to write it, if that is known.
    """
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
        """See `Target`."""
        return self.folder.as_uri()

    def there(self, files: Iterable[str]) -> Mapping[str, str | None]:
        """See `Target`: from the files' own bytes."""
        digests: dict[str, str | None] = {}
        for file in files:
            path = self.folder / file
            if not path.exists():
                continue
            try:
                digests[file] = sha256_of(path)
            except OSError as error:
                raise WorkError(f"cannot read: {error.strerror or error}", path=path) from error
        return digests

    def put(self, package: Path, file: str, sha256: str) -> str:
        """See `Target`."""
        add_packages(self.folder, [package], hashes={package: sha256})
        return "published"

    def finish(self) -> None:
        """See `Target`: `put` has updated the index, unless the previous run was killed before it did."""
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
        """See `Target`."""
        return f"{self.kind}:{self.channel}" + (f"/{self.label}" if self.label != "main" else "")

    def there(self, files: Iterable[str]) -> Mapping[str, str | None]:
        """See `Target`: from its repodata, which some services update minutes after an upload."""
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
        """See `Target`. If the service refuses, the file that it serves under this name shows whether it has the
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
        """The end of an upload.

        Raises:
            WorkError: it takes longer than a slow network needs.
        """
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

    def finish(self) -> None:
        """See `Target`: services index uploads themselves."""


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
