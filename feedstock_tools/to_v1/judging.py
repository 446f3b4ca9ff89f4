"""What conda-smithy says of a `recipe.yaml`, which it loads without variants and lints as loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.recipe.v1.loading import load_without_variants
from feedstock_tools.versions import InvalidVersionError, parse_version
from feedstock_tools.yaml_reading.nodes import compose, members

_NAME = re.compile(r"[a-z0-9_\-.]+")


def smithy_objections(text: str, path: Path) -> tuple[Mistake, ...]:
    """Why conda-smithy cannot load a recipe or lints its name or version, with the lines; empty if it accepts it.

    >>> text = 'package:\\n  name: a\\n  version: ${{ env.get("A", default="1") }}\\n'
    >>> [mistake.line for mistake in smithy_objections(text, Path("recipe.yaml"))]
    [3]
    """
    try:
        loaded = load_without_variants(text, path)
    except InputError as error:
        return error.mistakes
    return tuple(_of_names(loaded, text, path))


def _of_names(loaded: dict[str, object], text: str, path: Path) -> Iterator[Mistake]:
    section = "recipe" if "outputs" in loaded else "package"
    names = loaded.get(section)
    written = members(members(compose(text, path)).get(section))
    for key, value in names.items() if isinstance(names, dict) else ():
        shown = str(value).strip()
        if key in written and "${{" not in shown and not _is_valid(key, shown):
            line = written[key].start_mark.line + 1
            yield Mistake(f"conda-smithy's linter refuses the {key} '{shown}', as it loads it", path, line)


def _is_valid(key: str, value: str) -> bool:
    if key == "name":
        return bool(_NAME.fullmatch(value))
    try:
        parse_version(value)
    except InvalidVersionError:
        return False
    return True
