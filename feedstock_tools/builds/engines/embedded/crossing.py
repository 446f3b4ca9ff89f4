"""A rendered output as a recipe of its own, for what the embedded engine does right for whole recipes only.

Its build string and the outputs of the same recipe that it pins are written out, so that it renders to the same.
`--debug` needs that, and cross builds: the engine solves those for the build machine, since it reads the platform of
the host environment only from a variant key `host_platform` that an output uses (docs/engine.md). Using that key would
change the hash, so each rendered output becomes a recipe that uses that key too.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from feedstock_tools.builds.engines.contract import BuildRequest
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.requirements import pin_of_mapping
from feedstock_tools.recipe.v1_engine import ParsedV1, Rendering, parse_v1, render_row, text_of

_KEY = "host_platform"
_HASH_INPUT = "info/hash_input.json"
_PINS = ("pin_subpackage", "pin_compatible")


def crossing(variant: Rendering, row: Sequence[Rendering], request: BuildRequest) -> Rendering:
    """An output of a row, rendered so that its host environment is solved for the target platform."""
    single = alone(variant, row, request.recipe, {_KEY, *map(str, variant.variant)})
    used = {key: text_of(value) for key, value in dict(variant.variant).items()}
    values = {**request.values, **used, _KEY: request.target}
    platforms = Platform.parse(request.target), Platform.parse(request.builder)
    (rendered,) = render_row(single, request.name, values, *platforms)
    return rendered


def without_host_platform(package: Path, request: BuildRequest) -> None:
    """Restore the hash contents of a package in the private channel, without the key added for the engine."""
    from feedstock_tools.channel.packages.archive import replace_document
    from feedstock_tools.channel.packages.reading import read_hash_input

    contents = read_hash_input(package)
    if _KEY in contents and _KEY not in request.values:
        del contents[_KEY]
        replace_document(package, _HASH_INPUT, json.dumps(contents, sort_keys=True).encode())


def alone(
    variant: Rendering, row: Sequence[Rendering], recipe: Path, keys: Collection[str] = (), name: str = ""
) -> ParsedV1:
    """The recipe of one output of a row.

    Args:
        recipe: the recipe that was rendered: scripts and sources are found beside it.
        keys: variant keys that it must use.
        name: of the recipe; default that of the output.
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
        build["variant"] = {**(build.get("variant") or {}), "use_keys": sorted(keys)}
    content = _with_staging(content)
    if name:
        content["recipe"]["name"] = name
    return parse_v1(json.dumps(content), recipe)


def staging_alone(heir: Rendering, recipe: Path, name: str, keys: Collection[str] = ()) -> ParsedV1:
    """A recipe of the staging output that an output inherits from, and of a package without contents.

    Args:
        recipe, keys: as for `alone`.
        name: of the recipe and of that package.
    """
    content = heir.recipe.to_dict()
    staging = _staging_output(content["staging_caches"][0])
    build: dict[str, Any] = {
        "script": ":",
        "files": ["nothing"],
        **({"variant": {"use_keys": sorted(keys)}} if keys else {}),
    }
    package = {"name": name, "version": "0"}
    inherit = {"from": staging["staging"]["name"], "run_exports": False}
    common = {key: content[key] for key in ("schema_version", "context") if key in content}
    outputs = [staging, {"package": package, "build": build, "inherit": inherit}]
    return parse_v1(json.dumps({**common, "recipe": package, "outputs": outputs}), recipe)


def used_by_staging(
    heir: Rendering, recipe: Path, name: str, values: Mapping[str, str], target: Platform, builder: Platform
) -> dict[str, Any]:
    """The values of a row that the staging output of one of its outputs uses.

    Args:
        recipe: as for `alone`; the others as for `render_row`.

    Raises:
        InputError: it cannot be rendered by itself.
    """
    (rendered,) = render_row(staging_alone(heir, recipe, "staging"), name, values, target, builder)
    return dict(rendered.variant)


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
