"""Consistency between the parts of a spec: every used name is defined, and nvcc knows every architecture.

The checks walk the content of the file and not the finished models, so they also work if another part is invalid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from feedstock_tools.facts.cuda import CudaFacts, load_cuda
from feedstock_tools.facts.packages import known_pythons
from feedstock_tools.generate.spec.content import (
    ARCHITECTURE,
    Finding,
    as_list,
    as_mapping,
    entries,
    is_automatic,
    names_cuda,
    outputs_of,
    placeholder_mistake,
    text_mistake,
)
from feedstock_tools.generate.spec.review_checks import check_for_review
from feedstock_tools.reading import is_below, is_file, is_inside
from feedstock_tools.wording import nearest
from feedstock_tools.yaml_reading.nodes import Location

#: The group of requirements that `cuda.libraries` defines.
CUDA_LIBRARIES = "cuda-libraries"
_PYTHON = re.compile(r"\d\.\d{1,2}")
#: Pythons that the facts do not have, and conda-forge once had.
_OLD_PYTHONS = ("2.7", "3.4", "3.5", "3.6")
#: Variables that recipes have by themselves.
_TAKEN = ("version", "build", "number", "accelerator", "cuda_digits")
#: Far above what a person writes; groups that use groups twice double with each step.
_LARGEST_GROUP = 2_000


def cross_check(content: dict[str, Any]) -> list[Finding]:
    """All inconsistencies in the content of a spec, which may have other mistakes as well."""
    return [
        *_check_outputs(content),
        *_check_groups(content),
        *_check_as_written(content),
        *_check_names_used(content),
        *_check_placeholders(content),
        *_check_texts(content),
        *_check_accelerator(content),
        *_check_platforms(content),
        *_check_pythons(content),
        *_check_cuda(content),
        *(check_for_review(content) if is_automatic(content) else ()),
    ]


def _check_as_written(content: dict[str, Any]) -> Iterator[Finding]:
    """Findings for numbers and build strings of the spec's own beside those that are added, and for names of both."""
    outputs = list(outputs_of(content))
    if is_automatic(content):
        hint = "Add `automatic: false`, or leave it to `cuda` and `prefer`."
        if as_mapping(content.get("build")).get("offsets"):
            yield Finding(("build", "offsets"), "build numbers are added to what the spec says", hint)
        for location, output in outputs:
            if output.get("string"):
                yield Finding((*location, "string"), "build strings are added to what the spec says", hint)
    for name in as_mapping(content.get("values")):
        if name in _TAKEN:
            yield Finding(("values", name), f"the recipe has a '{name}' of its own", "Choose another name.")


def output_names(name: str) -> tuple[str, ...]:
    """The packages of an output: itself, or one for each accelerator."""
    if "{accelerator}" not in name:
        return (name,)
    return tuple(name.replace("{accelerator}", accelerator) for accelerator in ("gpu", "cpu"))


def _nearest(word: str, words: list[str], otherwise: str) -> str:
    return nearest(word, words, f"Known names: {', '.join(words)}." if words else otherwise)


def _check_outputs(content: dict[str, Any]) -> Iterator[Finding]:
    seen: set[str] = set()
    for location, output in outputs_of(content):
        name = output.get("name")
        if not isinstance(name, str):
            continue
        for package in output_names(name):
            if package in seen:
                yield Finding(
                    (*location, "name"), f"there are two outputs '{package}'", "Give each output a name of its own."
                )
            seen.add(package)
        kind = output.get("kind") if is_automatic(content) else None
        if kind == "metapackage" and (output.get("script") or output.get("files")):
            yield Finding((*location, "kind"), "a metapackage has no files", "Make it a library, or remove the script.")
        if kind == "library" and as_mapping(output.get("test")).get("imports"):
            yield Finding(
                (*location, "test", "imports"), "a library has no Python modules to import", "Use commands to test it."
            )
    yield from _check_pin_cycles(content)


def _check_pin_cycles(content: dict[str, Any]) -> Iterator[Finding]:
    by_name = {str(output.get("name")): (location, output) for location, output in outputs_of(content)}
    pins = {name: [str(pin) for pin in as_list(output.get("pins"))] for name, (_, output) in by_name.items()}
    cycle = _cycle(pins)
    if cycle:
        yield Finding(
            (*by_name[cycle[0]][0], "pins"), f"outputs pin each other: {' → '.join(cycle)}", "Remove one of these pins."
        )


