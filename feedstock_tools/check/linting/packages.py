"""Rules about packages: jobs that build none, two with one file name, builds that only time distinguishes, licenses,
repeated requirements, metapackages that stand for no certain build, pins on outputs that are not built together, and
run exports that do not fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase

from feedstock_tools.bounds.limits import BoundError
from feedstock_tools.check.cuda_guards import missing_guards
from feedstock_tools.check.findings import Finding, Weight
from feedstock_tools.check.linting.reading import is_empty
from feedstock_tools.check.linting.subject import LintFinding, Subject, cuda_of, has_files
from feedstock_tools.check.renderings import Job
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.generate.spec.review_checks import license_mistake, obsolete_license
from feedstock_tools.platforms import KNOWN_SUBDIRS
from feedstock_tools.reading import read_text
from feedstock_tools.recipe.packages import Package, name_in
from feedstock_tools.recipe.requirements import Pin, Requirement
from feedstock_tools.recipe.written.document import Document, Part
from feedstock_tools.recipe.written.owners import Owner, name_of, requirement_lists
from feedstock_tools.rerender.configuration import NO_LOOP
from feedstock_tools.wording import some_of

#: What a mistake of a package is about, its place in the recipe, and the message.
_Wrong = tuple[str, int, str]
_Finder = Callable[[Package, Job, Subject], Iterator[_Wrong]]


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
    empty = [job.title for job in subject.jobs if not job.error and not job.packages]
    names = some_of(empty, 3)
    if empty and len(empty) < len(subject.jobs):
        yield subject.finding(at, "no-package", f"everything is skipped in {names}: rerender the feedstock")
    elif empty:
        yield subject.finding(at, "no-package", f"everything is skipped in every job: {names}")


def not_rendered(subject: Subject) -> Iterator[LintFinding]:
    """Jobs for which the recipe cannot be rendered; of one that exceeds a bound it is unknown."""
    jobs_of: dict[tuple[str, str, int], list[str]] = {}
    for job in subject.jobs:
        if isinstance(job.error, InputError) and not isinstance(job.error, BoundError):
            mistake = job.error.mistakes[0]
            path = subject.path_of(mistake.path) or subject.path_of(subject.recipe.path)
            jobs_of.setdefault((mistake.message, path, mistake.line or 1), []).append(job.title)
    for (message, path, line), jobs in jobs_of.items():
        where = "any job" if len(jobs) == len(subject.jobs) else some_of(jobs)
        yield LintFinding(path, line, "not-rendered", f"cannot be rendered for {where}: {message}")


def collisions(subject: Subject) -> Iterator[LintFinding]:
    """Builds that would be the same file, although they differ in requirements or in the values that they use."""
    makers: dict[tuple[str, str], tuple[Job, Package]] = {}
    for job in subject.jobs:
        for package in job.packages:
            output = package.output
            if output.noarch:
                continue
            other_job, other = makers.setdefault((job.platform.subdir, output.file_stem), (job, package))
            differing = _difference(other, package, with_values=has_files(subject.output(output.name)))
            if differing:
                where = job.title if job is other_job else f"{job.title} and {other_job.title}"
                message = f"two builds of {output.file_stem} in {where} differ in {differing}"
                yield subject.finding(subject.place_in(output.name, "string:"), "colliding-packages", message)


def _difference(first: Package, second: Package, *, with_values: bool) -> str:
    """What two builds differ in besides their file: values that they use, or requirements; '' for nothing."""
    before, after = (_values(package) for package in (first, second))
    keys = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    if keys and with_values:
        return ", ".join(keys)
    if (first.run, first.constrains) != (second.run, second.constrains):
        return "their requirements"
    return ""


def _values(package: Package) -> Mapping[str, str]:
    output = package.output
    return {key: output.variant[key] for key in output.used.own - NO_LOOP if key in output.variant}


def ambiguous_builds(subject: Subject) -> Iterator[LintFinding]:
    """CUDA builds that solvers also choose, or may choose, on machines without a GPU."""
    if not any("cuda_compiler_version" in job.configuration.values for job in subject.jobs):
        return
    found: dict[str, list[Finding]] = {}
    for package, finding in missing_guards(subject.jobs, load_cuda()):
        found.setdefault(package.name, []).append(finding)
    for name, findings in found.items():
        message = f"{findings[0].message} ({some_of([finding.configuration for finding in findings])})"
        yield subject.finding(subject.place_of(name), "ambiguous-builds", message, weight=findings[0].weight)


#: What conda-forge's linter looks for in the family of a license, else in its name, that must come with its text.
_NEED_FILE = ("gpl", "bsd", "mit", "apache", "psf")


def licenses(subject: Subject) -> Iterator[LintFinding]:
    """A license that is not an SPDX expression or an obsolete one, and a license file that is missing."""
    recipe = subject.recipe
    of_recipe, of_outputs = (list(recipe.entries(*above, "about", "license")) for above in ((), ("outputs", "*")))
    for entry in (*of_recipe, *of_outputs):
        text = entry.value.text
        if "{{" in text or entry.value.kind != "scalar" or not text:
            continue
        if wrong := license_mistake(text):
            yield subject.finding(entry.start, "license", f"{wrong[0]}. {wrong[1]}")
        elif obsolete := obsolete_license(text):
            yield subject.finding(entry.start, "license", obsolete, weight="remark")
    own, others = (
        [entry for entry in recipe.entries(*above, "about", "license_file") if not is_empty(entry.value)]
        for above in ((), ("outputs", "*"))
    )
    licensed = [*recipe.entries("about", "license_family"), *of_recipe]
    needed = not recipe.has_templates or any(word in licensed[0].value.text.lower() for word in _NEED_FILE if licensed)
    if not own and (needed or (licensed and not others)):
        at = [*of_recipe, *licensed, *recipe.entries("about")]
        weight: Weight = "mistake" if needed else "remark"  # conda-smithy asks for the text of these families alone
        yield subject.finding(
            at[0].start if at else 0, "license-file", "no license_file is below 'about'", weight=weight
        )


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


def _each_once(subject: Subject, rule: str, find: _Finder) -> Iterator[LintFinding]:
    """What is wrong with the packages of all jobs, the same about one package only once."""
    reported: set[tuple[str, str]] = set()
    for job in subject.jobs:
        for package in job.packages:
            for about, at, message in find(package, job, subject):
                if (package.name, about) not in reported:
                    reported.add((package.name, about))
                    yield subject.finding(at, rule, message)


def loose_metapackages(subject: Subject) -> Iterator[LintFinding]:
    """Packages without files whose siblings may come from another build than the one that they stand for."""
    return _each_once(subject, "loose-metapackage", _loose_requirements)


def _loose_requirements(package: Package, job: Job, subject: Subject) -> Iterator[_Wrong]:
    output = subject.output(package.name)
    for requirement in package.run if _is_metapackage(package, output, subject.outputs) else ():
        wrong = _looseness(requirement, job, subject)
        if wrong:
            name = name_in(requirement)
            yield name, _place(subject, output, name, package.name), f"{package.name} has no files, but {wrong}"


def _is_metapackage(package: Package, output: Owner | None, outputs: frozenset[str]) -> bool:
    """Whether a package only stands for siblings: it has no script, no files, and nothing that it is built with."""
    if output is None or package.build or package.host or not package.run or has_files(output):
        return False
    return all(name_in(requirement) in outputs - {package.name} for requirement in package.run)


def _looseness(requirement: Requirement, job: Job, subject: Subject) -> str | None:
    """What is wrong with a metapackage's requirement; None if it leads to the builds that the package stands for.

    Several builds of a sibling in one job differ in what a metapackage does not choose, such as Python: then a pattern
    of build strings does, if it fits no build for another CUDA version.
    """
    if isinstance(requirement, Pin) and requirement.exact:
        return None
    name = name_in(requirement)
    builds = [other for other in job.packages if other.name == name]
    text = requirement if isinstance(requirement, str) else f"pin_subpackage('{requirement.name}')"
    pattern = _build_pattern(requirement)
    installable = subject.builds[job.platform, name]
    if pattern is None and len(installable) > 1:
        return f"'{text}' allows the builds of {name} for every CUDA version and for CPU: pin it with exact=True"
    if len(builds) == 1 and (isinstance(requirement, Pin) or requirement == name):
        return f"'{text}' does not pin the build that it stands for: pin it with exact=True"
    flavours = {cuda_of(other) == "CPU" for other in builds}
    others = (strings for cuda, strings in installable.items() if cuda != "any" and (cuda == "CPU") not in flavours)
    if builds and any(fnmatchcase(string, pattern or "*") for strings in others for string in strings):
        return f"'{text}' fits the builds of {name} for CPU and those for CUDA"
    return None


def _build_pattern(requirement: Requirement) -> str | None:
    """The pattern of build strings in a requirement `name version build`; None if it has none."""
    match = _BUILD.match(requirement) if isinstance(requirement, str) else None
    return match["build"] if match and match["build"] != "*" else None


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


_KINDS = frozenset({"weak", "strong", "noarch", "weak_constrains", "strong_constrains"})
_KINDS_V1 = frozenset({"weak", "strong", "noarch", "weak_constraints", "strong_constraints"})
#: A package with one version in the pinning.
_PINNED = re.compile(r"^(\w+):[ \t]*\n[ \t]+- ['\"]?(\d+(?:\.\d+)*)['\"]?[ \t]*\n(?=\S|\n)", re.MULTILINE)
_EXPRESSION = re.compile(r"x(\.x)*")
#: What shows a shared library among the files or tests of an output.
_SHARED = re.compile(r"SHLIB_EXT|\.so\b|\.dylib|\.dll\b|^\s*lib:", re.MULTILINE)
#: Names of outputs that programs link to, and endings of those that they are only compiled with.
_LIBRARY = re.compile(r"lib(?!.*(?:-devel|-dev|-static|-headers?|-tools|-bin|-tests?|-python|-py)$)")


def unbuilt_pins(subject: Subject) -> Iterator[LintFinding]:
    """`pin_subpackage` of what a job does not build, and exact pins of noarch packages on builds of one platform."""
    return _each_once(subject, "unbuilt-pin", _unbuilt_pins)


def _unbuilt_pins(package: Package, job: Job, subject: Subject) -> Iterator[_Wrong]:
    for pin in (*(package.host or ()), *package.run):
        wrong = _why_unbuilt(package, pin, job, subject) if isinstance(pin, Pin) and not pin.compatible else None
        if wrong:
            yield name_in(pin), subject.place_in(package.name, name_in(pin)), wrong


def _why_unbuilt(package: Package, pin: Pin, job: Job, subject: Subject) -> str | None:
    names = {other.name for other in job.packages}
    if pin.name not in names and pin.name in subject.outputs:
        return f"{package.name} pins its sibling {pin.name}, which {job.title} does not build"
    if pin.name not in names:
        return f"{package.name} pins {pin.name} with pin_subpackage, but no output has that name"
    if not pin.exact or not package.output.noarch or pin not in package.run:
        return None
    if any(subdir in package.name for subdir in KNOWN_SUBDIRS):
        return None  # one for each platform, beside the build that it pins
    subdirs = subject.subdirs.get(pin.name, frozenset())
    if len(subdirs) > 1:
        where = ", ".join(sorted(subdirs))
        return f"{package.name} is noarch, but pins the build of {pin.name} for one platform of {where}"
    return None


def run_exports(subject: Subject) -> Iterator[LintFinding]:
    """Run exports of unknown kinds, of packages that are not outputs, and that do not fit those that link to them."""
    yield from _unknown_kinds(subject)
    yield from _finer_than_pinning(subject)
    yield from _each_once(subject, "run-exports", _export_mistakes)


def _unknown_kinds(subject: Subject) -> Iterator[LintFinding]:
    recipe = subject.recipe
    kinds = _KINDS if recipe.has_templates else _KINDS_V1
    places = (
        ("build",),
        ("requirements",),
        ("outputs", "*"),
        ("outputs", "*", "build"),
        ("outputs", "*", "requirements"),
    )
    for place in places:
        for entry in recipe.entries(*place, "run_exports"):
            ignored = recipe.has_templates and place[-1] == "requirements"
            if ignored:
                message = "conda-build ignores run_exports below requirements: move them below build"
                yield subject.finding(entry.start, "run-exports", message)
            for kind in entry.value.entries:
                if not ignored and kind.key not in kinds | {"if", "then", "else"}:
                    message = f"'{kind.key}' is not a kind of run exports; the kinds are {', '.join(sorted(kinds))}"
                    yield subject.finding(kind.start, "run-exports", message)


def _finer_than_pinning(subject: Subject) -> Iterator[LintFinding]:
    """Exports with a tighter upper bound than the pinning's version has digits: a patch release, which no migration
    follows, breaks packages that were built with the one before."""
    if subject.pinning is None:
        return
    pinned = dict(_PINNED.findall(read_text(subject.pinning.config, within=None)))
    reported = set()
    for job in subject.jobs:
        for package in job.packages:
            for pin in _exported(package):
                version = pinned.get(pin.name.replace("-", "_"), "")
                if not version or pin.exact or pin.name in reported or not _EXPRESSION.fullmatch(pin.upper or ""):
                    continue
                if (pin.upper or "").count("x") > version.count(".") + 1:
                    reported.add(pin.name)
                    message = (
                        f"{package.name} exports {pin.name} up to {pin.upper}, but the pinning builds for {version}"
                    )
                    yield subject.finding(subject.place_in(package.name, "run_exports"), "run-exports", message)


def _export_mistakes(package: Package, job: Job, subject: Subject) -> Iterator[_Wrong]:
    siblings = [other for other in job.packages if other is not package]
    names = {other.name for other in siblings} | {package.name}
    for pin in _exported(package):
        if pin.name not in names:
            message = f"{package.name} exports a pin on {pin.name}, which is not an output of {job.title}"
            yield pin.name, subject.place_in(package.name, pin.name), message
    linking = [
        other
        for other in siblings
        if package.name in map(name_in, other.host or ()) and has_files(subject.output(other.name))
    ]
    for other in linking:
        for message in _bound_mistakes(package, other):
            yield f"bounds of {other.name}", subject.place_in(package.name, "run_exports"), message
    if not package.output.noarch and _is_library(package, subject):
        compiled = [other for other in linking if _is_compiled(other, job)]
        lacking = sorted({other.name for other in compiled if not _requires(other, package, siblings)})
        if lacking:
            one = len(lacking) == 1
            lacks = "does not require it" if one else "do not require it when they run"
            message = f"{', '.join(lacking)} {'is' if one else 'are'} built with {package.name}, but {lacks}"
            message = f"{message}: nothing has a run export of {package.name}"
            yield "linked", subject.place_in(package.name, "host"), message


def _is_compiled(package: Package, job: Job) -> bool:
    """Whether a package is built with a compiler, so that it may link to libraries of its host environment."""
    compilers = {
        f"{name}_{job.platform.subdir}"
        for key, values in job.configuration.values.items()
        if key.endswith("_compiler")
        for name in values
    }
    return not compilers.isdisjoint(map(name_in, package.build))


def _exported(package: Package) -> Iterator[Pin]:
    for specs in package.run_exports.values():
        yield from (pin for pin in specs if isinstance(pin, Pin) and not pin.compatible)


def _is_library(package: Package, subject: Subject) -> bool:
    """Whether a package has a shared library, as far as the recipe shows, and in no job an export, of it or its own."""
    if not _LIBRARY.match(package.name) or package.name in subject.exporting:
        return False
    output = subject.output(package.name)
    text = subject.recipe.text[output.part.start : output.part.end] if output is not None else ""
    return _SHARED.search(text) is not None or not re.search(r"^\s*(?:- )?(?:tests?|files):", text, re.MULTILINE)


def _bound_mistakes(package: Package, other: Package) -> Iterator[str]:
    """A sibling that requires what a package exports with other bounds than the export has."""
    exported = {pin.name: pin for pin in _exported(package)}
    for pin in other.run:
        export = exported.get(pin.name) if isinstance(pin, Pin) and not pin.compatible else None
        if export is None or not isinstance(pin, Pin) or pin.exact or export.exact or pin.upper == export.upper:
            continue
        yield (
            f"{package.name} exports {pin.name} up to {export.upper or 'any version'}, "
            f"but {other.name} requires it up to {pin.upper or 'any version'}"
        )


def _requires(package: Package, library: Package, siblings: list[Package]) -> bool:
    """Whether a package requires a library at run time, itself or by a sibling, or need not."""
    by_name = {other.name: other for other in siblings}
    pending, seen = [package.name], set()
    while pending:
        name = pending.pop()
        if name == library.name:
            return True
        if name not in seen and name in by_name:
            seen.add(name)
            pending += map(name_in, by_name[name].run)
    return bool(package.output.noarch) or library.name in package.ignored
