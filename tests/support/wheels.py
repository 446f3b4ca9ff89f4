"""Wheels with what a test puts into them, and the metadata that pip asks for."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path


def write_wheel(
    folder: Path,
    project: str,
    version: str,
    files: Mapping[str, str | bytes],
    metadata: tuple[str, ...] = (),
    tags: str = "py3-none-any",
) -> Path:
    """Write a wheel into a folder, the same bytes for the same arguments; `metadata` are more lines of METADATA."""
    stem = f"{project.replace('-', '_').replace('.', '_')}-{version}"
    described = {
        "METADATA": "\n".join(["Metadata-Version: 2.1", f"Name: {project}", f"Version: {version}", *metadata, ""]),
        "WHEEL": "Wheel-Version: 1.0\nGenerator: none\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}-{tags}.whl"
    with zipfile.ZipFile(path, "w") as made:
        for name, content in {**files, **{f"{stem}.dist-info/{key}": text for key, text in described.items()}}.items():
            made.writestr(zipfile.ZipInfo(name), content)
    return path