def _check_groups(content: dict[str, Any]) -> Iterator[Finding]:
    groups = as_mapping(content.get("groups"))
    group_names = [*groups, CUDA_LIBRARIES]
    if CUDA_LIBRARIES in groups:
        yield Finding(
            ("groups", CUDA_LIBRARIES), f"'{CUDA_LIBRARIES}' is reserved for cuda.libraries", "Choose another name."
        )
    for location, entry in entries(content):
        used = entry.get("use")
        if isinstance(used, str) and used not in group_names:
            yield Finding(
                (*location, "use"), f"there is no group '{used}'", _nearest(used, group_names, "Add it to groups.")
            )
    uses = {
        group: [str(item["use"]) for item in as_list(items) if isinstance(item, dict) and "use" in item]
        for group, items in groups.items()
    }
    cycle = _cycle(uses)
    if cycle:
        yield Finding(("groups", cycle[0]), f"groups use each other: {' → '.join(cycle)}", "Remove one of these uses.")
        return
    sizes: dict[str, int] = {}
    for group in groups:
        if _expanded(group, groups, uses, sizes) > _LARGEST_GROUP:
            yield Finding(
                ("groups", group), f"the group '{group}' expands to too many requirements", "Use fewer groups."
            )
            return


def _expanded(group: str, groups: dict[str, Any], uses: dict[str, list[str]], sizes: dict[str, int]) -> int:
    if group not in sizes:
        own = len(as_list(groups.get(group)))
        sizes[group] = own + sum(_expanded(used, groups, uses, sizes) for used in uses.get(group, ()))
    return sizes[group]


def _cycle(edges: dict[str, list[str]]) -> list[str]:
    """The names on a cycle; empty if there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1][::-1]  # from what needs to what is needed
        places = {name: place for place, name in enumerate(edges)}
        first = min(range(len(circle) - 1), key=lambda at: places[circle[at]])
        return [*circle[first:-1], *circle[: first + 1]]
    return []


def _check_names_used(content: dict[str, Any]) -> Iterator[Finding]:
    """Findings for pins on unknown outputs."""
    names = [str(output.get("name")) for _, output in outputs_of(content)]
    packages = [package for name in names for package in output_names(name)]
    used: list[tuple[Location, Any]] = []
    for location, output in outputs_of(content):
        used += [((*location, "pins", at), pin) for at, pin in enumerate(as_list(output.get("pins")))]
    for location, entry in entries(content):
        if "pin" in entry:
            used.append(((*location, "pin"), entry["pin"]))
    preferred = as_list(as_mapping(content.get("prefer")).get("outputs"))
    used += [(("prefer", "outputs", at), name) for at, name in enumerate(preferred)]
    for location, name in used:
        if isinstance(name, str) and name not in packages:
            hint = _nearest(name, packages, "Add it to outputs.")
            yield Finding(location, f"there is no output '{name}'", hint)


def _check_placeholders(content: dict[str, Any]) -> Iterator[Finding]:
    """Findings for unknown placeholders. Requirements may name any variant key, so theirs are not checked, and so may
    every text of a spec to which nothing is added."""
    if not is_automatic(content):
        return
    fixed = ("version",)
    texts: list[tuple[Location, Any, tuple[str, ...]]] = []
    for at, source in enumerate(as_list(content.get("sources"))):
        for key in ("url", "rev", "path"):
            texts += [(("sources", at, key), text, fixed) for text in as_list(as_mapping(source).get(key))]
    for location, output in outputs_of(content):
        texts.append(((*location, "name"), output.get("name"), ("accelerator",)))
        for at, command in enumerate(as_list(as_mapping(output.get("test")).get("commands"))):
            text = as_mapping(command).get("command", command)
            texts.append(((*location, "test", "commands", at), text, (*fixed, "cuda", "cuda_major")))
    for location, text, allowed in texts:
        if isinstance(text, str) and (mistake := placeholder_mistake(text, allowed)):
            yield Finding(location, *mistake)


def _check_texts(value: Any, location: Location = ()) -> Iterator[Finding]:
    """Findings for strings that a recipe would read as Jinja or as a selector, wherever they are."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key != "verbatim":
                yield from _check_texts(part, (*location, key))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from _check_texts(part, (*location, at))
    elif isinstance(value, str):
        if mistake := text_mistake(value):
            yield Finding(location, *mistake)
        if location == ("about", "description") and re.search(r"\]\s*$", value, re.MULTILINE):
            yield Finding(
                location,
                "conda-build reads brackets at the end of a line as a selector",
                "Rephrase the end of the line.",
            )


