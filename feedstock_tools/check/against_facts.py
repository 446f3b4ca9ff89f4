"""The configurations of a feedstock against the pin graph: mistakes that would fail a build, or break packages for
users, only after hours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.channel.specs import admits
from feedstock_tools.check.architecture_lists import ARCHITECTURE_KEYS, read_list
from feedstock_tools.check.cuda_guards import low_guards
from feedstock_tools.check.dropped_cuda import named_by_feedstock, why_dropped
from feedstock_tools.check.scripts.architectures import ScriptList, lists_in_scripts
from feedstock_tools.errors import InputError
from feedstock_tools.facts import CudaFacts, Toolkit, load_cuda
from feedstock_tools.generate.spec.reading import read_spec
from feedstock_tools.generate.texts.cuda_facts import architectures_by_version
from feedstock_tools.gpu_code.architecture import Architecture, parse_architectures
from feedstock_tools.pins.graph.demands import Demand
from feedstock_tools.pins.graph.from_facts import graph_of_facts
from feedstock_tools.pins.graph.kinds import msvc_of, msvc_words
from feedstock_tools.pins.graph.model import PinGraph
from feedstock_tools.pins.graph.resolve import can_hold
from feedstock_tools.rerender.configurations.configuration import Configuration
from feedstock_tools.rerender.forge import read_forge
from feedstock_tools.rerender.pinning import find_pinning
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.versions import parse_version

__all__ = ["Finding", "check", "check_feedstock"]

_NOT_CUDA = frozenset({"", "None", "none", "undefined"})
_IMAGE_CUDA = re.compile(r"cuda:?(\d+\.\d+)")
_IMAGE_ARCH = re.compile(r"(?<![a-z0-9])(x86_64|aarch64|ppc64le)(?![a-z0-9])")
_ARCH_SUBDIRS = {"x86_64": "linux-64", "aarch64": "linux-aarch64", "ppc64le": "linux-ppc64le"}
_COMPILERS = (("c_compiler", "c_compiler_version", "gcc"), ("cxx_compiler", "cxx_compiler_version", "gxx"))


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake: the configuration, the key, the message, and the source of the violated fact."""

    configuration: str
    key: str
    message: str
    source: str | None = None

    def __str__(self) -> str:
        return f"{self.configuration}: {self.key}: {self.message}" + (f" [{self.source}]" if self.source else "")


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of a configuration: the values for one CUDA version."""

    facts: CudaFacts
    graph: PinGraph
    toolkit: Toolkit
    subdir: str
    values: Mapping[str, tuple[str, ...]]

    def source(self, fact: str) -> str | None:
        names = self.toolkit.sources.get(fact, ())
        sources = [source.url or source.title for name in names if (source := self.facts.sources.get(name))]
        return sources[0] if sources else None


#: A key, the message, and its source.
_Complaint = tuple[str, str, str | None]


def check(facts: CudaFacts, configurations: Sequence[Configuration]) -> tuple[Finding, ...]:
    """The mistakes in configurations by the facts alone; configurations without CUDA have none.

    Unknown values are skipped: a CUDA version without facts, or a value that is not a version.
    """
    graph = graph_of_facts(facts)
    findings: dict[Finding, None] = {}
    for configuration in configurations:
        unequal = _zips_out_of_step(configuration)
        findings.update((Finding(configuration.name, *complaint), None) for complaint in unequal)
        if unequal:
            continue
        for row in _rows(facts, graph, configuration):
            for look in _CHECKS:
                findings.update((Finding(configuration.name, *complaint), None) for complaint in look(row))
    return tuple(findings)


def check_feedstock(
    feedstock: Path,
    configurations: Sequence[Configuration],
    *,
    pinning: Path | None = None,
    facts: CudaFacts | None = None,
    bounds: Bounds | None = None,
) -> tuple[Finding, ...]:
    """What contradicts the facts in configurations, and in the feedstock's spec, recipe and build scripts.

    Args:
        pinning: a folder laid out as the conda-forge-pinning package, or its variant file: it says which CUDA versions
            there still are; default: what the facts say of conda-forge's pinning.
        facts: what is known of CUDA; default: what ships with the program.
        bounds: what the work may take, in a child process; None to do it in this process.

    Raises:
        InputError: the pinning, the recipe or conda-forge.yml cannot be read.

    >>> check(Path("solver-feedstock"), read_configurations(Path("solver-feedstock")))
    ()
    """
    if bounds is not None:
        return run_bounded(partial(check_feedstock, feedstock, configurations, pinning=pinning, facts=facts), bounds)
    facts = facts or load_cuda()
    against = find_pinning(pinning) if pinning else None
    recipe = _recipe_folder(feedstock)
    graph = graph_of_facts(facts)
    decided = named_by_feedstock(feedstock, recipe, against)
    findings = dict.fromkeys([*_of_spec(facts, feedstock / "feedstock.yaml"), *check(facts, configurations)])
    for configuration in configurations:
        if _zips_out_of_step(configuration):
            continue
        complaints: list[_Complaint] = []
        rows = list(_rows(facts, graph, configuration))
        for row in rows:
            complaints += _of_scripts(row, recipe, feedstock)
        for version in dict.fromkeys(version for row in rows for version in row.values["cuda_compiler_version"]):
            dropped = None if version in decided else why_dropped(version, configuration.platform, facts, against)
            complaints += [("cuda_compiler_version", *dropped)] if dropped else []
        if rows:
            complaints += [("__cuda", message, None) for message in low_guards(feedstock, configuration, facts)]
        findings.update((Finding(configuration.name, *complaint), None) for complaint in complaints)
    return tuple(findings)


def _recipe_folder(feedstock: Path) -> Path:
    """The recipe's folder; without a readable recipe, its default place."""
    try:
        return feedstock / read_forge(feedstock, Rules.newest()).recipe_dir
    except InputError:
        return feedstock / "recipe"


