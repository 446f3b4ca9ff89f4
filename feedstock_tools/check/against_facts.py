"""The configurations of a feedstock against the pin graph: mistakes that would fail a build, or break packages for
users, only after hours."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.channel.specs import admits
from feedstock_tools.check.architectures import (
    UNIFIED_ARM,
    Audience,
    behind,
    dropped_by,
    faults_of,
    jetson_only,
    refused_by,
    unserved_by,
)
from feedstock_tools.check.cuda_commands import is_cuda_build, told_to, wrong_target
from feedstock_tools.check.cuda_guards import missing_guards, wrong_guards
from feedstock_tools.check.findings import Check, Finding, Report, Weight
from feedstock_tools.check.renderings import Job, Renderings
from feedstock_tools.check.script_lists import ScriptList, cuda_rows, lists_in_scripts, script_values
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import CudaFacts, Toolkit, load_cuda
from feedstock_tools.facts.frameworks import WheelRelease, load_wheels
from feedstock_tools.generate.spec.model import Spec
from feedstock_tools.generate.spec.reading import read_spec
from feedstock_tools.generate.texts.resolved import architectures_by_version
from feedstock_tools.gpu_code.architecture import Architecture, parse_architectures
from feedstock_tools.gpu_code.architecture_lists import (
    ARCHITECTURE_KEYS,
    COMPANIONS,
    NATIVE,
    form_of,
    is_native,
    read_list,
)
from feedstock_tools.pins.graph.from_facts import graph_of_facts
from feedstock_tools.pins.graph.kinds import FRAMEWORKS, Demand, msvc_of, msvc_words
from feedstock_tools.pins.graph.model import PinGraph
from feedstock_tools.pins.graph.resolve import is_satisfiable
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import CI_SUPPORT, read_text
from feedstock_tools.recipe.packages import Package
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.source import Pinning, find_pinning
from feedstock_tools.stages import stage
from feedstock_tools.versions import minor_of, parse_version
from feedstock_tools.wording import counted, some_of

_NOT_CUDA = frozenset({"", "None", "none", "undefined"})
_KEY = re.compile(r"^cuda_compiler_version\s*:\s*(?P<inline>.*)$")
_USE_LOCAL = re.compile(r"^[ \t]*use_local:[ \t]*true", re.IGNORECASE | re.MULTILINE)
_VERSION = re.compile(r"(?<![\d.])(\d+\.\d+)(?![\d.])")
_T = TypeVar("_T")
_IMAGE_CUDA = re.compile(r"cuda:?(\d+\.\d+)")
_IMAGE_ARCH = re.compile(r"(?<![a-z0-9])(x86_64|aarch64|ppc64le)(?![a-z0-9])")
_ARCH_SUBDIRS = {"x86_64": "linux-64", "aarch64": "linux-aarch64", "ppc64le": "linux-ppc64le"}
#: Packages whose wheels have another name.
_WHEELS = {"jaxlib": "jax", "faiss": "faiss-gpu", "onnxruntime": "onnxruntime-gpu"}
_COMPILERS = (("c_compiler", "c_compiler_version", "gcc"), ("cxx_compiler", "cxx_compiler_version", "gxx"))


@dataclass(frozen=True, slots=True)
class _CudaRow:
    """One row of a configuration, of which it has the name: the values for one CUDA version."""

    configuration: str
    facts: CudaFacts
    graph: PinGraph
    toolkit: Toolkit
    subdir: str
    values: Mapping[str, tuple[str, ...]]

    @property
    def audience(self) -> Audience:
        """Whom the row's builds serve; the ARM variant tells whether that is Jetson's own system."""
        variant = self.values.get("arm_variant_type", ("",))[0]
        return Audience(self.subdir, {"tegra": True, "sbsa": False}.get(variant))

    @property
    def script_values(self) -> Mapping[str, tuple[str, ...]]:
        """The values that scripts find."""
        return script_values(self.values, self.subdir)

    def packages_of(self, job: Job) -> list[Package]:
        """The packages that a job builds in this row."""
        cuda = self.values["cuda_compiler_version"][0]
        return [each for each in job.packages if each.output.variant.get("cuda_compiler_version", cuda) == cuda]

    def source(self, fact: str) -> str | None:
        """The page or file that a fact of the toolkit was read in."""
        names = self.toolkit.sources.get(fact, ())
        sources = [source.url or source.title for name in names if (source := self.facts.sources.get(name))]
        return sources[0] if sources else None

    def finding(self, key: str, message: str, source: str | None = None, weight: Weight = "mistake") -> Finding:
        return Finding(self.configuration, key, message, source, weight)


def _cuda_rows(facts: CudaFacts, graph: PinGraph, configuration: Configuration) -> Iterator[_CudaRow]:
    """The rows with a CUDA version that has facts; others are unknown, and nothing is checked about them."""
    for values in cuda_rows(configuration):
        (cuda,) = values["cuda_compiler_version"]
        toolkit = facts.toolkits.get(minor_of(cuda))
        if cuda not in _NOT_CUDA and toolkit is not None:
            yield _CudaRow(configuration.name, facts, graph, toolkit, configuration.platform.subdir, values)


def _zips_out_of_step(configuration: Configuration) -> list[Finding]:
    """Zipped keys with different numbers of values, which have no rows."""
    findings = []
    for group in configuration.zip_keys:
        lengths = {key: len(configuration.values[key]) for key in group if key in configuration.values}
        if len(set(lengths.values())) > 1:
            words = ", ".join(f"{key} has {length}" for key, length in lengths.items())
            message = f"zipped keys must have the same number of values: {words}"
            findings.append(Finding(configuration.name, "zip_keys", message))
    return findings


def _never_released(facts: CudaFacts, configuration: Configuration) -> Iterator[Finding]:
    """The CUDA versions of a configuration that NVIDIA never released.

    The facts have all from the oldest to the newest, so a version missing in between was never released.
    """
    versions = sorted(facts.toolkits, key=parse_version)
    for cuda in configuration.values.get("cuda_compiler_version", ()):
        version = minor_of(cuda)
        if cuda in _NOT_CUDA or version in facts.toolkits or not _is_version(version):
            continue
        wanted = parse_version(version)
        if parse_version(versions[0]) < wanted < parse_version(versions[-1]):
            before = versions[bisect_left(versions, wanted, key=parse_version) - 1]
            after = versions[bisect_right(versions, wanted, key=parse_version)]
            message = f"NVIDIA never released CUDA {version}: {after} followed {before}"
            yield Finding(configuration.name, "cuda_compiler_version", message)


def _is_version(text: str) -> bool:
    return text.replace(".", "").isdigit()


def _host_compiler(row: _CudaRow) -> Iterator[Finding]:
    """gcc only: clang may compile CUDA itself, and nvcc's limits do not apply to it."""
    limit, packaged = row.toolkit.newest_gcc, row.toolkit.newest_conda_forge_gcc
    if limit is None or not row.subdir.startswith("linux-"):
        return
    for key, of_version, gcc in _COMPILERS:
        if row.values.get(key, (gcc,)) != (gcc,):
            continue
        for version in row.values.get(of_version, ()):
            if not version[:1].isdigit():
                continue
            major = parse_version(version.split(".")[0]).major
            if major > limit:
                message = f"nvcc of CUDA {row.toolkit.version} accepts host gcc up to {limit}, not {version}"
                yield row.finding(of_version, message, row.source("newest_gcc"))
            elif packaged is not None and major > packaged:
                message = f"conda-forge's packages of CUDA {row.toolkit.version} accept gcc up to {packaged}"
                source = row.source("newest_conda_forge_gcc")
                yield row.finding(of_version, f"{message}, not {version}", source)


