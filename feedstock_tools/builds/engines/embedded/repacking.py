"""A package that the engine has made, packed again so that the same contents give the same bytes."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from feedstock_tools.builds.engines.comparable import (
    NORMALISED,
    comparable_bytecode,
    comparable_document,
    with_digests,
)

#: The engine's own compression, which is undone at once.
QUICK = "conda:1"
_LEVEL = 9
_PATHS = "info/paths.json"


def repacked(package: Path, folder: Path, names: Mapping[str, str], epoch: int, threads: int) -> None:
    """Pack a package again: sorted, with one time and no owners, and with comparable metadata.

    Args:
        folder: for the unpacked files; it is removed afterwards.
        names: the URLs of channels that are folders, each with its name in packages (`names_of`).
        epoch: the time of everything in it, in seconds since 1970.
        threads: of the compression; they do not change its result.

    Raises:
        WorkError: the package cannot be read or written.
        RattlerBuildError, OSError: as the engine reports them.
    """
    from rattler_build import assemble_package, collect_files

    from feedstock_tools.channel.archive import combine, unpack_own

    try:
        contents = folder / "contents"
        unpack_own(package, contents)
        documents = {**_comparable_documents(contents, names, epoch), **_with_bytecode(contents, epoch)}
        assembled = assemble_package(
            "contents",
            "0",
            "noarch",
            "0",
            folder / "packed",
            files=collect_files(contents, exclude_globs=["info/**"], include_hidden=True),
            compression_level=_LEVEL,
            timestamp=datetime.fromtimestamp(epoch, UTC),
            compression_threads=max(1, threads),
            detect_prefix=False,
        )
        combine(package, assembled.path, contents, documents, epoch)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _comparable_documents(contents: Path, names: Mapping[str, str], epoch: int) -> dict[str, bytes]:
    """The documents of an unpacked package that differ from build to build: path in it → comparable text."""
    files = {name: contents / name for name in NORMALISED}
    return {
        name: comparable_document(name, file.read_bytes(), names, epoch)
        for name, file in files.items()
        if file.is_file()
    }


def _with_bytecode(contents: Path, epoch: int) -> dict[str, bytes]:
    """Replace the `.pyc` files of an unpacked package by comparable ones; the documents that then change."""
    changed: dict[str, bytes] = {}
    for file in sorted(contents.rglob("__pycache__/*.pyc")):
        if file.is_symlink():
            continue
        source = file.parent.parent / f"{file.name.partition('.')[0]}.py"
        before = file.read_bytes()
        after = comparable_bytecode(before, source.relative_to(contents).as_posix(), epoch)
        if after != before:
            file.write_bytes(after)
            changed[file.relative_to(contents).as_posix()] = after
    paths = contents / _PATHS
    return {_PATHS: with_digests(paths.read_bytes(), changed)} if changed and paths.is_file() else {}
