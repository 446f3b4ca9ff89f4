"""The settings of a recipe: each variant of each platform that it can distinguish, built or not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from feedstock_tools.bounds.limits import BoundError, most
from feedstock_tools.conditions.spec import Setting
from feedstock_tools.importing.trees import RecipeTree
from feedstock_tools.platforms import Platform
from feedstock_tools.rerender.configuration import completed_variants, read_configurations
from feedstock_tools.rerender.forge import Rendering
from feedstock_tools.rerender.source import Source, variants_of
from feedstock_tools.variants.files import defaults
from feedstock_tools.variants.model import Variant, VariantConfig, combine, explode

#: More settings than any recipe of conda-forge distinguishes on one platform.
_MOST = 2_000
_WORD = re.compile(r"\w+")
_PLATFORMS = ("target_platform", "build_platform")
#: Names in recipes that stand for a key of the variant.
_ALIASES = {
    "python": frozenset({"py", "py3k", "py2k", "PY_VER", "CONDA_PY", "PY3K"}),
    "numpy": frozenset({"np", "NPY_VER", "CONDA_NPY"}),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """A recipe in one setting; `looping` are the keys with several values that it can distinguish."""

    setting: Setting
    variant: Variant
    tree: RecipeTree
    looping: frozenset[str]

    def __str__(self) -> str:
        """The platform, and the values of the keys that the recipe can distinguish."""
        builder, keys = self.setting.build_platform, sorted(self.looping)
        on = [f"built on {builder.subdir}"] if builder != self.setting.platform else []
        values = (f"{key} {self.variant[key]}" if key in self.variant else f"no {key}" for key in keys)
        return " ".join((self.setting.platform.subdir, *on, f"with {', '.join(values)}" if keys else "")).strip()

    @property
    def built(self) -> bool:
        return not self.tree.skip and not all(output.skip for output in self.tree.outputs)


def take_samples(source: Source) -> tuple[Sample, ...]:
    """The recipe in every setting of its feedstock: its configurations, and all variants on its platforms, built or
    not. Cross-compiled platforms are also read as native ones, since a rerender renders them so.
    """
    readings = [
        *_configured(source),
        *((rendering, variants_of(source, rendering)) for rendering in source.forge.renderings),
    ]
    looping = _looping_keys(source.text, [config for _, config in readings])
    samples: dict[object, Sample] = {}
    for rendering, config in readings:
        platform, base, rows = rendering.platform, explode(config).first(), explode(config).along(looping)
        if rows.count > most(_MOST):
            raise BoundError(f"the recipe distinguishes more than {_MOST} variants", path=source.recipe)
        for row in rows:
            values = tuple((key, row[key]) for key in sorted(looping) if key in row)
            for builder in dict.fromkeys((platform, rendering.build_platform)):
                if (platform, builder, values) not in samples:
                    variant = {**base, **row}
                    tree = _tree(source, variant, config, rendering, builder)
                    sample = Sample(setting_of(variant, platform, builder), variant, tree, looping)
                    samples[platform, builder, values] = sample
    return tuple(samples.values())


def _configured(source: Source) -> Iterator[tuple[Rendering, VariantConfig]]:
    """The configurations that the feedstock has, for platforms that it still renders."""
    renderings = {rendering.platform: rendering for rendering in source.forge.renderings}
    behaviour = source.rules.conda_build
    for configuration in read_configurations(source.forge.folder):
        rendering = renderings.get(configuration.platform)
        if rendering is not None:
            given = completed_variants(source.recipe.parent, configuration, behaviour)
            yield rendering, combine([defaults(configuration.platform, behaviour), given])


def _looping_keys(text: str, configs: Sequence[VariantConfig]) -> frozenset[str]:
    """The keys with several values whose value changes what a recipe says, and not only what its names stand for."""
    words = frozenset(_WORD.findall(text.replace("-", "_")))
    values_of: dict[str, set[str]] = {}
    for config in configs:
        for key, values in config.values.items():
            if key in words or words & _ALIASES.get(key, frozenset()):
                values_of.setdefault(key, set()).update(values)
    return frozenset(key for key, values in values_of.items() if len(values) > 1 and key not in _PLATFORMS)


def setting_of(variant: Variant, platform: Platform, builder: Platform) -> Setting:
    """The setting in which conditions of a spec see a variant."""
    cuda, python = variant.get("cuda_compiler_version", "None"), variant.get("python")
    version = python.split(" ")[0].removesuffix(".*") if python else None
    return Setting(platform, builder, None if cuda in ("None", "") else cuda, version, variant)


def _tree(
    source: Source, variant: Mapping[str, str], config: VariantConfig, rendering: Rendering, builder: Platform
) -> RecipeTree:
    platforms = (rendering.platform, builder)
    if source.v1 is not None:
        from feedstock_tools.importing.sampling_v1 import tree_v1

        given = {**{key: values[0] for key, values in config.extended.items() if values}, **variant}
        return tree_v1(replace(source.v1, environ=rendering.environ), given, platforms, rendering.environ)
    from feedstock_tools.importing.sampling_v0 import tree_v0
    from feedstock_tools.recipe.v0.text import RecipeText

    recipe = cast("RecipeText", source.parsed)
    return tree_v0(recipe, variant, explode(config), platforms, rendering.environ)
