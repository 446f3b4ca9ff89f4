"""The process that makes the environments for `--debug`, with the engine's own debug session."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feedstock_tools.build.engines.contract import BuildRequest

if TYPE_CHECKING:
    from rattler_build import RenderedVariant, Stage0Recipe, Stage1Recipe

__all__ = ["main"]


def main(request_file: str) -> int:
    """Set up the first wanted output of a request; the folders go to standard output, as JSON, on the last line."""
    from rattler_build import DebugSession, RattlerBuildError

    from feedstock_tools.build.promise import read_recipe, render_row
    from feedstock_tools.errors import FeedstockError
    from feedstock_tools.platforms import Platform
    from feedstock_tools.rerender.rows import Row

    request = BuildRequest.from_json(json.loads(Path(request_file).read_text(encoding="utf-8")))
    platforms = Platform.parse(request.target), Platform.parse(request.builder)
    row = Row(request.name, request.values)
    try:
        rendered = render_row(read_recipe(request.recipe), row, *platforms)
        variant = next(each for each in rendered if each.recipe.package.name == request.wanted[0])
        alone = _alone(variant, {each.recipe.package.name: each.recipe for each in rendered}, request)
        (single,) = render_row(alone, row, *platforms)
        session = DebugSession.create(single, output_dir=request.output, channels=list(request.channels))
    except (FeedstockError, RattlerBuildError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    paths = {
        "work": session.paths.work_dir,
        "host prefix": session.paths.host_prefix,
        "build prefix": session.paths.build_prefix,
        "build script": session.paths.build_script,
    }
    sys.stdout.write("\n" + json.dumps({name: str(path) for name, path in paths.items()}) + "\n")
    return 0


def _alone(variant: RenderedVariant, siblings: Mapping[str, Stage1Recipe], request: BuildRequest) -> Stage0Recipe:
    """The output as a recipe of its own, with its siblings named by version and build string.

    The engine's debug session does not know the siblings of an output, and refuses one that pins them (docs/engine.md).
    """
    from rattler_build import Stage0Recipe

    content = variant.recipe.to_dict()
    content["requirements"] = {
        section: [_plain(item, siblings) for item in items] if isinstance(items, list) else items
        for section, items in (content.get("requirements") or {}).items()
        if section != "run_exports"
    }
    recipe = Stage0Recipe.from_yaml(json.dumps(content), recipe_dir=request.folder / "alone")
    recipe._recipe_path = request.recipe
    return recipe


def _plain(item: Any, siblings: Mapping[str, Stage1Recipe]) -> Any:
    pin = item.get("pin_subpackage") if isinstance(item, dict) else None
    if not pin:
        return item
    sibling = siblings[pin["name"]]
    return f"{pin['name']} =={sibling.package.version} {sibling.build.string}"
