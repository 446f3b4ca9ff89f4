"""The recipe's own conda_build_config.yaml as the variants of a spec."""

from __future__ import annotations

from typing import Any

from feedstock_tools.conditions.spec import Setting
from feedstock_tools.importing.entries import conditional
from feedstock_tools.importing.inference import Conditions
from feedstock_tools.importing.merging import Merger, merged_order
from feedstock_tools.importing.reading.samples import Sample
from feedstock_tools.importing.reading.trees import OutputTree, RecipeTree, ScriptTree
from feedstock_tools.importing.reading.written_conditions import WrittenConditions
from feedstock_tools.rerender.source import Source
from feedstock_tools.variants import load

_CONFIG = "conda_build_config.yaml"
_NOTHING = RecipeTree(
    "",
    "",
    0,
    False,
    True,
    (),
    OutputTree(  # a platform alone tells nothing about a recipe
        "", "", None, None, None, False, ScriptTree(), (), (), {}, {}, {}, (), {}, (), False, {}, {}, {}, {}, {}
    ),
    (),
    {},
    {},
)


def variant_content(source: Source) -> tuple[dict[str, Any], list[Any], list[str]]:
    """Keys with their values by platform, the groups of zipped keys, and what a spec cannot hold.

    Raises:
        InputError: the file is invalid.
    """
    path = source.recipe.with_name(_CONFIG)
    lost = [f"{source.conditional.name} stays as it is"] if source.conditional else []
    if not path.is_file():
        return {}, [], lost
    renderings = list({rendering.platform: rendering for rendering in source.forge.renderings}.values())
    configs = [
        load(
            path,
            rendering.platform,
            environ=rendering.environ,
            rules=source.rules.conda_build,
            within=source.forge.folder,
        )
        for rendering in renderings
    ]
    samples = [
        Sample(Setting(rendering.platform, rendering.platform), {}, _NOTHING, frozenset()) for rendering in renderings
    ]
    merger = Merger(Conditions(samples, ()), (1 << len(samples)) - 1, WrittenConditions("", is_v1=False))
    variants: dict[str, Any] = {}
    for key in merged_order([list(config.values) for config in configs]):
        entries = merger.entries({index: config.values.get(key, ()) for index, config in enumerate(configs)})
        values = [conditional("value", text, condition) for text, condition in entries]
        variants[key] = values[0] if len(values) == 1 and isinstance(values[0], str) else values
    zipped = merged_order([[*config.zip_keys] for config in configs])
    for config in configs:
        if config.zip_keys not in ((), tuple(zipped)):
            lost.append(f"{_CONFIG}: groups of zip_keys that differ by platform")
        lost += [f"{_CONFIG}: {key}" for key in (*config.pin_run_as_build, *config.mappings)]
    return variants, [list(group) for group in zipped], list(dict.fromkeys(lost))
