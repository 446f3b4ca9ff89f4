"""A recipe that builds for CPUs gets CUDA builds beside them."""

from __future__ import annotations

from pathlib import Path

from feedstock_tools.conditions.spec import to_expression, to_selector
from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.variants.skips import skip_where
from feedstock_tools.enable_gpu.gpu_tests import edits_of_tests
from feedstock_tools.enable_gpu.inputs import GpuParts, GpuWishes, cuda_versions, gpu_parts
from feedstock_tools.enable_gpu.insertion import defined, set_in, together
from feedstock_tools.enable_gpu.metapackages import with_metapackages
from feedstock_tools.enable_gpu.needs import requirement_changes, spec_of
from feedstock_tools.enable_gpu.scripts import script_edits, scripts_of
from feedstock_tools.enable_gpu.strings_and_numbers import build_string_edits, numbering, preference
from feedstock_tools.errors import InputError
from feedstock_tools.generate.texts.wording import skips
from feedstock_tools.recipe.written.owners import name_of
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
        InputError: the recipe has CUDA builds already, compiles nothing, or is written in a way that cannot be edited;
            a wish names something that does not exist.

    >>> draft = enable_gpu(open_draft(Path("cpu-feedstock")), GpuWishes(libraries=("cublas",)))
    >>> draft.changes().listed()
    (('change', 'recipe/meta.yaml'),)
    """
    wishes.check()
    refusals = _refusals(draft)
    parts = gpu_parts(draft, wishes.outputs)
    versions = cuda_versions(draft, pinning)
    numbers = numbering(parts, wishes)
    scripts = script_edits(scripts_of(draft, parts.builders), wishes, versions)
    strings, preferred = build_string_edits(parts, numbers), preference(parts, wishes)
    tests = edits_of_tests(parts, wishes)
    edits = (numbers, strings, preferred, scripts, tests)
    document = parts.recipe.document
    changes = [  # texts added at one place keep this order
        *defined(document, [line for edit in edits for line in edit.variables]),
        *(change for edit in edits if edit is not tests for change in edit.changes),
        *set_in([setting for edit in edits for setting in edit.settings], parts.recipe),
        *requirement_changes(parts, wishes, versions),
        *tests.changes,
    ]
    draft = _skipped(draft.with_document(document.changed(together(changes))), wishes)
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
        f"{document.path.name}:{document.line_of(leaf.start)} requires {leaf.text}, which has CPU and CUDA builds: pin "
        f"those that go together, such as '{name_of(leaf.text)} * cuda*' in CUDA builds"
        for owner in parts.builders
        for leaf, _ in owner.requirements("host")
        if name_of(leaf.text) in _FRAMEWORKS
    ]


def _zipped(draft: Draft) -> list[str]:
    """Remarks on keys of the recipe's variant file that the pinning zips with the CUDA version."""
    files = (draft.file(name) for name in ("recipe/conda_build_config.yaml", "recipe/variants.yaml"))
    return [
        f"{document.path.name}:{document.line_of(entry.start)} sets {key}, which the pinning zips with the CUDA "
        "version: check the jobs after a rerender"
        for document in files
        if document is not None
        for key in _ZIPPED
        for entry in document.entries(key)
    ]


def _others(parts: GpuParts) -> list[str]:
    names = ", ".join(owner.name for owner in parts.others)
    return [f"one build for all jobs, with and without CUDA: {names}"] if names else []
