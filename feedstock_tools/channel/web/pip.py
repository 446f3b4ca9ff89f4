"""The pip of this Python, and the package indexes that it is configured with."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

from feedstock_tools.errors import WorkError

_SECONDS = 60
#: Run with pip on the path: the indexes that configuration files and the environment give `pip download`.
_ASK = """
import json, sys
sys.path[:0] = sys.argv[1:]
from pip._internal.commands import create_command
options, _ = create_command("download").parse_args(["-"])
print(json.dumps([] if options.no_index else [options.index_url, *options.extra_index_urls]))
"""


def pip_command() -> tuple[str, ...]:
    """The command of pip; or of Python's bundled copy, if the environment has none (like those of uv).

    No module of the folder that it starts in takes the place of pip's.

    Raises:
        WorkError: there is no copy either.
    """
    wheel = _bundled()
    return (sys.executable, "-P", *(("-m", "pip") if wheel is None else (str(wheel / "pip"),)))


def index_urls(machine: Mapping[str, str]) -> tuple[str, ...]:
    """The addresses of pip's package indexes, in their order.

    Args:
        machine: the environment for pip.

    Raises:
        WorkError: there is no pip, or it does not tell them.
    """
    wheel = _bundled()
    command = [sys.executable, "-c", _ASK, *([str(wheel)] if wheel else [])]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=_SECONDS, env=dict(machine), cwd="/"
        )
        return tuple(str(url) for url in json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise WorkError("pip does not tell which package index it is configured with") from error


def _bundled() -> Path | None:
    """The wheel of pip to use; None if the environment has pip.

    Raises:
        WorkError: there is none.
    """
    if importlib.util.find_spec("pip") is not None:
        return None
    for folder in _bundled_wheels():
        for wheel in sorted(folder.glob("pip-*.whl")):
            return wheel
    raise WorkError("this Python has no pip", hint=f"Install it for {sys.executable}.")


def _bundled_wheels() -> Iterator[Path]:
    """The folders where a Python may have the wheel that its ensurepip installs."""
    if system := sysconfig.get_config_var("WHEEL_PKG_DIR"):  # Debian, Fedora
        yield Path(system)
    if (module := importlib.util.find_spec("ensurepip")) is not None and module.origin:
        yield Path(module.origin).with_name("_bundled")
