"""A spec resolved for either recipe format: its CUDA versions and architectures, groups expanded, pins placed,
`cuda-version` and guards added."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from feedstock_tools.conditions.tree import Condition, Name, Not, VersionTest, any_of, both, names_of
from feedstock_tools.facts.cuda import CudaFacts, load_cuda
from feedstock_tools.generate.spec.checks import CUDA_LIBRARIES, output_names
from feedstock_tools.generate.spec.items import Glob, Requirement, Test
from feedstock_tools.generate.spec.model import Build, Cuda, Output, Requirements, Script, Spec
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.requirements import SECTIONS
from feedstock_tools.versions import parse_version


def known_cuda_versions(spec: Spec, facts: CudaFacts | None = None) -> tuple[str, ...]:
    """The CUDA versions that builds of the spec can have, oldest first.

    If conda-forge's pinning decides, this is every version that the spec chooses architectures for, one by one, or else
    every version of the facts.
    """
    if spec.cuda is None:
        return ()
    if spec.pinning == "self-contained":
        facts = facts or load_cuda()
        named = {version for subdir in spec.platforms for version in versions_on(spec, Platform.parse(subdir), facts)}
        return tuple(sorted(named, key=parse_version))
    if isinstance(spec.cuda.versions, str):
        chosen = _own_architectures(spec.cuda)
        toolkits = chosen if isinstance(chosen, Mapping) else (facts or load_cuda()).toolkits
        return tuple(sorted(toolkits.keys(), key=parse_version))
    return tuple(sorted(spec.cuda.versions, key=parse_version))


def versions_on(spec: Spec, platform: Platform, facts: CudaFacts) -> tuple[str, ...]:
    """The CUDA versions that a self-contained spec builds for on a platform, oldest first."""
    if spec.cuda is None or (spec.cuda.platforms and platform.subdir not in spec.cuda.platforms):
        return ()
    possible = facts.versions(platform)
    if isinstance(spec.cuda.versions, str):
        return possible
    return tuple(version for version in possible if version in spec.cuda.versions)


def architectures_by_version(spec: Spec, facts: CudaFacts | None = None) -> Mapping[str, tuple[str, ...]]:
    """The architectures that nvcc compiles for in each CUDA version of the spec, as `sm_86` and `compute_86`.

    If the pinning determines the versions, those of the spec's own preset.
    """
    if spec.cuda is None:
        return {}
    chosen = _own_architectures(spec.cuda)
    if chosen is None:
        return {}
    versions = known_cuda_versions(spec, facts)
    if isinstance(chosen, str):
        presets = facts or load_cuda()
        return {version: presets.preset(chosen, version) for version in versions if _has(presets, chosen, version)}
    if isinstance(chosen, tuple):
        return dict.fromkeys(versions, chosen)
    return {version: chosen[version] for version in sorted(chosen, key=parse_version)}


def architectures_to_come(spec: Spec) -> Mapping[str, tuple[str, ...]]:
    """The same for the CUDA versions that a build can have: with conda-forge's pinning its oldest and all newer ones.

    A migration or variant of the spec's own can be of any version.
    """
    chosen = architectures_by_version(spec)
    if spec.cuda is None or isinstance(_own_architectures(spec.cuda), Mapping) or not _is_open(spec):
        known = known_cuda_versions(spec)
        return {version: names for version, names in chosen.items() if version in known}
    facts = load_cuda()
    pinned = [row for row in facts.rows if row.cuda and row.date == facts.newest_date]
    others = {*spec.migrations} - {row.origin.removeprefix("migration ") for row in pinned}
    if "cuda_compiler_version" in spec.variants or any("cuda" in name for name in others):
        return chosen
    oldest = min(parse_version(row.cuda) for row in pinned if row.cuda)
    return {version: names for version, names in chosen.items() if parse_version(version) >= oldest}


def _own_architectures(cuda: Cuda) -> str | tuple[str, ...] | Mapping[str, tuple[str, ...]] | None:
    """The choice of architectures, with a preset of the spec in place of its name."""
    chosen = cuda.architectures
    return cuda.presets.get(chosen, chosen) if isinstance(chosen, str) else chosen


def _has(facts: CudaFacts, preset: str, version: str) -> bool:
    chosen = facts.presets[preset]
    return bool(chosen.candidates) or version in chosen.lists


CUDA = Name("cuda")
CPU = Name("cpu")


@dataclass(frozen=True, slots=True)
class Need:
    """One requirement: a kind of `REQUIREMENT_KINDS` except `use`, its value, and its condition."""

    kind: str
    value: str
    condition: Condition | None = None
    why: str | None = None
    exact: bool = True
    lower: str | None = None
    upper: str | None = None

    @property
    def package(self) -> str:
        """The name of the package, as far as it is known without variants."""
        return self.value.split(" ", 1)[0] if self.kind in ("package", "cdt", "pin", "compatible") else ""


#: Packages of the toolkit and of the libraries on top of it, as conda-forge names them.
_LIBRARY = re.compile(
    r"cuda-(?!version$).*|cudatoolkit|cudnn|nccl|cutensor|cusparselt|nvtx-c"
    r"|lib(cublas|cudnn|cudss|cufft|cufile|curand|cusolver|cusparse|cutensor|npp|nvfatbin|nvjitlink|nvjpeg|nvptxcompiler)\b.*"
)
_WHY_VERSION = "Keeps the libraries that it links to at the CUDA version that it is named for."
_WHY_GUARD = "Keeps this build off machines whose driver is too old for it."


def _with_cuda_version(host: tuple[Need, ...], spec: Spec) -> tuple[Need, ...]:
    """The section `host` of something that links CUDA: from CUDA 12 on with `cuda-version`, unless it has it already.

    conda-forge's cuda-version holds all components of a toolkit at one version; without it a solver takes the newest
    that the compiler's bounds allow (README of cuda-version-feedstock).
    """
    builds = _builds_from("12", spec)
    if builds is None or any(need.package == "cuda-version" for need in host):
        return host
    need = Need("package", "cuda-version {cuda}.*", builds, _WHY_VERSION)
    first = next((at for at, other in enumerate(host) if other.condition == builds), len(host))
    return (*host[:first], need, *host[first:])


def guard(spec: Spec) -> tuple[Need, ...]:
    """The requirement of GPU builds on the driver, as `cuda: guard` has it.

    By major version a build runs on every driver of its major version from CUDA 11 on; older toolkits had no such
    promise (CUDA Compatibility, minor version compatibility), so they are guarded by minor version.
    """
    if spec.cuda is None or spec.cuda.guard == "none":
        return ()
    if spec.cuda.guard == "any":
        return (Need("package", "__cuda", CUDA, _WHY_GUARD),)
    compatible = _builds_from("11", spec) if spec.cuda.guard == "major" else None
    if compatible is None:
        return (Need("package", "__cuda >={cuda}", CUDA, _WHY_GUARD),)
    by_major = Need("package", "__cuda >={cuda_major}", compatible, _WHY_GUARD)
    if compatible == CUDA:
        return (by_major,)
    return (Need("package", "__cuda >={cuda}", VersionTest("cuda", "<", "11"), _WHY_GUARD), by_major)


def _builds_from(first: str, spec: Spec) -> Condition | None:
    """The builds with a CUDA version or a newer one: None where there are none, `cuda` where those are all.

    Every version of conda-forge's pinning counts as newer: it has had none below 11 since 2024, and cuda-version exists
    for 11 too.
    """
    if spec.cuda is None:
        return None
    versions = known_cuda_versions(spec)
    newer = [version for version in versions if parse_version(version) >= parse_version(first)]
    if not newer:
        return None
    everything = len(newer) == len(versions) or _is_open(spec)
    return Name("cuda") if everything else VersionTest("cuda", ">=", first)


def _is_open(spec: Spec) -> bool:
    """Whether conda-forge's pinning decides which CUDA versions there are."""
    cuda = spec.cuda
    return cuda is not None and spec.pinning == "conda-forge" and isinstance(cuda.versions, str)


