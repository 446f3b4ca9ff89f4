"""Where this program's data lies: the templates, variant files and examples that ship with it, and the user's cache."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

#: The folder of this package, for code that reads or hashes the package itself.
PACKAGE = Path(__file__).resolve().parent


def data_folder(name: str) -> Path:
    """The folder `templates`, `variants` or `examples` of an installation, else of the checkout."""
    installed = PACKAGE / "_data" / name
    return installed if installed.is_dir() else PACKAGE.parent / name


def cache_root(environment: Mapping[str, str]) -> Path:
    """The folder of this program in the user's cache, by this system's conventions."""
    return _root(environment, "XDG_CACHE_HOME", ".cache", "Caches")


def state_root(environment: Mapping[str, str]) -> Path:
    """The folder of what this program keeps for the user and cannot make again, by this system's conventions."""
    return _root(environment, "XDG_STATE_HOME", ".local/state", "Application Support")


def config_root(environment: Mapping[str, str]) -> Path:
    """The folder of this user's settings, by this system's conventions."""
    return _root(environment, "XDG_CONFIG_HOME", ".config", "Application Support")


def _root(environment: Mapping[str, str], variable: str, usual: str, on_macos: str) -> Path:
    home = Path(environment.get("HOME") or environment.get("USERPROFILE") or Path.home())
    given = Path(environment.get(variable) or "")
    if given.is_absolute():  # a relative one would be in any folder; the specification has it ignored
        root = given
    elif sys.platform == "win32":
        root = Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        root = home / "Library" / on_macos
    else:
        root = home / usual
    return root / "feedstock-tools"


def text_templates(opening: str = "{", closing: str = "}") -> Environment:
    """Jinja for the templates of plain texts: a missing value is an error, and values are not escaped.

    Args:
        opening: and `closing`: the brackets of values (doubled), blocks (with `%`) and comments (with `#`), which the
            text itself must not contain.
    """
    from jinja2 import FileSystemLoader, StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    return SandboxedEnvironment(
        loader=FileSystemLoader(data_folder("templates")),
        undefined=StrictUndefined,
        block_start_string=f"{opening}%",
        block_end_string=f"%{closing}",
        variable_start_string=opening * 2,
        variable_end_string=closing * 2,
        comment_start_string=f"{opening}#",
        comment_end_string=f"#{closing}",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
