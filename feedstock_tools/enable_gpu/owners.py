"""The parts of a recipe that build something: the recipe itself, its outputs and stages, and which get CUDA builds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from feedstock_tools.edit.draft import Draft
from feedstock_tools.edit.requirements import name_of, outputs_of
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document, Entry, Part
from feedstock_tools.recipe.written.variables import expand

_CALL = re.compile(r"""\$?\{\{-?\s*(?:compiler|stdlib)\(\s*['"]([^'"]+)['"]""")
_EXACT_PIN = re.compile(r"""\{\{-?\s*pin_subpackage\(\s*(.+?)\s*,.*\bexact\s*=\s*[Tt]rue""")
_COMMENT = re.compile(r"(?m)^[ \t]*#.*$")
_CUDA = re.compile(r"""\bcuda_compiler_version\b|compiler\(\s*['"]cuda['"]""")
#: Keys of an output that fill its package.
_FILLING = frozenset({"files", "script", "inherit", "cache"})


@dataclass(frozen=True)
class Owner:
    """A part of a recipe with requirements: the recipe itself, an output, or a stage that outputs take files from."""

    document: Document
    part: Part
    name: str
    kind: str

    @cached_property
    def build(self) -> Entry | None:
        """Its section `build`; of several, the first that is not empty."""
        entries = [entry for entry in self.part.entries if entry.key == "build"]
        return next((entry for entry in entries if entry.value.entries), entries[0] if entries else None)

    @property
    def settings(self) -> tuple[Entry, ...]:
        """The entries of its section `build`."""
        return self.build.value.entries if self.build is not None else ()

    def section(self, name: str) -> Entry | None:
        """A section of its requirements."""
        for entry in self.part.entries:
            if entry.key == "requirements":
                for candidate in entry.value.entries:
                    if candidate.key == name:
                        return candidate
        return None

    def requirements(self, section: str) -> Iterator[tuple[Part, Part]]:
        """The requirements of a section, each with the item of the list that it stands in."""
        entry = self.section(section)
        for item in entry.value.items if entry is not None else ():
            yield from ((leaf, item) for leaf in leaves(item))

    def names(self, section: str) -> set[str]:
        """The packages that a section requires."""
        return {name_of(leaf.text) for leaf, _ in self.requirements(section)}

    @cached_property
    def compilers(self) -> dict[str, Part]:
        """Its compilers by language, `stdlib` among them, each with the item of the list that it stands in."""
        by_language: dict[str, Part] = {}
        for leaf, item in self.requirements("build"):
            match = _CALL.match(leaf.text)
            if match:
                by_language["stdlib" if "stdlib(" in match[0] else match[1]] = item
        return by_language

    @property
    def compiles(self) -> bool:
        """Whether it has a compiler of the languages that call CUDA."""
        return any(language.removeprefix("m2w64_") in {"c", "cxx", "fortran", "rust"} for language in self.compilers)

    @property
    def is_noarch(self) -> bool:
        """Whether its package is for all platforms."""
        return any(entry.key == "noarch" for entry in self.settings)

    @property
    def is_python(self) -> bool:
        """Whether there is a build for each Python, rather than one for several through the stable ABI."""
        one_for_several = any(entry.key == "python_version_independent" for entry in self.settings) or any(
            "version_independent" in entry.value.members for entry in self.settings if entry.key == "python"
        )
        return not self.is_noarch and not one_for_several and "python" in self.names("host")

    @property
    def fills_its_package(self) -> bool:
        """Whether something puts files into its package."""
        return any(entry.key in _FILLING for entry in (*self.part.entries, *self.settings))

    @cached_property
    def exact_pins(self) -> set[str]:
        """The outputs of which it requires exactly the build made with it."""
        return {name for section in ("host", "run") for name in self._pins(section, conditional=True)}

    @property
    def pins_everywhere(self) -> set[str]:
        """The outputs that it pins so in `run` on every platform."""
        return self._pins("run", conditional=False)

    def _pins(self, section: str, *, conditional: bool) -> set[str]:
        names = set()
        for leaf, item in self.requirements(section):
            match = _EXACT_PIN.search(leaf.text)
            always = leaf is item and not self.document.selector_of(leaf)
            if match and (conditional or always):
                names.add(expand(self.document, f"{{{{ {match[1]} }}}}", {}) or match[1])
        return names


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
        """Whether the recipe lists outputs."""
        return self.packages != (self.recipe,)


def leaves(item: Part) -> Iterator[Part]:
    """The scalars of an item: itself, or those of its branches."""
    if item.kind == "scalar":
        yield item
    for entry in item.entries:
        if entry.key in {"then", "else"}:
            yield from leaves(entry.value)
    for child in item.items:
        yield from leaves(child)


def gpu_parts(draft: Draft, named: Sequence[str]) -> GpuParts:
    """Which parts of a recipe compile CUDA code and which packages hold it.

    Args:
        draft: the feedstock.
        named: outputs that compile CUDA code; without them all that have a compiler.

    Raises:
        InputError: the recipe has CUDA builds already, is noarch, compiles nothing, or lacks a named output.
    """
    _refuse_gpu(draft)
    document = draft.recipe
    root = document.root
    if root is None or root.kind != "mapping":
        raise document.mistake("the recipe is empty")
    recipe = Owner(document, root, _name(document, root), "recipe")
    outputs = tuple(_outputs(document))
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


def _name(document: Document, part: Part) -> str:
    for keys in (("package", "name"), ("recipe", "name"), ("staging", "name"), ("name",)):
        value: Part | None = part
        for key in keys:
            value = value.members.get(key) if value is not None else None
        if value is not None and value.kind == "scalar":
            return expand(document, value.text, {}) or value.text
    return ""


def _outputs(document: Document) -> Iterator[Owner]:
    for part in outputs_of(document):
        if part.kind == "mapping" and "if" not in part.members:
            yield Owner(document, part, _name(document, part), "stage" if "staging" in part.members else "output")


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
