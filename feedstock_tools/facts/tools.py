"""The tools of the stand-in channel that have contents: packages, and the wheels behind them.

The data is `variants/tools.yaml`; docs/stand-in-channel.md describes the format, `facts.models.ToolsFile` is its
form. Packages that `variants/packages.yaml` has, such as pip, have only their wheels here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.facts.packages import KnownPackage, expanded
from feedstock_tools.reading import read_text
from feedstock_tools.yaml_reading.nodes import parse_texts

#: The tool that no wheel has: the program of the machine.
MAKE = "make"
#: Increased when the same wheel yields another package, so that builds with the older one do not count as current.
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that becomes the contents of a package.

    Attributes:
        package, version: of the conda package; `project` and `release` are those of the package index.
        subdir: the platform that it is for; `noarch` for all.
        python: the Python that it is for (`3.12`); None for all.
        file: its file name; `size` in bytes.
        take: files and folders in it, each with its place in the prefix; empty for a Python package.
    """

    package: str
    version: str
    project: str
    subdir: str
    python: str | None
    file: str
    size: int
    sha256: str
    take: tuple[tuple[str, str], ...] = ()

    @property
    def release(self) -> str:
        """The version in the package index: `3.0.7.post0`."""
        return self.file.split("-")[1]


@dataclass(frozen=True, slots=True)
class Tools:
    """All tools: the packages that are only here, the wheels, and the tools that each tool runs with."""

    packages: tuple[KnownPackage, ...]
    wheels: tuple[Wheel, ...]
    needs: Mapping[str, tuple[str, ...]]

    @property
    def names(self) -> frozenset[str]:
        """The names of all tools."""
        return frozenset({MAKE, *self.needs})

    def wheels_of(self, name: str) -> tuple[Wheel, ...]:
        """The wheels of a tool, for all platforms and Pythons."""
        return tuple(wheel for wheel in self.wheels if wheel.package == name)

    def among(self, names: Collection[str]) -> dict[str, str]:
        """The tools among packages, and the tools that those run with: name → digest of all that it is made of."""
        wanted: dict[str, str] = {}
        pending = sorted(self.names.intersection(names))
        while pending:
            name = pending.pop()
            if name not in wanted:
                wanted[name] = self._digest(name)
                pending += self.needs.get(name, ())
        return dict(sorted(wanted.items()))

    def _digest(self, name: str) -> str:
        packages = [
            repr((package.distribution, package.depends, package.run_exports))
            for package in self.packages
            if package.name == name
        ]
        wheels = [repr((wheel.sha256, wheel.take)) for wheel in self.wheels_of(name)]
        return sha256("\n".join([str(_FORMAT), *packages, *wheels]).encode()).hexdigest()


def tools_file() -> Path:
    """The file that ships with this tool."""
    return data_folder("variants") / "tools.yaml"


@cache
def read_tools() -> Tools:
    """The tools that ship with this program.

    Raises:
        InputError: a family has a mistake that the model does not see.
    """
    path = tools_file()
    content = parse_texts(read_text(path, within=None), path)
    packages, findings = expanded(content, check=False)
    if findings:
        raise InputError.of([Mistake(message, path) for _, message in findings])
    wheels = tuple(_wheel(entry, file) for entry in content["wheels"] for file in entry["files"])
    return Tools(packages, wheels, {entry["name"]: tuple(entry.get("needs", ())) for entry in content["wheels"]})


def _wheel(entry: Mapping[str, object], file: Mapping[str, str]) -> Wheel:
    take = entry.get("take") or {}
    assert isinstance(take, dict)  # noqa: S101  (for the type checker: the model holds it)
    return Wheel(
        package=str(entry["name"]),
        version=str(entry["version"]),
        project=str(entry.get("project", entry["name"])),
        subdir=file["subdir"],
        python=file.get("python"),
        file=file["file"],
        size=int(file["size"]),
        sha256=file["sha256"],
        take=tuple(take.items()),
    )
