"""Which feedstock is meant: the one here, the one in a folder that is named, or the example that comes along."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools import __version__
from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError
from feedstock_tools.writing import replacing

__all__ = ["EXAMPLE", "Feedstock", "feedstock_or_example", "find_feedstock", "user_cache"]

#: The example that `build` takes where there is no feedstock.
EXAMPLE = "gpuprobe"


@dataclass(frozen=True, slots=True)
class Feedstock:
    """A feedstock's folder. `note` is what its user should be told about the choice of it, if anything."""

    folder: Path
    note: str | None = None

    @property
    def spec(self) -> Path:
        """Where its spec is, if it has one."""
        return self.folder / "feedstock.yaml"

    @property
    def recipe(self) -> Path:
        """The folder of its recipe."""
        return self.folder / "recipe"

    @property
    def artifacts(self) -> Path:
        """Where conda-smithy's scripts leave what they build."""
        return self.folder / "build_artifacts"

    @property
    def inputs(self) -> tuple[Path, ...]:
        """Everything in it that decides what is built; sources elsewhere are named by the recipe."""
        names = ("feedstock.yaml", "conda-forge.yml", "recipe", ".ci_support")
        return tuple(self.folder / name for name in names)


def find_feedstock(given: Path | None, here: Path) -> Feedstock:
    """The feedstock in a folder that was given, else in the current one.

    Raises:
        InputError: the folder holds none.
    """
    folder = (given or here).resolve()
    if _is_feedstock(folder):
        return Feedstock(folder)
    what = "A feedstock has recipe/recipe.yaml or recipe/meta.yaml, or a feedstock.yaml to make them from."
    hint = what if given else f"{what} Go to one, or name it: --feedstock DIR."
    raise InputError("there is no feedstock in this folder", path=folder, hint=hint)


def feedstock_or_example(given: Path | None, here: Path, environment: Mapping[str, str]) -> Feedstock:
    """The feedstock in a folder that was given, else in the current one, else the example `gpuprobe`.

    An example of an installation, or one that cannot be written, is copied to the user's cache and built there.

    Raises:
        InputError: the folder that was given holds none.
    """
    if given is not None or _is_feedstock(here):
        return find_feedstock(given, here)
    example = data_folder("examples") / EXAMPLE
    if not _is_feedstock(example):
        raise InputError("there is no feedstock here, and the example is missing", path=example)
    if example.parent.parent.name != "_data" and os.access(example, os.W_OK):
        return Feedstock(example, f"There is no feedstock in {here}: taking the example {example}")
    copy = _copied(example, environment)
    return Feedstock(copy, f"There is no feedstock in {here}: taking a copy of the example in {copy}")


def user_cache(environment: Mapping[str, str], otherwise: Path) -> Path:
    """The folder of this program in the user's cache, made where it is missing; `otherwise` where it cannot be."""
    from feedstock_tools.channel.pinning.local import pinning_cache

    folder = pinning_cache(environment).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return otherwise
    return folder if os.access(folder, os.W_OK) else otherwise


def _is_feedstock(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("feedstock.yaml", "recipe/recipe.yaml", "recipe/meta.yaml"))


def _copied(example: Path, environment: Mapping[str, str]) -> Path:
    """A copy of this version's example in the user's cache; files that the user has changed there stay as they are."""
    import tempfile

    cache = user_cache(environment, Path(tempfile.gettempdir(), "feedstock-tools"))
    target = cache / "examples" / __version__ / example.name
    for source in sorted(example.rglob("*")):
        place = target / source.relative_to(example)
        if "build_artifacts" in place.parts or source.is_dir() or place.exists():
            continue
        with replacing(place) as part:
            shutil.copyfile(source, part)
            part.chmod(source.stat().st_mode | 0o200)
    return target
