"""A recipe that builds for CPUs gets CUDA builds beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from feedstock_tools.conditions.spec import to_expression, to_selector
from feedstock_tools.conditions.tree import And, Condition, Name
from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.variants.skips import skip_where
from feedstock_tools.edit.writing import added_entry
from feedstock_tools.enable_gpu import insertion
from feedstock_tools.enable_gpu.inputs import GpuParts, GpuWishes, cuda_versions, gpu_parts
from feedstock_tools.enable_gpu.metapackages import with_metapackages
from feedstock_tools.enable_gpu.needs import requirement_changes, spec_of
from feedstock_tools.enable_gpu.scripts import script_edits, scripts_of
from feedstock_tools.enable_gpu.strings_and_numbers import build_string_edits, numbering, preference
from feedstock_tools.errors import InputError
from feedstock_tools.generate.texts.resolved import CPU, CUDA
from feedstock_tools.generate.texts.wording import Line, quoted, skips
from feedstock_tools.recipe.written.document import Document, Entry, Part, TextEdit
from feedstock_tools.recipe.written.owners import Owner, name_of
from feedstock_tools.rerender.configuration import read_configurations
from feedstock_tools.rerender.forge import read_forge
from feedstock_tools.rerender.outputs import packages_of
from feedstock_tools.rerender.rules import Rules

#: What the user must do next in any case.
_NEXT = "rerender to get the jobs with CUDA, and raise the build number, unless the version changes: build-number +1"
#: Packages with builds for each CUDA version, which libraries link.
_FRAMEWORKS = frozenset(
    {"jaxlib", "libtorch", "libmagma", "libtensorflow_cc", "pytorch", "tensorflow", "tensorflow-base"}
)
#: Keys of a variant file that conda-forge's pinning zips with the CUDA version.
_ZIPPED = ("c_compiler_version", "cxx_compiler_version", "fortran_compiler_version", "c_stdlib_version", "docker_image")


def enable_gpu(draft: Draft, wishes: GpuWishes, pinning: Path | None = None) -> Draft:
    """Give a recipe for CPUs a CUDA build beside each CPU build, where conda-forge's pinning has CUDA.

    The remarks of the new draft name what could not be decided.

    Args:
        draft: the feedstock.
        wishes: what the CUDA builds must be like.
        pinning: the pinning's `conda_build_config.yaml`, whose CUDA versions count; None for those of the facts.

    Raises:
        InputError: the recipe has CUDA builds already, a spec whose section `cuda` makes them generates it, it compiles
            nothing, or is written in a way that cannot be edited; a wish names something that does not exist.

    >>> draft = enable_gpu(open_draft(Path("cpu-feedstock")), GpuWishes(libraries=("cublas",)))
    >>> draft.changes().listed()
    (('change', 'recipe/meta.yaml'),)
    """
    wishes.check()
    parts = gpu_parts(draft, wishes.outputs)
    refusals = _refusals(draft)
    versions = cuda_versions(draft, pinning)
    numbers = numbering(parts, wishes)
    scripts = script_edits(scripts_of(draft, parts.builders), wishes, versions)
    strings, preferred = build_string_edits(parts, numbers), preference(parts, wishes)
    tests = _edits_of_tests(parts, wishes)
    edits = (numbers, strings, preferred, scripts, tests)
    document = parts.recipe.document
    changes = [  # texts added at one place keep this order
        *insertion.defined(document, [line for edit in edits for line in edit.variables]),
        *(change for edit in edits if edit is not tests for change in edit.changes),
        *insertion.set_in([setting for edit in edits for setting in edit.settings], parts.recipe),
        *requirement_changes(parts, wishes, versions),
        *tests.changes,
    ]
    draft = _skipped(draft.with_document(document.changed(insertion.together(changes))), wishes)
    if wishes.metapackages:
        draft = draft.with_recipe(lambda recipe: with_metapackages(recipe, parts, wishes))
    for script in scripts.scripts:
        draft = draft.with_script(script)
    remarks = [remark for edit in edits for remark in edit.remarks]
    return draft.remarked(*remarks, *_unpinned(parts), *_zipped(draft), *_others(parts), *refusals, _NEXT)


def _refusals(draft: Draft) -> list[str]:
    """Remarks on platforms for which rattler-build refuses the `recipe.yaml` on disk, even without the edit."""
    if draft.recipe.has_templates:
        return []
    rules = Rules.newest()
    forge = read_forge(draft.folder, rules)
    folder = forge.folder / forge.recipe_dir
    refused: dict[str, list[str]] = {}
    by_platform = {configuration.platform: configuration for configuration in read_configurations(draft.folder)}
    for platform, configuration in by_platform.items():
        try:
            packages_of(folder, configuration, forge.builder_of(platform), rules, v1=True)
        except InputError as error:
            refused.setdefault(error.mistakes[0].message, []).append(platform.subdir)
    return [f"for {', '.join(names)}, even without the edit: {reason}" for reason, names in refused.items()]


def _skipped(draft: Draft, wishes: GpuWishes) -> Draft:
    """The draft without CUDA builds on platforms that the wishes leave out."""
    if not wishes.platforms:
        return draft
    templates = draft.recipe.has_templates
    for condition, _ in skips(spec_of(wishes, "package", None)):
        draft = skip_where(draft, to_selector(condition, ()) if templates else to_expression(condition))
    return draft


def _unpinned(parts: GpuParts) -> list[str]:
    """Remarks on frameworks that CUDA builds link, which have CPU and CUDA builds themselves."""
    document = parts.recipe.document
    return [
        f"{document.place_of(leaf.start)} requires {leaf.text}, which has CPU and CUDA builds: pin "
        f"those that go together, such as '{name_of(leaf.text)} * cuda*' in CUDA builds"
        for owner in parts.builders
        for leaf, _ in owner.requirements("host")
        if name_of(leaf.text) in _FRAMEWORKS
    ]


def _zipped(draft: Draft) -> list[str]:
    """Remarks on keys of the recipe's variant file that the pinning zips with the CUDA version."""
    files = (draft.file(name) for name in ("recipe/conda_build_config.yaml", "recipe/variants.yaml"))
    return [
        f"{document.place_of(entry.start)} sets {key}, which the pinning zips with the CUDA "
        "version: check the jobs after a rerender"
        for document in files
        if document is not None
        for key in _ZIPPED
        for entry in document.entries(key)
    ]


