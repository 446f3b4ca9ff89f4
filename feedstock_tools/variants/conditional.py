"""Read the `variants.yaml` beside a `recipe.yaml`: lists of values with `if`, `then` and `else`.

(rattler_build_conda_compat/loader.py: parse_recipe_config_file.) Unlike `conda_build_config.yaml` it is typed: an
unquoted whole number stays one, even in `.ci_support`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import LARGEST_SETTINGS, read_text
from feedstock_tools.variants.files import config_of
from feedstock_tools.variants.model import VariantConfig, WholeNumber
from feedstock_tools.variants.namespace import Namespace
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import INVALID, evaluate
from feedstock_tools.yaml_reading.nodes import compose, is_mapping, items, members, pairs, place_of

_WHOLE = re.compile(r"[-+]?[0-9]+")
_FLAGS = {word: word.lower() for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})


def load_conditional(
    path: Path,
    platform: Platform,
    *,
    environ: Mapping[str, str] | None = None,
    rules: CondaBuildRules | None = None,
    within: Path | None = None,
) -> VariantConfig:
    """Read a `variants.yaml` for `platform`.

    Args:
        environ: the environment variables that conditions may read; never this process's.
        within: the folder that no link may lead out of, as for `reading.open_file`.

    Raises:
        InputError: it cannot be read, a condition is invalid, or a value is neither plain nor a list of plain values.
    """
    document = compose(read_text(path, LARGEST_SETTINGS, within=within), path)
    if document is None:
        return VariantConfig({})
    if not is_mapping(document):
        raise InputError("must be a mapping of keys to values", path=path)
    namespace = Namespace(platform.subdir, platform.subdir, {}, environ or {}, rules or CondaBuildRules())
    reader = _Reader(path, namespace)
    content, lines = {}, {}
    for key, value in pairs(document):
        read = reader.value(value)
        if read != []:
            content[str(key.value)] = _flat(read)
            lines[str(key.value)] = place_of(key).line
    return config_of(content, path, lines)


def _flat(value: Any) -> Any:
    """Lists of lists become one list, of `zip_keys` too: there are no two groups in such a file."""
    if isinstance(value, dict):
        return {key: _flat(item) for key, item in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], list):
        return [item for part in value for item in (part if isinstance(part, list) else [part])]
    return value


class _Reader:
    """Turns YAML's nodes into strings, lists and mappings, taking the branches whose conditions hold."""

    def __init__(self, path: Path, namespace: Namespace) -> None:
        self.path = path
        self.namespace = namespace

    def value(self, node: Any) -> Any:
        if node.id == "mapping":
            return {str(key.value): self.value(item) for key, item in pairs(node)}
        if node.id == "sequence":
            return list(self._items(node))
        return self._scalar(node)

    def _scalar(self, node: Any) -> str:
        text = str(node.value)
        if node.style:
            return text
        if text in _NOTHING:
            raise self._fail(node, "a value is missing")
        if _WHOLE.fullmatch(text):
            return WholeNumber(int(text)) if len(text) < 1000 else text
        return _FLAGS.get(text, text)

    def _items(self, node: Any) -> Iterator[Any]:
        """The items of a list (or a single item in its place), with conditions resolved."""
        for item in items(node) if node.id == "sequence" else (node,):
            inside = members(item)
            if "if" not in inside:
                yield self.value(item)
                continue
            branch = inside.get("then" if self._holds(inside["if"]) else "else")
            if branch is not None:
                yield from self._items(branch)

    def _holds(self, node: Any) -> bool:
        try:
            return evaluate(str(node.value), self.namespace)
        except INVALID as error:
            raise self._fail(node, f"the condition '{node.value}' cannot be evaluated: {error}") from error

    def _fail(self, node: Any, message: str) -> InputError:
        place = place_of(node)
        return InputError(message, path=self.path, line=place.line, column=place.column)
