"""Rules about packages: jobs that build none, two with one file name, builds that only time distinguishes, licenses,
repeated requirements, and metapackages that stand for no certain build."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from feedstock_tools.check.cuda_guards import missing_guards
from feedstock_tools.check.findings import Complaint
from feedstock_tools.check.linting.subject import Job, LintFinding, Package, Subject, has_files, name_in
from feedstock_tools.check.renderings import Built
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.generate.spec.review_checks import license_mistake
from feedstock_tools.recipe.requirements import Pin, Requirement
from feedstock_tools.recipe.written.document import Document, Part
from feedstock_tools.recipe.written.owners import Owner, name_of, requirement_lists

#: Keys that say where a job runs, not what it makes.
_OF_JOBS = frozenset({"docker_image", "channel_sources", "channel_targets", "github_actions_labels", "target_platform"})


def without_package(subject: Subject) -> Iterator[LintFinding]:
    """Jobs in which everything is skipped, and a recipe that is skipped without a condition."""
    recipe = subject.recipe
    for skip in recipe.entries("build", "skip"):
        is_plain = not recipe.selector_of(skip) and not recipe.is_in_block(skip.start)
        if is_plain and skip.value.text.lower() in ("true", "yes", "on"):
            yield subject.finding(skip.start, "no-package", "the recipe is skipped without a condition")
            return
    entry = next(recipe.entries("build"), None)
    at = entry.start if entry else 0
    empty = [job.name for job in subject.jobs if job.packages is not None and not job.packages]
    names = ", ".join(empty[:3]) + (f" and {len(empty) - 3} more" if len(empty) > 3 else "")
    if empty and len(empty) < len(subject.jobs):
        yield subject.finding(at, "no-package", f"everything is skipped in {names}: rerender the feedstock")
    elif empty:
        yield subject.finding(at, "no-package", f"everything is skipped in every job: {names}")


def not_rendered(subject: Subject) -> Iterator[LintFinding]:
    """Jobs for which the recipe cannot be rendered, while it can for others."""
    jobs_of: dict[tuple[str, int], list[str]] = {}
    for job in subject.jobs:
        if isinstance(job.error, InputError):
            mistake = job.error.mistakes[0]
            at = subject.recipe.start_of(mistake.line) if mistake.path == subject.recipe.path and mistake.line else 0
            jobs_of.setdefault((mistake.message, at), []).append(job.name)
    for (message, at), jobs in jobs_of.items():
        where = f"{jobs[0]} and {len(jobs) - 1} more" if len(jobs) > 1 else jobs[0]
        yield subject.finding(at, "not-rendered", f"cannot be rendered for {where}: {message}")


def collisions(subject: Subject) -> Iterator[LintFinding]:
    """Builds that would be the same file, although they differ in requirements or in the values that they use."""
    makers: dict[tuple[str, str], tuple[Job, Package]] = {}
    for job in subject.jobs:
        for package in job.packages or ():
            output = package.output
            if output.noarch:
                continue
            other_job, other = makers.setdefault((job.platform.subdir, output.file_stem), (job, package))
            differing = _difference(other, package, with_values=has_files(subject.output(output.name)))
            if differing:
                where = job.name if job is other_job else f"{job.name} and {other_job.name}"
                message = f"two builds of {output.file_stem} in {where} differ in {differing}"
                yield subject.finding(subject.place_in(output.name, "string:"), "colliding-packages", message)


def _difference(first: Package, second: Package, *, with_values: bool) -> str:
    """What two builds differ in besides their file: values that they use, or requirements; '' for nothing."""
    before, after = (_values(package) for package in (first, second))
    keys = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    if keys and with_values:
        return ", ".join(keys)
    if (first.demands.run, first.demands.constrains) != (second.demands.run, second.demands.constrains):
        return "their requirements"
    return ""


def _values(package: Package) -> Mapping[str, str]:
    output = package.output
    return {key: output.variant[key] for key in output.used.own - _OF_JOBS if key in output.variant}


def ambiguous_builds(subject: Subject) -> Iterator[LintFinding]:
    """CUDA builds that solvers also choose, or may choose, on machines without a GPU."""
    built = [
        (job.name, Built(package.output, {}, "", bool(package.demands.track_features)))
        for job in subject.jobs
        for package in job.packages or ()
    ]
    if not any("cuda_compiler_version" in job.configuration.values for job in subject.jobs):
        return
    complaints: dict[str, tuple[Complaint, list[str]]] = {}
    for job, complaint in missing_guards(built, load_cuda()):
        complaints.setdefault(_name_in(complaint, subject), (complaint, []))[1].append(job)
    for name, (complaint, jobs) in complaints.items():
        where = f"{jobs[0]} and {len(jobs) - 1} more" if len(jobs) > 1 else jobs[0]
        message = f"{complaint.message} ({where})"
        yield subject.finding(subject.place_of(name), "ambiguous-builds", message, weight=complaint.weight)


def _name_in(complaint: Complaint, subject: Subject) -> str:
    """The output that a complaint about a missing guard is about."""
    return next((name for name in sorted(subject.outputs) if f"build of {name} off " in complaint.message), "")


def licenses(subject: Subject) -> Iterator[LintFinding]:
    """A license that is missing or no SPDX expression, and a license file that is missing."""
    recipe = subject.recipe
    of_recipe, of_outputs = (
        list(recipe.entries("about", "license")),
        list(recipe.entries("outputs", "*", "about", "license")),
    )
    if not of_recipe and not of_outputs:
        yield subject.finding(0, "license", "the recipe names no license (about.license)")
    for entry in (*of_recipe, *of_outputs):
        text = entry.value.text
        if "{{" not in text and entry.value.kind == "scalar" and (wrong := license_mistake(text)):
            yield subject.finding(entry.start, "license", f"{wrong[0]}. {wrong[1]}")
    files = [*recipe.entries("about", "license_file"), *recipe.entries("outputs", "*", "about", "license_file")]
    if of_recipe and not files:
        yield subject.finding(of_recipe[0].start, "license-file", "no license_file is below 'about'")


#: A requirement with a build: `name version build` or `name=version=build`.
_BUILD = re.compile(r"\S+?(?:\s+\S+\s+|\s*=+[^=\s]+=)(?P<build>[^=\s]+)$")


def duplicates(subject: Subject) -> Iterator[LintFinding]:
    """Requirements that are in a list twice."""
    for _, item in repeated(subject.recipe):
        message = f"'{item.text}' is already in this list"
        yield subject.finding(item.start, "duplicate-requirement", message, fixable=True)


def repeated(recipe: Document) -> Iterator[tuple[Part, Part]]:
    """Items that repeat one of the same list with the same selector, outside of blocks of Jinja."""
    for list_ in requirement_lists(recipe):
        seen: set[tuple[str, str]] = set()
        for item in list_.items:
            if item.kind != "scalar":
                continue
            key = (" ".join(item.text.split()), recipe.selector_of(item))
            if key in seen and not recipe.is_in_block(item.start) and not recipe.has_blocks(list_):
                yield list_, item
            seen.add(key)


def loose_metapackages(subject: Subject) -> Iterator[LintFinding]:
    """Packages without files whose siblings may come from another build than the one that they stand for."""
    reported: set[tuple[str, str]] = set()
    for job in subject.jobs:
        for package in job.packages or ():
            if not _is_metapackage(package, subject.output(package.name), subject.outputs):
                continue
            for requirement in package.demands.run:
                wrong = _looseness(package, requirement, job, subject)
                if wrong and (package.name, name_in(requirement)) not in reported:
                    reported.add((package.name, name_in(requirement)))
                    at = _place(subject, subject.output(package.name), name_in(requirement), package.name)
                    yield subject.finding(at, "loose-metapackage", f"{package.name} has no files, but {wrong}")


def _is_metapackage(package: Package, output: Owner | None, outputs: frozenset[str]) -> bool:
    """Whether a package only stands for siblings: it has no script, no files, and nothing that it is built with."""
    demands = package.demands
    if output is None or demands.build or demands.host or not demands.run:
        return False
    if has_files(output):
        return False
    return all(name_in(requirement) in outputs - {package.name} for requirement in demands.run)


def _looseness(package: Package, requirement: Requirement, job: Job, subject: Subject) -> str | None:
    """What is wrong with a metapackage's requirement; None if it leads to the builds that the package stands for.

    Several builds of a sibling in one job differ in what a metapackage does not choose, such as Python: then a pattern
    of build strings does, if it fits no build for another CUDA version.
    """
    if isinstance(requirement, Pin) and requirement.exact:
        return None
    name = name_in(requirement)
    builds = [other for other in job.packages or () if other.name == name]
    text = requirement if isinstance(requirement, str) else f"pin_subpackage('{requirement.name}')"
    pattern = _build_pattern(requirement)
    if pattern is None and len({_cuda(other) for other in _all_of(name, job, subject)}) > 1:
        return f"'{text}' allows the builds of {name} for every CUDA version and for CPU: pin it with exact=True"
    if len(builds) == 1 and (isinstance(requirement, Pin) or requirement == name):
        return f"'{text}' does not pin the build that it stands for: pin it with exact=True"
    fitting = [other for other in _all_of(name, job, subject) if fnmatchcase(other.output.build_string, pattern or "*")]
    flavours = {_cuda(other) == "CPU" for other in builds}
    if builds and any((_cuda(other) == "CPU") not in flavours for other in fitting if _cuda(other) != "any"):
        return f"'{text}' fits the builds of {name} for CPU and those for CUDA"
    return None


def _build_pattern(requirement: Requirement) -> str | None:
    """The pattern of build strings in a requirement `name version build`; None if it has none."""
    match = _BUILD.match(requirement) if isinstance(requirement, str) else None
    return match["build"] if match and match["build"] != "*" else None


def _all_of(name: str, job: Job, subject: Subject) -> list[Package]:
    """The builds of a package that users of a job's platform can install."""
    return [
        package
        for other in subject.jobs
        if other.platform == job.platform
        for package in other.packages or ()
        if package.name == name
    ]


def _cuda(package: Package) -> str:
    """The CUDA version that a build differs by from others, in words."""
    if "cuda_compiler_version" not in package.output.used.own:
        return "any"
    version = package.output.variant.get("cuda_compiler_version", "None")
    return "CPU" if version in ("", "None") else f"CUDA {version}"


def _place(subject: Subject, output: Owner | None, name: str, owner: str) -> int:
    """The requirement of an output as it is written, else the output's name."""
    requirements = output.part.members.get("requirements") if output is not None else None
    parts = [requirements] if requirements is not None else []
    while parts:
        part = parts.pop(0)
        if part.kind == "scalar" and name_of(part.text) == name:
            return part.start
        parts += [*part.items, *(entry.value for entry in part.entries)]
    return subject.place_of(owner)
