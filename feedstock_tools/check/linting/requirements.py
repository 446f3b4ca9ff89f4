"""Rules about lists of requirements: duplicates in them, and metapackages that stand for no certain build."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from feedstock_tools.check.linting.subject import Job, Mistaken, Package, Subject, has_files, name_in
from feedstock_tools.recipe.requirements import Pin, Requirement
from feedstock_tools.recipe.written.document import Document, Part
from feedstock_tools.recipe.written.owners import Owner, name_of, requirement_lists

#: A requirement with a build: `name version build` or `name=version=build`.
_BUILD = re.compile(r"\S+?(?:\s+\S+\s+|\s*=+[^=\s]+=)(?P<build>[^=\s]+)$")


def duplicates(subject: Subject) -> Iterator[Mistaken]:
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


def loose_metapackages(subject: Subject) -> Iterator[Mistaken]:
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