def _visual_studio(row: _CudaRow) -> Iterator[Finding]:
    if row.toolkit.visual_studio is None or not row.subdir.startswith("win-"):
        return
    for key in ("c_compiler", "cxx_compiler"):
        for compiler in row.values.get(key, ()):
            year = re.fullmatch(r"vs(20\d\d)", compiler)
            if year and not row.toolkit.takes_msvc(msvc_of(year[1])):
                message = f"nvcc of CUDA {row.toolkit.version} accepts {msvc_words(row.toolkit)}, not {year[1]}"
                yield row.finding(key, message, row.source("visual_studio"))


def _libraries(row: _CudaRow) -> Iterator[Finding]:
    if row.subdir not in row.graph.versions["platform"]:
        return
    for name, library in row.facts.libraries.items():
        for version in row.values.get(name, ()):
            if not re.fullmatch(r"\d+(\.\d+)*", version):
                continue
            given = [Demand("cuda", f"=={row.toolkit.version}", ""), Demand("platform", row.subdir, "")]
            wanted = Demand(name, f"{version}.*", "")
            if is_satisfiable(row.graph, given) and not is_satisfiable(row.graph, [*given, wanted]):
                matching = [release.version for release in library.releases if admits(wanted.spec, release.version)]
                never_built = f"{name} {version} was never built for CUDA {row.toolkit.version} on {row.subdir}"
                message = never_built if matching else f"there is no {name} {version} on conda-forge"
                yield row.finding(name, message, library.repository)