#: The kinds of run exports, in the order of a recipe.
EXPORTS = ("noarch", "strong", "strong_constrains", "weak", "weak_constrains")
_WHY_PYTHON = "With it a solver goes by the version of Python, and without it by time stamps."


@dataclass(frozen=True, slots=True)
class ResolvedOutput:
    """One package of the recipe.

    `python`: there is a build for each Python; `cuda`: its build string contains the accelerator.
    `features` is the condition under which the build carries `track_features`. `written` is the output of the spec, for
    what both formats copy from it.
    """

    name: str
    written: Output
    kind: str
    python: bool
    why: str | None
    script: Script | None
    files: tuple[Glob, ...]
    needs: dict[str, tuple[Need, ...]]
    exports: dict[str, tuple[Need, ...]]
    entry_points: tuple[str, ...]
    skip: tuple[tuple[Condition, str | None], ...]
    features: Condition | None
    test: Test
    test_needs: tuple[Need, ...] = field(default=())


def flatten(items: Iterable[Requirement], spec: Spec, condition: Condition | None = None) -> tuple[Need, ...]:
    """Requirements with their groups expanded, in order, each once."""
    needs: dict[tuple[str, str, Condition | None], Need] = {}
    for item in items:
        for need in _needs_of(item, spec, both(condition, item.when)):
            needs.setdefault((need.kind, need.value, need.condition), need)
    return tuple(needs.values())


