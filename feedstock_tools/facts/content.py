"""The content of a file of facts: of the one that ships, or of a user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from feedstock_tools.data import data_folder
from feedstock_tools.reading import read_text
from feedstock_tools.yaml_reading.values import parse_json_types


def content_of(name: str, path: Path | None) -> Any:
    """The content of `path`, checked against the model of `name` (`cuda.yaml`), as dictionaries, lists and scalars.

    Without a path, of the file that ships: tests check it, since its model takes longer to import than it to read.

    Raises:
        InputError: `path` breaks the form of such a file; all mistakes, each with line and column.
    """
    if path is None:
        shipped = data_folder("variants") / name
        return parse_json_types(read_text(shipped, within=None), shipped)
    from feedstock_tools.facts.checking import FILES, checked

    return checked(path, FILES[name])