def _image(row: _CudaRow) -> Iterator[Finding]:
    for image in row.values.get("docker_image", ()):
        of_cuda = _IMAGE_CUDA.search(image)
        if of_cuda and of_cuda[1] != row.toolkit.version:
            message = f"{image} has CUDA {of_cuda[1]}, but the configuration needs {row.toolkit.version}"
            yield row.finding("docker_image", message)
        elif not of_cuda and row.toolkit.era == "cudatoolkit" and "linux-anvil" in image:
            message = f"nvcc of CUDA {row.toolkit.version} comes with an image, but {image} has none"
            yield row.finding("docker_image", message)
        of_arch = _IMAGE_ARCH.search(image)
        # An image for linux-64 also serves other platforms, which are cross-compiled on it.
        if of_arch and _ARCH_SUBDIRS[of_arch[1]] not in (row.subdir, "linux-64"):
            message = f"{image} is for {_ARCH_SUBDIRS[of_arch[1]]}, but the configuration is for {row.subdir}"
            yield row.finding("docker_image", message)


def _glibc(row: _CudaRow) -> Iterator[Finding]:
    if row.values.get("c_stdlib", ("sysroot",)) != ("sysroot",):
        return
    for pinned in row.facts.rows:
        least = pinned.values.get("c_stdlib_version")
        if pinned.cuda != row.toolkit.version or pinned.platform.subdir != row.subdir or least is None:
            continue
        for version in row.values.get("c_stdlib_version", ()):
            if version[:1].isdigit() and parse_version(version) < parse_version(least):
                message = f"CUDA {row.toolkit.version} needs glibc {least} on {row.subdir}, not {version}"
                source = f"{row.facts.pinning_repository}/tree/{pinned.commit}"
                yield row.finding("c_stdlib_version", message, source)


def _architectures(row: _CudaRow) -> Iterator[Finding]:
    for key in ARCHITECTURE_KEYS:
        for text in row.values.get(key, ()):
            if is_native(text):
                yield row.finding(key, NATIVE)
                continue
            if text in ("all", "all-major"):  # CMake's, right for every toolkit
                continue
            try:
                listed = read_list(text, form_of(key))
            except InputError as error:
                yield row.finding(key, str(error))
                continue
            for message, weight in faults_of(row.toolkit, listed, row.audience):
                yield row.finding(key, message, row.source("architectures"), weight)


_CHECKS: tuple[Callable[[_CudaRow], Iterator[Finding]], ...] = (
    _host_compiler,
    _visual_studio,
    _libraries,
    _image,
    _glibc,
    _architectures,
)