def check_files(content: dict[str, Any], recipe: Path) -> Iterator[Finding]:
    """Findings for scripts, patches and test files that the spec names but the recipe folder lacks."""
    named: list[tuple[Location, Any]] = []
    for at, source in enumerate(as_list(content.get("sources"))):
        for nth, patch in enumerate(as_list(as_mapping(source).get("patches"))):
            named.append((("sources", at, "patches", nth), as_mapping(patch).get("file", patch)))
    for location, owner in [(("build",), as_mapping(content.get("build"))), *outputs_of(content)]:
        script = owner.get("script")
        files = {key: script.get(key) for key in ("unix", "win")} if isinstance(script, dict) else {"": script}
        named += [((*location, "script", *([key] if key else [])), file) for key, file in files.items()]
        for nth, file in enumerate(as_list(as_mapping(owner.get("test")).get("files"))):
            named.append(((*location, "test", "files", nth), file))
    edits = as_mapping(as_mapping(content.get("cuda")).get("script")).get("edits")
    for place, file in (*named, (("cuda", "script", "edits"), edits)):
        if not isinstance(file, str):
            continue
        is_folder = "test" in place and (recipe / file).is_dir()  # both builders copy one with all that is in it
        if not is_folder and not any(is_file(recipe / name) for name in files_of(recipe, file)):
            yield Finding(place, f"there is no file recipe/{file}", "Create it, or name another file.")


def files_of(recipe: Path, name: str) -> tuple[str, ...]:
    """The files of a recipe folder that a name with a star stands for, in order; any other name itself."""
    if "*" not in name or not is_below(recipe / name, recipe):
        return (name,)
    found = sorted(path for path in recipe.glob(name) if is_file(path) and is_inside(path, recipe))
    return tuple(path.relative_to(recipe).as_posix() for path in found)


def _check_accelerator(content: dict[str, Any]) -> Iterator[Finding]:
    """Findings for CUDA settings in a spec without a section `cuda`, which has only CPU builds."""
    if "cuda" in content:
        return
    hint = "Add a section `cuda`, or remove it here."
    for location, entry in entries(content):
        if entry.get("compiler") == "cuda" or entry.get("use") == CUDA_LIBRARIES or names_cuda(entry.get("when")):
            yield Finding(location, "the spec has no GPU builds", hint)
    for location, output in outputs_of(content):
        if "{accelerator}" in str(output.get("name")):
            yield Finding((*location, "name"), "the spec has no GPU builds", hint)


def _has_python(content: dict[str, Any]) -> bool:
    kinds = (output.get("kind") for _, output in outputs_of(content))
    packages = (str(entry.get("package")).split(" ", 1)[0] for _, entry in entries(content))
    return "python" in kinds or "python" in packages


def _check_platforms(content: dict[str, Any]) -> Iterator[Finding]:
    platforms = as_mapping(content.get("platforms"))
    for at, subdir in enumerate(as_list(as_mapping(content.get("cuda")).get("platforms"))):
        if isinstance(subdir, str) and subdir.replace("_", "-", 1) not in {
            name.replace("_", "-", 1) for name in platforms
        }:
            hint = _nearest(subdir, list(platforms), "Add it to platforms.")
            yield Finding(("cuda", "platforms", at), f"'{subdir}' is not among the platforms", hint)
    lists_none = content.get("pinning") == "self-contained" and content.get("python", "pinning") == "pinning"
    if lists_none and _has_python(content):
        hint = "Such as: python: [3.11, 3.12]"
        yield Finding(("python",), "a self-contained spec must list its Pythons", hint)


def _check_pythons(content: dict[str, Any]) -> Iterator[Finding]:
    """Findings for Pythons that do not exist: neither older than the facts reach back, nor the one after the newest."""
    listed = as_list(content.get("python"))
    versions = [text for text in listed if _PYTHON.fullmatch(str(text))]
    if not versions:
        return
    known = known_pythons()
    newest = int(known[-1].partition(".")[2])
    possible = (*_OLD_PYTHONS, *known, f"3.{newest + 1}")
    for at, version in enumerate(listed):
        if version in versions and version not in possible:
            hint = nearest(version, known, f"There are {known[0]} to {known[-1]}.")
            yield Finding(("python", at), f"there is no Python {version}", hint)


