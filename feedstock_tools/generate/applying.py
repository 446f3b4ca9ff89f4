"""Update a feedstock's files to match its spec, without losing changes that a person made.

`.feedstock-tools/generated.json` records the hash of each generated file. A file whose content is neither
the recorded nor the new one was edited by a person.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Literal

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.files.changes import Changes, file_diff
from feedstock_tools.reading import read_text

#: The file with the hashes of a feedstock's generated files; it belongs in version control.
RECORD = PurePosixPath(".feedstock-tools/generated.json")


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change to one file.

    `kind` is `new`, `changed`, `same`, `removed` (generated once, no longer part of the spec) or `edited`: it would
    change, and a person edited it since it was generated. `old` and `new` are its texts, None if there is no file.
    """

    path: PurePosixPath
    kind: Literal["new", "changed", "same", "removed", "edited"]
    old: str | None
    new: str | None

    def diff(self) -> str:
        """The change as a unified diff; empty if nothing changes."""
        return "".join(file_diff(str(self.path), _encoded(self.old), _encoded(self.new)))


def compare(folder: Path, texts: Mapping[PurePosixPath, str]) -> tuple[FileChange, ...]:
    """The changes that `apply` would make to the feedstock in `folder`; writes nothing.

    Raises:
        InputError: a file or the record of generated files cannot be read.
    """
    record = _read_record(folder)
    changes = [_change(folder, path, new, record.get(str(path))) for path, new in texts.items()]
    for name, remembered in record.items():
        path = PurePosixPath(name)
        if path not in texts and (folder / path).is_file():
            changes.append(_change(folder, path, None, remembered))
    return tuple(changes)


def apply(folder: Path, texts: Mapping[PurePosixPath, str], *, force: bool = False) -> tuple[FileChange, ...]:
    """Write the files of a feedstock that differ from `texts`, and record them: all or none (`files.changes`).

    Args:
        force: also overwrite files that a person edited.

    Raises:
        InputError: a person edited some of the files and `force` is not given; or a file cannot be written.
        WorkError: the system refuses, or a file has changed meanwhile.
    """
    changes = compare(folder, texts)
    edited = [change for change in changes if change.kind == "edited"]
    if edited and not force:
        hint = "Carry the change over to feedstock.yaml, or overwrite it with --force."
        raise InputError.of(
            [Mistake("was edited since it was generated", folder / change.path, hint=hint) for change in edited]
        )
    stale = [change for change in changes if change.kind != "same"]
    files = {folder / change.path: _encoded(change.new) for change in stale}
    seen = {folder / change.path: _encoded(change.old) for change in stale}
    record = json.dumps({str(path): _hash(text) for path, text in sorted(texts.items())}, indent=2) + "\n"
    if not (folder / RECORD).is_file() or read_text(folder / RECORD, within=folder) != record:
        files[_inside(folder, RECORD)] = record.encode()
    Changes(folder, files, seen=seen).apply()
    return changes


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _change(folder: Path, path: PurePosixPath, new: str | None, remembered: str | None) -> FileChange:
    target = _inside(folder, path)
    old = read_text(target, within=folder) if target.exists() else None
    if old == new:
        return FileChange(path, "same", old, new)
    if old is None:
        return FileChange(path, "new", old, new)
    if remembered != _hash(old):
        return FileChange(path, "edited", old, new)
    return FileChange(path, "removed" if new is None else "changed", old, new)


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _read_record(folder: Path) -> dict[str, str]:
    path = folder / RECORD
    if not path.is_file():
        return {}
    try:
        record = json.loads(read_text(path, within=folder))
    except (ValueError, RecursionError) as error:
        raise InputError("is not a record written by generate", path=path, hint="Delete it, then compare.") from error
    if not isinstance(record, dict) or not all(isinstance(value, str) for value in record.values()):
        raise InputError("is not a record written by generate", path=path, hint="Delete it, then compare.")
    for name in record:
        _inside(folder, PurePosixPath(name))
    return record


def _inside(folder: Path, path: PurePosixPath) -> Path:
    """The file in the folder; refuses names and links that lead out of it."""
    target = folder / path
    if path.is_absolute() or not target.resolve().is_relative_to(folder.resolve()):
        raise InputError("leads out of the feedstock", path=target)
    return target
