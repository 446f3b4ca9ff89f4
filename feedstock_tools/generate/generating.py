"""From the spec of a feedstock to what becomes of its files, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from feedstock_tools.errors import InputError
from feedstock_tools.generate.applying import FileChange, apply, compare
from feedstock_tools.generate.spec.reading import read_spec_as_written, require_local_sources, with_time_stamps
from feedstock_tools.generate.texts.rendering import render
from feedstock_tools.reading import SPEC_NAME


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

    def apply(self, *, force: bool = False) -> tuple[FileChange, ...]:
        """Write the stale files, all or none, and record the generated files; returns the changes.

        Args:
            force: overwrite files that a person edited, too.

        Raises:
            InputError: a person edited some of the files and `force` is not given; nothing is written then.
            WorkError: a file could not be written.
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
