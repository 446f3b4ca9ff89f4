"""The parts of a recipe that build something: the recipe itself, its outputs and stages, and which get CUDA builds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from feedstock_tools.edit.draft import Draft
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document
from feedstock_tools.recipe.written.owners import Owner, outputs_of, recipe_of

_COMMENT = re.compile(r"(?m)^[ \t]*#.*$")
_CUDA = re.compile(r"""\bcuda_compiler_version\b|compiler\(\s*['"]cuda['"]""")


@dataclass(frozen=True, slots=True)
class GpuParts:
    """The parts of a recipe, by what enabling CUDA changes in them.

    `builders` compile CUDA code, `packages` hold it, and `followers` pin the build of one that does; `others` are the
    remaining outputs, which stay one build for all.
    """

    recipe: Owner
    builders: tuple[Owner, ...]
    packages: tuple[Owner, ...]
    followers: tuple[Owner, ...] = ()
    others: tuple[Owner, ...] = ()

    @property
    def varying(self) -> tuple[Owner, ...]:
        """All whose package has CPU and CUDA builds."""
        return (*self.packages, *self.followers)

    @property
    def has_outputs(self) -> bool:
        return self.packages != (self.recipe,)


def gpu_parts(draft: Draft, named: Sequence[str]) -> GpuParts:
    """Which parts of a recipe compile CUDA code and which packages hold it.

    Args:
        named: outputs that compile CUDA code; without them all that have a compiler.
    """
    _refuse_gpu(draft)
    document = draft.recipe
    recipe = recipe_of(document)
    if recipe is None or recipe.part.kind != "mapping":
        raise document.mistake("the recipe is empty")
    outputs = tuple(
        owner for owner in outputs_of(document) if owner.part.kind == "mapping" and "if" not in owner.part.members
    )
    if not outputs:
        return _of_one_package(recipe, named)
    builders = _builders(document, recipe, outputs, named)
    packages = [owner for owner in outputs if owner in builders and owner.kind == "output"]
    if not named and any(owner.kind != "output" for owner in builders):
        packages += _collecting(recipe, outputs, packages)
    followers = _followers(outputs, packages)
    others = [owner for owner in outputs if owner.kind == "output" and owner not in (*packages, *followers)]
    return GpuParts(recipe, builders, tuple(packages), followers, tuple(others))


def _refuse_gpu(draft: Draft) -> None:
    for name in (draft.recipe_path.relative_to(draft.folder).as_posix(), "recipe/conda_build_config.yaml"):
        document = draft.file(name)
        match = document and _CUDA.search(_COMMENT.sub(lambda comment: " " * len(comment[0]), document.text))
        if document and match:
            message = f"the recipe builds for CUDA already: it has '{match[0]}'"
            hint = "To build for one more version of CUDA: feedstock-tools edit add-cuda VERSION"
            raise InputError(message, path=document.path, line=document.line_of(match.start()), hint=hint)


def _of_one_package(recipe: Owner, named: Sequence[str]) -> GpuParts:
    unknown = next((name for name in named if name != recipe.name), None)
    if unknown is not None:
        raise recipe.document.mistake(f"the recipe has no output '{unknown}'", hint=f"It makes '{recipe.name}' alone.")
    if recipe.is_noarch:
        raise _noarch(recipe)
    if not recipe.compiles and not named:
        hint = f"If it compiles CUDA code nevertheless, name it: --of {recipe.name}"
        raise recipe.document.mistake("the recipe has no compiler, so there is nothing to compile for GPUs", hint=hint)
    return GpuParts(recipe, (recipe,), (recipe,))


def _noarch(owner: Owner) -> InputError:
    message = f"'{owner.name}' is noarch: one package for all platforms, with or without a GPU"
    return owner.document.mistake(message, owner.build, "Remove noarch first, if it compiles something.")


def _builders(document: Document, recipe: Owner, outputs: Sequence[Owner], named: Sequence[str]) -> tuple[Owner, ...]:
    candidates = (recipe, *outputs)
    if not named:
        builders = tuple(owner for owner in candidates if owner.compiles and not owner.is_noarch)
        if not builders:
            raise document.mistake("no output has a compiler", hint="Name those that compile CUDA code with --of.")
        return builders
    chosen = []
    for name in named:
        matching = [owner for owner in candidates if owner.name == name]
        if not matching:
            names = sorted({owner.name for owner in candidates})
            near = get_close_matches(name, names, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"It has {', '.join(names)}."
            raise document.mistake(f"the recipe has no output '{name}'", hint=hint)
        if matching[-1].is_noarch:
            raise _noarch(matching[-1])
        chosen += matching
    if recipe.compiles and recipe not in chosen:  # its outputs collect the files that it builds
        chosen = [recipe, *chosen]
    return tuple(chosen)


def _collecting(recipe: Owner, outputs: Sequence[Owner], packages: Sequence[Owner]) -> list[Owner]:
    """Outputs without a compiler that take files of the recipe's build or of a stage, and pin no other that does."""
    names = {owner.name for owner in (*packages, *(output for output in outputs if output.fills_its_package))}
    return [
        owner
        for owner in outputs
        if owner.kind == "output" and owner not in packages and not owner.compiles and not owner.is_noarch
        if (owner.fills_its_package and not owner.exact_pins & names) or owner.name == recipe.name
    ]


def _followers(outputs: Sequence[Owner], packages: Sequence[Owner]) -> tuple[Owner, ...]:
    """Outputs that pin the build of one with CUDA builds, or of another follower."""
    followers: list[Owner] = []
    varying = {owner.name for owner in packages}
    for _ in outputs:
        for owner in outputs:
            known = owner in packages or owner in followers
            if not known and owner.kind == "output" and not owner.is_noarch and owner.exact_pins & varying:
                followers.append(owner)
                varying.add(owner.name)
    return tuple(followers)
