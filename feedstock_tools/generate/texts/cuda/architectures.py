"""The script that sets the GPU architectures for a build's CUDA version."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from feedstock_tools.generate.spec.model import Spec
from feedstock_tools.generate.texts.cuda.facts import architectures_by_version


def _cmake(name: str) -> str:
    kind, _, number = name.partition("_")
    return f"{number}-{'real' if kind == 'sm' else 'virtual'}"


def _gencode(name: str) -> str:
    number = name.partition("_")[2]
    return f"-gencode arch=compute_{number},code={name}"


def _torch(names: tuple[str, ...]) -> str:
    """PyTorch writes a capability as `8.6`, and as `8.6+PTX` to include its PTX."""
    wanted: dict[str, str] = {}
    for name in names:
        kind, _, number = name.partition("_")
        digits, letter = re.fullmatch(r"(\d+)([af]?)", number).groups()  # type: ignore[union-attr]  # checked in the spec
        capability = f"{digits[:-1]}.{digits[-1]}{letter}"
        wanted[capability] = f"{capability}+PTX" if kind == "compute" else wanted.get(capability, capability)
    return ";".join(wanted.values())


#: The form for each build system.
_STYLES: Mapping[str, Callable[[tuple[str, ...]], str]] = {
    "list": ",".join,
    "cmake": lambda names: ";".join(map(_cmake, names)),
    "torch": _torch,
    "gencode": lambda names: " ".join(map(_gencode, names)),
}


def worded(names: tuple[str, ...], style: str) -> str:
    """Architectures in the syntax of a build system: `list`, `cmake`, `torch` or `gencode`.

    >>> worded(("sm_75", "sm_86", "compute_86"), "torch")
    '7.5;8.6+PTX'
    """
    return _STYLES[style](names)


def architecture_script(spec: Spec) -> Mapping[PurePosixPath, dict[str, Any]]:
    """The scripts that a spec asks for, by path, with the values for their templates."""
    if spec.cuda is None or spec.cuda.script is None:
        return {}
    script = spec.cuda.script
    chosen = architectures_by_version(spec)
    view = {
        "variable": script.variable,
        "versions": {version: worded(names, script.style) for version, names in chosen.items()},
    }
    path = PurePosixPath("recipe") / script.file
    paths = [path, path.with_suffix(".bat")]
    systems = {subdir.partition("-")[0] for subdir in (spec.cuda.platforms or spec.platforms)}
    wanted = {".sh": systems - {"win"}, ".bat": systems & {"win"}}
    return {path: view for path in paths if wanted[path.suffix]}
