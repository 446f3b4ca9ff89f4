"""Finding the feedstock: the one here, the one in a given folder, or the example that ships with the program."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.data import cache_root, data_folder
from feedstock_tools.errors import InputError
from feedstock_tools.reading import read_text

#: The example that the README builds.
EXAMPLE = "gpuprobe"
_WHAT = "A feedstock has recipe/recipe.yaml or recipe/meta.yaml, or a feedstock.yaml to generate them from."
_RECIPE_NAMES = (r"^\s+feedstock-name:\s*[\"']?([\w.-]+)", r"^(?:recipe|package):\s*\n\s+name:\s*[\"']?([\w.-]+)")
#: File → a line of it that names the feedstock, the best source first.
_NAMES = (
    ("feedstock.yaml", re.compile(r"^name:\s*[\"']?([\w.-]+)", re.MULTILINE)),
    *(
        (f"recipe/{file}", re.compile(line, re.MULTILINE))
        for line in _RECIPE_NAMES
        for file in ("recipe.yaml", "meta.yaml")
    ),
)


@dataclass(frozen=True, slots=True)
class Feedstock:
    """A feedstock's folder. `note` is a message about its choice, if any."""

    folder: Path
    note: str | None = None

    @property
    def spec(self) -> Path:
        return self.folder / "feedstock.yaml"

    @property
    def recipe(self) -> Path:
        return self.folder / "recipe"

    @property
    def artifacts(self) -> Path:
        """The folder in which conda-smithy's scripts leave their packages."""
        return self.folder / "build_artifacts"

    @property
    def name(self) -> str:
        """Its name: the spec's, else the one in its recipe, else the folder's; without `-feedstock` or `-split`."""
        for file, key in _NAMES:
            path = self.folder / file
            found = key.search(read_text(path, within=self.folder)) if path.is_file() else None
            if found:
                return found[1].removesuffix("-split")
        return self.folder.name.removesuffix("-feedstock")

    @property
    def inputs(self) -> tuple[Path, ...]:
        """Everything in it that affects builds; the recipe names further sources."""
        names = ("feedstock.yaml", "conda-forge.yml", "recipe", ".ci_support")
        return tuple(self.folder / name for name in names)


def find_feedstock(feedstock: Path | None, here: Path) -> Feedstock:
    """The feedstock in a given folder, else in the current one.

    Raises:
        InputError: the folder is not a feedstock.
    """
    folder = (feedstock or here).resolve()
    if _is_feedstock(folder):
        return Feedstock(folder)
    if folder.is_file():
        raise InputError("is a file, not the folder of a feedstock", path=folder)
    if not folder.exists():
        raise InputError("there is no such folder", path=folder)
    hint = _WHAT if feedstock else f"{_WHAT} Go to one, or name it: --feedstock DIR."
    raise InputError("there is no feedstock in this folder", path=folder, hint=hint)


def find_or_example(feedstock: Path | None, here: Path, example: Path | None) -> Feedstock:
    """The feedstock in a given folder, else in the current one, else `example` if given.

    Raises:
        InputError: there is none; the error names the example and the command that builds it.
    """
    if feedstock is None and not _is_feedstock(here):
        if example is not None:
            return Feedstock(example, f"There is no feedstock in {here}: building the example {example}")
        hint = f"{_WHAT} Go to one, or name it: --feedstock DIR.\n  {_how_to_build_the_example()}"
        raise InputError("there is no feedstock in this folder", path=here, hint=hint)
    return find_feedstock(feedstock, here)


def example_of_checkout(here: Path) -> Path | None:
    """The example `gpuprobe` if `here` is the top of a checkout of feedstock-tools, else None."""
    top = data_folder("examples").parent
    return top / "examples" / EXAMPLE if here.resolve() == top and (top / "build-locally.py").is_file() else None


def _how_to_build_the_example() -> str:
    example = data_folder("examples") / EXAMPLE
    if example.parent.parent.name == "_data":  # of an installation, which is no place to build in
        return f"To try the example, copy {example} here and run: feedstock-tools build ./{EXAMPLE} linux_64_cuda11.2"
    script = example.parent.parent / "build-locally.py"  # needs no installation
    return f"To try the example: python3 {script} --feedstock {example} linux_64_cuda11.2"


def user_cache(environment: Mapping[str, str], otherwise: Path) -> Path:
    """The folder of this program in the user's cache, created if missing; `otherwise` if that fails."""
    folder = cache_root(environment)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return otherwise
    return folder if os.access(folder, os.W_OK) else otherwise


def _is_feedstock(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("feedstock.yaml", "recipe/recipe.yaml", "recipe/meta.yaml"))
