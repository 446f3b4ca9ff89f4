"""The files of a feedstock that edits read and change, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.files.changes import Changes
from feedstock_tools.reading import SPEC_NAME
from feedstock_tools.recipe.written.document import Document, WrittenFiles, read_document, read_files


@dataclass(frozen=True)
class Draft(WrittenFiles):
    """A feedstock with edits that are not yet written: each edit gives a new draft.

    `edited` holds the files that differ from the original ones; None for a deleted file. `remarks` are sentences for
    the user: what an edit found and left alone; `doubts` are those with which it must not be committed as it is, and
    `refusals` those with which it must not be written.
    """

    edited: Mapping[Path, Document | None] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()

    @property
    def spec(self) -> Document | None:
        """The spec that generates the recipe; None if people wrote it."""
        return self.file(SPEC_NAME)

    @property
    def paths(self) -> Iterable[Path]:
        """The paths of all files, those that were deleted included."""
        return self.original.keys() | self.edited.keys()

    def document(self, path: Path) -> Document | None:
        """A file of the feedstock as edited so far; None if there is none."""
        return self.edited[path] if path in self.edited else self.original.get(path)

    def with_recipe(self, edit: Callable[[Document], Document]) -> Draft:
        """The draft with an edited recipe."""
        return self.with_document(edit(self.recipe))

    def with_document(self, document: Document) -> Draft:
        """The draft with a new text of a file."""
        _ = document.root
        return self._with(document.path, document)

    def with_script(self, document: Document) -> Draft:
        """The draft with a new text of a file that is not YAML, which need not have been read before."""
        path = document.path
        read = {} if path in self.original or not path.is_file() else {path: read_document(path, within=self.folder)}
        return replace(self._with(path, document), original={**self.original, **read})

    def without(self, path: Path) -> Draft:
        """The draft without a file."""
        return self._with(path, None)

    def remarked(self, *remarks: str) -> Draft:
        """The draft with more remarks."""
        return replace(self, remarks=(*self.remarks, *remarks))

    def doubted(self, *doubts: str) -> Draft:
        """The draft with more doubts."""
        return replace(self, doubts=(*self.doubts, *doubts))

    def refused(self, *refusals: str) -> Draft:
        """The draft with more reasons not to write it."""
        return replace(self, refusals=(*self.refusals, *refusals))

    def _with(self, path: Path, document: Document | None) -> Draft:
        return replace(self, edited={**self.edited, path: document})

    def changes(self) -> Changes:
        """What edits change, to show or to apply."""
        files: dict[Path, bytes | None] = {}
        for path, document in self.edited.items():
            if document != self.original.get(path):
                files[path] = None if document is None else document.text.encode()
        known = {path: self.original.get(path) for path in self.paths}
        seen = {path: None if document is None else document.text.encode() for path, document in known.items()}
        return Changes(self.folder, files, seen=seen)


def open_draft(folder: Path, *, is_generated: bool = False) -> Draft:
    """Read the files of the feedstock in `folder` that edits can change.

    Args:
        is_generated: the caller takes the edit of a recipe that a spec generates into the spec, which the draft has.

    Raises:
        InputError: a spec generates the recipe, or `read_files` fails.

    >>> draft = open_draft(Path("solver-feedstock"))
    >>> draft.recipe_path.name, draft.changes().listed()
    ('meta.yaml', ())
    """
    files = read_files(folder)
    spec, original = files.folder / SPEC_NAME, dict(files.original)
    if spec.is_file() and not is_generated:
        hint = "Edit the spec, then run: feedstock-tools generate"
        raise InputError("the recipe is generated from this spec, which would undo edits", path=spec, hint=hint)
    if is_generated:
        original[spec] = read_document(spec, within=files.folder)
    return Draft(files.folder, files.recipe_path, original)
