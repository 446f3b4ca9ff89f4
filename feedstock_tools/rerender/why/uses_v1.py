"""Which lines of a recipe.yaml mention a key, for each output, in branches that are taken.

py-rattler-build reports which keys an output uses, but not where, so this module finds the lines: in
expressions, conditions, bare requirements, and `variant: use_keys`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.rerender.why.model import Place, Use
from feedstock_tools.variants.namespace import Namespace
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import holds
from feedstock_tools.yaml_reading.nodes import compose, items, members, pairs

_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")
_BARE = re.compile(r"[A-Za-z_][\w.\-]*")
_WHY = {
    "compiler": "compiler() takes the compiler's name and version from it",
    "stdlib": "stdlib() takes the C library's name and version from it",
    "cdt": "cdt() uses it",
    "condition": "a condition uses it",
    "skip": "a condition for skipping uses it",
    "expression": "an expression uses it",
    "requirement": "it is a requirement without a version, which gets the variant's",
    "use_keys": "the recipe says that it counts as used",
}
_CALLS = {"compiler": ("{}_compiler", "{}_compiler_version"), "stdlib": ("{}_stdlib", "{}_stdlib_version")}


@dataclass(frozen=True)
class _Mention:
    """A line that mentions keys, the output that it belongs to (None: all), and the conditions that apply to it."""

    kind: str
    line: int
    keys: frozenset[str]
    output: str | None
    conditions: tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class YamlUses:
    """Finds the lines of a recipe.yaml that mention a key.

    `all_branches`: branches that are not taken count, as with rattler-build until 0.57.
    """

    path: Path
    text: str
    subdir: str
    all_branches: bool = False
    _holds: dict[tuple[str, int], bool | None] = field(default_factory=dict)

    def of(self, key: str, outputs: Iterable[RenderedOutput]) -> Iterator[Use]:
        """The uses of `key` by the outputs that use it."""
        users = [output for output in outputs if key in output.used.own]
        texts = self.text.splitlines()
        for mention in self._mentions:
            if key not in mention.keys:
                continue
            names = {
                output.name: None
                for output in users
                if mention.output in (None, output.name) and self._is_reached(mention, output)
            }
            if names:
                place = Place(self.path, mention.line, texts[mention.line - 1].strip())
                yield Use(mention.kind, _WHY[mention.kind], place, tuple(sorted(names)))

    def _is_reached(self, mention: _Mention, output: RenderedOutput) -> bool:
        return self.all_branches or all(
            self._condition(text, output) in (None, wanted) for text, wanted in mention.conditions
        )

    def _condition(self, text: str, output: RenderedOutput) -> bool | None:
        """Whether a condition holds for an output; None if only the engine can tell."""
        key = (text, id(output))
        if key not in self._holds:
            namespace = Namespace(self.subdir, self.subdir, output.variant, {}, CondaBuildRules())
            is_known = all(name in namespace for name in _names(text))
            self._holds[key] = holds(text, namespace) if is_known else None
        return self._holds[key]

    @cached_property
    def _mentions(self) -> tuple[_Mention, ...]:
        node = compose(self.text, self.path)
        mentions = dict.fromkeys(_Walk(self.text.splitlines()).node(node, (), None, ()))
        return tuple(sorted(mentions, key=lambda mention: (mention.line, mention.kind)))


Keys = tuple[str, ...]
Conditions = tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class _Walk:
    """Walks a recipe's nodes with the path of keys to them."""

    lines: list[str]

    def node(self, node: Any, keys: Keys, output: str | None, conditions: Conditions) -> Iterator[_Mention]:
        """The mentions in a node and below."""
        if node is not None and node.id == "scalar":
            yield from self._scalar(node, keys, output, conditions)
        elif pairs(node):
            yield from self._mapping(node, keys, output, conditions)
        for item in items(node):
            name = _output_name(item) if keys == ("outputs",) else output
            yield from self.node(item, keys, name, conditions)

    def _mapping(self, node: Any, keys: Keys, output: str | None, conditions: Conditions) -> Iterator[_Mention]:
        inside = members(node)
        condition = str(inside["if"].value) if "if" in inside else None
        for key, value in pairs(node):
            if condition is None:
                yield from self.node(value, (*keys, key.value), output, conditions)
            elif key.value == "if":
                names = _names(condition)
                yield _Mention("condition", value.start_mark.line + 1, names, output, conditions)
            else:
                yield from self.node(value, keys, output, (*conditions, (condition, key.value == "then")))

    def _scalar(self, node: Any, keys: Keys, output: str | None, conditions: Conditions) -> Iterator[_Mention]:
        first = node.start_mark.line
        last = max(first, node.end_mark.line - (node.end_mark.column == 0))
        text = str(node.value)
        if keys[-1:] == ("skip",) and "${{" not in text:
            yield _Mention("skip", first + 1, _names(text), output, conditions)
        elif keys[-1:] == ("use_keys",):
            yield _Mention("use_keys", first + 1, frozenset({text}), output, conditions)
        elif "requirements" in keys and keys[-1] in ("build", "host") and _BARE.fullmatch(text.strip()):
            key = text.strip().replace("-", "_")
            yield _Mention("requirement", first + 1, frozenset({key}), output, conditions)
        for number in range(first, min(last + 1, len(self.lines))):
            for match in _EXPRESSION.finditer(self.lines[number]):
                for kind, names in _in_expression(match.group(1)):
                    yield _Mention(kind, number + 1, names, output, conditions)


def _output_name(node: Any) -> str | None:
    output = members(node)
    package = members(output.get("package") or output.get("staging"))
    name = package.get("name")
    value = "" if name is None else str(name.value)
    return None if not value or "${{" in value else value


def _in_expression(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    called: set[str] = set()
    for call, language in re.findall(r"\b(compiler|stdlib)\(\s*[\"']([\w\-]+)[\"']", text):
        names = frozenset(form.format(language.replace("-", "_")) for form in _CALLS[call])
        called |= names
        yield call, names
    if re.search(r"\bcdt\(", text):
        yield "cdt", frozenset({"cdt_name", "cdt_arch"})
    yield "expression", _names(text) - called


def _names(text: str) -> frozenset[str]:
    """The names of an expression: words that are neither quoted nor attributes nor keywords."""
    bare = re.sub(r"\"[^\"]*\"|'[^']*'", lambda quoted: " " * len(quoted.group()), text)
    words = frozenset(re.findall(r"(?<![\w.])[A-Za-z_]\w*", bare)) - {"and", "or", "not", "in", "is", "if", "else"}
    # pin_subpackage("libtorch") and pin_compatible("numpy") name the pinned package in quotes
    pinned = re.findall(r"\bpin_\w+\(\s*[\"']([\w.\-]+)[\"']", text)
    return words | frozenset(name.replace("-", "_") for name in pinned)
