"""Build scripts for projects with a common build system, if the spec requests one: `script: {template: cmake}`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from feedstock_tools.generate.spec.model import Script, Spec

#: The templates of build systems that need none of their own.
_TEMPLATES = {"setuptools": "pip"}


def named_script(script: Script | None, output: str | None) -> Script | None:
    """The script by the names of its files; `output` is None for the build that runs once."""
    if script is None or script.template is None:
        return script
    if output is None:
        return Script(unix="build.sh", win="bld.bat")  # conda-build's default names
    return Script(unix=f"build-{output}.sh", win=f"build-{output}.bat")


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
