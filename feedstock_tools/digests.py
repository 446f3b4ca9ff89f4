"""Hashes of files and folders (what goes into a build, and whether anything has changed since) and of packages' names.

Two strengths. `digest_of_files` reads every byte; identities consist of such digests. `stamp_of_files` only reads
names, sizes and modification times, and only shows whether an earlier digest must be computed again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b, sha1, sha256
from pathlib import Path
from typing import Any

from feedstock_tools.reading import open_file

#: The hexadecimal digits after the `h` in the name of a package.
HASH_LENGTH = 7

#: Folders with leftovers of tools, never with inputs of a build.
_LEFT_BEHIND = frozenset({".git", "__pycache__", "build_artifacts", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
_BLOCK = 1 << 20


def files_below(folder: Path) -> Iterator[str]:
    """The files (and links) in a folder and its subfolders, ordered by name; for a file, the file itself."""
    if not folder.is_dir():
        if folder.exists() or folder.is_symlink():
            yield str(folder)
        return
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_BEHIND)
        links = [name for name in folders if os.path.islink(f"{place}/{name}")]  # noqa: PTH114 - thousands of texts
        yield from (f"{place}/{name}" for name in sorted([*names, *links]))


def digest_of_files(roots: Iterable[Path]) -> str:
    """A hash over the relative names, the bytes and the executable bits of all files below each root.

    A missing root counts as empty: the code that needs it will report it.
    """
    digest = sha256()
    for number, root in enumerate(roots):
        for file in files_below(root):
            path = Path(file)
            name = path.relative_to(root).as_posix() if path != root else path.name
            if path.is_symlink():
                kind, content = "link", os.fsencode(path.readlink()).hex()
            else:
                kind = "program" if path.stat().st_mode & 0o100 else "file"
                content = sha256_of(path)
            digest.update(f"{number}\0{name}\0{kind}\0{content}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def digest_of_values(content: Any) -> str:
    """A hash over JSON values, over mappings, and over the text of any other value."""
    text = json.dumps(
        content, sort_keys=True, default=lambda value: dict(value) if isinstance(value, Mapping) else str(value)
    )
    return sha256(text.encode()).hexdigest()


def stamp_of_files(roots: Iterable[Path]) -> str:
    """A hash over the names, sizes and modification times of all files below each root."""
    digest = blake2b(digest_size=16)
    for root in roots:
        for path in files_below(root):
            state = os.lstat(path)
            digest.update(
                f"{path}\0{state.st_size}\0{state.st_mtime_ns}\0{state.st_mode}\n".encode(errors="surrogateescape")
            )
        digest.update(f"{root}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def sha256_of(path: Path) -> str:
    """The SHA-256 of a regular file's bytes, in hexadecimal."""
    digest = sha256()
    with open_file(path, within=None) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


_SORTED = json.JSONEncoder(sort_keys=True).encode


def package_hash(contents: Mapping[str, object]) -> str:
    """The hash in the name of a package, made of the variant values and virtual packages that it depends on.

    Args:
        contents: what its `info/hash_input.json` lists (conda_build/metadata.py).

    >>> package_hash({"target_platform": "linux-64", "zlib": "1.2"})
    'h75cb000'
    """
    return f"h{sha1(_SORTED(contents).encode(), usedforsecurity=False).hexdigest()[:HASH_LENGTH]}"


_BY_HASH = re.compile(r"/packages/[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{60}/")


def is_by_hash(address: str) -> bool:
    """Whether an address of PyPI has the hash of its file in it, so that it leads to no other version."""
    return _BY_HASH.search(address) is not None
