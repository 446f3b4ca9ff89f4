"""The files of a feedstock that people write: recipe, variant files, conda-forge.yml and migrations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.reading import CI_SUPPORT
from feedstock_tools.recipe.written.document import Document, read_document

_RECIPES = ("meta.yaml", "recipe.yaml")
#: The variant files of a recipe.
VARIANT_FILES = ("recipe/conda_build_config.yaml", "recipe/variants.yaml")


@dataclass(frozen=True)
class WrittenFiles:
    """The files in the folder of a feedstock as they were read."""

    folder: Path
    recipe_path: Path
    original: Mapping[Path, Document]

    @property
    def recipe(self) -> Document:
        """The recipe."""
        recipe = self.document(self.recipe_path)
        assert recipe is not None  # noqa: S101 - there is one, and no edit deletes it
        return recipe

    @property
    def paths(self) -> Iterable[Path]:
        """The paths of all files."""
        return self.original.keys()

    def document(self, path: Path) -> Document | None:
        """The file at a path; None if there is none."""
        return self.original.get(path)

    def file(self, name: str) -> Document | None:
        """The file with a path relative to the feedstock, such as `recipe/conda_build_config.yaml`."""
        return self.document(self.folder / name)

    @property
    def migrations(self) -> tuple[Document, ...]:
        """The migrations in `.ci_support/migrations`, by name."""
        folder = self.folder / CI_SUPPORT / "migrations"
        paths = sorted(path for path in self.paths if path.parent == folder)
        return tuple(document for path in paths if (document := self.document(path)) is not None)


def read_files(folder: Path) -> WrittenFiles:
    """Read what people wrote in a feedstock.

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
    migrations = sorted((folder / CI_SUPPORT / "migrations").glob("*.y*ml"))
    paths = [*recipes, *(folder / name for name in (*VARIANT_FILES, "conda-forge.yml")), *migrations]
    original = {path: read_document(path, within=folder) for path in paths if path.is_file()}
    return WrittenFiles(folder, recipes[0], original)
