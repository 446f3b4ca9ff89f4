"""What the files of all CI services are made from, and what they are made into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feedstock_tools.rerender.configurations.configuration import Configuration
from feedstock_tools.rerender.forge import Forge
from feedstock_tools.rerender.smithy.releases.release import Release
from feedstock_tools.rerender.smithy.releases.templates import Templates
from feedstock_tools.rerender.smithy.rules import CiRules
from feedstock_tools.rerender.smithy.settings import Placement
from feedstock_tools.rerender.smithy.tree_rules import TreeRules


@dataclass(frozen=True, slots=True)
class File:
    """The content of a file of a feedstock, and whether it is executable."""

    content: bytes
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Built:
    """The configurations of one platform that one provider builds, sorted by name."""

    placement: Placement
    configurations: tuple[Configuration, ...]


@dataclass(frozen=True)
class Workshop:
    """The inputs that all services share."""

    release: Release
    templates: Templates
    forge: Forge
    rules: TreeRules
    ci: CiRules

    @property
    def feedstock(self) -> Path:
        """The feedstock's folder."""
        return self.forge.folder

    @property
    def settings(self) -> Mapping[str, Any]:
        """Its conda-forge.yml as YAML reads it."""
        return self.forge.settings

    @property
    def recipe(self) -> Path:
        """The recipe's folder."""
        return self.forge.folder / self.forge.recipe_dir
