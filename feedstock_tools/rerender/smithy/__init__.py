"""The door of a product of its own: the whole tree of a feedstock, as a release of conda-smithy writes it.

- A release on disk (`find_release`, `choose_release`, `installed_release`) and the rules for it (`chosen_rules`).
- The tree around `.ci_support`: `whole_tree` of a `Release`, from what a rerender found on each platform
  (`RenderedPlatform`, with the packages that a `PackageWatch` saw). Its README shows the packages that are built, or
  those of the plain recipe: `describes_plain_recipe`.
- Without a release, the job lists of the CI files that are there: `follow_configurations`.
- Where Azure knows the number in the README: `azure_project`.

Nothing outside imports the modules behind it. None of conda-smithy's code is run, and none of its texts is copied here.
"""

from feedstock_tools.rerender.smithy.job_lists import CiUpdate, follow_configurations
from feedstock_tools.rerender.smithy.readme import Package, PackageWatch, azure_project
from feedstock_tools.rerender.smithy.release import (
    Release,
    choose_release,
    chosen_rules,
    find_release,
    installed_release,
)
from feedstock_tools.rerender.smithy.services import File
from feedstock_tools.rerender.smithy.tree import RenderedPlatform, Tree, describes_plain_recipe, whole_tree

__all__ = [
    "CiUpdate",
    "File",
    "Package",
    "PackageWatch",
    "Release",
    "RenderedPlatform",
    "Tree",
    "azure_project",
    "choose_release",
    "chosen_rules",
    "describes_plain_recipe",
    "find_release",
    "follow_configurations",
    "installed_release",
    "whole_tree",
]
