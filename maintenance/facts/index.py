"""An index of wheels: which wheels of a project it has, and parts of them by ranges, without the whole files.

The index answers in JSON (PEP 691) at `<index>/<project>/`, and its files come from a server that serves ranges.
"""

# ruff: noqa: S310 - the index is the maintainer's own choice

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from remotezip import RemoteZip, RemoteZipError
from urllib3.exceptions import HTTPError

from feedstock_tools.versions import minor_of, parse_version

_ACCEPT = {"Accept": "application/vnd.pypi.simple.v1+json"}
_NAME = re.compile(
    r"[^-]+-(?P<version>\d[\d.]*)(?:-(?P<build>\d+))?-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>.+)\.whl$"
)
LINUX = re.compile(r"manylinux.*x86_64")
_TIMEOUT = 120
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel on an index; `sha256` is what the index says of it, `python` and `platform` are tags of its name.

    `python` is `py3` for abi3, whose tag names the oldest Python alone.
    """

    project: str
    version: str
    build: int
    python: str
    platform: str
    filename: str
    url: str
    sha256: str


@cache
def pip_index() -> str:
    """The index that pip reads, by its configuration, the environment or its own default.

    Raises:
        OSError: pip does not name one.
    """
    command = [sys.executable, "-m", "pip", "install", "--help"]
    wide = {**os.environ, "COLUMNS": "1000"}
    text = subprocess.run(command, capture_output=True, text=True, check=False, env=wide).stdout
    named = re.search(r"--index-url <url>.*?\(default\s+(\S+)\)", text, re.DOTALL)
    if named is None:
        raise OSError("pip names no index; give one with --index")
    return named[1]


def wheels_of(index: str, project: str) -> dict[str, list[Wheel]]:
    """The wheels of a project's releases by version, without those that were withdrawn, betas and posts.

    An empty `index` is the one that pip reads.

    Raises:
        OSError: the index does not answer, or does not have the project (urllib.error.HTTPError).
    """
    request = urllib.request.Request(f"{(index or pip_index()).rstrip('/')}/{project}/", headers=_ACCEPT)
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
        document = json.load(answer)
    found: dict[str, list[Wheel]] = {}
    for file in document["files"]:
        match = _NAME.match(file["filename"])
        if match and not file.get("yanked"):
            python = "py3" if match["abi"] == "abi3" else match["python"]
            tags = int(match["build"] or 0), python, match["platform"]
            wheel = Wheel(
                project, match["version"], *tags, file["filename"], file["url"], file["hashes"].get("sha256", "")
            )
            found.setdefault(wheel.version, []).append(wheel)
    return found


def linux_wheels(index: str, project: str) -> dict[str, list[Wheel]]:
    """The wheels for Linux on x86-64 of each release that has some."""
    found = wheels_of(index, project)
    fitting = {version: [wheel for wheel in found[version] if LINUX.search(wheel.platform)] for version in found}
    return {version: wheels for version, wheels in fitting.items() if wheels}


def by_minor(versions: Iterable[str]) -> list[list[str]]:
    """The versions in groups by their minor version, oldest first."""
    minors: dict[str, list[str]] = {}
    for version in sorted(versions, key=parse_version):
        minors.setdefault(minor_of(version), []).append(version)
    return list(minors.values())


def first_and_last_of_minors(versions: Iterable[str]) -> list[str]:
    """The first and the last release of each minor version, oldest first; one where that is the same.

    >>> first_and_last_of_minors(["9.1.0.70", "9.0.0.312", "9.1.2", "9.1.1.17"])
    ['9.0.0.312', '9.1.0.70', '9.1.2']
    """
    return [version for group in by_minor(versions) for version in dict.fromkeys((group[0], group[-1]))]


@contextmanager
def archive(url: str) -> Iterator[zipfile.ZipFile]:
    """A wheel on a server as an archive; each of its members is read by one request for a range.

    Raises:
        OSError: the server does not answer, breaks off or serves no ranges, or the archive is damaged.
    """
    try:
        with RemoteZip(url, timeout=_TIMEOUT) as opened:
            yield opened
    except (RemoteZipError, HTTPError, zipfile.BadZipFile) as error:
        raise OSError(f"{url.rpartition('/')[2]}: {error}") from error


def copy_wheel(wheel: Wheel, target: Path) -> None:
    """Load a whole wheel into a file.

    Raises:
        OSError: the server does not answer, or the file is not the one that the index names by its SHA-256.
    """
    with urllib.request.urlopen(wheel.url, timeout=_TIMEOUT) as answer:
        digest = copy(answer, target)
    if digest != wheel.sha256:
        raise OSError(f"{wheel.filename} is not the file that the index names")


def copy(stream: IO[bytes], target: Path) -> str:
    """Write what a stream has into a file, piece by piece; return its SHA-256."""
    digest = hashlib.sha256()
    with target.open("wb") as file:
        while piece := stream.read(_CHUNK):
            file.write(piece)
            digest.update(piece)
    return digest.hexdigest()
