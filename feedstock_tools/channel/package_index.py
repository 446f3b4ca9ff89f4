"""The newest source archive of a project in a Python package index: its address, its hash and its texts.

An index is read by its simple API, as JSON or HTML (PEP 691, PEP 503). What it answers is untrusted: sizes are limited,
hashes are checked, and of an archive only texts are unpacked.
"""

from __future__ import annotations

import gzip
import json
import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from feedstock_tools.channel.http import NoAnswerError, ask
from feedstock_tools.channel.pip import index_urls
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.reading import read_bytes
from feedstock_tools.redaction import without_credentials
from feedstock_tools.versions import InvalidVersionError, normalized, parse_version

_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.2"
_SECONDS = 30
_DOWNLOAD_SECONDS = 300
#: Bytes of an index's page of a project, and of an archive.
_LARGEST_PAGE, _LARGEST_ARCHIVE = 64 << 20, 256 << 20
#: Limits of an archive: entries, bytes of all of them together, bytes of one text.
_MOST_ENTRIES, _LARGEST_CONTENT, _LARGEST_TEXT = 100_000, 4 << 30, 1 << 20
_ENDINGS = (".tar.gz", ".zip")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FILES_OF_PYPI = "files.pythonhosted.org"
#: The addresses of source archives that PyPI answers with the files' own; the first is today's.
_ON_PYPI = re.compile(
    r"https://(?:pypi\.org|pypi\.io|pypi\.python\.org|files\.pythonhosted\.org)/packages/source/\w/([\w.-]+)/([\w.+-]+)"
)
_FINAL = re.compile(r"[0-9]+(\.[0-9]+)*(\.post[0-9]+)?")
_TEXTS = re.compile(
    r"(PKG-INFO|pyproject\.toml|setup\.cfg|[^/]+\.py|meson\.build|(LICEN[CS]E|COPYING)[^/]*|"
    r"(.*/)?(CMakeLists\.txt|[^/]*\.egg-info/top_level\.txt|[^/]+\.pyx))"
)
_NAMES = re.compile(
    r".*(/__init__\.py|\.(c|cc|cpp|cxx|cu|f|f90|F90|rs))|(.*/)?[^/]*((?i:LICEN[CS]E|COPYING|NOTICE|COPYRIGHT))[^/]*"
)


@dataclass(frozen=True, slots=True)
class SourceArchive:
    """A source archive of a release: the project's name, the version, the address and the hash."""

    name: str
    version: str
    url: str
    sha256: str
    #: The address with `{version}` in it that does not change its form with the version: PyPI's, or one that answers.
    template: str | None = None


def newest_source(name: str, machine: Mapping[str, str], version: str | None = None) -> SourceArchive:
    """The source archive of a project's newest final release, or of a version, in the indexes of pip.

    Raises:
        InputError: no index has the project, or it has no such archive.
        WorkError: an index does not answer, or not as an index does.
    """
    normal = normalized(name)
    for index in index_urls(machine):
        files = _files(index, normal)
        if files is None:
            continue
        archives = [archive for archive in _archives(files, normal) if version in (None, archive.version)]
        if not archives:
            wanted = f"version {version}" if version else "final release"
            hint = "Name a folder or the git address of the project instead."
            raise InputError(f"the package index has no source archive of {name}, {wanted}", hint=hint)
        newest = max(archives, key=lambda archive: parse_version(archive.version))
        return SourceArchive(normal, newest.version, newest.url, newest.sha256, _template(index, normal, newest))
    hint = "Name a folder, the address of a git repository (https://…, file://…), or a project of the package index."
    raise InputError(f"there is no folder '{name}', and no such project in the package index", hint=hint)


def is_source_of_pypi(address: str) -> bool:
    """Whether PyPI leads from an address to the file of a source archive."""
    return _ON_PYPI.fullmatch(address) is not None


