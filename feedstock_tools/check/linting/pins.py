"""Rules about pins between the outputs of a recipe: on outputs that are not built together, and in run exports."""

from __future__ import annotations

import re
from collections.abc import Iterator

from feedstock_tools.check.linting.subject import Job, LintFinding, Package, Subject, has_files, name_in
from feedstock_tools.platforms import KNOWN_SUBDIRS
from feedstock_tools.reading import read_text
from feedstock_tools.recipe.requirements import Pin, Requirement

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
    reported: set[tuple[str, str]] = set()
    for job in subject.jobs:
        built = {package.name: package for package in job.packages or ()}
        for package in built.values():
            for pin in _subpackage_pins(package):
                if (package.name, pin.name) in reported:
                    continue
                wrong = _why_unbuilt(package, pin, job, subject)
                if wrong:
                    reported.add((package.name, pin.name))
                    yield subject.finding(subject.place_in(package.name, pin.name), "unbuilt-pin", wrong)


def _why_unbuilt(package: Package, pin: Pin, job: Job, subject: Subject) -> str | None:
    names = {other.name for other in job.packages or ()}
    if pin.name not in names and pin.name in subject.outputs:
        return f"{package.name} pins its sibling {pin.name}, which {job.name} does not build"
    if pin.name not in names:
        return f"{package.name} pins {pin.name} with pin_subpackage, but no output has that name"
    if not pin.exact or not package.output.noarch or pin not in package.demands.run:
        return None
    if any(subdir in package.name for subdir in KNOWN_SUBDIRS):
        return None  # one for each platform, beside the build that it pins
    builds = {
        other.output.build_string: each.platform.subdir
        for each in subject.jobs
        for other in each.packages or ()
        if other.name == pin.name and not other.output.noarch
    }
    if len(builds) > 1 and len(set(builds.values())) > 1:
        where = ", ".join(sorted(set(builds.values())))
        return f"{package.name} is noarch, but pins the build of {pin.name} for one platform of {where}"
    return None


def _subpackage_pins(package: Package) -> Iterator[Pin]:
    demands = package.demands
    for requirement in (*(demands.host or ()), *demands.run):
        if isinstance(requirement, Pin) and not requirement.compatible:
            yield requirement


def run_exports(subject: Subject) -> Iterator[LintFinding]:
    """Run exports of unknown kinds, of packages that are not outputs, and that do not fit those that link to them."""
    yield from _unknown_kinds(subject)
    yield from _finer_than_pinning(subject)
    reported: set[tuple[str, str]] = set()
    for job in subject.jobs:
        for package in job.packages or ():
            for about, word, wrong in _export_mistakes(package, job, subject):
                if (package.name, about) not in reported:
                    reported.add((package.name, about))
                    yield subject.finding(subject.place_in(package.name, word), "run-exports", wrong)


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
        for package in job.packages or ():
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


def _export_mistakes(package: Package, job: Job, subject: Subject) -> Iterator[tuple[str, str, str]]:
    """What is wrong with a package's run exports: what it is about, a word of its line, and a sentence."""
    siblings = [other for other in job.packages or () if other is not package]
    names = {other.name for other in siblings} | {package.name}
    for pin in _exported(package):
        if pin.name not in names:
            message = f"{package.name} exports a pin on {pin.name}, which is not an output of {job.name}"
            yield pin.name, pin.name, message
    linking = [
        other
        for other in siblings
        if package.name in _names(other.demands.host or ()) and has_files(subject.output(other.name))
    ]
    for other in linking:
        yield from _bound_mistakes(package, other)
    if not package.output.noarch and _is_library(package, subject):
        compiled = [other for other in linking if _is_compiled(other, job)]
        lacking = sorted({other.name for other in compiled if not _requires(other, package, siblings)})
        if lacking:
            verb = "is" if len(lacking) == 1 else "are"
            message = f"{', '.join(lacking)} {verb} built with {package.name}, but do not require it when they run"
            message = (
                message.replace("do not require it when they run", "does not require it") if verb == "is" else message
            )
            yield "linked", "host", f"{message}: nothing has a run export of {package.name}"


def _is_compiled(package: Package, job: Job) -> bool:
    """Whether a package is built with a compiler, so that it may link to libraries of its host environment."""
    compilers = {
        f"{name}_{job.platform.subdir}"
        for key, values in job.configuration.values.items()
        if key.endswith("_compiler")
        for name in values
    }
    return not compilers.isdisjoint(_names(package.demands.build))


def _exported(package: Package) -> Iterator[Pin]:
    for specs in package.demands.run_exports.values():
        yield from (pin for pin in specs if isinstance(pin, Pin) and not pin.compatible)


def _is_library(package: Package, subject: Subject) -> bool:
    """Whether a package has a shared library, as far as the recipe shows, and in no job an export, of it or its own."""
    exporting = (
        name
        for job in subject.jobs
        for other in job.packages or ()
        for specs in other.demands.run_exports.values()
        for requirement in specs
        for name in (other.name, name_in(requirement))
    )
    if not _LIBRARY.match(package.name) or package.name in exporting:
        return False
    output = subject.output(package.name)
    text = subject.recipe.text[output.part.start : output.part.end] if output is not None else ""
    return _SHARED.search(text) is not None or not re.search(r"^\s*(?:- )?(?:tests?|files):", text, re.MULTILINE)


def _bound_mistakes(package: Package, other: Package) -> Iterator[tuple[str, str, str]]:
    """A sibling that requires what a package exports with other bounds than the export has."""
    exported = {pin.name: pin for pin in _exported(package)}
    for pin in other.demands.run:
        export = exported.get(pin.name) if isinstance(pin, Pin) and not pin.compatible else None
        if export is None or not isinstance(pin, Pin) or pin.exact or export.exact or pin.upper == export.upper:
            continue
        message = (
            f"{package.name} exports {pin.name} up to {export.upper or 'any version'}, "
            f"but {other.name} requires it up to {pin.upper or 'any version'}"
        )
        yield f"bounds of {other.name}", "run_exports", message


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
            pending += _names(by_name[name].demands.run)
    return bool(package.output.noarch) or library.name in package.demands.ignored


def _names(requirements: tuple[Requirement, ...]) -> set[str]:
    return {name_in(requirement) for requirement in requirements}
