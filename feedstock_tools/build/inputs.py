"""Whether a run still builds what it planned: people edit recipes while builds run."""

from __future__ import annotations

from dataclasses import replace

from feedstock_tools.build.contents import stamp_of_files
from feedstock_tools.build.plan import render_outputs
from feedstock_tools.build.planned import PlannedConfiguration, PlannedOutput, PlannedRow
from feedstock_tools.build.setting import Setting
from feedstock_tools.errors import InputError

__all__ = ["Inputs"]


class Inputs:
    """The recipe folder and local sources of a run, as they were when this was made."""

    def __init__(self, setting: Setting) -> None:
        self._recipe = setting.recipe
        self._roots = tuple(dict.fromkeys([setting.recipe.parent, setting.feedstock.recipe, *setting.sources]))
        self._stamp = stamp_of_files(self._roots)

    def differ(self, configuration: PlannedConfiguration, row: PlannedRow, output: PlannedOutput) -> bool:
        """Whether an output would be planned as another one now; files that were merely touched change nothing."""
        if stamp_of_files(self._roots) == self._stamp:
            return False
        alone = replace(configuration, rows=(replace(row, outputs=()),))
        try:
            (now,), _ = render_outputs([alone], self._recipe, lambda platform: output.inputs.get("engine", ""))
        except InputError:
            return True
        return output.identity not in {each.identity for one in now.rows for each in one.outputs}
