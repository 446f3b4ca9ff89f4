"""The judge's answers on wheels of frameworks and conda-forge's builds, as data for a page: what runs on a GPU, and how
it is installed.

A page filters these answers. All that it computes is whether a typed driver reaches a bound that stands here.
"""

from __future__ import annotations

import re
import shlex
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from feedstock_tools.facts.cuda import CudaFacts
from feedstock_tools.facts.frameworks import Frameworks, WheelRelease, conda_builds, load_frameworks, load_wheels
from feedstock_tools.facts.gpus import load_gpus
from feedstock_tools.pins.answer_sheet import drivers_of
from feedstock_tools.pins.environments import Target, parts_of, requested_package
from feedstock_tools.pins.graph.from_facts import ptx_version, reported_cuda
from feedstock_tools.pins.graph.kinds import FRAMEWORKS
from feedstock_tools.pins.judge import Card, judge_wheel
from feedstock_tools.platforms import Platform
from feedstock_tools.versions import parse_version

#: The systems of a page: its name, the platform of the wheels, and whether its driver is one of Windows.
SYSTEMS = (
    ("Linux", "linux-64", False),
    ("Windows", "win-64", True),
    ("WSL 2", "linux-64", True),
    ("Linux on ARM", "linux-aarch64", False),
)
_SUBDIRS = tuple(dict.fromkeys(subdir for _, subdir, _ in SYSTEMS))
#: Projects on PyPI by their key of the facts, where these differ.
_PROJECTS = {"faiss-gpu-cuda11": "faiss-gpu-cu11", "faiss-gpu-cuda12": "faiss-gpu-cu12"}


@dataclass(frozen=True, slots=True)
class WheelSheet:
    """What can be asked, and the answers.

    Attributes:
        gpus: the labels of GPUs with the number of their entry in `of_gpus`.
        of_gpus: of a GPU the number of its capability, whether its machines are linux-aarch64 (`arm`), and for Linux
            and for Windows the drivers that know it, as in `AnswerSheet`.
        releases: for each framework, newest first, its wheels: by platform the number of their row in `rows`, and the
            line that installs them.
        rows: the number of the answer for each capability.
        builds: for each framework conda-forge's builds in the same form, where the lists in their recipes were read.
        conda: by framework and platform the line for conda-forge's build, for those of which none was read.
        answers: the verdicts, with the least drivers on Linux and on Windows; None where no known driver is enough.
    """

    gpus: Mapping[str, int]
    of_gpus: tuple[Mapping[str, Any], ...]
    releases: Mapping[str, tuple[Mapping[str, Any], ...]]
    rows: tuple[tuple[int, ...], ...]
    builds: Mapping[str, tuple[Mapping[str, Any], ...]]
    conda: Mapping[str, Mapping[str, str]]
    answers: tuple[Mapping[str, Any], ...]

    def document(self) -> dict[str, Any]:
        """The answers for a page's script, which has labels from a list of its own."""
        return {
            "systems": SYSTEMS,
            "gpus": self.of_gpus,
            "releases": self.releases,
            "rows": self.rows,
            "builds": self.builds,
            "conda": self.conda,
            "answers": self.answers,
        }


def wheel_sheet(facts: CudaFacts) -> WheelSheet:
    """The judge's answers for all GPUs, all wheels of the facts and all systems."""
    capabilities: dict[str, int] = {}
    gpus, of_gpus = _gpus(capabilities)
    judged = _Judged(facts, list(capabilities))
    frameworks = load_frameworks()
    releases = {
        name: tuple(
            _release(judged, frameworks, name, key, wheels)
            for key in reversed(keys)
            for wheels in reversed(load_wheels().get(key, ()))
        )
        for name, keys in FRAMEWORKS.items()
        if name != "pytorch"
    }
    builds = {name: tuple(_builds(judged, frameworks, name)) for name in releases}
    conda = {name: dict(_conda_lines(judged, frameworks, name)) for name in releases}
    return WheelSheet(gpus, of_gpus, releases, tuple(judged.rows), builds, conda, tuple(judged.answers.values()))


class _Judged:
    """The judge, asked about each capability; `answers` are the different ones, by what they say."""

    def __init__(self, facts: CudaFacts, capabilities: Sequence[str]) -> None:
        self.facts = facts
        self.capabilities = capabilities
        self.newest = tuple(facts.toolkits)[-1]
        self.answers: dict[str, dict[str, Any]] = {}
        self.rows: dict[tuple[int, ...], int] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        pairs = [pair for toolkit in facts.toolkits.values() for pair in (toolkit.driver, toolkit.least_driver) if pair]
        versions = {version for pair in pairs for version in (pair.linux, pair.windows) if version}
        # A driver before the first known one of its branch has the CUDA of the branch.
        branches = {f"{parse_version(version).major}.0" for version in versions}
        self._drivers = sorted(versions | branches, key=parse_version)

    def row(self, wheels: WheelRelease, subdir: str) -> int:
        """The number of the row with the answers for a wheel."""
        row = tuple(self._number(wheels, subdir, capability) for capability in self.capabilities)
        return self.rows.setdefault(row, len(self.rows))

    def _number(self, wheels: WheelRelease, subdir: str, capability: str) -> int:
        """The number of the answer for a capability; wheels with the same code are asked about once."""
        code = wheels.code.get(subdir)
        toolkit = ptx_version(self.facts, wheels, code) if code else None
        part = f"{wheels.part.get(subdir)} {wheels.mixed.get(subdir)} {wheels.reported}"
        unread = (wheels.unread.get(subdir), wheels.commit is None)
        key = (code, toolkit, part, unread, subdir, subdir in wheels.platforms, capability)
        if key not in self._numbers:
            verdict = judge_wheel(self.facts, Card("", capability), wheels, subdir)
            answer: dict[str, Any] = {"how": verdict.how, "by": verdict.by, "why": " ".join(verdict.reasons)}
            if verdict.by is not None or verdict.how == "ptx":
                answer["least"] = [self._least(wheels, subdir, capability, windows=system) for system in (False, True)]
            found = self.answers.setdefault(str(answer), {"number": len(self.answers), **answer})
            self._numbers[key] = found.pop("number", None) or list(self.answers).index(str(answer))
        return self._numbers[key]

    def _least(self, wheels: WheelRelease, subdir: str, capability: str, *, windows: bool) -> str | None:
        def runs(driver: str) -> bool:
            cuda = reported_cuda(self.facts, driver, windows=windows)
            card = Card("", capability, driver, cuda or "0.0", windows=windows)
            return judge_wheel(self.facts, card, wheels, subdir).how != "no"

        at = bisect_left(self._drivers, True, key=runs)
        return self._drivers[at] if at < len(self._drivers) else None


