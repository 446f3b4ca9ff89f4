"""Patches that upstream took: a new version drops them where git can take them back from its source."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.writing import removed_entry, removed_items
from feedstock_tools.errors import FeedstockError
from feedstock_tools.feedstock.git import applies
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.reading import LARGEST_SCRIPT, is_below, read_bytes
from feedstock_tools.recipe.written.document import TextEdit, read_document
from feedstock_tools.recipe.written.owners import written_sources
from feedstock_tools.recipe.written.variables import expand

_PATH = re.compile(rb"^(?:---|\+\+\+) ([^\t\r\n]+)", re.MULTILINE)
#: Bytes of a file that a patch changes, and of all files of an archive.
_LARGEST = 64 << 20
_LARGEST_ARCHIVE = 16 << 30

#: What a patch is to a source: in it already, one for it, or one that git cannot apply.
Fit = Literal["taken", "applies", "fails"]


def without_taken(draft: Draft, archives: Mapping[str, Path]) -> Draft:
    """The draft without the patches that upstream took, each named in a remark, as is one that fits no more.

    Args:
        archives: the downloaded sources by their addresses.
    """
    recipe = draft.recipe
    changes, gone = list[TextEdit](), list[str]()
    for source in written_sources(recipe):
        addresses = {expand(recipe, leaf.text, {}) for entry in source.below("url") for leaf in entry.value.leaves}
        archive = next((path for address, path in archives.items() if address in addresses), None)
        for entry in source.below("patches"):
            fits = {item: _fit(draft, item.text, archive) for item in entry.value.leaves}
            taken = [item for item in entry.value.items if fits.get(item) == "taken"]
            for item, fit in fits.items():
                said = {
                    "taken": f"the new source has {item.text} already: {'dropped' if item in taken else 'drop it'}",
                    "fails": f"git does not apply {item.text} alone to the new source",
                }
                if fit in said:
                    draft = draft.remarked(f"{recipe.place_of(item.start)}: {said[fit]}")
            gone += [item.text for item in taken]
            is_whole = 0 < len(taken) == len(entry.value.items)
            changes += removed_entry(recipe, entry) if is_whole else removed_items(recipe, entry.value, taken)
    edited = recipe.changed(changes)
    for name in dict.fromkeys(gone):
        if PurePosixPath(name).name not in edited.text:
            draft = _without_file(draft, name)
    return draft.with_document(edited)


def _without_file(draft: Draft, name: str) -> Draft:
    path = draft.recipe_path.parent / name
    try:
        return draft.with_script(read_document(path, within=draft.folder)).without(path)
    except FeedstockError:  # not text in UTF-8
        return draft.remarked(f"{name} is no longer needed: remove it")


def _fit(draft: Draft, name: str, archive: Path | None) -> Fit | None:
    """What a patch of the recipe is to a source; None if the file or the source cannot be read."""
    path = draft.recipe_path.parent / name
    if archive is None or "{{" in name or not is_below(path, draft.recipe_path.parent) or not path.is_file():
        return None
    try:
        patch = read_bytes(path, LARGEST_SCRIPT, within=draft.folder)
    except FeedstockError:
        return None
    paths = {path.decode(errors="replace").strip() for path in _PATH.findall(patch)} - {"/dev/null"}
    strip = int(all(path.startswith(("a/", "b/")) for path in paths))
    wanted = {path[2:] if strip else path for path in paths}
    if not wanted:
        return None
    with temporary_folder() as folder:
        try:
            found = _unpack(archive, wanted, folder)
        except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, NotImplementedError, RuntimeError):
            return None
        if not found:
            return "fails"
        if applies(folder, patch, strip, reverse=True):
            return "taken"
        return "applies" if applies(folder, patch, strip) else "fails"


def _unpack(archive: Path, wanted: Collection[str], folder: Path) -> bool:
    """Write the files of an archive with some paths below its top folder; whether there are any."""
    found = False
    for name, file in _members(archive):
        inner = name.partition("/")[2]
        for path in {name, inner} & set(wanted):
            target = folder / path
            if is_below(target, folder):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.read(_LARGEST))
                found = True
    return found


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The plain files of a tar archive or a zip, up to a number of bytes."""
    left = _LARGEST_ARCHIVE
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for info in zipped.infolist():
                if not info.is_dir() and info.file_size <= _LARGEST:
                    with zipped.open(info) as file:
                        yield info.filename, file
        return
    with tarfile.open(archive) as packed:
        for member in packed:
            left -= member.size
            if left < 0:
                return
            content = packed.extractfile(member) if member.isfile() and member.size <= _LARGEST else None
            if content is not None:
                yield member.name.removeprefix("./"), content
