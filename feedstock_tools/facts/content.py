"""The content of files of facts: those that ship and updates are read as they are, others are checked first."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from feedstock_tools import __version__
from feedstock_tools.data import cache_root, data_folder
from feedstock_tools.files.locks import say_aside
from feedstock_tools.reading import read_text
from feedstock_tools.yaml_reading.nodes import parse_json_types

if TYPE_CHECKING:
    from feedstock_tools.facts.models import FactsFile


#: The files that only answer questions; those that decide what is built come with a release.
NAMES = ("frameworks.yaml", "gpus.yaml", "messages.yaml", "wheels.yaml")


@dataclass(frozen=True, slots=True)
class Update:
    """A file of facts that replaces ours: where it came from, its SHA-256, and when it was taken (UTC)."""

    name: str
    source: str
    sha256: str
    date: str


def folder_of_updates() -> Path:
    """The folder of updates; those of another release of ours are not read, since ours may be newer."""
    return cache_root(os.environ) / "facts" / __version__


def updated(name: str) -> tuple[Path, Update] | None:
    """The file that replaces one of ours, if there is one."""
    path = folder_of_updates() / name
    if name not in NAMES or not path.is_file():
        return None
    return path, Update(**json.loads(read_text(path.with_suffix(".json"), within=None)))


def content_of(name: str) -> Any:
    """The content of a file that ships, as mappings, tuples and scalars.

    Tests check it, since its model takes longer to import than it to read. A file that the user took instead was
    checked then, and is named beside every answer.
    """
    path = data_folder("variants") / name
    if found := updated(name):
        path, taken = found
        say_aside(f"facts: {name} of {taken.source}, {taken.date}")
    return _frozen(parse_json_types(read_text(path, within=None), path))


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return MappingProxyType({key: _frozen(part) for key, part in value.items()})
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def checked(path: Path, model: type[FactsFile]) -> Any:
    """The content of a file of facts that conforms to its model, as dictionaries, lists and scalars.

    Raises:
        InputError: the file cannot be read, is not YAML, or breaks the model; all mistakes in one error.
    """
    from feedstock_tools.yaml_reading.checking import model_of
    from feedstock_tools.yaml_reading.nodes import parse_document

    text = read_text(path, within=None)
    document = parse_document(text, path)
    content = parse_json_types(text, path)
    model_of(document, content, model, "the file")
    return content
