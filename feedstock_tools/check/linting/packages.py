"""Rules about what the jobs build: nothing, two packages with one file name, builds that only time distinguishes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from feedstock_tools.check.cuda_guards import missing_guards
from feedstock_tools.check.findings import Complaint
from feedstock_tools.check.linting.subject import Job, Mistaken, Package, Subject, has_files
from feedstock_tools.check.renderings import Built
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import load_cuda

#: Keys that say where a job runs, not what it makes.
_OF_JOBS = frozenset({"docker_image", "channel_sources", "channel_targets", "github_actions_labels", "target_platform"})


def without_package(subject: Subject) -> Iterator[Mistaken]:
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


def not_rendered(subject: Subject) -> Iterator[Mistaken]:
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


def collisions(subject: Subject) -> Iterator[Mistaken]:
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


def ambiguous_builds(subject: Subject) -> Iterator[Mistaken]:
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