def _check_cuda(content: Mapping[str, Any]) -> Iterator[Finding]:
    """All conflicts between the facts and the content of a spec."""
    cuda = content.get("cuda")
    if not isinstance(cuda, dict):
        return
    facts = load_cuda()
    yield from _check_versions(cuda, facts, self_contained=content.get("pinning") == "self-contained")
    for name, by_version in as_mapping(cuda.get("presets")).items():
        yield from _check_mapping(as_mapping(by_version), ("cuda", "presets", name), facts)
    yield from _check_choice(cuda, facts)
    if as_mapping(cuda.get("script")).get("edits") and not cuda.get("architectures"):
        hint = "Add `architectures` to `cuda`."
        yield Finding(("cuda", "script", "edits"), "there are no architectures to write into a script", hint)


def _check_versions(cuda: Mapping[str, Any], facts: CudaFacts, *, self_contained: bool) -> Iterator[Finding]:
    versions = cuda.get("versions", "pinning")
    if self_contained and versions == "pinning":
        yield Finding(
            ("cuda", "versions"), "a self-contained spec must list its CUDA versions", "Or set `versions: all`."
        )
    for at, version in enumerate(versions if isinstance(versions, list) else ()):
        if isinstance(version, str) and version not in facts.toolkits:
            yield Finding(("cuda", "versions", at), f"unknown CUDA version {version}", _version_hint(version, facts))


def _check_choice(cuda: Mapping[str, Any], facts: CudaFacts) -> Iterator[Finding]:
    chosen = cuda.get("architectures")
    location: Location = ("cuda", "architectures")
    versions = cuda.get("versions")
    listed = (
        [str(version) for version in versions if str(version) in facts.toolkits] if isinstance(versions, list) else []
    )
    presets = as_mapping(cuda.get("presets"))
    if isinstance(chosen, dict):
        yield from _check_mapping(chosen, location, facts)
        yield from _check_complete(chosen, listed, location)
    elif isinstance(chosen, list):
        for at, name in enumerate(chosen):
            yield from _check_name(name, listed, (*location, at), facts)
    elif isinstance(chosen, str) and chosen in presets:
        yield from _check_complete(as_mapping(presets[chosen]), listed, location)
    elif isinstance(chosen, str) and chosen in facts.presets:
        preset = facts.presets[chosen]
        if not preset.candidates:
            yield from _check_complete(preset.lists, listed, location)
    elif isinstance(chosen, str):
        names = [*presets, *facts.presets]
        hint = nearest(chosen, names, f"There are {', '.join(names)}.")
        yield Finding(location, f"there is no preset '{chosen}' of architectures", hint)


def _check_mapping(by_version: Mapping[str, Any], location: Location, facts: CudaFacts) -> Iterator[Finding]:
    for version, names in by_version.items():
        if version not in facts.toolkits:
            yield Finding((*location, version), f"unknown CUDA version {version}", _version_hint(version, facts))
            continue
        for at, name in enumerate(names if isinstance(names, list) else ()):
            yield from _check_name(name, [version], (*location, version, at), facts)


def _check_name(name: Any, versions: list[str], location: Location, facts: CudaFacts) -> Iterator[Finding]:
    """One mistake for an architecture, naming the first version that does not know it."""
    for version in versions:
        toolkit = facts.toolkits[version]
        prefix = str(name).partition("_")[0]
        if ARCHITECTURE.fullmatch(str(name)) and not toolkit.accepts(name):
            compilable = ", ".join(f"{prefix}_{number}" for number in toolkit.architectures)
            yield Finding(location, f"nvcc of CUDA {version} does not know {name}", f"It knows {compilable}.")
            return


def _check_complete(by_version: Mapping[str, Any], versions: list[str], location: Location) -> Iterator[Finding]:
    missing = [version for version in versions if version not in by_version]
    if missing:
        hint = f"There are lists for {', '.join(by_version)}."
        yield Finding(location, f"there are no architectures for CUDA {', '.join(missing)}", hint)


def _version_hint(version: str, facts: CudaFacts) -> str:
    known = f"Known CUDA versions: {', '.join(facts.toolkits)}."
    return nearest(version, facts.toolkits, known, cutoff=0.6)
