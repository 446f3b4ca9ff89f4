"""Whether a run still builds what it planned: people edit recipes while builds run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from feedstock_tools.builds.plan.cache import render_outputs
from feedstock_tools.builds.plan.workspace import Setting
from feedstock_tools.digests import files_below, stamp_of_files
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput, PlannedRow

__all__ = ["Inputs"]


class Inputs:
    """The recipe folder and local sources of a run, as they were when this was made.

    Files that come later do not count: there are scripts that collect licenses into `$RECIPE_DIR`, and what nothing
    names goes into no build.
    """

    def __init__(self, setting: Setting) -> None:
        self._recipe = setting.recipe
        roots = dict.fromkeys([setting.recipe.parent, setting.feedstock.recipe, *setting.sources])
        self._files = tuple(Path(file) for root in roots for file in files_below(root))
        self._stamp = stamp_of_files(self._files)

    def differ(self, configuration: PlannedConfiguration, row: PlannedRow, output: PlannedOutput) -> bool:
        """Whether an output would be planned as another one now; files that were merely touched change nothing."""
        if stamp_of_files(self._files) == self._stamp:
            return False
        alone = replace(configuration, rows=(replace(row, outputs=()),))
        try:
            (now,), _ = render_outputs([alone], self._recipe, lambda platform: output.inputs.get("engine", ""))
        except InputError:
            return True
        return output.identity not in {each.identity for one in now.rows for each in one.outputs}
