"""Where the data that ships with the package lies: templates, variant files, examples."""

from __future__ import annotations

from pathlib import Path

__all__ = ["data_folder"]

_PACKAGE = Path(__file__).parent


def data_folder(name: str) -> Path:
    """The folder `templates`, `variants` or `examples`: of an installation, else of the checkout."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
