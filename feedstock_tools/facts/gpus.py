"""NVIDIA's GPUs by name, with their compute capability: `variants/gpus.yaml`, held by `variants/gpus.schema.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import Source
from feedstock_tools.facts.schema import read_document

__all__ = ["Gpu", "GpuFacts", "load_gpus", "parse_capability"]

_FILLER = frozenset({"nvidia", "geforce", "quadro", "tesla", "gpu", "jetson"})
_TELLING = frozenset({"ada", "blackwell", "pro", "sff", "super", "ti", "titan", "xp"})
_CAPABILITY = re.compile(r"^(?:sm_|compute_)?(\d+)\.?(\d)$")


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU: its name as NVIDIA's table has it and its compute capability, `8.6`; `tegra` for a system on a chip."""

    name: str
    capability: str
    generation: str
    tegra: bool
    source: Source

    @property
    def number(self) -> int:
        """The capability as nvcc's names have it: 86."""
        return int(self.capability.replace(".", ""))


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """All of `variants/gpus.yaml`, by rising capability; `renamed` leads from an old capability to today's."""

    gpus: tuple[Gpu, ...]
    renamed: Mapping[str, str]
    sources: Mapping[str, Source]

    @property
    def tegra(self) -> frozenset[int]:
        """The capabilities (as numbers) of systems on a chip, by their old and new names."""
        numbers = {gpu.number for gpu in self.gpus if gpu.tegra}
        old = {int(name.replace(".", "")) for name, new in self.renamed.items() if int(new.replace(".", "")) in numbers}
        return frozenset(numbers | old)

    def of_capability(self, capability: str) -> tuple[Gpu, ...]:
        """The GPUs of a capability such as `8.6`."""
        return tuple(gpu for gpu in self.gpus if gpu.capability == capability)

    def named(self, name: str) -> Gpu:
        """The GPU that a person names: `RTX 3080`, `v100`, `Tesla V100-SXM2-16GB`.

        The words of the table's name, without the maker's, must all be in it, and the longest such name counts.

        Raises:
            InputError: the table has no such GPU; the nearest names are given.
        """
        words = set(_words(name))
        telling = words & _TELLING
        found = [gpu for gpu in self.gpus if telling <= set(_words(gpu.name)) <= words]
        # What a person wrote may also be a part of the only name that has it; "TITAN" is a part of several.
        if not found and words:
            found = [gpu for gpu in self.gpus if words <= set(_words(gpu.name))]
            if len({gpu.capability for gpu in found}) > 1:
                choices = ", ".join(gpu.name for gpu in found[:8])
                raise InputError(f"'{name}' names several GPUs", hint=f"It may be one of {choices}.")
        if found:
            return max(found, key=lambda gpu: len(_words(gpu.name)))
        by_words = {" ".join(_words(gpu.name)): gpu.name for gpu in self.gpus}
        near = [by_words[text] for text in get_close_matches(" ".join(_words(name)), by_words, n=3, cutoff=0.5)]
        hint = f"Did you mean {' or '.join(near)}? Else give its --capability." if near else "Give its --capability."
        raise InputError(f"the GPU '{name}' is not known", hint=hint)


def parse_capability(text: str) -> str:
    """A compute capability as people write it (`8.6`, `86`, `sm_86`), as `8.6`.

    Raises:
        InputError: it is none.
    """
    match = _CAPABILITY.match(text.strip())
    if match is None:
        raise InputError(f"'{text}' is no compute capability", hint="Write it as 8.6.")
    return f"{int(match[1])}.{match[2]}"


def load_gpus(path: Path | None = None) -> GpuFacts:
    """The facts of `path`, by default of the `variants/gpus.yaml` that ships with this package (read once).

    Raises:
        InputError: the file breaks its schema; all mistakes, each with line and column.
    """
    return _load(path or data_folder("variants") / "gpus.yaml")


@lru_cache(maxsize=4)
def _load(path: Path) -> GpuFacts:
    document = read_document(path, data_folder("variants") / "gpus.schema.json")
    sources = {name: Source(name, entry["title"], entry["url"]) for name, entry in document["sources"].items()}
    gpus = [
        Gpu(name, group["capability"], group["generation"], group.get("tegra", False), sources[group["source"]])
        for group in document["capabilities"]
        for name in group["names"]
    ]
    return GpuFacts(
        gpus=tuple(sorted(gpus, key=lambda gpu: gpu.number)),
        renamed=MappingProxyType({entry["from"]: entry["to"] for entry in document["renamed"]}),
        sources=MappingProxyType(sources),
    )


def _words(name: str) -> tuple[str, ...]:
    """The words that tell GPUs apart: `("rtx", "3080", "ti")`."""
    text = re.sub(r"(?<=\d)(?=(?:ti|super)\b)|(?<=\b[rg]tx)(?=\d)", " ", name.lower())
    return tuple(word for word in re.findall(r"[a-z]*\d+[a-z]*|[a-z]+", text) if word not in _FILLER)
