"""What CUDA builds require: what the generator would write for a spec with the same wishes, era by era."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from feedstock_tools.conditions.tree import And, Condition, Not, VersionTest
from feedstock_tools.edit.requirements import section_rank
from feedstock_tools.edit.writing import added_entry
from feedstock_tools.enable_gpu.inputs import (
    FIRST_OF_COMPONENTS,
    TOOLKIT,
    CudaVersions,
    GpuParts,
    GpuWishes,
    package_of,
)
from feedstock_tools.enable_gpu.insertion import added_to_list, below_key, in_one_style, with_selectors
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.generate.spec.model import Spec
from feedstock_tools.generate.texts.resolved import CUDA, Need, resolve_outputs
from feedstock_tools.generate.texts.v0 import requirement_line
from feedstock_tools.generate.texts.v1 import requirement_lines
from feedstock_tools.generate.texts.wording import Line
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.written.document import Document, TextEdit
from feedstock_tools.recipe.written.owners import Owner, name_of

#: The library that every build with the compiler of CUDA links.
_RUNTIME = "cudart"
_ORDER = ("build", "host", "run")
_WINDOWS = "win-64"


@dataclass(frozen=True, slots=True)
class _Era:
    """CUDA versions whose packages have the same names: some of the pinning, or None for all from CUDA 12 on."""

    versions: tuple[str, ...] | None
    condition: Condition
    example: str


def spec_of(
    wishes: GpuWishes, name: str, versions: Sequence[str] | None, libraries: Iterable[str] = (), *, python: bool = False
) -> Spec:
    """A spec with an output `name` that has these CUDA builds, and `<name>-gpu` and `<name>-cpu` that pin it.

    Args:
        wishes: what the builds must be like.
        name: the output.
        versions: the CUDA versions; None for those of conda-forge's pinning.
        libraries: packages that the CUDA builds link.
        python: there is a build for each Python.
    """
    host = [{"package": package, "when": _where(package, wishes)} for package in libraries]
    kind = "python" if python else "library"
    output = {"name": name, "kind": kind, "requirements": {"build": [{"compiler": "cuda"}], "host": host}}
    pair = {"name": f"{name}-{{accelerator}}", "kind": "metapackage", "pins": [name]}
    cuda = {"versions": list(versions or ()) or "pinning", "guard": wishes.guard, "platforms": list(wishes.platforms)}
    return Spec.model_validate(
        {
            "name": name,
            "version": "0",
            "platforms": dict.fromkeys(("linux-64", "osx-64", "win-64")),
            "cuda": cuda,
            "prefer": {"accelerator": wishes.prefer, "by": wishes.by},
            "outputs": [output, pair],
            "about": {"homepage": "https://example.org", "license": "MIT", "summary": name},
            "maintainers": ["nobody"],
        }
    )


def _where(package: str, wishes: GpuWishes) -> str:
    """The condition of builds that require a package: not those for Windows if conda-forge never built it there."""
    library = load_cuda().libraries.get(package)
    wanted = not wishes.platforms or _WINDOWS in wishes.platforms
    windows = Platform.parse(_WINDOWS)
    built = library is None or any(
        release.built_for(version, windows) for release in library.releases for version in release.cuda
    )
    return "cuda" if built or not wanted else "linux and cuda"


def requirement_changes(parts: GpuParts, wishes: GpuWishes, versions: CudaVersions) -> list[TextEdit]:
    """The changes that give builders compilers and libraries, and packages the guard."""
    needs = _needs(wishes, versions, parts.recipe.document)
    changes: list[TextEdit] = []
    others = [owner for owner in parts.varying if owner not in parts.builders]
    for owner in (*parts.builders, *others):
        wanted = {section: needs[section] for section in _sections_of(owner, parts)}
        if "build" in wanted:
            wanted["build"] = (*_companions(owner), *wanted["build"])
        changes += _changes(owner, wanted, versions)
    return changes


def _sections_of(owner: Owner, parts: GpuParts) -> list[str]:
    """The sections of an owner that CUDA builds add to.

    A package that collects the files of another's build gets the libraries too, since their run exports reach only
    those that name them; one that inherits from a stage gets them from there. conda-build takes the requirements of an
    output with the recipe's own name from the recipe.
    """
    twins = {package for package in parts.packages if package.kind == "output" and package.name == parts.recipe.name}
    twins = {package for package in twins if "requirements" not in package.part.members}
    if owner in twins:
        return []
    if owner in parts.followers:  # what it pins in `run` guards it
        names = {package.name for package in parts.varying}
        return [] if owner.pins_everywhere & names else ["run"]
    guarded = owner in parts.packages or (owner is parts.recipe and bool(twins))
    if owner in parts.builders:
        return ["build", "host", "run"] if guarded else ["build", "host"]
    inherits = "inherit" in owner.part.members
    return ["run"] if inherits else ["host", "run"]


def _changes(owner: Owner, wanted: Mapping[str, tuple[Need, ...]], versions: CudaVersions) -> list[TextEdit]:
    """The changes that add requirements to sections of an owner, which may not have them yet."""
    if any(entry.key == "requirements" and entry.value.entries for entry in owner.part.entries):
        return [change for section, needs in wanted.items() for change in _section(owner, section, needs, versions)]
    lines = []
    for section, needs in wanted.items():
        written = with_selectors(_lines(owner, needs, versions), "    ", None)
        lines += [f"  {section}:", *written] if needs else []
    if not lines:
        return []
    late = {"test", "tests", "about", "extra", "outputs"}
    above = [entry for entry in owner.part.entries if entry.key not in late]
    return added_entry(owner.document, owner.part, "requirements", lines, above[-1] if above else None)


def _needs(wishes: GpuWishes, versions: CudaVersions, document: Document) -> Mapping[str, tuple[Need, ...]]:
    """The requirements by section, each once with its condition."""
    eras = _eras(versions, document)
    conditions: dict[str, dict[Need, list[Condition]]] = {section: {} for section in _ORDER}
    for era in eras:
        libraries = list(dict.fromkeys(package_of(name, era.example) for name in (_RUNTIME, *wishes.libraries)))
        if not wishes.libraries and TOOLKIT in libraries:
            libraries.remove(TOOLKIT)  # nvcc's run export brings it
        spec = spec_of(wishes, "package", era.versions, libraries)
        for section, needs in resolve_outputs(spec)[0].needs.items():
            for need in needs if section in conditions else ():
                conditions[section].setdefault(need, []).append(era.condition)
    return {section: tuple(_with_eras(conditions[section], eras)) for section in _ORDER}


def _with_eras(needs: Mapping[Need, list[Condition]], eras: Sequence[_Era]) -> Iterable[Need]:
    """The requirements, each with the condition of its era unless all eras have it."""
    for need, conditions in needs.items():
        if len(conditions) == len(eras) or need.condition is None:
            yield replace(need, why=None)
        else:
            current = need.condition
            extra = [
                part
                for part in getattr(current, "parts", (current,))
                if part != CUDA and not isinstance(part, VersionTest)
            ]
            condition = conditions[0] if not extra else And((conditions[0], *extra))
            yield replace(need, why=None, condition=condition)


def _eras(versions: CudaVersions, document: Document) -> list[_Era]:
    old, new = versions.old, versions.new
    before: Condition = VersionTest("cuda", "<", FIRST_OF_COMPONENTS)
    eras = [_Era(old, before, old[-1])] if old else []
    if new or not old:
        # There will be no more old versions, so a selector can list them; a list of new ones would miss the next.
        after: Condition = And((CUDA, Not(before)))
        if not document.has_templates:
            after = VersionTest("cuda", ">=", FIRST_OF_COMPONENTS)
        eras.append(_Era(None, after, new[-1] if new else FIRST_OF_COMPONENTS))
    return eras


def _companions(owner: Owner) -> tuple[Need, ...]:
    """The host compiler of nvcc and its C library, where the builder lacks them."""
    if not owner.compilers:
        return (Need("compiler", "c"), Need("stdlib", "c"), Need("compiler", "cxx"))
    return () if owner.compilers.keys() & {"cxx", "m2w64_cxx"} else (Need("compiler", "cxx", CUDA),)


def _section(owner: Owner, section: str, needs: Iterable[Need], versions: CudaVersions) -> list[TextEdit]:
    """The changes that add requirements to a section of an owner, which may not have it yet."""
    present = owner.names(section)
    missing = [need for need in needs if (name_of(need.value) if need.kind == "package" else "") not in present]
    if not missing:
        return []
    document = owner.document
    lines = _lines(owner, missing, versions)
    entry = owner.section(section)
    if entry is None:  # below those that precede it
        mapping = next(each.value for each in owner.part.entries if each.key == "requirements" and each.value.entries)
        written = with_selectors(in_one_style(document, lines), "  ", None)
        earlier = [each for each in mapping.entries if section_rank(each.key) < section_rank(section)]
        after = earlier[-1] if earlier else None
        return added_entry(document, mapping, section, written, after, before=mapping.entries[0])
    if not entry.value.items:
        return below_key(document, entry, lines)
    compilers = owner.compilers.values() if section == "build" else ()
    last = max(compilers, key=lambda item: item.start, default=None)
    return added_to_list(document, entry.value, lines, last)


def _lines(owner: Owner, needs: Iterable[Need], versions: CudaVersions) -> list[Line]:
    """Requirements as the recipe's format writes them."""
    if owner.document.has_templates:
        return [requirement_line(need, versions.old) for need in needs]
    return [Line(text) for text in requirement_lines(needs)]
