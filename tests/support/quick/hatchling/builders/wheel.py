"""A wheel of feedstock-tools by name, with nothing in it."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

from feedstock_tools import __version__


class WheelBuilder:
    """What builds the wheel of the checkout in a folder."""

    def __init__(self, root: str) -> None:
        assert Path(root, "pyproject.toml").is_file()

    def build(self, *, directory: str, versions: list[str]) -> Iterator[str]:
        """Write the wheel into a folder."""
        assert versions == ["standard"]
        time.sleep(0.5)
        path = Path(directory, f"feedstock_tools-{__version__}-py3-none-any.whl")
        with zipfile.ZipFile(path, "w"):
            yield str(path)
