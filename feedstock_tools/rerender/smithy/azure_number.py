"""Where to ask Azure for the number of a feedstock's pipeline (`definitionId`), which its README's badges have.

See conda-smithy, azure_build_id_from_public.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.rerender.forge import read_forge
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.smithy.config import template_settings
from feedstock_tools.rerender.smithy.releases.release import Release
from feedstock_tools.rerender.smithy.rules import ci_rules
from feedstock_tools.rerender.smithy.tree_rules import tree_rules


@dataclass(frozen=True, slots=True)
class AzureProject:
    """A repository as Azure knows it."""

    organisation: str
    project: str
    repository: str


def azure_project(feedstock: Path, release: Release, rules: Rules) -> AzureProject | None:
    """Where to look up the number of a feedstock; None if its conda-forge.yml gives the number.

    Raises:
        InputError: conda-forge.yml cannot be read.
    """
    settings = read_forge(feedstock, rules).settings
    config = template_settings(release, settings, feedstock, tree_rules(rules.smithy), ci_rules(rules.smithy))
    azure = config["azure"]
    if azure.get("build_id") is not None:
        return None
    return AzureProject(str(azure["user_or_org"]), str(azure["project_name"]), str(config["github"]["repo_name"]))
