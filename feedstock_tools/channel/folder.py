"""A channel that is a folder on this machine: indexing it, and adding packages so that it is complete at every
moment."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from feedstock_tools.channel.calls import wait_for
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.reading import PACKAGE_SUFFIXES, read_package
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.changes import replacing
from feedstock_tools.files.locks import locked
from feedstock_tools.files.temporary import OF_INDEXER, remove
from feedstock_tools.platforms import KNOWN_SUBDIRS
from feedstock_tools.reading import open_file

_BLOCK = 1 << 20


def index_channel(folder: Path, *, replaced: bool = False) -> None:
    """Write the repodata of every subdir of a channel folder (and `noarch`, which a channel must have).

    Args:
        replaced: packages were replaced by others with the same name since the last call, so every package is read
            again; the indexer of py-rattler only reads new names.

    Two processes that index the same folder concurrently may lose each other's packages: `add_packages` indexes under a
    lock.

    Raises:
        WorkError: the folder cannot be written, or a package in it is damaged (named if it can be found).
    """

    from rattler.index import index_fs

    _refuse_damaged(folder)
    try:
        (folder / "noarch").mkdir(parents=True, exist_ok=True)
        wait_for(index_fs(folder, write_zst=False, write_shards=False, force=replaced))
    except Exception as error:  # rattler raises plain Exception here
        raise WorkError(f"cannot index the channel: {error}", path=folder) from error


def add_packages(
    folder: Path,
    packages: Sequence[Path],
    known: Mapping[Path, PackageMetadata] | None = None,
    hashes: Mapping[Path, str] | None = None,
) -> tuple[Path, ...]:
    """Copy packages into a channel folder and index it; return their paths there.

    Every package is read before the first is copied. Each enters by rename, so a reader never sees a part of one,
    and a lock allows several processes to add packages. A package of the same name is replaced.

    Args:
        known: the metadata of packages that the caller has read already.
        hashes: the sha256 that packages must have; their files may have changed since the caller has read them.
    """
    targets = tuple(_target(folder, package, (known or {}).get(package)) for package in packages)
    with locked(folder):
        _add(folder, dict(zip(packages, targets, strict=True)), hashes or {})
    return targets


def add_new_package(folder: Path, package: Path, sha256: str) -> bool:
    """Add a package unless the folder has it; False if it does. Looks and adds under one lock, so of two processes
    that add different packages of one name the second fails.

    Raises:
        WorkError: the folder has a different package of this name, or one in the other form; else as `add_packages`.
    """
    target = _target(folder, package, None)
    with locked(folder):
        if not target.exists():
            if (other := target.with_name(other_form(target.name))).exists():
                raise WorkError("another process has published a package of this name in the other form", path=other)
            _add(folder, {package: target}, {package: sha256})
            return True
        if sha256_of(target) != sha256:
            raise WorkError("another process has published a different package of this name", path=target)
        return False


def _add(folder: Path, targets: Mapping[Path, Path], hashes: Mapping[Path, str]) -> None:
    new = [target for target in targets.values() if not target.exists()]
    try:
        for package, target in targets.items():
            _copy_whole(package, target, hashes.get(package))
        index_channel(folder, replaced=len(new) < len(targets))
        remove(folder / OF_INDEXER)
    except BaseException:
        for target in new:  # not left in the folder without an index entry
            target.unlink(missing_ok=True)
        raise


def complete_index(folder: Path) -> None:
    """Index a channel folder again if a run that was killed has copied packages into it that its index lacks."""
    with locked(folder):
        subdirs = [path for path in folder.iterdir() if path.name in (*KNOWN_SUBDIRS, "noarch") and path.is_dir()]
        new = [subdir / name for subdir in subdirs for name in sorted(_packages(subdir) - _indexed(subdir))]
        for package in new:
            _target(folder, package, None)
        if new:
            index_channel(folder)
        remove(folder / OF_INDEXER)


def other_form(file: str) -> str:
    """The name of the file that would hide a package from those who install it, or that it would hide."""
    conda, older = PACKAGE_SUFFIXES
    return file.removesuffix(conda) + older if file.endswith(conda) else file.removesuffix(older) + conda


def _packages(subdir: Path) -> set[str]:
    return {path.name for path in subdir.iterdir() if path.name.endswith(PACKAGE_SUFFIXES)}


def _indexed(subdir: Path) -> set[str]:
    path = subdir / "repodata.json"
    if not path.exists():
        return set()
    try:
        with open_file(path, within=None) as stream:
            content = json.load(stream)
        return {*content.get("packages", ()), *content.get("packages.conda", ())}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise WorkError(f"cannot read the index: {error}", path=path, hint="Remove the file.") from error


def _target(folder: Path, package: Path, known: PackageMetadata | None) -> Path:
    """The place of a package in the channel, according to its metadata."""
    metadata = known or read_package(package)
    stem = metadata.file_name.removesuffix(".conda")
    if package.name not in {stem + suffix for suffix in PACKAGE_SUFFIXES}:
        raise WorkError(f"by its metadata the file must be named {metadata.file_name}", path=package)
    if metadata.subdir != "noarch" and metadata.subdir not in KNOWN_SUBDIRS:
        raise WorkError(f"the package is for '{metadata.subdir}', which is not a platform", path=package)
    return folder / metadata.subdir / package.name


def _copy_whole(source: Path, target: Path, expected: str | None) -> None:
    """Copy a package into the channel, unless the sha256 of the copy is not the expected one."""
    with replacing(target, message="cannot add the package to the channel") as part:
        try:
            with open_file(source, within=None) as package, part.open("wb") as copy:
                shutil.copyfileobj(package, copy, _BLOCK)
                copy.flush()
                os.fsync(copy.fileno())  # records of its presence stay true after a power cut
        except InputError as error:
            raise WorkError.of(list(error.mistakes)) from error
        if expected is not None and sha256_of(part) != expected:
            hint = "Run the command again when no other program writes to this file."
            raise WorkError("the package has changed since it was checked: its sha256 differs", path=source, hint=hint)


def _refuse_damaged(folder: Path) -> None:
    """The indexer of py-rattler 0.28 panics, with a backtrace on stderr, on a package that is not an archive."""
    for path in sorted(folder.glob("*/*")):
        if path.name.startswith(".") or not path.name.endswith((*PACKAGE_SUFFIXES, ".json")):
            continue
        if not path.is_file():  # the indexer would wait for a FIFO
            raise WorkError("cannot index the channel: this is not a file", path=path, hint="Remove it and try again.")
        if path.suffix == ".json":
            continue
        is_package = zipfile.is_zipfile(path) if path.suffix == ".conda" else _is_bzip2(path)
        if not is_package:
            hint = "Remove the damaged package and try again."
            raise WorkError("cannot index the channel: this is not a conda package", path=path, hint=hint)


def _is_bzip2(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(3) == b"BZh"
