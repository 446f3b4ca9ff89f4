"""The vocabulary of values in a spec: platforms, versions, architectures, file names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import KNOWN_SUBDIRS, Platform


class WordError(ValueError):
    """An unexpected word; `hint` names what was expected."""

    def __init__(self, message: str, hint: str | None) -> None:
        super().__init__(message)
        self.hint = hint


def _check_subdir(text: str) -> str:
    try:
        return Platform.parse(text).subdir
    except InputError as error:
        near = get_close_matches(text, KNOWN_SUBDIRS, n=1, cutoff=0.5)
        hint = f"Did you mean '{near[0]}'?" if near else error.mistakes[0].hint
        raise WordError(error.mistakes[0].message, hint) from None


def _check_relative(text: str) -> str:
    path = PurePosixPath(text)
    if not re.fullmatch(r"[A-Za-z0-9_.+@/-]+", text) or path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError(f"'{text}' is not the name of a file in the recipe folder")
    return text


def _check_folder(text: str) -> str:
    path = PurePosixPath(text)
    if not re.fullmatch(r"[A-Za-z0-9_.+@/-]+", text) or path.is_absolute() or ".." in path.parts:
        raise ValueError(f"'{text}' is not the name of a folder below the sources")
    return text


def _check_cuda_version(text: str) -> str:
    if not re.fullmatch(r"\d{1,2}\.\d{1,2}", text):
        raise ValueError(f"'{text}' is not a CUDA version such as 11.2")
    return text


def _check_python_version(text: str) -> str:
    if not re.fullmatch(r"\d\.\d{1,2}", text):
        raise ValueError(f"'{text}' is not a Python version such as 3.12")
    return text


def _check_architecture(text: str) -> str:
    if not ARCHITECTURE.fullmatch(text):
        raise ValueError(f"'{text}' is not an architecture such as sm_86 (machine code) or compute_86 (PTX)")
    return text


def _check_sha256(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise ValueError("a sha256 must have 64 digits of 0-9 and a-f")
    return text


#: `sm_86` (machine code), `compute_86` (PTX), and the variants of an architecture, `sm_90a`.
ARCHITECTURE = re.compile(r"(sm|compute)_\d{2,3}[af]?")
Subdir = Annotated[str, AfterValidator(_check_subdir)]
RecipeFile = Annotated[str, AfterValidator(_check_relative)]
SourceFolder = Annotated[str, AfterValidator(_check_folder)]
CudaVersion = Annotated[str, AfterValidator(_check_cuda_version)]
PythonVersion = Annotated[str, AfterValidator(_check_python_version)]
Architecture = Annotated[str, AfterValidator(_check_architecture)]
#: An amount of memory or disk, such as `64 GiB`.
Size = Annotated[str, Field(pattern=r"^\d+(\.\d+)? ?[KMGT]i?B$")]
Sha256 = Annotated[str, AfterValidator(_check_sha256)]
ArchitecturesByVersion = Mapping[CudaVersion, Annotated[tuple[Architecture, ...], Field(min_length=1)]]


def _shape(value: Any) -> str:
    """The member of a union that a value belongs to, so that mistakes are reported for that member only."""
    if isinstance(value, dict):
        return "<mapping>"
    return "<list>" if isinstance(value, list | tuple) else "<word>"


def _word_or_list(value: Any) -> str:
    return "<list>" if isinstance(value, list | tuple) else "<word>"


CudaVersions = Annotated[
    Annotated[Literal["pinning", "all"], Tag("<word>")]
    | Annotated[tuple[CudaVersion, ...], Field(min_length=1), Tag("<list>")],
    Discriminator(_word_or_list),
]
PythonVersions = Annotated[
    Annotated[Literal["pinning"], Tag("<word>")]
    | Annotated[tuple[PythonVersion, ...], Field(min_length=1), Tag("<list>")],
    Discriminator(_word_or_list),
]
ArchitectureChoice = Annotated[
    Annotated[str, Tag("<word>")]
    | Annotated[tuple[Architecture, ...], Field(min_length=1), Tag("<list>")]
    | Annotated[ArchitecturesByVersion, Tag("<mapping>")],
    Discriminator(_shape),
]
