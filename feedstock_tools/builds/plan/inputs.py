"""Detecting changed inputs: people edit recipes while builds run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from feedstock_tools.digests import files_below, stamp_of_files
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput, PlannedRow


@dataclass(frozen=True, slots=True)
class PlannedInputs:
    """The files behind a plan, in their state at that time.

    Files that appear later do not count: some scripts collect licenses into `$RECIPE_DIR`, and unreferenced files
    are not part of a build.

    Attributes:
        recipe: the `recipe.yaml` to build.
        files: the files of the recipe folders and local sources.
        stamp: of those files (`stamp_of_files`).
    """

    recipe: Path
    files: tuple[Path, ...]
    stamp: str

    @classmethod
    def of(cls, recipe: Path, roots: Iterable[Path]) -> PlannedInputs:
        """The files below the recipe's folder and some other files and folders, in their current state."""
        files = tuple(Path(file) for root in dict.fromkeys([recipe.parent, *roots]) for file in files_below(root))
        return cls(recipe, files, stamp_of_files(files))

    def differ(self, platform: str, row: PlannedRow, output: PlannedOutput) -> bool:
        """Whether an output of a row would now be planned differently; a file that was only touched changes nothing.

        Args:
            platform: the target subdir of the row.
        """
        if stamp_of_files(self.files) == self.stamp:
            return False
        from feedstock_tools.builds.plan.rendering import render_outputs

        alone = PlannedConfiguration(row.name, platform, (replace(row, outputs=()),))
        try:
            (now,), _ = render_outputs([alone], self.recipe, {platform: output.inputs.get("engine", "")})
        except InputError:
            return True
        return output.identity not in {planned.identity for rendered in now.rows for planned in rendered.outputs}
