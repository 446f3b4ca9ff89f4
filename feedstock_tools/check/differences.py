"""What two states of a feedstock build, compared by meaning: jobs, packages, and the contents of packages.

Texts are not compared: a recipe that moved to the other format, or was sorted, builds the same packages as before.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.check.choices import ChoiceChange, Packages, changed_choices
from feedstock_tools.check.findings import Check
from feedstock_tools.check.renderings import Renderings
from feedstock_tools.digests import digest_of_files
from feedstock_tools.errors import FeedstockError
from feedstock_tools.reading import is_inside
from feedstock_tools.recipe.packages import Package, mapping_in
from feedstock_tools.recipe.requirements import Pin, Requirement
from feedstock_tools.rerender.configuration import NO_LOOP, Configuration
from feedstock_tools.rerender.forge import Forge
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.stages import stage

#: Files whose meaning is compared, and those that say nothing about packages.
_RENDERED = frozenset({"meta.yaml", "recipe.yaml", "conda_build_config.yaml", "variants.yaml", "README.md"})
_MOST_FILES = 5_000


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
    """The differences that a change of a feedstock makes.

    `jobs_replaced` are old and new names of jobs that stand for each other; what they build is compared.
    `packages_added` and `packages_removed` are (job, package) of jobs in both states. `only_hashes` counts packages
    that are the same but for the hash in their build string. `same` counts packages without any difference. `files` are
    the scripts, patches and other files beside the recipe that differ, between states of one format. `choices` are the
    builds that solvers take instead of those before; `why_no_choices` is the reason if that is unknown, and
    `why_no_packages` if what is built is. `short_names` has those of all jobs, by name.
    """

    jobs_added: tuple[str, ...] = ()
    jobs_removed: tuple[str, ...] = ()
    jobs_replaced: tuple[tuple[str, str], ...] = ()
    jobs_changed: tuple[JobChange, ...] = ()
    packages_added: tuple[tuple[str, str], ...] = ()
    packages_removed: tuple[tuple[str, str], ...] = ()
    packages_changed: tuple[PackageChange, ...] = ()
    only_hashes: int = 0
    same: int = 0
    files: tuple[str, ...] = ()
    choices: tuple[ChoiceChange, ...] = ()
    why_no_choices: str = ""
    short_names: Mapping[str, str] = field(default_factory=dict)
    why_no_packages: str = ""

    @property
    def checks(self) -> tuple[Check, ...]:
        """What was compared: no difference is wrong, but a comparison may not have been possible."""
        reasons = {"packages": self.why_no_packages, "what solvers take": self.why_no_choices}
        return tuple(Check.of(name, wrong=False, unknown=reason) for name, reason in reasons.items())

    def __bool__(self) -> bool:
        """Whether the packages that are built differ in more than a hash."""
        jobs = self.jobs_added or self.jobs_removed
        return bool(jobs or self.packages_added or self.packages_removed or self.packages_changed or self.files)


def compare_feedstocks(
    before: Path, after: Path, *, rules: Rules | None = None, bounds: Bounds | None = None
) -> Differences:
    """Compare what two feedstock folders build, by the configurations in their `.ci_support`.

    Args:
        before: the folder of the old state.
        after: that of the new one; if it has the other format, tests are compared by imports and commands.
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
    return compare_renderings(Renderings(before, rules), Renderings(after, rules))