def _of_spec(facts: CudaFacts, path: Path) -> Iterator[Finding]:
    """The mistakes in the architectures of a spec; none without a spec."""
    if not path.is_file():
        return
    try:
        chosen = architectures_by_version(read_spec(path), facts)
    except InputError as error:
        for mistake in error.mistakes:
            yield Finding(path.name, f"line {mistake.line}" if mistake.line else path.name, mistake.message)
        return
    for version, names in chosen.items():
        if version in facts.toolkits:
            for message in _of_list(facts.toolkits[version], parse_architectures(names)):
                yield Finding(path.name, "cuda.architectures", f"{message} (CUDA {version})")


def _of_scripts(row: _Row, recipe: Path, feedstock: Path) -> Iterator[_Complaint]:
    """The mistakes in the lists of scripts; if a variable may have several values, those that all of them share."""
    values = {**row.values, **dict.fromkeys(("target_platform", "host_platform"), (row.subdir,))}
    by_variable: dict[tuple[str, str], list[tuple[ScriptList, set[str]]]] = {}
    for listed in lists_in_scripts(recipe, feedstock, values):
        try:
            architectures = listed.gencodes() or read_list(listed.text)
        except InputError:  # an empty list, or names such as `native`, which build systems fill in
            architectures = ()
        messages = set(_of_list(row.toolkit, architectures))
        by_variable.setdefault((listed.path, listed.name), []).append((listed, messages))
    for lists in by_variable.values():
        certain = set.intersection(*(messages for _, messages in lists))
        listed, _ = lists[-1]
        for message in sorted(certain):
            yield f"{listed.path}:{listed.line}: {listed.name}", message, row.source("architectures")


def _zips_out_of_step(configuration: Configuration) -> list[_Complaint]:
    complaints: list[_Complaint] = []
    for group in configuration.zip_keys:
        lengths = {key: len(configuration.values[key]) for key in group if key in configuration.values}
        if len(set(lengths.values())) > 1:
            words = ", ".join(f"{key} has {length}" for key, length in lengths.items())
            complaints.append(("zip_keys", f"zipped keys must have the same number of values: {words}", None))
    return complaints


def _rows(facts: CudaFacts, graph: PinGraph, configuration: Configuration) -> Iterator[_Row]:
    cudas = configuration.values.get("cuda_compiler_version", ())
    zipped = next((group for group in configuration.zip_keys if "cuda_compiler_version" in group), ())
    for number, cuda in enumerate(cudas):
        toolkit = facts.toolkits.get(".".join(cuda.split(".")[:2]))
        if cuda in _NOT_CUDA or toolkit is None:
            continue
        own = {key: (configuration.values[key][number],) for key in zipped if key in configuration.values}
        yield _Row(facts, graph, toolkit, configuration.platform.subdir, {**configuration.values, **own})


def _host_compiler(row: _Row) -> Iterator[_Complaint]:
    """gcc only: clang may compile CUDA itself, and nvcc's limits do not apply to it."""
    limit = row.toolkit.newest_gcc
    if limit is None or not row.subdir.startswith("linux-"):
        return
    for key, of_version, gcc in _COMPILERS:
        if row.values.get(key, (gcc,)) != (gcc,):
            continue
        for version in row.values.get(of_version, ()):
            if version[:1].isdigit() and parse_version(version.split(".")[0]).major > limit:
                message = f"nvcc of CUDA {row.toolkit.version} accepts host gcc up to {limit}, not {version}"
                yield of_version, message, row.source("newest_gcc")


