"""Which platforms lose all their CPU or all their CUDA jobs by a rerender: often a mistake that nobody meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.file_names import CI_SUPPORT
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import LARGEST_SETTINGS, read_bytes
from feedstock_tools.rerender.configurations.configuration import Configuration, platform_of

_CUDA = "cuda_compiler_version"
#: The values of the key in a file as conda-smithy dumps it, which is quicker to find than to parse.
_VALUES = re.compile(rb"^cuda_compiler_version:\n((?:- .*\n)+)", re.MULTILINE)
_NONE = "None"


@dataclass(frozen=True, slots=True)
class LostJobs:
    """All jobs of a kind (`CPU`, `CUDA`) of a platform; `count` is how many there were."""

    platform: Platform
    kind: str
    count: int

    def __str__(self) -> str:
        wish = "cpu" if self.kind == "CPU" else "cuda"
        jobs = "its only" if self.count == 1 else f"all {self.count}"
        ask = f"feedstock-tools why --not {wish} --not {self.platform.subdir}"
        return f"{self.platform.subdir} loses {jobs} {self.kind} job{'' if self.count == 1 else 's'}: `{ask}` says why"


def lost_jobs(
    feedstock: Path, configurations: Sequence[Configuration], platforms: Sequence[Platform] | None = None
) -> tuple[LostJobs, ...]:
    """The kinds of jobs that `.ci_support` has now and that `configurations` lack, by platform.

    Args:
        platforms: those that were rerendered; None: all.

    Raises:
        InputError: a file of `.ci_support` cannot be read.
    """
    left: dict[Platform, set[str]] = {}
    for configuration in configurations:
        left.setdefault(configuration.platform, set()).update(_kinds(configuration.values.get(_CUDA, ())))
    before: dict[tuple[Platform, str], int] = {}
    for platform, values in _present(feedstock):
        for kind in _kinds(values) if platforms is None or platform in platforms else ():
            before[platform, kind] = before.get((platform, kind), 0) + 1
    lost = [(platform, kind) for platform, kind in before if kind not in left.get(platform, ())]
    return tuple(LostJobs(platform, kind, before[platform, kind]) for platform, kind in sorted(lost))


def _kinds(values: Sequence[str]) -> set[str]:
    """The kinds of a job with these CUDA versions; one without any is a CPU job."""
    return {"CPU" if value == _NONE else "CUDA" for value in values} or {"CPU"}


def _present(feedstock: Path) -> Iterator[tuple[Platform, list[str]]]:
    """The platform and the CUDA versions of each file."""
    folder = feedstock / CI_SUPPORT
    for path in sorted(folder.glob("*.yaml")) if not folder.is_symlink() else ():
        try:
            platform = platform_of(path, {})
        except InputError:
            continue  # not one of conda-smithy's names
        found = _VALUES.search(read_bytes(path, LARGEST_SETTINGS, within=feedstock))
        items = found[1].decode(errors="replace").splitlines() if found else []
        yield platform, [item[2:].strip("'\"") for item in items]