@dataclass(frozen=True, slots=True)
class _Variable:
    """A variable in a file: the lists that it may have, and the last place that sets it."""

    last: ScriptList
    readings: tuple[tuple[Architecture, ...], ...]

    @property
    def key(self) -> str:
        return f"{self.last.path}:{self.last.line}: {self.last.title}"


def _findings_of_spec(facts: CudaFacts, path: Path) -> Iterator[Finding]:
    """The mistakes in the architectures of a spec; none without a spec."""
    if not path.is_file():
        return
    try:
        spec = read_spec(path)
        chosen = architectures_by_version(spec, facts)
        yield from _unread_list(spec, path)
    except InputError as error:
        for mistake in error.mistakes:
            yield Finding(path.name, f"line {mistake.line}" if mistake.line else path.name, mistake.message)
        return
    for version, names in chosen.items():
        toolkit = facts.toolkits.get(version)
        if toolkit is not None:
            listed = parse_architectures(names)
            faults: list[tuple[str, Weight]] = [(message, "mistake") for message in refused_by(toolkit, listed)]
            for message, weight in (*faults, *unserved_by(toolkit, listed, Audience("linux-64"))):
                yield Finding(path.name, "cuda.architectures", f"{message} (CUDA {version})", weight=weight)


def _unread_list(spec: Spec, path: Path) -> Iterator[Finding]:
    """The script with the architectures, where no build script of the spec names it; those of templates do."""
    asked = spec.cuda.script if spec.cuda else None
    scripts = [each for each in (spec.build.script, *(output.script for output in spec.outputs)) if each]
    if asked is None or asked.edits or not scripts or any(script.template for script in scripts):
        return
    files = (path.parent / "recipe" / script.unix for script in scripts if script.unix)
    texts = [read_text(file, within=path.parent) for file in files if file.is_file()]
    texts += [item.command for script in scripts for item in script.commands]
    if not any(asked.file in text for text in texts):
        message = f"no build script sources {asked.file}, so that none has the architectures in {asked.variable}"
        yield Finding(path.name, "cuda.script", message)


def _findings_of_lists(
    row: _CudaRow, lists: Iterable[ScriptList], shared: frozenset[tuple[str, int]]
) -> Iterator[Finding]:
    """The mistakes in the lists of one row.

    If a variable may have several values, only mistakes that all of them have are reported. Where a file sets several
    variables, it is not known which of them the build system uses, so GPUs count as left out only if every list leaves
    them out.

    Args:
        shared: lists (path, line) that the feedstock also uses for Jetson modules, which may therefore name them.
    """
    for variables in _by_file(lists).values():
        by_message: dict[tuple[str, Weight], Finding] = {}  # names the first of variables that hold the same list
        for finding in (mistake for variable in variables for mistake in _of_variable(row, variable, shared)):
            by_message.setdefault((finding.message, finding.weight), finding)
        yield from by_message.values()
        yield from _left_out(row, [variable for variable in variables if not variable.last.is_command])


def _of_variable(row: _CudaRow, variable: _Variable, shared: frozenset[tuple[str, int]]) -> Iterator[Finding]:
    """The mistakes of one variable, whatever else the build system is given."""
    source = row.source("architectures")
    if variable.last.is_native:
        yield row.finding(variable.key, NATIVE)
        return
    for message in _common(set(refused_by(row.toolkit, listed)) for listed in variable.readings):
        yield row.finding(variable.key, message, source)
    if not variable.last.is_command and (variable.last.path, variable.last.line) not in shared:
        jetson = _common(set(jetson_only(row.toolkit, listed, row.audience)) for listed in variable.readings)
        yield from (row.finding(variable.key, message, source, weight) for message, weight in jetson)