def _needs_of(item: Requirement, spec: Spec, condition: Condition | None) -> tuple[Need, ...]:
    if item.kind == "compiler" and item.compiler == "cuda" and spec.automatic:
        condition = condition if _asks_for_cuda(condition) else both(condition, CUDA)
    if item.use is None:
        value = getattr(item, item.kind)
        exact = item.max is None and item.min is None if item.exact is None else item.exact
        return (Need(item.kind, value, condition, item.why, exact, item.min, item.max),)
    if item.use == CUDA_LIBRARIES:
        libraries = spec.cuda.libraries if spec.cuda else ()
        members = [Requirement(package=library) for library in libraries]
        condition = condition if _asks_for_cuda(condition) else both(condition, CUDA)
    else:
        members = list(spec.groups[item.use])
    needs = flatten(members, spec, condition)
    if item.why and needs and needs[0].why is None:
        first = needs[0]
        commented = Need(first.kind, first.value, first.condition, item.why, first.exact, first.lower, first.upper)
        return (commented, *needs[1:])
    return needs


def _asks_for_cuda(condition: Condition | None) -> bool:
    parts = getattr(condition, "parts", (condition,)) if not isinstance(condition, Not) else ()
    return any(part == CUDA or (isinstance(part, VersionTest) and part.subject == "cuda") for part in parts)


def is_alone(spec: Spec) -> bool:
    """Whether the recipe is its only output: it has that output's name and no section `outputs`.

    Only outputs can follow a build that runs once, stand for two packages, have a version or a number beside the
    recipe's, or choose their files (in meta.yaml), so that such a spec keeps them.
    """
    only, *others = spec.outputs
    if others or not spec.automatic:
        return not others and spec.recipe_name == only.name
    before = spec.build.script or spec.build.model_copy(update={"number": 0, "use_keys": ()}) != Build()
    of_outputs = only.version or only.number is not None or only.files or only.exclude_files
    below_the_name = any(block.section == "top" for block in only.verbatim)
    other_name = "{accelerator}" in only.name or spec.recipe_name not in (None, only.name)
    return not (before or of_outputs or below_the_name or other_name)


def top_level_needs(spec: Spec) -> dict[str, tuple[Need, ...]]:
    """The requirements of the script that runs once, by section."""
    needs = _sections(spec.build.requirements, spec)
    if not spec.automatic:
        return needs
    return needs | {"host": _with_cuda_version(needs["host"], spec)} if _links_cuda(needs) else needs


def _links_cuda(needs: dict[str, tuple[Need, ...]]) -> bool:
    """Whether requirements have the compiler of CUDA or one of its libraries among them."""
    return any(
        (need.kind == "compiler" and need.value == "cuda") or _LIBRARY.fullmatch(need.package) is not None
        for need in (*needs["build"], *needs["host"])
    )


def resolve_outputs(spec: Spec) -> tuple[ResolvedOutput, ...]:
    """The packages of a spec, in its order; an output with `{accelerator}` yields two."""
    python = _names_with_python(spec)
    return tuple(
        _resolve(spec, output, name, python=output.name in python, first=at == 0)
        for output in spec.outputs
        for at, name in enumerate(output_names(output.name))
    )


def skips_python_by_output(spec: Spec) -> bool:
    """Whether the outputs that have a Python skip Pythons, and not the whole recipe.

    A skip of the whole recipe has conda-build look at the first Python alone where the recipe's own build names none,
    and rattler-build build every output once for each Python.
    """
    return not any(need.package == "python" for needs in top_level_needs(spec).values() for need in needs)


