"""A rendered output as a recipe of its own, for operations that the embedded engine only supports for whole recipes.

Its build string and the outputs of the same recipe that it pins are written out, so that it renders to the same.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from feedstock_tools.recipe.requirements import pin_of_mapping
from feedstock_tools.recipe.v1_engine import ParsedV1, Rendering, parse_v1

_PINS = ("pin_subpackage", "pin_compatible")


def alone(variant: Rendering, row: Sequence[Rendering], recipe: Path, keys: Collection[str] = ()) -> ParsedV1:
    """The recipe of one output of a row.

    Args:
        recipe: the recipe that was rendered: scripts and sources are found beside it.
        keys: further variant keys that it must use.
    """
    content = variant.recipe.to_dict()
    builds = {
        output.recipe.package.name: (str(output.recipe.package.version), str(output.recipe.build.string))
        for output in row
    }
    del builds[variant.recipe.package.name]
    content["requirements"] = _written_out(content.get("requirements") or {}, builds)
    if keys:
        build = content.setdefault("build", {})
        build["variant"] = {**(build.get("variant") or {}), "use_keys": sorted({*keys, *map(str, variant.variant)})}
    return parse_v1(json.dumps(_with_staging(content)), recipe)


def _with_staging(content: dict[str, Any]) -> dict[str, Any]:
    """An output as a recipe; one that inherits from staging outputs with these before it."""
    staged = content.pop("staging_caches", None) or ()
    inherited = content.pop("inherits_from", None)
    if inherited is None:
        return content
    content["inherit"] = {"from": inherited["cache_name"], "run_exports": inherited["inherit_run_exports"]}
    common: dict[str, Any] = {key: content.pop(key) for key in ("schema_version", "context", "extra") if key in content}
    return {**common, "recipe": dict(content["package"]), "outputs": [*map(_staging_output, staged), content]}


def _staging_output(content: Mapping[str, Any]) -> dict[str, Any]:
    build = {key: value for key, value in (content.get("build") or {}).items() if key != "string"}
    rest = {key: value for key, value in content.items() if key not in ("name", "build")}
    return {"staging": {"name": content["name"]}, "build": build, **rest}


def _written_out(item: Any, builds: Mapping[str, tuple[str, str]]) -> Any:
    """Requirements with their pins as strings; pins on other outputs (`builds`) are resolved."""
    if isinstance(item, list):
        return [_written_out(part, builds) for part in item]
    if not isinstance(item, dict):
        return item
    kind = next((kind for kind in _PINS if kind in item), None)
    if kind is None:
        return {key: _written_out(part, builds) for key, part in item.items()}
    pin = item[kind]
    if kind == "pin_subpackage" and pin["name"] in builds:
        return pin_of_mapping(item).applied(*builds[pin["name"]])
    # A missing bound means no bound; omitting the key would mean the default bound.
    bounds = {"exact": True} if pin.get("exact") else {"lower_bound": None, "upper_bound": None, **pin}
    options = ", ".join(f"{key}={value!r}" for key, value in bounds.items() if key != "name")
    return f"${{{{ {kind}({pin['name']!r}, {options}) }}}}"