def _left_out(row: _CudaRow, variables: Sequence[_Variable]) -> Iterator[Finding]:
    """The GPUs that all lists of a file leave out."""
    lists = [listed for variable in variables if not variable.last.is_native for listed in variable.readings]
    for message, weight in _common(set(unserved_by(row.toolkit, listed, row.audience)) for listed in lists):
        yield row.finding(variables[0].key, message, row.source("architectures"), weight)


def _behind_wheels(row: _CudaRow, lists: Iterable[ScriptList], job: Job) -> Iterator[Finding]:
    """Remarks on GPUs that the wheel of the same version on PyPI has code for, and the lists of a row leave out."""
    variables = [each for file in _by_file(lists).values() for each in file if not each.last.is_command]
    readings = [listed for each in variables if not each.last.is_native for listed in each.readings]
    for package in row.packages_of(job):
        wheels = _wheels_of(row, package)
        if wheels is None:
            continue
        built = parse_architectures(wheels.code[row.subdir].split())
        if gpus := behind(row.toolkit, readings, built, row.audience):
            message = (
                f"the wheel of {wheels.framework} {wheels.version} has code for {gpus}, which this list leaves out"
            )
            yield row.finding(variables[0].key, message, weight="remark")


def _wheels_of(row: _CudaRow, package: Package) -> WheelRelease | None:
    """The wheels of a package's minor version on PyPI that hold code for the platform, of the row's major CUDA."""
    for key in FRAMEWORKS.get(_WHEELS.get(package.name, package.name), ()):
        for wheels in load_wheels().get(key, ()):
            major = re.search(r"\d+", wheels.cuda_spec or wheels.cuda_of_name or "")
            alike = major is not None and major[0] == row.toolkit.version.partition(".")[0]
            if alike and wheels.minor == minor_of(package.output.version) and row.subdir in wheels.code:
                return wheels
    return None


def _findings_of_next(row: _CudaRow, lists: Iterable[ScriptList]) -> Iterator[Finding]:
    """Remarks on lists that a row for a later toolkit would have as well, though its nvcc has dropped some of them."""
    for variables in _by_file(lists).values():
        by_message: dict[str, Finding] = {}
        for variable in variables:
            dropped = _common(set(dropped_by(row.toolkit, listed)) for listed in variable.readings)
            message = f"nvcc of CUDA {row.toolkit.version}, which conda-forge's pinning has next, has dropped"
            message = f"{message} {', '.join(dropped)}"
            if dropped:
                by_message.setdefault(message, row.finding(variable.key, message, weight="remark"))
        yield from by_message.values()


def _by_file(lists: Iterable[ScriptList]) -> dict[str, list[_Variable]]:
    """The variables of each file; those that a build system adds up are one."""
    by_file: dict[str, dict[str, list[ScriptList]]] = {}
    for listed in lists:
        name = COMPANIONS.get(listed.name, listed.name)
        by_file.setdefault(listed.path, {}).setdefault(name, []).append(listed)
    return {
        path: sorted(map(_variable, variables.values()), key=lambda variable: variable.last.line)
        for path, variables in by_file.items()
    }


def _variable(values: Sequence[ScriptList]) -> _Variable:
    names = dict.fromkeys(value.name for value in values)
    readings: list[tuple[Architecture, ...]] = [()]
    for name in names:
        own = [value.architectures() for value in values if value.name == name]
        readings = [(*before, *more) for before in readings for more in own]
    return _Variable(values[-1], tuple(readings))


def _common(sets: Iterable[set[_T]]) -> list[_T]:
    """What all of some sets have, sorted."""
    every = list(sets)
    return sorted(set.intersection(*every), key=str) if every else []


@dataclass(frozen=True, slots=True)
class _CudaJob:
    """A job, which builds nothing if it has no CUDA, with its rows and the lists of architectures of each."""

    job: Job
    rows: tuple[tuple[_CudaRow, tuple[ScriptList, ...]], ...]


@dataclass(frozen=True, slots=True)
class _View:
    """What the checks of one feedstock share: the facts, their graph, what its jobs render to, its recipe's folder."""

    facts: CudaFacts
    graph: PinGraph
    renderings: Renderings
    recipe: Path


