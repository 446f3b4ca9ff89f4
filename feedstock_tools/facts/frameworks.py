"""How to install frameworks such as TensorFlow with and without a GPU, for each platform.

The facts are data: `variants/frameworks.yaml`, in the form of `facts.models.FrameworksFile`, and
`variants/wheels.yaml`, read from the metadata of wheels: the CUDA, cuDNN and Python that each release of a framework is
for, in the form of `facts.models.WheelsFile`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from feedstock_tools.facts.content import content_of
from feedstock_tools.versions import minor_of


@dataclass(frozen=True, slots=True)
class Setup:
    """One way to install a framework, for an accelerator (`gpu`, `cpu`), some platforms and CUDA versions (None: all).

    `package` is the conda package whose build determines the accelerator, `builds` the pattern of its builds and
    `exact` that of builds made with exactly the requested CUDA version; `conda` are further packages, `pip` those that
    pip installs (the framework first) for the versions of `python`. `versions` are those of the framework that the way
    installs (None: all). A way with a `channel` is for packages of that channel alone. With `wheels`, a key of
    wheels.yaml, there is one such way for each release of the framework there, `{minor}` is its minor version, and
    `release` its version. `code` is for each platform the GPU code in wheels that were not read, as documents say.
    `{cuda}`, `{major}`, `{digits}` and, in variables, `{prefix}` are filled in.
    """

    accelerator: str
    platforms: tuple[str, ...]
    sources: tuple[str, ...]
    cuda: str | None = None
    package: str | None = None
    builds: str | None = None
    exact: str | None = None
    conda: tuple[str, ...] = ()
    python: str | None = None
    versions: str | None = None
    channel: str | None = None
    wheels: str | None = None
    release: str | None = None
    pip: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NoWay:
    """Why a framework is not available for an accelerator on some platforms."""

    accelerator: str
    platforms: tuple[str, ...]
    reason: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework: the ways to install it, the best first, and the reasons where there is no way.

    `also` are other names that people ask for it by; `check` is the line of Python that tells whether it sees the GPU.
    """

    name: str
    also: tuple[str, ...]
    check: str
    ways: tuple[Setup, ...]
    unavailable: tuple[NoWay, ...]


@dataclass(frozen=True, slots=True)
class Frameworks:
    """All of `variants/frameworks.yaml`; `sources` are addresses by short name."""

    frameworks: Mapping[str, Framework]
    without_cuda: Mapping[str, str]
    without_wheels: Mapping[str, str]
    sources: Mapping[str, str]

    def find(self, name: str) -> Framework | None:
        """The framework with a common name such as `torch`; None for other packages."""
        if name in self.frameworks:
            return self.frameworks[name]
        return next((framework for framework in self.frameworks.values() if name in framework.also), None)


@cache
def load_frameworks() -> Frameworks:
    document = content_of("frameworks.yaml")
    return Frameworks(
        MappingProxyType({name: _framework(name, entry) for name, entry in document["frameworks"].items()}),
        document["without_cuda"],
        document["without_wheels"],
        MappingProxyType({name: entry["url"] for name, entry in document["sources"].items()}),
    )


def _framework(name: str, entry: Mapping[str, Any]) -> Framework:
    return Framework(
        name=name,
        also=entry.get("also", ()),
        check=entry["check"],
        ways=tuple(Setup(**way) for way in entry["ways"]),
        unavailable=tuple(NoWay(**none) for none in entry.get("none", ())),
    )


