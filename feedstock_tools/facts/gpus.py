"""GPUs by name, with their compute capability."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from feedstock_tools.errors import InputError

__all__ = ["Gpu", "find_gpu", "gpus_of"]

#: Optional words before a name, as used by drivers, shops and people.
_MAKERS = {"nvidia", "geforce", "tesla"}


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as NVIDIA lists it: `GeForce RTX 3080`, capability `8.6`, generation `Ampere`, and the source."""

    name: str
    capability: str
    generation: str
    source: str

    @property
    def architecture(self) -> str:
        """nvcc's name for it: `sm_86`."""
        return f"sm_{self.capability.replace('.', '')}"


def gpus_of(section: Mapping[str, Any]) -> tuple[Gpu, ...]:
    """The GPUs of the section `gpus` of `variants/cuda.yaml`, oldest capability first."""
    return tuple(
        Gpu(name, capability, entry["generation"], entry["source"])
        for capability, entry in section.items()
        for name in entry["names"]
    )


def find_gpu(name: str, gpus: Iterable[Gpu]) -> Gpu:
    """The GPU with the longest name that `name`, from a driver or a person, begins with.

    Case, hyphens and the words NVIDIA, GeForce and Tesla do not matter.

    Raises:
        InputError: there is no such GPU; with the nearest names.

    >>> gpus = [Gpu("A10", "8.6", "Ampere", "a page"), Gpu("A100", "8.0", "Ampere", "a page")]
    >>> find_gpu("NVIDIA A100-SXM4-80GB", gpus).architecture
    'sm_80'
    """
    asked = _words(name)
    by_words = {_words(gpu.name): gpu for gpu in gpus}
    for length in range(len(asked), 0, -1):
        found = by_words.get(asked[:length])
        if found is not None:
            return found
    names = _nearest(asked, by_words)
    near = f"Near it are {', '.join(names)}." if names else "Write it as RTX 3080, or give its compute capability."
    raise InputError(f"unknown GPU '{name}'", hint=near)


def _nearest(asked: tuple[str, ...], by_words: Mapping[tuple[str, ...], Gpu]) -> list[str]:
    """Names that contain all requested words, else names with a similar spelling."""
    holding = [gpu.name for words, gpu in by_words.items() if asked and set(asked) <= set(words)]
    alike = get_close_matches(" ".join(asked), [" ".join(words) for words in by_words], n=3, cutoff=0.5)
    return holding[:5] or [by_words[tuple(text.split(" "))].name for text in alike]


def _words(name: str) -> tuple[str, ...]:
    words = [word for word in re.split(r"[\s\-_]+", name.strip().lower()) if word]
    while words and words[0] in _MAKERS:
        words = words[1:]
    return tuple(words)
