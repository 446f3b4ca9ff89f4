"""Read the `variants.yaml` beside a `recipe.yaml`: lists of values with `if`, `then` and `else`.

(rattler_build_conda_compat/loader.py: parse_recipe_config_file.) Unlike `conda_build_config.yaml` it is typed: a whole
number without quotes stays one, as far as into `.ci_support`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.variants.load import config_of
from feedstock_tools.variants.model import VariantConfig, WholeNumber
from feedstock_tools.variants.namespace import Namespace
from feedstock_tools.variants.read import LARGEST_SETTINGS, parse_plain_yaml, read_text
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import evaluate

__all__ = ["load_conditional"]

_WHOLE = re.compile(r"[-+]?[0-9]+")
_FLAGS = {word: word.lower() for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})


def load_conditional(
    path: Path, platform: Platform, *, environ: Mapping[str, str] | None = None, rules: CondaBuildRules | None = None
) -> VariantConfig:
    """Read a `variants.yaml` as it holds for `platform`.

    Args:
        environ: the environment variables that conditions may look at; never this process's.

    Raises:
        InputError: it cannot be read, a condition is wrong, or a value is neither plain nor a list of plain values.
    """
    import yaml

    text = read_text(path, LARGEST_SETTINGS)
    parse_plain_yaml(text, path)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = yaml.compose(text, Loader=loader)
    if document is None:
        return VariantConfig({})
    if not isinstance(document, yaml.MappingNode):
        raise InputError("is to be a mapping of keys to values", path=path)
    namespace = Namespace(platform.subdir, platform.subdir, {}, environ or {}, rules or CondaBuildRules())
    reader = _Reader(path, namespace)
    content, lines = {}, {}
    for key, value in document.value:
        found = reader.value(value)
        if found != []:
            content[str(key.value)] = _flat(found)
            lines[str(key.value)] = key.start_mark.line + 1
    return config_of(content, path, lines)


def _flat(value: Any) -> Any:
    """Lists of lists become one list, of `zip_keys` too: there are no two groups in such a file."""
    if isinstance(value, dict):
        return {key: _flat(item) for key, item in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], list):
        return [item for part in value for item in (part if isinstance(part, list) else [part])]
    return value


class _Reader:
    """Turns YAML's nodes into texts, lists and mappings, taking the branches whose conditions hold."""

    def __init__(self, path: Path, namespace: Namespace) -> None:
        self.path = path
        self.namespace = namespace

    def value(self, node: Any) -> Any:
        import yaml

        if isinstance(node, yaml.MappingNode):
            return {str(key.value): self.value(item) for key, item in node.value}
        if isinstance(node, yaml.SequenceNode):
            return list(self._items(node))
        return self._scalar(node)

    def _scalar(self, node: Any) -> str:
        text = str(node.value)
        if node.style:
            return text
        if text in _NOTHING:
            raise self._fail(node, "there is a value missing")
        if _WHOLE.fullmatch(text):
            return WholeNumber(int(text)) if len(text) < 1000 else text
        return _FLAGS.get(text, text)

    def _items(self, node: Any) -> Iterator[Any]:
        """The items of a list (or the one item that stands for it), with conditions resolved."""
        import yaml

        for item in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            members = {key.value: value for key, value in item.value} if isinstance(item, yaml.MappingNode) else {}
            if "if" not in members:
                yield self.value(item)
                continue
            branch = members.get("then" if self._holds(members["if"]) else "else")
            if branch is not None:
                yield from self._items(branch)

    def _holds(self, node: Any) -> bool:
        try:
            return bool(evaluate(str(node.value), self.namespace))
        except (
            ValueError,
            TypeError,
            SyntaxError,
            ArithmeticError,
            LookupError,
            AttributeError,
            RecursionError,
        ) as error:
            raise self._fail(node, f"the condition '{node.value}' cannot be computed: {error}") from error

    def _fail(self, node: Any, message: str) -> InputError:
        mark = node.start_mark
        return InputError(message, path=self.path, line=mark.line + 1, column=mark.column + 1)