def _others(parts: GpuParts) -> list[str]:
    names = ", ".join(owner.name for owner in parts.others)
    return [f"one build for all jobs, with and without CUDA: {names}"] if names else []


#: A shared library on Linux that a test looks for.
_LIBRARY = re.compile(r"\$\{?PREFIX\}?/(lib/lib[\w.+-]+?)(?:\.so|\$\{?SHLIB_EXT\}?|\{\{ *SHLIB_EXT *\}\})(?=[\s\"']|$)")
_COMPILER = re.compile(r"\{\{-?\s*compiler\(")
_LINUX = Name("linux")
#: The section of a library into which nvcc puts GPU code.
_SECTION = "nv_fatbin"


def _edits_of_tests(parts: GpuParts, wishes: GpuWishes) -> insertion.Edits:
    """Tests of the packages with CUDA builds.

    The wishes name the files with GPU code. If they name none, it is the library that the tests of a package look for,
    provided that it is the only one.
    """
    edits = insertion.Edits()
    tested = [_tested(owner, parts) for owner in parts.packages]
    files = [wishes.gpu_files or _only_library(owner) for owner in tested]
    for index, (owner, gpu_files) in enumerate(zip(tested, files, strict=True)):
        chosen = gpu_files if index == 0 or not wishes.gpu_files else ()
        commands = [*_code_tests(chosen), *((test, CUDA) for test in (wishes.tests if index == 0 else ()))]
        if commands:
            edits.changes += _added(owner, commands)
        if chosen and not wishes.gpu_files:
            edits.remarks.append(
                f"tests whether {chosen[0]} of {owner.name} holds GPU code: drop it if that library only calls others"
            )
        edits.remarks += _compiling(owner)
        if not commands and index == 0:
            edits.remarks.append(
                f"no test tells CPU and CUDA builds of {owner.name} apart: name a library with --gpu-file"
            )
    return edits