@dataclass(frozen=True, slots=True)
class WheelRelease:
    """The last release of a minor version of a framework, a key of the file, as its wheels are.

    `python` are minor versions, `python_of_all` those that every release of the minor version has wheels for where
    they are fewer, `platforms` conda's subdirs. `cuda`, `cudnn`, `nccl` and `numpy` are what its
    metadata asks for, as pip writes it (`==12.2.140`, `>=12.5.82,<13.0`); None where it asks for none; then `built` is
    the CUDA that it was built with, if it states that, and `tested` has the CUDA and cuDNN that its makers tested it
    with, if they say so.

    `code` has for each platform whose wheel holds GPU code the architectures that most of its kernels are compiled for,
    `some` those of some kernels alone, and `unread` the platforms of which neither is known, each with the reason.
    `part` says how many fat binaries run on GPUs of an architecture of `code`, where that is not all: `217/308`, and
    `mixed` on GPUs (`103`) that none of `code` is for, which run some by machine code and others by PTX.

    `reported` has for capabilities (`120`) what users report of PTX that should run there and does not, in a sentence.

    conda-forge's builds of a package for a CUDA, `built`, have this form too, with the `commit` of the feedstock that
    lists their architectures.
    """

    framework: str
    version: str
    python: tuple[str, ...]
    platforms: tuple[str, ...]
    cuda: str | None = None
    cudnn: str | None = None
    numpy: str | None = None
    built: str | None = None
    nccl: str | None = None
    code: Mapping[str, str] = field(default_factory=dict)
    some: Mapping[str, str] = field(default_factory=dict)
    part: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    mixed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    python_of_all: tuple[str, ...] = ()
    tested: tuple[str, str] | None = None
    reported: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None

    @property
    def minor(self) -> str:
        """The minor version: `2.15`."""
        return minor_of(self.version)

    @property
    def cuda_spec(self) -> str | None:
        """The minor versions of CUDA that it brings along, as a specification of conda: `12.2.*`, `>=12.5,<13.0`."""
        if self.cuda is None:
            return f"{self.built}.*" if self.built else None
        exact = re.fullmatch(r"==(\d+\.\d+)\..*", self.cuda)
        if exact is not None:
            return f"{exact[1]}.*"
        parts = [re.sub(r"^(>=\d+\.\d+)\..*", r"\1", part) for part in self.cuda.split(",")]
        return ",".join(part.removeprefix("==") for part in parts)

    @property
    def cuda_of_name(self) -> str | None:
        """The CUDA in its name, of `jax-cuda12`, `bitsandbytes-cuda126` and `cupy-cuda92`: `12.*`, `12.6`, `9.2`."""
        named = re.search(r"cuda([89]|\d\d)(\d?)x?$", self.framework)
        return None if named is None else f"{named[1]}.{named[2] or '*'}"

    def python_spec(self, version: str | None = None) -> str | None:
        """The versions of Python as a specification of conda: `>=3.9,<3.12`; None where its wheels are for any.

        Args:
            version: a patch release of the minor version, whose wheels may be for fewer.
        """
        exact = (
            version is not None
            and re.fullmatch(r"=*\d+(\.\d+){2,}(\.\*)?", version)
            and version.strip("=").removesuffix(".*") != self.version
        )
        pythons = self.python_of_all if exact and self.python_of_all else self.python
        if not pythons:
            return None
        major, _, minor = pythons[-1].partition(".")
        return f">={pythons[0]},<{major}.{int(minor) + 1}"


#: Wheels that are releases of another project.
_TESTED = {"tensorflow-gpu": "tensorflow"}


@cache
def load_wheels() -> Mapping[str, tuple[WheelRelease, ...]]:
    """The releases of `variants/wheels.yaml` by framework, oldest first."""
    document = content_of("wheels.yaml")
    return MappingProxyType(
        {name: tuple(_releases(name, entries, document)) for name, entries in document["wheels"].items()}
    )


@cache
def conda_builds() -> Mapping[str, tuple[WheelRelease, ...]]:
    """conda-forge's builds in `variants/wheels.yaml` by package, oldest first."""
    found: Mapping[str, Any] = content_of("wheels.yaml").get("conda", {})
    return {name: tuple(WheelRelease(name, python=(), **entry) for entry in found[name]) for name in found}


@cache
def library_wheels() -> Mapping[str, tuple[str, ...]]:
    """The releases of NVIDIA's libraries on PyPI by project (`nvidia-cudnn-cu12`), oldest first."""
    found: Mapping[str, tuple[str, ...]] = content_of("wheels.yaml").get("libraries", {})
    return found


def _releases(name: str, entries: Sequence[Mapping[str, Any]], document: Mapping[str, Any]) -> Iterator[WheelRelease]:
    by_makers = document["tested"].get(_TESTED.get(name, name), {"releases": {}})["releases"]
    reported = {
        number: f"users report {report['message']} ({report['source']['url']})"
        for report in document.get("reported", {}).get(name, ())
        for number in report["capabilities"]
    }
    for entry in entries:
        tested = by_makers.get(".".join(entry["version"].split(".")[:2]))
        makers = (tested["cuda"], tested["cudnn"]) if tested else None
        yield WheelRelease(name, **entry, tested=makers, reported=reported)