def _release(judged: _Judged, frameworks: Frameworks, name: str, key: str, wheels: WheelRelease) -> Mapping[str, Any]:
    """What a page says of the wheels of a release: the answers by platform and capability, and lines to type."""
    lines = {subdir: _pip_line(judged, frameworks, name, wheels, subdir) for subdir in _SUBDIRS}
    python = wheels.python_spec()
    return {
        "what": f"{key} {wheels.minor}",
        "on": {subdir: judged.row(wheels, subdir) for subdir in _SUBDIRS},
        "lines": {subdir: line for subdir, line in lines.items() if line},
        "python": f"Python {python}" if python else "any Python",
    }


def _pip_line(judged: _Judged, frameworks: Frameworks, name: str, wheels: WheelRelease, subdir: str) -> str | None:
    """The line that installs wheels from PyPI; of those for the CPU alone, from their makers' index for their CUDA."""
    if subdir not in wheels.platforms:
        return None
    elsewhere = subdir not in wheels.code and subdir not in wheels.unread
    package = requested_package(f"{name}={wheels.minor}.*", frameworks)
    target = Target("gpu", Platform.parse(subdir), machine=judged.newest)
    found = [
        part
        for part in parts_of(package, target, judged.newest, judged.facts)
        if part.setup and part.setup.wheels == wheels.framework
        if (part.setup.cuda == wheels.cuda_spec if elsewhere else len(part.pip) == 1)
    ]
    if found:
        chosen = min(found, key=lambda part: len(part.specs))
        # An option stands with its value.
        return f"pip install {' '.join(text if text.startswith('--') else shlex.quote(text) for text in chosen.pip)}"
    project = _PROJECTS.get(wheels.framework) or re.sub(r"^bitsandbytes-cuda\d+$", "bitsandbytes", wheels.framework)
    return None if elsewhere else f"pip install '{project}=={wheels.minor}.*'"


def _builds(judged: _Judged, frameworks: Frameworks, name: str) -> Iterator[Mapping[str, Any]]:
    """What a page says of conda-forge's builds of a framework, newest first."""
    framework = frameworks.find(name)
    way = next((way for way in framework.ways if way.package and way.exact), None) if framework else None
    package = (way and way.package) or name.removesuffix("-gpu")
    for build in reversed(conda_builds().get(package, ())):
        cuda = str(build.built)
        pattern = way.exact.format(digits=cuda.replace(".", "")) if way and way.exact else "*cuda*"
        more = way.conda if way else (f"cuda-version={cuda}",)
        line = " ".join([f"'{package}={build.minor}={pattern}'", *more])
        subdirs = [subdir for subdir in _SUBDIRS if subdir in build.platforms]
        yield {
            "what": f"{package} {build.minor} (CUDA {cuda})",
            "on": {subdir: judged.row(build, subdir) for subdir in subdirs},
            "lines": dict.fromkeys(subdirs, f"conda install -c conda-forge {line}"),
        }


def _conda_lines(judged: _Judged, frameworks: Frameworks, name: str) -> Iterator[tuple[str, str]]:
    """For each platform the line that installs the GPU build of conda-forge."""
    package = requested_package(name, frameworks)
    for subdir in _SUBDIRS if package.framework else ():
        target = Target("gpu", Platform.parse(subdir), machine=judged.newest)
        for part in parts_of(package, target, judged.newest, judged.facts):
            if part.setup and part.setup.package and part.setup.channel is None:
                build = f"=*={part.setup.builds}" if part.setup.builds else ""
                specs = [f"'{part.setup.package}{build}'", *part.setup.conda]
                yield subdir, f"conda install -c conda-forge {' '.join(specs)}"
                break


def _gpus(capabilities: dict[str, int]) -> tuple[dict[str, int], tuple[Mapping[str, Any], ...]]:
    """The labels of all GPUs with the number of what matters of each, and that."""
    known = load_gpus()
    of_gpus: dict[str, Mapping[str, Any]] = {}
    labelled: dict[str, int] = {}
    for gpu in reversed(known.gpus):
        number = capabilities.setdefault(gpu.capability, len(capabilities))
        drivers = [drivers_of(gpu, windows=system) for system in (False, True)]
        entry = {"capability": number, "arm": gpu.tegra or gpu.grace, "drivers": drivers}
        of_gpus.setdefault(str(entry), entry)
        labelled.setdefault(f"{gpu.name} ({gpu.capability})", list(of_gpus).index(str(entry)))
    return labelled, tuple(of_gpus.values())
