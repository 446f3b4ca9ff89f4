"""Checking a file of facts before it is trusted: all mistakes at once, each with line and column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from feedstock_tools.errors import InputError
from feedstock_tools.facts.form import FactsFile
from feedstock_tools.facts.framework_models import FrameworksFile, WheelsFile
from feedstock_tools.facts.models import CudaFile, GpusFile, MessagesFile, PackagesFile, ToolsFile
from feedstock_tools.reading import read_text
from feedstock_tools.yaml_reading.checking import mistakes_of
from feedstock_tools.yaml_reading.positions import Document, parse_document
from feedstock_tools.yaml_reading.values import parse_json_types

#: The files of facts, each with its model.
FILES: dict[str, type[FactsFile]] = {
    "cuda.yaml": CudaFile,
    "frameworks.yaml": FrameworksFile,
    "gpus.yaml": GpusFile,
    "messages.yaml": MessagesFile,
    "packages.yaml": PackagesFile,
    "tools.yaml": ToolsFile,
    "wheels.yaml": WheelsFile,
}


def checked(path: Path, model: type[FactsFile]) -> Any:
    """The content of a file of facts that conforms to its model, as dictionaries, lists and scalars.

    Raises:
        InputError: the file cannot be read, is not YAML, or breaks the model; all mistakes in one error.
    """
    text = read_text(path, within=None)
    document = parse_document(text, path)
    content = parse_json_types(text, path)
    check_document(document, content, model)
    return content


def check_document(document: Document, content: Any, model: type[FactsFile]) -> None:
    """Check a document whose places and content are known.

    Raises:
        InputError: it breaks the model; all mistakes in one error.
    """
    mistakes = list(document.mistakes)
    try:
        model.model_validate(content)
    except ValidationError as error:
        mistakes += mistakes_of(document, error, model, "the file")
    if mistakes:
        unique = dict.fromkeys(mistakes)
        raise InputError.of(sorted(unique, key=lambda mistake: (mistake.line or 0, mistake.column or 0)))