def check_configurations(
    facts: CudaFacts, configurations: Sequence[Configuration], graph: PinGraph | None = None
) -> tuple[Finding, ...]:
    """The mistakes in configurations by the facts alone; configurations without CUDA have none.

    Unknown values are skipped: a CUDA version without facts, or a value that is not a version.

    Args:
        graph: of the facts, if it is made already.
    """
    graph = graph or graph_of_facts(facts)
    findings: list[Finding] = []
    for configuration in configurations:
        out_of_step = _zips_out_of_step(configuration)
        findings += out_of_step or _never_released(facts, configuration)
        for row in _cuda_rows(facts, graph, configuration) if not out_of_step else ():
            for find in _CHECKS:
                findings += find(row)
    return tuple(dict.fromkeys(findings))


def check_feedstock(
    feedstock: Path,
    configurations: Sequence[Configuration],
    *,
    pinning: Path | None = None,
    facts: CudaFacts | None = None,
    bounds: Bounds | None = None,
) -> Report[Finding]:
    """What contradicts the facts in configurations, and in the feedstock's spec, recipe and build scripts.

    Args:
        pinning: a folder laid out as the conda-forge-pinning package, or its variant file: it says which CUDA versions
            there still are; default: what the facts say of conda-forge's pinning.
        facts: the facts about CUDA; default: those that ship with the program.
        bounds: what the work may take, in a child process; None to do it in this process.

    Raises:
        InputError: the pinning, the recipe or conda-forge.yml cannot be read.

    >>> found = check(Path("solver-feedstock"), read_configurations(Path("solver-feedstock")))
    >>> found.findings, str(found.verdict)
    ((), 'right')
    """
    if bounds is not None:
        return run_bounded(partial(check_feedstock, feedstock, configurations, pinning=pinning, facts=facts), bounds)
    return check_renderings(Renderings(feedstock), configurations, pinning, facts or load_cuda())


def check_renderings(
    renderings: Renderings, configurations: Sequence[Configuration], pinning: Path | None, facts: CudaFacts
) -> Report[Finding]:
    """As `check_feedstock`, for an opened state."""
    stage(f"checking {counted(len(configurations), 'configuration')} against the facts")
    feedstock = renderings.feedstock
    against = find_pinning(pinning) if pinning else None
    try:
        recipe = renderings.recipe_folder
    except InputError:  # its default place, without a readable recipe
        recipe = feedstock / "recipe"
    view = _View(facts, graph_of_facts(facts), renderings, recipe)
    decided = _named_by_feedstock(feedstock, recipe, against)
    jobs = [_job(view, configuration) for configuration in configurations if not _zips_out_of_step(configuration)]
    for item in jobs:
        for each in (each for _, lists in item.rows for each in lists if each.text):
            stage(f"{item.job.configuration.name}: {each.path}:{each.line}: {each.title}={each.text}")
    built = [item.job for item in jobs]
    for_cpus, silent = _by_commands(view, jobs)
    found = {
        "values of configurations": [
            *_findings_of_spec(facts, feedstock / "feedstock.yaml"),
            *check_configurations(facts, configurations, view.graph),
        ],
        "versions of the pinning": [*_dropped_versions(jobs, decided, against)],
        "architectures in scripts": [*_of_all_lists(jobs), *_of_next(view, jobs)],
        "commands for CUDA": for_cpus,
        "guards on drivers": [
            *(finding for job in built for finding in wrong_guards(job, facts)),
            *(finding for _, finding in missing_guards(built, facts)),
        ],
    }
    unknown = _without_facts(facts, configurations)
    failed = sum(job.error is not None for job in built)
    rendered = f"{failed} of {counted(len(built), 'job')} cannot be rendered" if failed else unknown
    reasons = (unknown, unknown, rendered, silent or rendered, rendered)
    return Report(
        tuple(dict.fromkeys(each for findings in found.values() for each in findings)),
        tuple(
            Check.of(name, wrong=any(each.weight == "mistake" for each in findings), unknown=reason)
            for (name, findings), reason in zip(found.items(), reasons, strict=True)
        ),
    )