def python_skips(spec: Spec) -> list[tuple[Condition, str | None]]:
    """The Pythons that are not built for: those of conda-forge's pinning that the spec does not list, and its skips."""
    own = [(item.when, item.why) for item in spec.skip if "python" in names_of(item.when)]
    if spec.pinning == "self-contained" or isinstance(spec.python, str):
        return own
    series = [VersionTest("python", "==", version) for version in spec.python]
    return [(Not(any_of(series)), None), *own]


def _resolve(spec: Spec, output: Output, name: str, *, python: bool, first: bool) -> ResolvedOutput:
    skip: list[tuple[Condition, str | None]] = [(item.when, item.why) for item in output.skip]
    if python and spec.automatic and not output.noarch and skips_python_by_output(spec):
        skip = [*python_skips(spec), *skip]
    if "{accelerator}" in output.name:
        skip.append((CPU if name == output.name.replace("{accelerator}", "gpu") else CUDA, None))
    return ResolvedOutput(
        name=name,
        written=output,
        kind=output.kind,
        python=python,
        why=output.why if first else None,
        script=named_script(output.script, None if is_alone(spec) else output.name, spec.format),
        files=output.files,
        needs=_needs_of_output(spec, output, python=python),
        exports={key: flatten(getattr(output.run_exports, key), spec) for key in EXPORTS},
        entry_points=output.entry_points,
        skip=tuple(skip),
        features=_features(spec, output),
        test=output.test,
        test_needs=flatten(output.test.requires, spec),
    )


def named_script(script: Script | None, output: str | None, recipe_format: str) -> Script | None:
    """The script by the names of its files; without `output` those that the builder of the spec's format looks for."""
    if script is None or script.template is None:
        return script
    if output is None:
        unix, win = "build.sh", "bld.bat" if recipe_format == "v0" else "build.bat"
    else:
        unix, win = f"build-{output}.sh", f"build-{output}.bat"
    return Script(unix=unix, win=win, environment=script.environment)


def _sections(requirements: Requirements, spec: Spec) -> dict[str, tuple[Need, ...]]:
    return {section: flatten(getattr(requirements, section), spec) for section in SECTIONS}


def _needs_of_output(spec: Spec, output: Output, *, python: bool) -> dict[str, tuple[Need, ...]]:
    needs = _sections(output.requirements, spec)
    pins = tuple(Need("pin", name) for name in output.pins)
    if not spec.automatic:
        return needs | {"run": (*needs["run"], *pins)}
    by_features = output.kind == "metapackage" and spec.prefer.by == "track_features"
    if output.kind == "python" or (python and not by_features):
        for section in ("host", "run"):
            if not any(need.package == "python" for need in needs[section]):
                why = _WHY_PYTHON if output.kind == "metapackage" and section == "run" else None
                needs[section] = (Need("package", "python", why=why), *needs[section])
    for section in ("run",) if output.kind == "metapackage" else ("host", "run"):
        needs[section] += tuple(pin for pin in pins if pin not in needs[section])
    if output.kind != "metapackage":
        if _links_cuda(needs) or (spec.build.script and _links_cuda(top_level_needs(spec))):
            needs["host"] = _with_cuda_version(needs["host"], spec)
        needs["run"] += guard(spec)
    return needs


def _names_with_python(spec: Spec) -> frozenset[str]:
    """Outputs that have a build for each Python: of that kind, with Python in host or run, or pinning one that has."""
    users: set[str] = set()
    packages: set[str] = set()
    for _ in spec.outputs:  # pins form no cycle, so one round per output is enough
        for output in spec.outputs:
            needs = (*flatten(output.requirements.host, spec), *flatten(output.requirements.run, spec))
            names = {need.package for need in needs} | set(output.pins)
            if output.kind == "python" or "python" in names or names & packages:
                users.add(output.name)
                packages |= set(output_names(output.name))
    return frozenset(users)


def _features(spec: Spec, output: Output) -> Condition | None:
    if spec.cuda is None or spec.prefer.by == "build_number" or not spec.automatic:
        return None
    carriers = spec.prefer.outputs or _default_carriers(spec)
    if not set(output_names(output.name)) & set(carriers):
        return None
    return CPU if spec.prefer.accelerator == "gpu" else CUDA


def _default_carriers(spec: Spec) -> tuple[str, ...]:
    """Metapackages that do not name an accelerator, since users install those; else all outputs."""
    plain = [output for output in spec.outputs if "{accelerator}" not in output.name]
    metapackages = tuple(output.name for output in plain if output.kind == "metapackage")
    return metapackages or tuple(output.name for output in plain)
