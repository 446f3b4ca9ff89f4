"""What two states of a feedstock build, compared by what it means: jobs, packages, and what is in the packages.

Texts are not compared: a recipe that moved to the other format, or was sorted anew, builds the same packages as before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.v0.meta import Meta
from feedstock_tools.rerender.configurations.configuration import Configuration, read_configurations
from feedstock_tools.rerender.forge import Forge, read_forge
from feedstock_tools.rerender.outputs import contents_with_rattler_build, packages_with_conda_build
from feedstock_tools.rerender.rules import Rules

__all__ = ["Differences", "JobChange", "PackageChange", "compare_feedstocks"]

_HASH = re.compile(r"h[0-9a-f]{7}")
_CALLS = ("pin_subpackage", "pin_compatible")
_STATES = {True: "yes", False: "no"}


@dataclass(frozen=True, slots=True)
class Lines:
    """What one part of a package, such as `run` or `tests`, lost and got."""

    part: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JobChange:
    """A job of both states: the keys whose values changed, with the values before and after; '' for none."""

    name: str
    values: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class PackageChange:
    """Packages that changed in the same way: their name, the jobs, and what changed in each of them."""

    name: str
    jobs: tuple[str, ...]
    changes: tuple[Lines, ...]


@dataclass(frozen=True, slots=True)
class Differences:
    """What is different after a change of a feedstock.

    `packages_added` and `packages_removed` are (job, package) of jobs in both states. `only_hashes` counts packages
    that are the same but for the hash in their build string. `same` counts packages without any difference.
    """

    jobs_added: tuple[str, ...] = ()
    jobs_removed: tuple[str, ...] = ()
    jobs_changed: tuple[JobChange, ...] = ()
    packages_added: tuple[tuple[str, str], ...] = ()
    packages_removed: tuple[tuple[str, str], ...] = ()
    packages_changed: tuple[PackageChange, ...] = ()
    only_hashes: int = 0
    same: int = 0

    def __bool__(self) -> bool:
        """Whether the packages that are built differ in more than a hash."""
        jobs = self.jobs_added or self.jobs_removed
        return bool(jobs or self.packages_added or self.packages_removed or self.packages_changed)


@dataclass(frozen=True, slots=True)
class _Package:
    """A package of a job, its parts as sorted lines."""

    name: str
    string: str
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def compare_feedstocks(
    before: Path, after: Path, *, rules: Rules | None = None, bounds: Bounds | None = None
) -> Differences:
    """Compare what two feedstock folders build, by the configurations in their `.ci_support`.

    Args:
        before: the folder of the old state.
        after: the folder of the new one; it may have the other recipe format, and then tests are not compared.
        rules: which version of conda-build to follow; default the newest.
        bounds: what the work may take, in a child process; None to do it in this process.

    Raises:
        InputError: a recipe or configuration is invalid.

    >>> feedstock = Path("solver-feedstock")
    >>> differences = compare_feedstocks(feedstock, feedstock)
    >>> bool(differences), differences.same
    (False, 24)
    """
    if bounds is not None:
        return run_bounded(partial(compare_feedstocks, before, after, rules=rules), bounds)
    chosen = rules or Rules.newest()
    old = {configuration.name: configuration for configuration in read_configurations(before)}
    new = {configuration.name: configuration for configuration in read_configurations(after)}
    both = [name for name in old if name in new]
    sides = read_forge(before, chosen), read_forge(after, chosen)
    without = {"tests"} if sides[0].is_v1 != sides[1].is_v1 else set()
    pairs = [
        (name, one, other)
        for name in both
        for one, other in _paired(_packages(sides[0], old[name], chosen), _packages(sides[1], new[name], chosen))
    ]
    changed = {(name, one.name): _changes(one, other, without) for name, one, other in pairs if one and other}
    hashes = {(name, one.name) for name, one, other in pairs if one and other and one.string != other.string}
    unchanged = [key for key, lines in changed.items() if not lines]
    return Differences(
        jobs_added=tuple(name for name in new if name not in old),
        jobs_removed=tuple(name for name in old if name not in new),
        jobs_changed=tuple(change for name in both if (change := _job_change(old[name], new[name])).values),
        packages_added=tuple((name, other.name) for name, one, other in pairs if other and not one),
        packages_removed=tuple((name, one.name) for name, one, other in pairs if one and not other),
        packages_changed=tuple(_grouped(changed)),
        only_hashes=sum(key in hashes for key in unchanged),
        same=sum(key not in hashes for key in unchanged),
    )


def _job_change(before: Configuration, after: Configuration) -> JobChange:
    keys = sorted(before.values.keys() | after.values.keys())
    values = [(key, ", ".join(before.values.get(key, ())), ", ".join(after.values.get(key, ()))) for key in keys]
    return JobChange(before.name, tuple(each for each in values if each[1] != each[2]))


def _packages(forge: Forge, configuration: Configuration, rules: Rules) -> list[_Package]:
    """The packages of a job; of several with one name (one for each Python) the second is `name (2)`."""
    builder = forge.builder_of(configuration.platform)
    folder = forge.folder / forge.recipe_dir
    if forge.is_v1:
        contents = contents_with_rattler_build(folder, configuration, builder, rules)
        found = [_of_v1(content, output) for content, output in contents]
    else:
        packages = packages_with_conda_build(folder, configuration, builder, rules, keep_pins=True)
        found = [_of_v0(meta, output) for meta, output in packages]
    counts: dict[str, int] = {}
    numbered = []
    for package in sorted(found, key=lambda package: (package.name, package.string)):
        counts[package.name] = number = counts.get(package.name, 0) + 1
        name = package.name if number == 1 else f"{package.name} ({number})"
        numbered.append(_Package(name, package.string, package.parts))
    return numbered


def _of_v0(meta: Meta, output: RenderedOutput) -> _Package:
    own = {key: value for key, value in meta.section("build").items() if key in {"run_exports", "noarch"}}
    parts = {
        **_common(output),
        "run_exports": tuple(_lines(_weak(own.get("run_exports")))),
        "tests": tuple(_lines(meta.section("test"))),
    }
    return _Package(output.name, output.build_string, parts)


def _of_v1(content: Mapping[str, Any], output: RenderedOutput) -> _Package:
    requirements = content.get("requirements") or {}
    tests = tuple(_lines(content.get("tests") or []))
    exports = tuple(_lines(_weak(requirements.get("run_exports"))))
    return _Package(output.name, output.build_string, {**_common(output), "run_exports": exports, "tests": tests})


def _common(output: RenderedOutput) -> dict[str, tuple[str, ...]]:
    """The parts that both formats have: version, number, build string without its hash, and requirements.

    A requirement that conda-build pinned to the variant (`python 3.12.*`) is its name alone, as rattler-build has it.
    """
    variant = {key.replace("_", "-"): value for key, value in output.variant.items()}
    requirements = {
        section: tuple(_normal(_unpinned(item, variant)) for item in items)
        for section, items in output.requirements.items()
    }
    return {
        "version": (output.version,),
        "build number": (str(output.build_number),),
        "build string": (_HASH.sub("h…", output.build_string),),
        "noarch": (output.noarch or "no",),
        **requirements,
    }


def _unpinned(requirement: str, variant: Mapping[str, str]) -> str:
    name, _, version = requirement.partition(" ")
    return name if version and variant.get(name.replace("_", "-")) == version else requirement


def _normal(requirement: str) -> str:
    """A requirement without what the formats write differently: spaces, and the hash in an exact pin."""
    return _HASH.sub("h…", re.sub(r"\s+", " ", requirement.strip()))


def _weak(exports: Any) -> Any:
    """Run exports by kind; a plain list is of weak ones."""
    return exports if isinstance(exports, Mapping) else {"weak": exports or []}


def _lines(value: Any, place: str = "") -> Iterator[str]:
    """Nested values as lines `place: text`, in order."""
    if isinstance(value, Mapping):
        call = next((name for name in _CALLS if name in value), None)
        if call is not None:
            yield f"{place}: {call}({json.dumps(value[call], sort_keys=True, default=str)})"
            return
        for key in sorted(value, key=str):
            yield from _lines(value[key], f"{place}.{key}" if place else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _lines(item, place)
    elif value is not None:
        yield _HASH.sub("h…", f"{place}: {_STATES.get(value, value) if isinstance(value, bool) else value}")


def _paired(before: Sequence[_Package], after: Sequence[_Package]) -> Iterator[tuple[_Package | None, _Package | None]]:
    old, new = ({package.name: package for package in packages} for packages in (before, after))
    for name in dict.fromkeys([*old, *new]):
        yield old.get(name), new.get(name)


def _changes(before: _Package, after: _Package, without: set[str]) -> tuple[Lines, ...]:
    found = []
    for part in dict.fromkeys([*before.parts, *after.parts]):
        old, new = before.parts.get(part, ()), after.parts.get(part, ())
        if part not in without and sorted(old) != sorted(new):
            gone = tuple(line for line in dict.fromkeys(old) if line not in new)
            come = tuple(line for line in dict.fromkeys(new) if line not in old)
            found.append(Lines(part, gone, come))
    return tuple(found)


def _grouped(changed: Mapping[tuple[str, str], tuple[Lines, ...]]) -> Iterator[PackageChange]:
    """Packages with the same changes together, in the order of their first job."""
    groups: dict[tuple[str, tuple[Lines, ...]], list[str]] = {}
    for (job, name), lines in changed.items():
        if lines:
            groups.setdefault((name, lines), []).append(job)
    for (name, lines), jobs in groups.items():
        yield PackageChange(name, tuple(jobs), lines)
