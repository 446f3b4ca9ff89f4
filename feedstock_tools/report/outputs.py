"""The files of the packages that configurations will build."""

from __future__ import annotations

import json
from collections.abc import Sequence

from feedstock_tools.rerender.outputs import PackageFile


def outputs_text(files: Sequence[PackageFile]) -> str:
    """The files by configuration, one a line; '' if there are none."""
    lines: list[str] = []
    for place, file in enumerate(files):
        if place == 0 or files[place - 1].configuration != file.configuration:
            lines.append(file.configuration)
        lines.append(f"  {file.path}")
    return "".join(f"{line}\n" for line in lines)


def outputs_json(files: Sequence[PackageFile]) -> str:
    """The files as a JSON list of objects."""
    return json.dumps([_entry(file) for file in files], indent=2)


def _entry(file: PackageFile) -> dict[str, str | int]:
    """The JSON object of a file."""
    return {
        "configuration": file.configuration,
        "subdir": file.subdir,
        "file": file.file_name,
        "name": file.name,
        "version": file.version,
        "build": file.build_string,
        "build_number": file.build_number,
    }
