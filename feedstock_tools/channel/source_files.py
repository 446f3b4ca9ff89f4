"""Sources as upstream serves them: their hash, and the one that upstream publishes beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import file_digest, new
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote, urlsplit

from feedstock_tools.channel.http import NoAnswerError, ask
from feedstock_tools.channel.package_index import SourceArchive, fetch_archive, listed_source
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.redaction import without_credentials
from feedstock_tools.stages import stage
from feedstock_tools.wording import size_text

#: Bytes and seconds of one source; PyTorch's with all submodules has 0.3 GB.
_LARGEST = 8 << 30
_SECONDS = 3600
_HINT = "Give its hash with --sha256."
#: The same of a page with hashes.
_LARGEST_PAGE = 8 << 20
_PAGE_SECONDS = 15
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")
_ON_PYPI = frozenset({"pypi.org", "pypi.io", "pypi.python.org", "files.pythonhosted.org"})
_SDIST = re.compile(r"(.+)-(\d[^-]*?)\.(?:tar\.\w+|tgz|zip)")
_ASSET = re.compile(r"/([\w.-]+)/([\w.-]+)/releases/download/([^/]+)/[^/]+")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A downloaded source: its hash of the kind asked for, and the page with the same SHA-256; '' where none has it."""

    digest: str
    published: str = ""


def fetch_source(url: str, kind: str, keep: Path, machine: Mapping[str, str]) -> SourceFile:
    """Download a source into the file `keep`, and compare its SHA-256 with the one that upstream publishes.

    A source archive of PyPI that cannot be downloaded there comes from pip's indexes.

    Args:
        kind: `sha256`, `sha1` or `md5`.
        machine: the environment, which names pip's indexes.

    Raises:
        InputError: it is not an address of the web.
        WorkError: the server does not answer with the file, or upstream publishes another hash.
    """
    if urlsplit(url).scheme not in {"http", "https"}:
        raise InputError(f"{without_credentials(url)} is not an address of the web", hint=_HINT)
    digests = {each: new(each, usedforsecurity=False) for each in (kind, "sha256")}
    size, shown = 0, without_credentials(url)
    with keep.open("wb") as file:

        def take(chunk: bytes) -> None:
            nonlocal size
            if size >> 20 < (size := size + len(chunk)) >> 20:
                stage(f"downloading {shown}, {size_text(size)}")
            file.write(chunk)
            for digest in digests.values():
                digest.update(chunk)

        stage(f"downloading {shown}")
        try:
            status = ask(url, seconds=_SECONDS, largest=_LARGEST, take=take).status
            reason = "" if status == HTTPStatus.OK else f"the server answers {status}"
        except NoAnswerError as error:
            reason = str(error)
    if reason and (archive := _listed(url, machine)):
        fetch_archive(archive, keep)
        with keep.open("rb") as fetched:
            return SourceFile(file_digest(fetched, kind).hexdigest(), "the package index")
    if reason:
        raise WorkError(f"{shown} cannot be downloaded: {reason}", hint=_HINT)
    ours = digests["sha256"].hexdigest()
    for page in _pages(url):
        theirs = _published(page, unquote(urlsplit(url).path.rpartition("/")[2]))
        if theirs and ours not in theirs:
            hint = "Ask upstream, and give the right hash with --sha256."
            message = f"{shown} has the SHA-256 {ours}, but {page} says {' or '.join(sorted(theirs))}"
            raise WorkError(message, hint=hint)
        if theirs:
            return SourceFile(digests[kind].hexdigest(), page)
    return SourceFile(digests[kind].hexdigest())


def _listed(url: str, machine: Mapping[str, str]) -> SourceArchive | None:
    """Where pip's indexes have a source archive of PyPI; None if none of them can be read."""
    with suppress(WorkError):
        return listed_source(url, machine)
    return None


def _pages(url: str) -> Iterator[str]:
    """Where upstream may publish the hash of a file; archives that GitHub makes of a tag have none."""
    parts = urlsplit(url)
    host, name = parts.hostname or "", parts.path.rpartition("/")[2]
    if host in _ON_PYPI:
        if match := _SDIST.fullmatch(name):
            yield f"https://pypi.org/pypi/{match[1]}/{match[2]}/json"
        return
    if host == "github.com":
        if match := _ASSET.fullmatch(parts.path):
            yield f"https://api.github.com/repos/{match[1]}/{match[2]}/releases/tags/{match[3]}"
        else:
            return
    if not parts.query:
        yield f"{url}.sha256"
        yield f"{url[: -len(name)]}SHA256SUMS"


def _published(page: str, name: str) -> set[str]:
    """The SHA-256 that a page gives for a file; empty if there is no such page, or it does not name the file."""
    try:
        reply = ask(page, seconds=_PAGE_SECONDS, largest=_LARGEST_PAGE)
    except NoAnswerError:
        return set()
    text = reply.content.decode(errors="replace") if reply.status == HTTPStatus.OK else ""
    try:
        content = json.loads(text)
        entries = content.get("urls") or content.get("assets") or []
        named = [each for each in entries if name in (each.get("filename"), each.get("name"))]
        given = [str((each.get("digests") or {}).get("sha256") or each.get("digest")) for each in named]
        return {digest for each in given for digest in _SHA256.findall(each)}
    except (ValueError, AttributeError, TypeError, RecursionError):  # no JSON, or none of that form
        lines = [line for line in text.splitlines() if _SHA256.search(line)]
    said = [line for line in lines if name in re.split(r"[\s*()/=]+", line)]
    alone = lines if page.endswith(".sha256") and len(lines) == 1 else []
    return {digest for line in said or alone for digest in _SHA256.findall(line)}
