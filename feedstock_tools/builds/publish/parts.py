"""Artifacts folders of other machines. They are untrusted input: everything in their ledgers is checked.

A part is imported or refused as a whole. Its ledger is read from a private copy; its logs must be in its `logs/`, its
packages in the subdirs of its channels, each the very file of its record with the name that its metadata give it.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from feedstock_tools.bounds.limits import LIFTING, most
from feedstock_tools.builds.ledger import (
    BuildRecord,
    ComparisonRecord,
    EnvironmentRecord,
    Ledger,
    PackageRecord,
    TestRecord,
)
from feedstock_tools.builds.ledger.records import moment_of
from feedstock_tools.builds.plan.rendering import render_outputs
from feedstock_tools.channel.packages.reading import PACKAGE_SUFFIXES, verify_package
from feedstock_tools.channel.properties import properties_by_marks
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import FeedstockError, InputError, Mistake, WorkError
from feedstock_tools.feedstock.configurations import outline
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import CHANNEL_FOLDERS, LEDGER, Artifacts, channel_folder
from feedstock_tools.files.changes import replacing
from feedstock_tools.platforms import KNOWN_SUBDIRS
from feedstock_tools.reading import is_inside, open_file

_HINT = (
    "If it is this feedstock with other output names, check out the commit that was built in another folder, and name"
    " that folder with --feedstock and these artifacts with --output-dir."
)
#: The number of outputs of another feedstock in a message.
_NAMED = 3
#: Bytes of a ledger, ten times those of one with 50,000 builds, and the records in it.
_LARGEST_LEDGER = 4 << 30
_MOST_RECORDS = 500_000
_BLOCK = 1 << 20
#: Characters of a name or a path, and of any other word.
_LONGEST = 4096
#: The end of a journal that belongs to several databases: SQLite would remove the file that it names.
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")
_SHA256 = re.compile("[0-9a-f]{64}")
_SUBDIRS = frozenset({*KNOWN_SUBDIRS, "noarch"})
#: Bytes; no build may print more into its log.
_LARGEST = 4 << 30
#: How many machines may have given different logs the same name.
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Part:
    """An artifacts folder: its builds, tests and comparisons as its ledger has them, an open, private copy."""

    root: Path
    ledger: Ledger
    builds: tuple[BuildRecord, ...]
    tests: tuple[TestRecord, ...]
    comparisons: tuple[ComparisonRecord, ...] = ()

    def environments(self, build: int) -> tuple[EnvironmentRecord, ...]:
        """The environments of a build by its number.

        Raises:
            WorkError: the ledger is damaged.
        """
        try:
            return self.ledger.environments(build)
        except WorkError as error:
            raise _of_part(error, self.root) from error


def find_parts(folder: Path, target: Path) -> list[Path]:
    """The artifacts folders in a folder, itself included, except the target.

    Raises:
        InputError: there is none.
    """
    found = [folder / LEDGER] if (folder / LEDGER).is_file() else sorted(folder.glob(f"*/**/{LEDGER}"))
    roots = [path.parent for path in found if path.parent.resolve() != target.resolve()]
    if not roots:
        hint = f"An artifacts folder has a {LEDGER}."
        raise InputError("there is no artifacts folder to collect from", path=folder, hint=hint)
    return roots


def read_part(root: Path, folder: Path) -> Part:
    """Read the ledger of a part from a copy, since opening it may end a transaction that was cut off.

    Args:
        folder: an empty folder for the copy. Close the part's ledger before you remove it.

    Raises:
        InputError: the ledger is not a regular file, cannot be read, or is too large.
        WorkError: it is damaged, or cannot be copied.
    """
    _copy_ledger(root, folder)
    try:
        ledger = Ledger(folder / LEDGER)
    except WorkError as error:
        raise _of_part(error, root) from error
    try:
        if max(ledger.count()) > most(_MOST_RECORDS):
            raise InputError(f"has more than {_MOST_RECORDS} records", path=root / LEDGER, hint=LIFTING)
        return Part(root, ledger, ledger.builds(), ledger.tests(), ledger.comparisons())
    except FeedstockError as error:
        ledger.close()
        raise _of_part(error, root) from error
    except BaseException:
        ledger.close()
        raise


def _of_part(error: FeedstockError, root: Path) -> FeedstockError:
    """An error about the copy of a ledger, as one about the ledger."""
    return type(error).of([replace(each, path=root / LEDGER) for each in error.mistakes])


def mistakes_of(part: Part, number: int, record: BuildRecord, target: Path) -> Iterator[Mistake]:
    """What is wrong with a build of a part: its words, its environments, its log, its packages.

    Args:
        number: the build's, in the part's ledger.
        target: the folder that the packages are to enter.
    """
    root = part.root
    words = (record.identity, record.configuration, record.row, record.output, record.engine, record.machine)
    if not all(map(_is_word, (*words, record.process))) or moment_of(record.started) is None:
        shown = f"build {record.id}"
        yield Mistake(f"{shown} has a name or a time that no build has", path=root / LEDGER)
        return
    try:
        part.environments(number)
    except WorkError as error:
        yield from error.mistakes
    if not is_plain_log(root, record.log):
        yield Mistake(f"a log in the ledger is outside of its folder of logs: {record.log[:200]!r}", path=root / LEDGER)
    for package in record.packages:
        yield from _package_mistakes(root, record, package, target)


def is_plain_log(root: Path, log: str) -> bool:
    """Whether a log's path is that of a file directly in the folder of logs, or empty; the file may be missing."""
    if not log:
        return True
    path = PurePosixPath(log)
    plain = _is_word(log) and path.as_posix() == log and len(path.parts) == 2 and path.parts[0] == "logs"
    if not plain or path.name.startswith(".") or "\\" in log:
        return False
    place = root / log
    return _is_own_file(root, place) or not (place.exists() or place.is_symlink())


