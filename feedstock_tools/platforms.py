"""Platforms by conda's two spellings: the subdir `linux-64` and the name in files `linux_64`."""

from __future__ import annotations

import platform as _host
import sys
from dataclasses import dataclass

from feedstock_tools.errors import InputError

#: Subdirs that conda knows (conda/base/constants.py, KNOWN_SUBDIRS, less `noarch`).
KNOWN_SUBDIRS = (
    "emscripten-wasm32",
    "freebsd-64",
    "linux-32",
    "linux-64",
    "linux-aarch64",
    "linux-armv6l",
    "linux-armv7l",
    "linux-ppc64",
    "linux-ppc64le",
    "linux-riscv32",
    "linux-riscv64",
    "linux-s390x",
    "osx-64",
    "osx-arm64",
    "wasi-wasm32",
    "win-32",
    "win-64",
    "win-arm64",
    "zos-z",
)

_MACHINES = {"x86_64": "64", "amd64": "64", "i686": "32", "i386": "32", "arm64": "arm64", "aarch64": "aarch64"}
#: What selectors and `recipe.yaml` call an architecture, where that is not as in the subdir.
_SELECTED = {"64": "x86_64", "32": "x86"}
_OTHER_SYSTEMS = {"macos": "osx", "darwin": "osx", "windows": "win"}
_SYSTEMS = {"linux": "linux", "darwin": "osx", "win32": "win"}


@dataclass(frozen=True, slots=True, order=True)
class Platform:
    """A platform of packages, e.g. `Platform("linux", "64")`."""

    os: str
    arch: str

    @classmethod
    def parse(cls, text: str) -> Platform:
        """Read `linux-64` or `linux_64`.

        Raises:
            InputError: conda does not know the platform.

        >>> Platform.parse("osx_arm64").subdir
        'osx-arm64'
        >>> Platform.parse("linux-arm64")
        Traceback (most recent call last):
        feedstock_tools.errors.InputError: 'linux-arm64' is not a platform
          Did you mean 'linux-aarch64'?
        """
        os, _, arch = text.replace("_", "-", 1).partition("-")
        if f"{os}-{arch}" not in KNOWN_SUBDIRS:
            meant, known = usual_name(text), f"Known platforms: {', '.join(KNOWN_SUBDIRS)}."
            hint = f"Did you mean '{meant}'?" if meant in KNOWN_SUBDIRS else known
            raise InputError(f"'{text}' is not a platform", hint=hint)
        return cls(os, arch)

    @classmethod
    def here(cls) -> Platform:
        """The platform of the running interpreter."""
        system = _SYSTEMS.get(sys.platform, sys.platform)
        machine = _host.machine().lower()
        return cls(system, _MACHINES.get(machine, machine))

    @property
    def subdir(self) -> str:
        """The name of the channel's folder: `linux-64`."""
        return f"{self.os}-{self.arch}"

    @property
    def name(self) -> str:
        """The spelling of file names and conda-forge.yml: `linux_64`."""
        return f"{self.os}_{self.arch}"

    @property
    def selector(self) -> str:
        """The condition that holds for it alone, in selectors and in a `recipe.yaml`: `linux and x86_64`."""
        return f"{self.os} and {_SELECTED.get(self.arch, self.arch)}"

    def __str__(self) -> str:
        return self.subdir


def usual_name(text: str) -> str:
    """A platform with conda's words for its system and architecture.

    >>> usual_name("linux-arm64"), usual_name("macos-aarch64"), usual_name("linux-46")
    ('linux-aarch64', 'osx-arm64', 'linux-46')
    """
    os, _, arch = text.replace("_", "-", 1).partition("-")
    os, arch = _OTHER_SYSTEMS.get(os, os), _MACHINES.get(arch, arch)
    if arch in ("aarch64", "arm64"):
        arch = "aarch64" if os == "linux" else "arm64"
    return f"{os}-{arch}"