def _compiling(owner: Owner) -> Iterator[str]:
    """Remarks on tests that compile something and may lack the CUDA compiler."""
    document = owner.document
    for entry in owner.part.entries:
        compiler = _COMPILER.search(document.text, entry.start, entry.end) if entry.key in {"test", "tests"} else None
        if compiler:
            place = document.place_of(compiler.start())
            yield f"{place} a test compiles against {owner.name}: in CUDA builds it may require compiler('cuda') too"


def _tested(owner: Owner, parts: GpuParts) -> Owner:
    """The owner of the tests of a package: the package itself, or the recipe with the same name."""
    has_own = not {"test", "tests"}.isdisjoint(owner.part.members)
    return parts.recipe if owner.name == parts.recipe.name and not has_own else owner


def _only_library(owner: Owner) -> tuple[str, ...]:
    libraries = {f"{name}.so" for entry in owner.part.entries for name in _libraries(owner.document, entry)}
    return tuple(libraries) if len(libraries) == 1 and "{" not in "".join(libraries) else ()


def _libraries(document: Document, entry: Entry) -> Iterator[str]:
    if entry.key == "test":
        for commands in (member for member in entry.value.entries if member.key == "commands"):
            for item in commands.value.items:
                if "! -f" not in item.text and "! -e" not in item.text:
                    yield from _LIBRARY.findall(item.text)
    if entry.key == "tests":
        for test in entry.value.items:
            contents = test.members.get("package_contents")
            lib = contents.members.get("lib") if contents is not None else None
            if lib is not None and lib.entries:
                lib = lib.members.get("exists")
            yield from (f"lib/lib{leaf.text}" for leaf in (lib.leaves if lib is not None else ()))


def _code_tests(files: Iterable[str]) -> Iterator[tuple[str, Condition]]:
    """Commands that each succeed for one accelerator only, with its condition."""
    for name in files:
        path = f"${{PREFIX}}/{name}"
        yield f"grep -q {_SECTION} {path}", And((_LINUX, CUDA))
        yield f'test -z "$(grep -l {_SECTION} {path})"', And((_LINUX, CPU))


def _added(owner: Owner, commands: Sequence[tuple[str, Condition]]) -> list[TextEdit]:
    document = owner.document
    if not document.has_templates:
        return _with_script(owner, commands)
    lines = [Line(f"- {quoted(text)}", to_selector(condition, ())) for text, condition in commands]
    for entry in (section for section in owner.part.entries if section.key == "test" and section.value.entries):
        for member in entry.value.entries:
            if member.key == "commands" and member.value.items:
                return insertion.added_to_list(document, member.value, lines)
        written = insertion.with_selectors(lines, "  ", None)
        return added_entry(document, entry.value, "commands", written, _last(document, entry.value))
    written = insertion.with_selectors(lines, "    ", None)
    return _new_key(owner, "test", ["  commands:", *written])


def _last(document: Document, mapping: Part) -> Entry:
    free = [entry for entry in mapping.entries if not document.is_in_block(entry.end)]
    return (free or list(mapping.entries))[-1]


def _with_script(owner: Owner, commands: Sequence[tuple[str, Condition]]) -> list[TextEdit]:
    document = owner.document
    lines = [Line("- script:")]
    for text, condition in commands:
        lines += [Line(f"    - if: {to_expression(condition)}"), Line(f"      then: {quoted(text)}")]
    for entry in (section for section in owner.part.entries if section.key == "tests"):
        if entry.value.items:
            return insertion.added_to_list(document, entry.value, lines)
    return _new_key(owner, "tests", [f"  {line.text}" for line in insertion.in_one_style(document, lines)])


def _new_key(owner: Owner, key: str, lines: Sequence[str]) -> list[TextEdit]:
    document = owner.document
    above = [entry for entry in owner.part.entries if entry.key not in {"about", "extra", "outputs"}]
    if owner.kind == "recipe":
        return insertion.placed(document, ["", f"{key}:", *lines], after=above[-1].end)
    return added_entry(document, owner.part, key, lines, above[-1])
