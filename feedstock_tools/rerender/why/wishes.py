"""What a job should have: `cuda12.9`, `cuda`, `cpu`, `py3.13`, `mpi=openmpi`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from feedstock_tools.errors import InputError

CUDA = "cuda_compiler_version"
_NO_CUDA = "None"
_VERSIONED = re.compile(r"(cuda|py|python)-?(\d+(?:\.\d+)*)?")
_PAIR = re.compile(r"([A-Za-z_]\w*)=(.+)")


@dataclass(frozen=True, slots=True)
class Wish:
    """A key and what its value should be.

    Attributes:
        value: None for any CUDA.
        is_version: longer versions count too: 3.13 stands for `3.13.* *_cp313`.
    """

    text: str
    key: str
    value: str | None
    is_version: bool = False

    def is_value(self, value: str) -> bool:
        """Whether a value is the wish's."""
        if self.value is None:
            return value != _NO_CUDA
        if not self.is_version:
            return value == self.value
        version = value.split(" ")[0].removesuffix(".*")
        return version == self.value or version.startswith(f"{self.value}.")

    def is_met(self, values: Iterable[str]) -> bool:
        """Whether a job with these values of the key has it; a job that does not know CUDA is one without."""
        possible = tuple(values)
        if not possible:
            return self.key == CUDA and self.value == _NO_CUDA
        return any(self.is_value(value) for value in possible)


def read_wish(text: str) -> Wish:
    """Read a wish.

    Raises:
        InputError: it is none of the forms.

    >>> read_wish("py3.13").is_value("3.13.* *_cp313")
    True
    """
    if text == "cpu":
        return Wish(text, CUDA, _NO_CUDA)
    pair, versioned = _PAIR.fullmatch(text), _VERSIONED.fullmatch(text)
    if pair:
        return Wish(text, pair[1], pair[2])
    if versioned and versioned[1] == "cuda":
        return Wish(text, CUDA, versioned[2], is_version=True)
    if versioned and versioned[2]:
        return Wish(text, "python", versioned[2], is_version=True)
    raise InputError(
        f"'{text}' is neither a platform nor a value",
        hint="Write cuda12.9, cuda, cpu, py3.13, KEY=VALUE, or a platform such as osx-64.",
    )