def _package_mistakes(root: Path, record: BuildRecord, package: PackageRecord, target: Path) -> Iterator[Mistake]:
    subdir, _, name = package.file.partition("/")
    fits = package.channel in CHANNEL_FOLDERS and subdir in _SUBDIRS and _is_package_name(name)
    if not fits or not _SHA256.fullmatch(package.sha256) or package.size <= 0:
        named = f"{package.channel}/{package.file}"[:200]
        yield Mistake(f"a package in the ledger has a path, hash or size that none has: {named!r}", path=root / LEDGER)
        return
    source = root / package.channel / package.file
    if not _is_own_file(root, source):
        if source.exists() or source.is_symlink():
            yield Mistake("a package in the ledger is not a file in its folder", path=source)
        elif record.result == "done":
            yield Mistake("a package in the ledger is missing", path=source)
        return
    if source.stat().st_size != package.size or sha256_of(source) != package.sha256:
        yield Mistake("the package has changed since it was built: its sha256 differs", path=source)
        return
    present = target / package.channel / package.file
    if present.is_file() and sha256_of(present) != package.sha256:
        hint = f"It would replace {present}. Remove one of the two."
        yield Mistake("there is a different package of this name", path=source, hint=hint)
    yield from _wrong_contents(source, record, package)


def _wrong_contents(source: Path, record: BuildRecord, package: PackageRecord) -> Iterator[Mistake]:
    """Whether the package is what the build was to make: otherwise it would be taken for an output that it is not."""
    try:
        metadata = verify_package(source)
    except WorkError as error:
        yield from error.mistakes
        return
    stem = metadata.file_name.removesuffix(".conda")
    if metadata.name != record.output or package.file not in {f"{metadata.subdir}/{stem}{s}" for s in PACKAGE_SUFFIXES}:
        actual = f"{metadata.subdir}/{stem}"
        yield Mistake(f"the package is {actual}, but it is recorded as a build of {record.output}", path=source)
    built_on = properties_by_marks(metadata.extra)
    if built_on.made_here and package.channel != channel_folder(built_on):
        message = f"the package was built on the {built_on.origin} channel, but it is recorded as a real one"
        yield Mistake(message, path=source)


def _is_package_name(name: str) -> bool:
    return _is_word(name) and name.endswith(PACKAGE_SUFFIXES) and not set(name) & set("/\\:") and name[0] not in ".-"


def _is_word(text: str) -> bool:
    return len(text) <= _LONGEST and text.isprintable()


def _is_own_file(root: Path, path: Path) -> bool:
    """Whether a path is a regular file, and no link leads out of the part."""
    try:
        return stat.S_ISREG(path.lstat().st_mode) and is_inside(path, root)
    except (OSError, ValueError):
        return False


def _copy_ledger(root: Path, folder: Path) -> None:
    """Copy a ledger with the journal of a transaction that was cut off."""
    for name in (LEDGER, f"{LEDGER}-journal", f"{LEDGER}-wal"):
        source = root / name
        if name != LEDGER and not (source.exists() or source.is_symlink()):
            continue
        try:
            with _opened(root, source) as stream, (folder / name).open("wb") as copy:
                _copy_within_bounds(stream, copy, source)
            if name.endswith("-journal") and _ends_with(folder / name, _SUPER_JOURNAL):
                raise InputError("belongs to several databases, which no ledger's journal does", path=source)
        except OSError as error:
            raise WorkError(f"cannot copy the ledger: {error.strerror or error}", path=source) from error


