"""The scripts that a spec asks for: builds with a common build system (`script: {template: cmake}`), and the GPU
architectures for a build's CUDA version."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from feedstock_tools.generate.spec.model import Script, Spec
from feedstock_tools.generate.texts.resolved import architectures_by_version, named_script

#: The templates of build systems that need none of their own.
_TEMPLATES = {"setuptools": "pip"}


def build_scripts(spec: Spec) -> Mapping[PurePosixPath, tuple[str, dict[str, Any]]]:
    """The scripts to generate: path → its template and the template's values."""
    scripts = [(None, spec.build.script), *((output.name, output.script) for output in spec.outputs)]
    systems = {"win" if subdir.startswith("win") else "unix" for subdir in spec.platforms}
    templates: dict[PurePosixPath, tuple[str, dict[str, Any]]] = {}
    for output, script in scripts:
        if script is None or script.template is None:
            continue
        named = named_script(script, output)
        files = {"unix": named.unix, "win": named.win} if named else {}
        for system in sorted(systems):
            suffix = "sh" if system == "unix" else "bat"
            template = f"build-{_TEMPLATES.get(script.template, script.template)}.{suffix}.j2"
            templates[PurePosixPath("recipe") / str(files[system])] = (template, _view(spec, script))
    return templates


def _view(spec: Spec, script: Script) -> dict[str, Any]:
    asks = spec.cuda.script if spec.cuda else None
    return {
        "cuda": spec.cuda is not None,
        "options": [shlex.quote(option) for option in script.options],
        "options_bat": [f'"{option}"' for option in script.options],
        "cmake_options": shlex.quote(f"-Ccmake.args={';'.join(script.options)}"),
        "cmake_options_bat": f'"-Ccmake.args={";".join(script.options)}"',
        "cuda_options": " ".join(script.cuda_options) if spec.cuda else "",
        "folder": script.folder,
        "folder_bat": script.folder.replace("/", "\\"),
        "architectures": asks.file if asks else None,
        "architectures_bat": str(PurePosixPath(asks.file).with_suffix(".bat")) if asks else None,
        "variable": asks.variable if asks else None,
        "for_cmake": asks is not None and asks.style == "cmake",
    }


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


def architectures_in_style(names: tuple[str, ...], style: str) -> str:
    """Architectures in the syntax of a build system: `list`, `cmake`, `torch` or `gencode`.

    >>> architectures_in_style(("sm_75", "sm_86", "compute_86"), "torch")
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
        "versions": {version: architectures_in_style(names, script.style) for version, names in chosen.items()},
    }
    path = PurePosixPath("recipe") / script.file
    paths = [path, path.with_suffix(".bat")]
    systems = {subdir.partition("-")[0] for subdir in (spec.cuda.platforms or spec.platforms)}
    wanted = {".sh": systems - {"win"}, ".bat": systems & {"win"}}
    return {path: view for path in paths if wanted[path.suffix]}
