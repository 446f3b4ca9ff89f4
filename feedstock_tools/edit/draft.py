"""The files of a feedstock that edits read and change, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.file_names import CI_SUPPORT
from feedstock_tools.files.changes import Changes
from feedstock_tools.recipe.written.document import Document, read_document

_RECIPES = ("meta.yaml", "recipe.yaml")
_SPEC = "feedstock.yaml"


@dataclass(frozen=True)
class Draft:
    """A feedstock with edits that are not yet written: each edit gives a new draft.

    `original` holds the files as they were read, `edited` those that differ from it; None for a deleted file.
    `remarks` are sentences for the user: what an edit found and left alone.
    """

    folder: Path
    recipe_path: Path
    original: Mapping[Path, Document]
    edited: Mapping[Path, Document | None] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def recipe(self) -> Document:
        """The recipe as edited so far."""
        recipe = self.document(self.recipe_path)
        assert recipe is not None  # noqa: S101 - no edit deletes the recipe
        return recipe

    def document(self, path: Path) -> Document | None:
        """A file of the feedstock as edited so far; None if there is none."""
        return self.edited[path] if path in self.edited else self.original.get(path)

    def file(self, name: str) -> Document | None:
        """The file with a path relative to the feedstock, such as `recipe/conda_build_config.yaml`."""
        return self.document(self.folder / name)

    @property
    def migrations(self) -> tuple[Document, ...]:
        """The migrations in `.ci_support/migrations`, by name."""
        folder = self.folder / CI_SUPPORT / "migrations"
        paths = sorted(path for path in self.original.keys() | self.edited.keys() if path.parent == folder)
        return tuple(document for path in paths if (document := self.document(path)) is not None)

    def with_recipe(self, edit: Callable[[Document], Document]) -> Draft:
        """The draft with an edited recipe."""
        return self.with_document(edit(self.recipe))

    def with_document(self, document: Document) -> Draft:
        """The draft with a new text of a file.

        Raises:
            InputError: the edited text is not valid YAML: edits cannot follow the way in which the file is written.
        """
        _ = document.root
        return self._with(document.path, document)

    def with_script(self, document: Document) -> Draft:
        """The draft with a new text of a file that is not YAML, which need not have been read before.

        Raises:
            InputError: the file on disk is not text in UTF-8.
        """
        path = document.path
        read = {} if path in self.original or not path.is_file() else {path: read_document(path, within=self.folder)}
        return replace(self._with(path, document), original={**self.original, **read})

    def without(self, path: Path) -> Draft:
        """The draft without a file."""
        return self._with(path, None)

    def remarked(self, *remarks: str) -> Draft:
        """The draft with more remarks."""
        return replace(self, remarks=(*self.remarks, *remarks))

    def _with(self, path: Path, document: Document | None) -> Draft:
        return replace(self, edited={**self.edited, path: document})

    def changes(self) -> Changes:
        """What edits change, to show or to apply."""
        files: dict[Path, bytes | None] = {}
        for path, document in self.edited.items():
            if document != self.original.get(path):
                files[path] = None if document is None else document.text.encode()
        known = {path: self.original.get(path) for path in self.original.keys() | self.edited.keys()}
        seen = {path: None if document is None else document.text.encode() for path, document in known.items()}
        return Changes(self.folder, files, seen=seen)


def open_draft(folder: Path) -> Draft:
    """Read the files of the feedstock in `folder` that edits can change.

    Raises:
        InputError: a spec generates the recipe, or `read_draft` fails.

    >>> draft = open_draft(Path("solver-feedstock"))
    >>> draft.recipe_path.name, draft.changes().listed()
    ('meta.yaml', ())
    """
    draft = read_draft(folder)
    spec = draft.folder / _SPEC
    if spec.is_file():
        hint = "Edit the spec, then run: feedstock-tools generate"
        raise InputError("the recipe is generated from this spec, which would undo edits", path=spec, hint=hint)
    return draft


def read_draft(folder: Path) -> Draft:
    """Read the same files without editing them, so that a spec may generate the recipe.

    Raises:
        InputError: the feedstock lacks a recipe or has two, or a file cannot be read.
    """
    folder = folder.resolve()
    recipes = [path for name in _RECIPES if (path := folder / "recipe" / name).is_file()]
    if len(recipes) != 1:
        recipe_state = (
            "has a meta.yaml and a recipe.yaml" if recipes else "has no recipe/meta.yaml or recipe/recipe.yaml"
        )
        raise InputError(f"the feedstock {recipe_state}", path=folder, hint="Expected one recipe.")
    others = ("recipe/conda_build_config.yaml", "recipe/variants.yaml", "conda-forge.yml")
    migrations = sorted((folder / CI_SUPPORT / "migrations").glob("*.y*ml"))
    paths = [*recipes, *(folder / name for name in others), *migrations]
    original = {path: read_document(path, within=folder) for path in paths if path.is_file()}
    return Draft(folder, recipes[0], original)
