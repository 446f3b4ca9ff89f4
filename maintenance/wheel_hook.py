"""Puts the man pages of all commands into a wheel: hatchling calls this while it builds one.

An installer lays them into `share/man/man1` of the environment, where man(1) finds the pages of programs in its `bin`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManPages(BuildHookInterface[Any]):
    """The hook: the pages are written into a temporary folder, and packed from there."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the pages to what is packed."""
        # The checkout that is built, whatever else the interpreter has installed.
        sys.path.insert(0, self.root)
        from maintenance.man import FOLDER, write_pages

        self._scratch = tempfile.TemporaryDirectory()
        build_data["shared_data"].update(
            {str(page): f"{FOLDER}/{page.name}" for page in write_pages(Path(self._scratch.name))}
        )

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary folder."""
        self._scratch.cleanup()
