"""Wheels that are soon installed, in place of this program and of NumPy: hosts are made as with the real ones."""

from __future__ import annotations

import ensurepip
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest import mock

from feedstock_tools import __version__
from feedstock_tools.builds.fleet.provision import wheelhouse as module
from feedstock_tools.builds.fleet.provision.wheelhouse import Target, wheelhouse
from tests.support.wheels import write_wheel

#: The worker and the hub: they wait.
_WAITS = "import time\nwhile __name__ == '__main__':\n    time.sleep(60)\n"
_PROGRAM = {
    "feedstock_tools/__init__.py": f"__version__ = {__version__!r}\n",
    **{f"feedstock_tools/builds/fleet/{name}.py": _WAITS for name in ("worker", "hub")},
}


def light_wheels(cache: Path, numpy: Sequence[str] = ("",)) -> None:
    """Fill a user's cache with such wheels, for hosts with Python 3.11.

    Args:
        cache: what XDG_CACHE_HOME names.
        numpy: the versions of NumPy that hosts get; empty for none.
    """
    with mock.patch.object(module, "_fetch", _made):
        for version in numpy:
            wheelhouse(Target("3.11", "x86_64", version), {"XDG_CACHE_HOME": str(cache)}, lambda _: None)


def _made(target: Target, temporary: Path, _: Mapping[str, str]) -> None:
    """As the function of the wheelhouse that fetches."""
    made = temporary / "wheelhouse" / "wheels"
    made.mkdir(parents=True)
    for pip in (Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"):
        shutil.copy(pip, made)
    write_wheel(made, "feedstock-tools", __version__, _PROGRAM)
    (made / "host.txt").write_text(f"feedstock-tools == {__version__}\n")
    if target.numpy:
        write_wheel(made, "numpy", target.numpy, {"numpy/__init__.py": f"__version__ = {target.numpy!r}\n"})
        (made / "toolchain.txt").write_text(f"numpy == {target.numpy}\n")