def _of_all_lists(jobs: Sequence[_CudaJob]) -> Iterator[Finding]:
    for_jetson = frozenset(
        (listed.path, listed.line)
        for item in jobs
        for row, lists in item.rows
        if row.audience.serves_jetson(row.toolkit)
        for listed in lists
    )
    for item in jobs:
        for row, lists in item.rows:
            yield from _findings_of_lists(row, lists, for_jetson)
            yield from _behind_wheels(row, lists, item.job)


def _by_commands(view: _View, jobs: Sequence[_CudaJob]) -> tuple[list[Finding], str]:
    """The packages with the compiler of CUDA whose commands turn CUDA off; and those of which this is unknown."""
    found: list[Finding] = []
    unclear: dict[str, None] = {}
    for item in jobs:
        for row, _ in item.rows:
            for package in filter(is_cuda_build, row.packages_of(item.job)):
                found += _wrong_target(row, package, view.recipe)
                told = told_to(package, view.recipe, row.script_values)
                if told.cuda is None:
                    unclear[package.name] = None
                elif not told.cuda and not told.option:
                    message = f"the script of {package.name} ends with a failure for these values"
                    found.append(row.finding(told.place, message))
                elif not told.cuda:
                    message = f"{told.option} turns CUDA off, though {package.name} is built with CUDA's compiler"
                    found.append(row.finding(told.place, f"{message}: a CPU build labelled CUDA"))
    silent = f"no option or variable of the build of {some_of(list(unclear), 3)} turns CUDA on or off for certain"
    return found, silent if unclear else ""


def _wrong_target(row: _CudaRow, package: Package, recipe: Path) -> Iterator[Finding]:
    """A script that takes CUDA for servers where the build is for Jetson's own system, or the reverse."""
    if row.subdir != "linux-aarch64" or row.toolkit.era == "cudatoolkit":
        return
    of_jetson = bool(row.audience.is_tegra) and parse_version(row.toolkit.version) < parse_version(UNIFIED_ARM)
    if wrong := wrong_target(package, recipe, row.script_values, of_jetson=of_jetson):
        place, target = wrong
        whose = "Jetson's own system is in targets/aarch64-linux" if of_jetson else "servers is in targets/sbsa-linux"
        yield row.finding(place, f"it names {target}, but CUDA {row.toolkit.version} for {whose}")


def _dropped_versions(jobs: Sequence[_CudaJob], decided: Collection[str], against: Pinning | None) -> Iterator[Finding]:
    for item in jobs:
        for row, _ in item.rows:
            version = row.values["cuda_compiler_version"][0]
            dropped = None if version in decided else why_dropped(version, item.job.platform, row.facts, against)
            if dropped:
                yield row.finding("cuda_compiler_version", *dropped)


def _without_facts(facts: CudaFacts, configurations: Iterable[Configuration]) -> str:
    """Why nothing is known of CUDA versions before or after all that the facts have; empty without such."""
    known = [parse_version(version) for version in facts.toolkits]
    versions = {
        version
        for configuration in configurations
        for version in map(minor_of, configuration.values.get("cuda_compiler_version", ()))
        if version not in _NOT_CUDA
        if not (_is_version(version) and min(known) <= parse_version(version) <= max(known))
    }
    return f"no facts about CUDA {', '.join(sorted(versions))}" if versions else ""


def _job(view: _View, configuration: Configuration) -> _CudaJob:
    has_cuda = configuration.values.get("cuda_compiler_version")
    job = view.renderings.job(configuration) if has_cuda else Job(configuration)
    rows = _cuda_rows(view.facts, view.graph, configuration)
    return _CudaJob(job, tuple((row, _lists(row, view, job)) for row in rows))


