"""A folder of feedstocks: clones, bare snapshots (`OWNER+NAME/repo`), or the folders of one repository."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.digests import digest_of_files
from feedstock_tools.errors import FeedstockError, InputError
from feedstock_tools.feedstock.git import small_files_of, tree_of
from feedstock_tools.reading import CI_SUPPORT, FORGE_FILE

_RECIPES = ("recipe/meta.yaml", "recipe/recipe.yaml")
_SUFFIX = "-feedstock"


@dataclass(frozen=True, slots=True)
class Member:
    """A feedstock of a workspace: its name, such as `numpy`, and the id of its files, by which a change is seen.

    `is_repository`: what its last commit has counts, not what lies in its folder.
    """

    name: str
    path: Path
    tree: str
    is_repository: bool


def members(folder: Path) -> Iterator[Member | tuple[str, str]]:
    """The feedstocks of a folder by name; for one that cannot be read, its name and the reason.

    Raises:
        InputError: there is no such folder.
    """
    if not folder.is_dir():
        raise InputError("there is no such folder", path=folder)
    for path in sorted(folder.iterdir()):
        name = path.name.rpartition("+")[2].removesuffix(_SUFFIX)
        repository = next((each for each in (path, path / "repo") if _is_repository(each)), None)
        try:
            if repository is not None:
                if path.name.endswith(_SUFFIX) or _has_recipe(path):
                    yield Member(name, repository, tree_of(repository), is_repository=True)
            elif _has_recipe(path):
                yield Member(name, path, _digest(path), is_repository=False)
        except FeedstockError as error:
            yield name, error.mistakes[0].message if isinstance(error, InputError) else str(error)


@contextmanager
def opened(member: Member) -> Iterator[Path]:
    """A folder with the files of a feedstock; they are not written to."""
    if member.is_repository:
        with small_files_of(member.path) as folder:
            yield folder
    else:
        yield member.path


def _is_repository(path: Path) -> bool:
    return (path / ".git").exists() or ((path / "HEAD").is_file() and (path / "objects").is_dir())


def _has_recipe(path: Path) -> bool:
    return any((path / name).is_file() for name in _RECIPES)


def _digest(path: Path) -> str:
    return digest_of_files([each for each in (path / "recipe", path / CI_SUPPORT, path / FORGE_FILE) if each.exists()])