def compare_renderings(before: Renderings, after: Renderings) -> Differences:
    """As `compare_feedstocks`, for opened states."""
    stage("comparing what both states build")
    old = {configuration.name: configuration for configuration in before.configurations}
    new = {configuration.name: configuration for configuration in after.configurations}
    replaced = replaced_jobs(old, new)
    both = {**{name: name for name in old if name in new}, **replaced}
    without = ONE_FORMAT if before.forge.is_v1 != after.forge.is_v1 else TWO_FORMATS
    before_jobs = {name: before.packages(configuration) for name, configuration in old.items()}
    after_jobs = {name: after.packages(configuration) for name, configuration in new.items()}
    pairs = [
        (job, *pair) for job, before_job in both.items() for pair in _paired(before_jobs[before_job], after_jobs[job])
    ]
    kept = {(job, name): (one, other) for job, name, one, other in pairs if one and other}
    changed = {key: _changes(one, other, without) for key, (one, other) in kept.items()}
    hashes = {key for key, (one, other) in kept.items() if one.output.build_string != other.output.build_string}
    unchanged = [key for key, lines in changed.items() if not lines]
    choices: tuple[ChoiceChange, ...] = ()
    why_no_choices = ""
    try:
        choices = changed_choices([*before_jobs.values()], [*after_jobs.values()])
    except FeedstockError as error:
        why_no_choices = str(error).splitlines()[0]
    without_jobs = [state for state, jobs in (("before", old), ("after", new)) if not jobs]
    files = _files(before.forge) ^ _files(after.forge) if without is TWO_FORMATS else frozenset()
    return Differences(
        jobs_added=tuple(name for name in new if name not in both),
        jobs_removed=tuple(name for name in old if name not in both.values()),
        jobs_replaced=tuple((before_name, name) for name, before_name in replaced.items()),
        jobs_changed=tuple(
            change for name, before_name in both.items() if (change := _job_change(old[before_name], new[name])).values
        ),
        packages_added=tuple((job, name) for job, name, one, _ in pairs if not one),
        packages_removed=tuple((job, name) for job, name, _, other in pairs if not other),
        packages_changed=tuple(_grouped(changed)),
        only_hashes=sum(key in hashes for key in unchanged),
        same=sum(key not in hashes for key in unchanged),
        files=tuple(sorted({name for name, _ in files})),
        choices=choices,
        why_no_choices=why_no_choices,
        short_names={**before.titles, **after.titles},
        why_no_packages=f"no jobs in .ci_support {' and '.join(without_jobs)}" if without_jobs else "",
    )


def _files(forge: Forge) -> frozenset[tuple[str, str]]:
    """The paths and digests of the files beside a recipe: scripts, patches, files of tests; those that the comparison
    reads anyway are left out."""
    folder = forge.folder / forge.recipe_dir
    paths = [path for path in sorted(folder.rglob("*"))[:_MOST_FILES] if path.is_file() and path.name not in _RENDERED]
    inside = [path for path in paths if is_inside(path, forge.folder)]
    return frozenset((path.relative_to(folder).as_posix(), digest_of_files([path])) for path in inside)


def _job_change(before: Configuration, after: Configuration) -> JobChange:
    keys = sorted(before.values.keys() | after.values.keys())
    values = [(key, ", ".join(before.values.get(key, ())), ", ".join(after.values.get(key, ()))) for key in keys]
    return JobChange(after.name, tuple(each for each in values if each[1] != each[2]))


def _numbered(packages: Packages) -> dict[str, Package]:
    """Packages by name; of several with one name (one for each Python) the second is `name (2)`."""
    counts: Counter[str] = Counter()
    numbered = {}
    for package in sorted(packages, key=lambda package: (package.name, package.output.build_string)):
        counts[package.name] += 1
        number = counts[package.name]
        numbered[package.name if number == 1 else f"{package.name} ({number})"] = package
    return numbered


def _paired(before: Packages, after: Packages) -> Iterator[tuple[str, Package | None, Package | None]]:
    old, new = _numbered(before), _numbered(after)
    for name in dict.fromkeys([*old, *new]):
        yield name, old.get(name), new.get(name)


def _changes(before: Package, after: Package, without: frozenset[str]) -> tuple[Lines, ...]:
    found = []
    new_parts = _parts_of(after)
    for part, old in _parts_of(before).items():
        new = new_parts[part]
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


#: Keys that say where a job runs, not what it makes.
_OF_JOBS = NO_LOOP | {"cdt_name"}