def _opened(root: Path, path: Path) -> BinaryIO:
    """Open a regular file of a part. What was opened is checked, too: a link may have taken its place meanwhile."""
    if _is_own_file(root, path):
        named = path.lstat()
        stream = open_file(path, within=root)
        if stat.S_ISREG(named.st_mode) and os.path.samestat(named, os.fstat(stream.fileno())):
            return stream
        stream.close()
    raise InputError("is not a regular file of this folder", path=path)


def _copy_within_bounds(stream: BinaryIO, copy: BinaryIO, source: Path) -> None:
    """Copy a file up to the size that it has now, if that is not too large."""
    left = os.fstat(stream.fileno()).st_size
    if left > most(_LARGEST_LEDGER):
        raise InputError(f"is larger than {_LARGEST_LEDGER >> 30} GiB", path=source, hint=LIFTING)
    while left > 0 and (block := stream.read(min(left, _BLOCK))):
        copy.write(block)
        left -= len(block)


def _ends_with(path: Path, ending: bytes) -> bool:
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - len(ending)))
        return stream.read() == ending


def parts_of_other_feedstocks(
    made: Mapping[Path, AbstractSet[str]], own_outputs: AbstractSet[str], feedstock: Feedstock
) -> dict[Path, Mistake]:
    """The artifacts folders of other feedstocks, with none of this one's outputs, each with what is wrong.

    Args:
        made: folder → the names of the outputs with builds in its ledger; a ledger without builds belongs to nobody.
        own_outputs: the outputs with builds in the feedstock's own ledger.
        feedstock: if not all of its outputs can be determined, no folder counts as another's.
    """
    foreign = {root: outputs for root, outputs in made.items() if outputs and outputs.isdisjoint(own_outputs)}
    if not foreign:
        return {}
    try:
        configurations = outline(feedstock.folder)
        for part in (configurations[:1], configurations[1:]):  # the first is usually enough
            rendered, _ = render_outputs(part, feedstock.recipe / "recipe.yaml", {})
            if any(each.refusal for each in rendered):
                return {}
            own = {output.name for each in rendered for row in each.rows for output in row.outputs}
            foreign = {root: outputs for root, outputs in foreign.items() if outputs.isdisjoint(own)}
            if not foreign:
                return {}
    except InputError:
        return {}
    return {root: _foreign(root, sorted(outputs)) for root, outputs in foreign.items()} if configurations else {}


def _foreign(root: Path, outputs: list[str]) -> Mistake:
    more = f" and {len(outputs) - _NAMED} more" if len(outputs) > _NAMED else ""
    listed = f"{', '.join(outputs[:_NAMED])}{more}"
    return Mistake(
        f"belongs to another feedstock: it built {listed}, which this one does not make", root / LEDGER, hint=_HINT
    )


def copied_log(root: Path, log: str, artifacts: Artifacts) -> str:
    """Copy a log that is missing here; return its path below the artifacts folder, as records have it.

    Two machines may give different logs the same name, so it may get another one. A log that the other machine has
    lost, or one that is too large, is left out: then the path is one that no log has.

    Args:
        root: the folder of the other machine.
        log: a path for which `is_plain_log` holds.
    """
    if not log:
        return ""
    source = root / log
    try:
        with open_file(source, within=root) as stream:
            if source.stat().st_size > _LARGEST:
                return _free(log, None, artifacts)
            name = _free(log, source, artifacts)
            if not (artifacts.root / name).exists():
                with replacing(artifacts.root / name, message="cannot copy the log") as part, part.open("wb") as target:
                    shutil.copyfileobj(stream, target, 1 << 20)
            return name
    except InputError:
        return _free(log, None, artifacts)


def _free(log: str, source: Path | None, artifacts: Artifacts) -> str:
    """The first name that no log here has, or one with the same contents."""
    path = PurePosixPath(log)
    others = (path.with_name(f"{path.stem[:200]}-{number}{path.suffix[:20]}") for number in range(2, _MOST))
    for name in chain((path,), others):
        place = artifacts.root / name
        if not (place.exists() or place.is_symlink()) or (source is not None and _is_same(source, place)):
            return name.as_posix()
    return log


def _is_same(log: Path, copy: Path) -> bool:
    same_size = copy.is_file() and log.stat().st_size == copy.stat().st_size
    return same_size and sha256_of(log) == sha256_of(copy)