def _visual_studio(row: _Row) -> Iterator[_Complaint]:
    if row.toolkit.visual_studio is None or not row.subdir.startswith("win-"):
        return
    for key in ("c_compiler", "cxx_compiler"):
        for compiler in row.values.get(key, ()):
            year = re.fullmatch(r"vs(20\d\d)", compiler)
            if year and not row.toolkit.takes_msvc(msvc_of(year[1])):
                message = f"nvcc of CUDA {row.toolkit.version} accepts {msvc_words(row.toolkit)}, not {year[1]}"
                yield key, message, row.source("visual_studio")


def _libraries(row: _Row) -> Iterator[_Complaint]:
    if row.subdir not in row.graph.versions["platform"]:
        return
    for name, library in row.facts.libraries.items():
        for version in row.values.get(name, ()):
            if not re.fullmatch(r"\d+(\.\d+)*", version):
                continue
            beside = [Demand("cuda", f"=={row.toolkit.version}", ""), Demand("platform", row.subdir, "")]
            wanted = Demand(name, f"{version}.*", "")
            if can_hold(row.graph, beside) and not can_hold(row.graph, [*beside, wanted]):
                there = [release.version for release in library.releases if admits(wanted.spec, release.version)]
                what = f"{name} {version} was never built for CUDA {row.toolkit.version} on {row.subdir}"
                message = what if there else f"there is no {name} {version} on conda-forge"
                yield name, message, library.repository


def _image(row: _Row) -> Iterator[_Complaint]:
    for image in row.values.get("docker_image", ()):
        of_cuda = _IMAGE_CUDA.search(image)
        if of_cuda and of_cuda[1] != row.toolkit.version:
            yield (
                "docker_image",
                f"{image} has CUDA {of_cuda[1]}, but the configuration needs {row.toolkit.version}",
                None,
            )
        elif not of_cuda and row.toolkit.era == "cudatoolkit" and "linux-anvil" in image:
            yield "docker_image", f"nvcc of CUDA {row.toolkit.version} comes with an image, but {image} has none", None
        of_arch = _IMAGE_ARCH.search(image)
        # An image for linux-64 also serves other platforms, which are cross-compiled on it.
        if of_arch and _ARCH_SUBDIRS[of_arch[1]] not in (row.subdir, "linux-64"):
            yield (
                "docker_image",
                f"{image} is for {_ARCH_SUBDIRS[of_arch[1]]}, but the configuration is for {row.subdir}",
                None,
            )


def _glibc(row: _Row) -> Iterator[_Complaint]:
    if row.values.get("c_stdlib", ("sysroot",)) != ("sysroot",):
        return
    for pinned in row.facts.rows:
        least = pinned.values.get("c_stdlib_version")
        if pinned.cuda != row.toolkit.version or pinned.platform.subdir != row.subdir or least is None:
            continue
        for version in row.values.get("c_stdlib_version", ()):
            if version[:1].isdigit() and parse_version(version) < parse_version(least):
                message = f"CUDA {row.toolkit.version} needs glibc {least} on {row.subdir}, not {version}"
                yield "c_stdlib_version", message, f"{row.facts.pinning_repository}/tree/{pinned.commit}"


def _architectures(row: _Row) -> Iterator[_Complaint]:
    for key in ARCHITECTURE_KEYS:
        for text in row.values.get(key, ()):
            try:
                listed = read_list(text)
            except InputError as error:
                yield key, str(error), None
                continue
            yield from ((key, message, row.source("architectures")) for message in _of_list(row.toolkit, listed))


def _of_list(toolkit: Toolkit, listed: Sequence[Architecture]) -> Iterator[str]:
    """The mistakes in a list of architectures for a toolkit."""
    oldest = min(int(name) for name in toolkit.architectures if name.isdigit())
    for architecture in listed:
        if not toolkit.accepts(str(architecture)):
            verb = "has dropped" if architecture.number < oldest else "does not know"
            yield f"nvcc of CUDA {toolkit.version} {verb} {architecture}"
    ptx = [architecture.number for architecture in listed if architecture.ptx]
    machine = [architecture.number for architecture in listed if not architecture.ptx]
    if listed and not ptx:
        yield "there is no PTX, so newer GPUs cannot run it: add the newest as compute_…"
    elif machine and max(ptx) < max(machine):
        yield f"the newest PTX is compute_{max(ptx)}, older than the machine code for sm_{max(machine)}"


_CHECKS: tuple[Callable[[_Row], Iterator[_Complaint]], ...] = (
    _host_compiler,
    _visual_studio,
    _libraries,
    _image,
    _glibc,
    _architectures,
)