def replaced_jobs(old: Mapping[str, Configuration], new: Mapping[str, Configuration]) -> dict[str, str]:
    """The old name of each new job that replaces an old one.

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


#: The lines of each part of a package, such as `run`.
Parts = Mapping[str, tuple[str, ...]]
#: The parts that are compared only between states of one format, or only between those of two.
ONE_FORMAT, TWO_FORMATS = frozenset({"tests", "script"}), frozenset({"imports of tests", "commands of tests"})
#: The parts that no environment depends on.
NO_ENVIRONMENT = frozenset({"license", "source", "script"})
_HASH = re.compile(r"h[0-9a-f]{7}")
_CALLS = ("pin_subpackage", "pin_compatible")
_STATES = {True: "yes", False: "no"}
#: A version and a build: the version is exact with and without `==`.
_EXACT = re.compile(r"^(\S+) ==?(\S+) (\S+)$")
_PIP_CHECK = re.compile(r"(?:\S*python\S* -m )?pip check")
#: Commands that only look whether a file exists, which the new format writes as `package_contents`.
_EXISTENCE = re.compile(r"(?:test|\[) !? ?-[edfLsx] |if (?:not )?exist |\$?\w*:? ?ls ")


def _parts_of(package: Package) -> Parts:
    """The parts of a package as lines.

    A requirement that conda-build pinned to the variant (`python 3.12.*`) is its name alone, as rattler-build has it.
    """
    output = package.output
    variant = {key.replace("_", "-"): value for key, value in output.variant.items()}
    sections = {
        "build": package.build,
        "host": package.host or (),
        "run": package.run,
        "run_constrained": package.constrains,
    }
    ignored = [*package.ignored, *(f"from {name}" for name in package.ignored_from)]
    exports = [
        f"{kind}: {_requirement(spec, variant)}" for kind, specs in package.run_exports.items() for spec in specs
    ]
    script = package.scripts[-1]
    imports, commands = _tests(package.tests)
    return {
        "version": (output.version,),
        "build number": (str(output.build_number),),
        "build string": (_HASH.sub("h…", output.build_string),),
        "noarch": (output.noarch or "no",),
        **{name: tuple(_requirement(spec, variant) for spec in specs) for name, specs in sections.items()},
        "run_exports": tuple(sorted(exports)),
        "ignored run exports": tuple(sorted(ignored)),
        "track_features": (str(len(package.track_features)),),
        "license": _texts(package.about.get("license")),
        "source": tuple(_sources(package.source)),
        "script": tuple(_lines(script)) if isinstance(script, Mapping) else _texts(script),
        "tests": tuple(_lines(package.tests if isinstance(package.tests, Mapping | list) else [])),
        "imports of tests": tuple(imports),
        "commands of tests": tuple(_commands(commands)),
    }


def _tests(tests: Any) -> tuple[list[str], list[str]]:
    """The imports and the commands of tests."""
    if isinstance(tests, Mapping):  # of a `meta.yaml`
        return [*_texts(tests.get("imports"))], [*_texts(tests.get("commands"))]
    each = [test for test in tests or () if isinstance(test, Mapping)]
    python = [mapping_in(test.get("python")) for test in each]
    commands = [line for test in each for line in _script_lines(test.get("script"))]
    commands += ["pip check"] if any(test and test.get("pip_check", True) for test in python) else []
    return [name for test in python for name in _texts(test.get("imports"))], commands


def _requirement(requirement: Requirement, variant: Mapping[str, str]) -> str:
    """A requirement without what the formats write differently: spaces, versions of the variant, hashes in pins."""
    if not isinstance(requirement, Pin):
        text = _EXACT.sub(r"\1 \2 \3", re.sub(r"\s+", " ", requirement.strip()))
        name, _, version = text.partition(" ")
        return name if version and variant.get(name.replace("_", "-")) == version else _HASH.sub("h…", text)
    call = _CALLS[requirement.compatible]
    if requirement.exact:
        return f"{requirement.name} {call}(exact)"
    return f"{requirement.name} {call}({requirement.lower or ''} to {requirement.upper or ''})"


def _sources(value: Any) -> Iterator[str]:
    """URL, hash, commit and patches of each source."""
    for source in value if isinstance(value, list) else [value]:
        fields = mapping_in(source)
        for word, keys in _OF_SOURCES.items():
            texts = [text for key in keys for text in _texts(fields.get(key))]
            yield from (f"{word}: {text}" for text in texts)


_OF_SOURCES = {
    "url": ("url",),
    "sha256": ("sha256",),
    "git": ("git_url", "git"),
    "revision": ("git_rev", "tag", "rev", "branch"),
    "path": ("path",),
    "patch": ("patches",),
}


def _script_lines(script: Any) -> Iterator[str]:
    if isinstance(script, Mapping):
        script = script.get("content") or script.get("file")
    for text in _texts(script):
        yield from text.splitlines()


def _commands(lines: Sequence[str]) -> Iterator[str]:
    """Commands of tests without those that only look for files, each form of `pip check` alike."""
    for line in lines:
        text = " ".join(line.split())
        if _PIP_CHECK.fullmatch(text):
            yield "pip check"
        elif text and not _EXISTENCE.match(text):
            yield _HASH.sub("h…", text)


def _texts(value: Any) -> tuple[str, ...]:
    """A text or a list of texts, as texts."""
    return tuple(str(item) for item in (value if isinstance(value, list | tuple) else [value]) if item is not None)


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