def _lists(row: _CudaRow, view: _View, job: Job) -> tuple[ScriptList, ...]:
    return tuple(lists_in_scripts(view.recipe, view.renderings.feedstock, row.script_values, row.packages_of(job)))


def _of_next(view: _View, jobs: Sequence[_CudaJob]) -> Iterator[Finding]:
    """Remarks on the lists that the next CUDA version of the pinning would find, for the newest of each platform."""
    cudas = {(item.job.platform, row.toolkit.version) for item in jobs for row, _ in item.rows}
    for item in jobs:
        configuration, platform = item.job.configuration, item.job.platform
        newer = _next_cuda({version for where, version in cudas if where == platform}, platform, view.facts)
        if len(item.rows) != 1 or newer is None:
            continue
        values = {**configuration.values, "cuda_compiler_version": (newer,)}
        for row, lists in _job(view, replace(configuration, values=values)).rows:
            yield from _findings_of_next(row, lists)


def _named_by_feedstock(feedstock: Path, recipe: Path, pinning: Pinning | None) -> frozenset[str]:
    """The CUDA versions that a feedstock itself chooses: in its recipe's variant files, and in its migrations.

    A migration without `use_local` is a copy of the pinning's, and is over when the pinning no longer has it; without a
    pinning to compare with, it counts.
    """
    files = [recipe / "conda_build_config.yaml", recipe / "variants.yaml"]
    upstream = pinning.migrations if pinning else None
    for path in sorted((feedstock / CI_SUPPORT / "migrations").glob("*.y*ml")):
        own = _USE_LOCAL.search(read_text(path, within=feedstock)) is not None
        if own or pinning is None or (upstream is not None and (upstream / path.name).is_file()):
            files.append(path)
    return frozenset(version for path in files if path.is_file() for version in _named_in(path, feedstock))


def why_dropped(version: str, platform: Platform, facts: CudaFacts, pinning: Pinning | None) -> tuple[str, str] | None:
    """The mistake of building for a CUDA version, with its source; None if the pinning has the version.

    Args:
        pinning: the pinning to compare with; default: conda-forge's according to the facts.
    """
    if pinning is not None:
        if version in _named_in(pinning.config, None):
            return None
        return f"the pinning has no CUDA {version}, and nothing in the feedstock sets it", str(pinning.config)
    row = next((row for row in facts.rows if row.platform == platform and row.cuda == version), None)
    if row is None or row.date == facts.newest_date:
        return None
    where = f"{facts.pinning_repository}/tree/{row.commit}"
    if row.origin == "ordering":
        message = f"conda-forge's pinning never had CUDA {version} for {platform}: only a migration's ordering named it"
        return message, where
    return f"conda-forge's pinning dropped CUDA {version} for {platform} after {row.date}", where


def _next_cuda(versions: Collection[str], platform: Platform, facts: CudaFacts) -> str | None:
    """The CUDA version that conda-forge's newest pinning, or a migration of it, has next for a platform; None if none.

    Args:
        versions: those that a feedstock builds for the platform.
    """
    built = max(versions, key=parse_version, default=None)
    later = [
        row.cuda
        for row in facts.rows
        if row.platform == platform and row.cuda and row.date == facts.newest_date and built is not None
        if parse_version(row.cuda) > parse_version(built)
    ]
    return min(later, key=parse_version, default=None)


def _named_in(path: Path, within: Path | None) -> Iterator[str]:
    """The versions under `cuda_compiler_version` in a variant file, regardless of selectors."""
    inside = False
    for line in read_text(path, within=within).splitlines():
        text = line.split("#", 1)[0].rstrip()
        match = _KEY.match(text)  # indented, it is the ordering of a migration
        if match:
            inside = True
            yield from _VERSION.findall(match["inline"])
        elif inside and re.match(r"^\s*-\s", text):
            yield from _VERSION.findall(text)
        elif inside and text.strip():
            inside = bool(re.match(r"^\s*(if|then|else)\b", text))
