"""The facts that a rerender needs about one output of a recipe in one variant, the same for both recipe formats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from feedstock_tools.variants.model import Variant, VariantSpace


@dataclass(frozen=True, slots=True)
class UsedVariables:
    """The variant keys that an output uses itself, and those that also count the top level of the recipe.

    `top_level_loop` holds those with more than one value over all input variants. For v1 the first two are equal:
    rattler-build reports what an output uses, and no text is searched.
    """

    own: frozenset[str]
    top_level: frozenset[str]
    top_level_loop: frozenset[str]


#: The characters that a name, a version and a build string must not have (conda_build/metadata.py: check_bad_chrs).
_BAD = frozenset("=@#$%^&*:;\"'\\|<>?/ ")
#: What conda-build itself writes into build strings, and does not check, for a version with one part: `lua5*`.
_OPEN_LANGUAGE = re.compile(r"(np|py|pl|lua|r)\d+\*")


@dataclass(frozen=True, slots=True)
class RenderedOutput:
    """One output in one variant.

    `variant` is the variant that it was rendered with and `variants` the input variants that it represents
    (those that agree with it in what splits the recipe at its top level). `requirements` is by section: `build`,
    `host`, `run`, `run_constrained`. `noarch` is `python`, `generic` or None. `skip`
    is true for an output that is not built; `pins_numpy` for the old spelling `numpy x.x`, which pins NumPy at run time
    to the version at build time. `hash_input` are the contents of the hash in its build string, as far as they are
    known before solving; empty for v1. `has_files`: it lists some, or has a script and something to build with, since
    a metapackage may have a script that only says something; false for v1.
    """

    name: str
    version: str
    build_number: int
    build_string: str
    noarch: str | None
    requirements: Mapping[str, tuple[str, ...]]
    variant: Variant
    variants: VariantSpace
    used: UsedVariables
    skip: bool = False
    pins_numpy: bool = False
    hash_input: Mapping[str, str] = field(default_factory=dict)
    has_files: bool = False

    @property
    def file_stem(self) -> str:
        """`name-version-build`, as package files are named without their extension."""
        return f"{self.name}-{self.version}-{self.build_string}"

    def refused_parts(self) -> Iterator[str]:
        """What conda-build refuses in its name, version and build string."""
        for what, value, bad in (
            ("name", self.name, _BAD | {"!"}),
            ("version", self.version, _BAD | {"-"}),
            ("build string", _OPEN_LANGUAGE.sub("", self.build_string), _BAD | {"-", "!"}),
        ):
            if wrong := bad.intersection(value):
                yield f"{''.join(sorted(wrong))!r} in the {what} '{value}'"
        if not self.version or self.version.startswith("."):
            yield f"the version '{self.version}' of {self.name}"
        if self.name != self.name.lower():
            yield f"capital letters in the name '{self.name}'"


@dataclass(frozen=True, slots=True)
class OutlinedOutput:
    """What configurations follow from of one output in one variant; attributes as of `RenderedOutput`."""

    name: str
    noarch: str | None
    variant: Variant
    variants: VariantSpace
    used: UsedVariables
    pins_numpy: bool = False


@dataclass(frozen=True, slots=True)
class OutlinedRecipe:
    """All outputs of a recipe on one platform without their contents; attributes as of `RenderedRecipe`."""

    outputs: tuple[OutlinedOutput, ...]
    space: VariantSpace
    feedstock_name: str


@dataclass(frozen=True, slots=True)
class RenderedRecipe:
    """All outputs of a recipe on one platform.

    `space` are the input variants, without the Pythons for which a noarch recipe is not rendered. `feedstock_name`
    is the recipe's `extra/feedstock-name`, if set.
    """

    outputs: tuple[RenderedOutput, ...]
    space: VariantSpace
    feedstock_name: str | None = None
