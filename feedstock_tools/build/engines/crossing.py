"""The guard against a fault of the embedded engine: its cross builds solve for the machine that builds.

It takes the platform of the host environment from a variant key `host_platform` that an output uses, and from nowhere
else (docs/engine.md). To use it would change the hash, so each rendered output, its build string included, becomes a
recipe of its own that uses that key too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feedstock_tools.build.engines.contract import BuildRequest
from feedstock_tools.errors import InputError

if TYPE_CHECKING:
    from rattler_build import RenderedVariant

__all__ = ["crossing", "without_host_platform"]

_KEY = "host_platform"
_HASH_INPUT = "info/hash_input.json"


def crossing(variant: RenderedVariant, row: Sequence[RenderedVariant], request: BuildRequest) -> RenderedVariant:
    """An output of a row, rendered so that its host environment is solved for the platform that is built for."""
    from rattler_build import Stage0Recipe

    from feedstock_tools.build.promise import render_row
    from feedstock_tools.platforms import Platform
    from feedstock_tools.rerender.rows import Row

    content = variant.recipe.to_dict()
    siblings = {each.recipe.package.name: each.recipe for each in row}
    own = variant.recipe.package.name
    content["requirements"] = _plain(content.get("requirements") or {}, siblings, own)
    build = content.setdefault("build", {})
    build["variant"] = {**(build.get("variant") or {}), "use_keys": sorted({_KEY, *map(str, variant.variant)})}
    alone = Stage0Recipe.from_yaml(json.dumps(_whole(content)), recipe_dir=request.folder / "crossing")
    # Scripts and sources are found beside the recipe as it was written.
    alone._recipe_path = request.recipe
    values = {**request.values, **dict(variant.variant), _KEY: request.target}
    platforms = Platform.parse(request.target), Platform.parse(request.builder)
    (rendered,) = render_row(alone, Row(request.name, {key: str(value) for key, value in values.items()}), *platforms)
    return rendered


def _whole(content: dict[str, Any]) -> dict[str, Any]:
    """A rendered output as a recipe; one that inherits from staging outputs with these as outputs before it."""
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


def without_host_platform(package: Path, request: BuildRequest) -> None:
    """Let a package of the private channel say what its hash was made of, without the key that the engine was given.

    Raises:
        WorkError: the package cannot be read or written.
    """
    from feedstock_tools.channel.archive import read_documents, replace_document
    from feedstock_tools.channel.folder import index_channel

    contents = json.loads(read_documents(package, [_HASH_INPUT])[_HASH_INPUT] or b"{}")
    if _KEY in contents and _KEY not in request.values:
        del contents[_KEY]
        replace_document(package, _HASH_INPUT, json.dumps(contents, sort_keys=True).encode())
        index_channel(request.output, replaced=True)


def _plain(item: Any, siblings: Mapping[str, Any], own: str) -> Any:
    """Requirements with the pins in them as texts, which a recipe can hold."""
    if isinstance(item, list):
        return [_plain(each, siblings, own) for each in item]
    if not isinstance(item, dict):
        return item
    pin = item.get("pin_subpackage")
    if pin is None:
        return {key: _plain(each, siblings, own) for key, each in item.items()}
    if pin["name"] == own:
        bounds = ", ".join(f"{key}={value!r}" for key, value in pin.items() if key != "name")
        return f"${{{{ pin_subpackage({own!r}, {bounds}) }}}}"
    sibling = siblings[pin["name"]]
    if not pin.get("exact"):
        raise InputError(f"{own} pins {pin['name']} of the same recipe loosely, which a cross build here does not do")
    return f"{pin['name']} =={sibling.package.version} {sibling.build.string}"
