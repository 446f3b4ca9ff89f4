"""From the spec of a feedstock to its recipe files, without losing changes that a person made to them.

`.feedstock-tools/generated.json` records the hash of each generated file. A file whose content is neither the recorded
nor the new one was edited by a person.
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
from feedstock_tools.generate.spec.reading import read_spec_as_written, require_local_sources, with_time_stamps
from feedstock_tools.generate.texts.rendering import Kept, render
from feedstock_tools.reading import GENERATED, SPEC_NAME, read_text


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
    """The changes that `apply` would make to the feedstock in `folder`; writes nothing."""
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
    hashes = {str(path): _hash(text) for path, text in sorted(texts.items()) if not isinstance(text, Kept)}
    record = json.dumps(hashes, indent=2) + "\n"
    if not (folder / GENERATED).is_file() or read_text(folder / GENERATED, within=folder) != record:
        files[_inside(folder, PurePosixPath(GENERATED))] = record.encode()
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
    if remembered != _hash(old) and not isinstance(new, Kept):
        return FileChange(path, "edited", old, new)
    return FileChange(path, "removed" if new is None else "changed", old, new)


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _read_record(folder: Path) -> dict[str, str]:
    path = folder / GENERATED
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


@dataclass(frozen=True, slots=True)
class Generated:
    """The files that a spec describes, and how those in a folder differ from them.

    `texts` are by their path in the feedstock. `changes` has an entry for each of them, and for each file that was
    generated once and is no longer part of the spec.
    """

    folder: Path
    texts: Mapping[PurePosixPath, str]
    changes: tuple[FileChange, ...]

    @property
    def stale(self) -> tuple[FileChange, ...]:
        """The changes of files that are not as the spec says."""
        return tuple(change for change in self.changes if change.kind != "same")

    def diff(self) -> str:
        """All changes as one unified diff; empty where nothing changes."""
        return "".join(change.diff() for change in self.stale)

    def kept(self) -> Changes:
        """What a commit must hold: the spec, the generated files, their record, and what is no longer generated."""
        names = [SPEC_NAME, GENERATED, *(str(change.path) for change in self.changes)]
        return Changes(self.folder, {}, seen=dict.fromkeys(self.folder / name for name in names))

    def apply(self, *, force: bool = False) -> tuple[FileChange, ...]:
        """Write the stale files, all or none, and record the generated files; returns the changes.

        Args:
            force: overwrite files that a person edited, too.

        Raises:
            InputError: a person edited some of the files and `force` is not given; nothing is written then.
        """
        return tuple(change for change in apply(self.folder, self.texts, force=force) if change.kind != "same")


def generate(
    feedstock: Path,
    *,
    recipe_format: Literal["v0", "v1"] | None = None,
    folder: Path | None = None,
    migrations: Path | None = None,
) -> Generated:
    """The recipe, variant files, scripts and `conda-forge.yml` that a feedstock's spec describes. Nothing is written.

    Args:
        feedstock: the folder with `feedstock.yaml`, or that file.
        recipe_format: `v0` for a `meta.yaml`, `v1` for a `recipe.yaml`; default: as the spec says.
        folder: where the files go; default: the feedstock.
        migrations: the folder of the migrations of conda-forge's pinning, for the time stamps of those that the spec
            only names; default: the feedstock's own stubs.

    Raises:
        InputError: the spec has mistakes (all of them, each with its place), a folder of its sources is missing,
            another recipe format would go into the feedstock beside the first, or a file that is there cannot be read.

    >>> made = generate(Path("hello"))
    >>> [f"{change.kind} {change.path}" for change in made.stale][:2]
    ['new recipe/recipe.yaml', 'new recipe/conda_build_config.yaml']
    >>> changed = made.apply()
    >>> generate(Path("hello")).stale
    ()
    """
    spec = read_spec_as_written(feedstock)
    home = feedstock if feedstock.is_dir() else feedstock.parent
    require_local_sources(spec, home / SPEC_NAME if feedstock.is_dir() else feedstock)
    if recipe_format not in (None, spec.format) and folder is None:
        hint = f"Write the {recipe_format} recipe into another folder (--output)."
        raise InputError(f"a feedstock has one recipe, and this one's is {spec.format}", path=feedstock, hint=hint)
    target = folder or home
    texts = render(with_time_stamps(spec, home, migrations, home / SPEC_NAME), recipe_format)
    return Generated(target, texts, compare(target, texts))