def listed_source(address: str, machine: Mapping[str, str]) -> SourceArchive | None:
    """Where pip's indexes have the source archive that has such an address on PyPI; None for other files.

    `https://pypi.org/packages/source/d/demo/demo-1.0.tar.gz` leads to a file whose own address nothing tells but an
    index; a mirror has that alone.

    Raises:
        WorkError: an index does not answer, or not as an index does.
    """
    if (found := _ON_PYPI.fullmatch(address)) is None:
        return None
    for index in index_urls(machine):
        for url, digest in _files(index, normalized(found[1])) or ():
            if _file_name(url) == found[2] and _SHA256.fullmatch(digest):
                return SourceArchive(normalized(found[1]), "", url, digest)
    return None


def _files(index: str, name: str) -> list[tuple[str, str]] | None:
    """Address and SHA-256 of each file of a project that is not yanked; None if the index does not have it."""
    page = f"{index.rstrip('/')}/{name}/"
    if urlsplit(index).scheme == "file":
        folder = Path(unquote(urlsplit(page).path))
        if not (folder / "index.html").is_file():
            return None
        return _of_html((folder / "index.html").read_text(encoding="utf-8", errors="replace"), page)
    try:
        reply = ask(page, seconds=_SECONDS, largest=_LARGEST_PAGE, headers={"Accept": _ACCEPT})
    except NoAnswerError as error:
        hint = "Name a folder or a git address instead, or look at `pip config list`."
        raise WorkError(f"the package index {without_credentials(index)} cannot be read: {error}", hint=hint) from error
    if reply.status == 404:
        return None
    if reply.status != 200:
        raise WorkError(f"the package index {without_credentials(index)} answers with {reply.status}")
    text = reply.content.decode("utf-8", errors="replace")
    try:
        return (
            _of_json(json.loads(text), page)
            if "json" in reply.headers.get("content-type", "")
            else _of_html(text, page)
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise WorkError(f"the package index {without_credentials(index)} does not answer as one (PEP 691)") from error


def _of_json(document: Any, page: str) -> list[tuple[str, str]]:
    return [
        (urljoin(page, str(file["url"])), str(file["hashes"].get("sha256", "")))
        for file in document["files"]
        if not file.get("yanked")
    ]


def _of_html(text: str, page: str) -> list[tuple[str, str]]:
    parser = _Anchors()
    parser.feed(text)
    links = [urldefrag(urljoin(page, address)) for address in parser.addresses]
    return [(url, fragment.removeprefix("sha256=")) for url, fragment in links]


class _Anchors(HTMLParser):
    """The links of a page of an index, without those of yanked files."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "a" and "data-yanked" not in attributes and (address := attributes.get("href")):
            self.addresses.append(address)


def _archives(files: Iterable[tuple[str, str]], name: str) -> Iterator[SourceArchive]:
    for url, digest in files:
        file = _file_name(url)
        ending = next((ending for ending in _ENDINGS if file.endswith(ending)), None)
        stem, _, version = file.removesuffix(ending or "").rpartition("-")
        if ending is None or normalized(stem) != name or not _FINAL.fullmatch(version):
            continue
        try:
            parse_version(version)
        except InvalidVersionError:
            continue
        if _SHA256.fullmatch(digest):
            yield SourceArchive(name, version, url, digest)


def _template(index: str, name: str, archive: SourceArchive) -> str | None:
    """The address that conda-forge uses, `https://pypi.org/packages/source/d/demo/demo-{version}.tar.gz`.

    For a file of another index the same there, if it answers.
    """
    of_pypi = urlsplit(archive.url).hostname == _FILES_OF_PYPI
    root = "https://pypi.org" if of_pypi else without_credentials(index.rstrip("/").removesuffix("/simple"))
    url = f"{root}/packages/source/{name[0]}/{name}/{_file_name(archive.url)}"
    try:
        answers = of_pypi or ask(url, seconds=_SECONDS, method="HEAD").status == 200
    except NoAnswerError:
        answers = False
    return url.replace(f"-{archive.version}.", "-{version}.") if answers else None


def _file_name(url: str) -> str:
    return unquote(PurePosixPath(urlsplit(url).path).name)


def unpack_texts(archive: SourceArchive, folder: Path) -> None:
    """Fetch an archive, check its hash, and unpack what tells about the project; of sources the names alone.

    It comes from the address with `{version}`, if that answers.

    Raises:
        WorkError: it cannot be fetched, has another hash, or is damaged or too large.
    """
    place = folder.with_name(f"{folder.name}.archive")
    fetch_archive(archive, place)
    folder.mkdir()
    try:
        with place.open("rb") as stream:
            for name, read in _members(archive, stream):
                inside = name.partition("/")[2]
                target = folder / inside
                is_text = _TEXTS.fullmatch(inside) is not None
                if (is_text or _NAMES.fullmatch(inside)) and ".." not in target.parts and len(inside) < 200:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(read() if is_text else b"")
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, ValueError, RuntimeError) as error:
        raise WorkError(f"cannot read the source archive: {error}", path=Path(urlsplit(archive.url).path)) from error


def fetch_archive(archive: SourceArchive, place: Path) -> None:
    """Fetch an archive into a file, and check its hash.

    Raises:
        WorkError: it cannot be fetched, or has another hash.
    """
    if urlsplit(archive.url).scheme == "file":
        place.write_bytes(read_bytes(Path(unquote(urlsplit(archive.url).path)), _LARGEST_ARCHIVE, within=None))
        url = archive.url
    else:
        template = archive.template.format(version=archive.version) if archive.template else archive.url
        url = next((each for each in (template, archive.url) if not (reason := _why_not_fetched(each, place))), "")
        if not url:
            raise WorkError(f"{without_credentials(archive.url)} cannot be fetched: {reason}")
    digest = sha256_of(place)
    if digest != archive.sha256:
        raise WorkError(f"{without_credentials(url)} has another SHA-256 ({digest}) than the index says")


def _why_not_fetched(url: str, place: Path) -> str:
    """Fetch a file; the reason if that fails."""
    try:
        with place.open("wb") as stream:
            status = ask(url, seconds=_DOWNLOAD_SECONDS, largest=_LARGEST_ARCHIVE, take=stream.write).status
    except NoAnswerError as error:
        return str(error)
    return "" if status == HTTPStatus.OK else f"the server answers with {status}"


def _members(archive: SourceArchive, stream: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """Name and reader of each file of an archive, up to the limits."""
    count = size = 0
    for name, bytes_of, read in _of_zip(stream) if archive.url.endswith(".zip") else _of_tar(stream):
        count, size = count + 1, size + bytes_of
        if count > _MOST_ENTRIES or size > _LARGEST_CONTENT:
            raise ValueError("it unpacks to more than a source archive has")
        yield name, read


def _of_zip(stream: IO[bytes]) -> Iterator[tuple[str, int, Any]]:
    with zipfile.ZipFile(stream) as opened:
        for member in opened.infolist():
            if not member.is_dir():

                def read(member: zipfile.ZipInfo = member) -> bytes:
                    with opened.open(member) as file:
                        return file.read(_LARGEST_TEXT)

                yield member.filename, member.file_size, read


class _Unzipped(gzip.GzipFile):
    """A compressed stream that gives no part in one piece that is larger than any header or text."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= 2 * _LARGEST_TEXT:
            raise ValueError("a header in it is too large")
        return super().read(size)


def _of_tar(stream: IO[bytes]) -> Iterator[tuple[str, int, Any]]:
    with _Unzipped(fileobj=stream, mode="rb") as unzipped, tarfile.open(fileobj=unzipped, mode="r:") as opened:
        for member in opened:
            if member.isfile():

                def read(member: tarfile.TarInfo = member) -> bytes:
                    file = opened.extractfile(member)
                    return file.read(_LARGEST_TEXT) if file else b""

                yield member.name, member.size, read
