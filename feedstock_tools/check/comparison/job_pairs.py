"""Which job of a new state stands for which of the old one: that of the same name, or else the most alike."""

from __future__ import annotations

from collections.abc import Mapping

from feedstock_tools.rerender.configurations.configuration import Configuration

#: Keys that say where a job runs, not what it makes.
_OF_JOBS = frozenset({"docker_image", "channel_sources", "channel_targets", "github_actions_labels", "cdt_name"})


def replaced_jobs(old: Mapping[str, Configuration], new: Mapping[str, Configuration]) -> dict[str, str]:
    """For each new job that replaces an old one under another name, that one's name.

    They build for the same platform, both for CUDA or both not, and no other pair differs in fewer keys; each job is in
    one pair at most.

    >>> from feedstock_tools.platforms import Platform
    >>> def job(cuda):
    ...     return Configuration(cuda, Platform.parse("linux-64"), {"cuda_compiler_version": (cuda,), "zlib": ("1",)})
    >>> replaced_jobs({"12.6": job("12.6"), "None": job("None")}, {"12.9": job("12.9"), "None": job("None")})
    {'12.9': '12.6'}
    """
    gone = {name: one for name, one in old.items() if name not in new}
    come = {name: one for name, one in new.items() if name not in old}
    candidates = sorted(
        (_distance(one, other), before, after)
        for before, one in gone.items()
        for after, other in come.items()
        if one.platform == other.platform and _has_cuda(one) == _has_cuda(other)
    )
    pairs: dict[str, str] = {}
    taken: set[str] = set()
    for _, before, after in candidates:
        if before not in taken and after not in pairs:
            pairs[after] = before
            taken.add(before)
    return pairs


def _has_cuda(configuration: Configuration) -> bool:
    return any(value not in ("", "None") for value in configuration.values.get("cuda_compiler_version", ()))


def _distance(before: Configuration, after: Configuration) -> int:
    """The number of keys that two jobs have other values of, those that both have counted twice."""
    keys = (before.values.keys() | after.values.keys()) - _OF_JOBS
    differing = [key for key in keys if before.values.get(key) != after.values.get(key)]
    return sum(2 if key in before.values and key in after.values else 1 for key in differing)
