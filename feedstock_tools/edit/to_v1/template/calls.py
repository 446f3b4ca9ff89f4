"""Calls in templates: methods of texts, pins, variables of the environment, and formatting."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import nodes

from feedstock_tools.edit.to_v1.template.expressions import (
    Level,
    UntranslatableError,
    Writing,
    bare_text,
    is_environment,
    quoted,
)
from feedstock_tools.edit.to_v1.template.names import OF_SCRIPTS, RENAMED

__all__ = ["environment", "formatted", "method_call", "part_of_split", "pin", "replaced"]

#: Methods of texts that are filters in minijinja.
_METHODS = {
    "replace": "replace",
    "split": "split",
    "upper": "upper",
    "lower": "lower",
    "strip": "trim",
    "title": "title",
    "capitalize": "capitalize",
}
_TOOLS = frozenset({"compiler", "stdlib"})
_PINS = {"min_pin": "lower_bound", "max_pin": "upper_bound"}


def formatted(writer: Writing, texts: Sequence[str], given: Sequence[nodes.Expr]) -> tuple[str, int]:
    if len(texts) != len(given) + 1 or any("%" in text or "{" in text for text in texts):
        raise UntranslatableError("this formatting of a text has no form for rattler-build")
    parts = [quoted(texts[0])]
    for value, text in zip(given, texts[1:], strict=True):
        parts += [writer.text(bare_text(value), Level.FILTER), quoted(text)]
    return " ~ ".join(part for part in parts if part != '""'), Level.CONCAT


def part_of_split(writer: Writing, call: nodes.Call, place: nodes.Node) -> tuple[str, int]:
    """`rsplit(".", 1)[0]` and `rpartition(".")[0]`: the parts before the last; `partition(".")[0]`: the first."""
    assert isinstance(call.node, nodes.Getattr)  # noqa: S101 - the caller has looked
    name = call.node.attr
    counts = [each.value for each in call.args[1:] if isinstance(each, nodes.Const)]
    at = place.value if isinstance(place, nodes.Const) else None
    ends = {"rsplit": {0, 1, -1}, "rpartition": {0, 2, -1}, "partition": {0}}[name]
    if at not in ends or counts != ([1] if name == "rsplit" else []):
        raise UntranslatableError(f"this '{name}' has no form for rattler-build")
    separator = writer.text(call.args[0], Level.CONDITIONAL)
    parts = f"({writer.text(call.node.node, Level.FILTER)} | split({separator}))"
    if name == "partition":
        return f"{parts}[0]", Level.ATOM
    return (f"{parts}[:-1] | join({separator})" if at == 0 else f"{parts} | last"), Level.FILTER


def pin(writer: Writing, name: str, node: nodes.Call) -> str:
    bounds = {_PINS.get(each.key, each.key): each.value for each in node.kwargs}
    order = ("min_pin", "max_pin", "exact") if name == "pin_subpackage" else ("lower_bound", "upper_bound")
    for key, value in zip(order, node.args[1:], strict=False):
        bounds.setdefault(_PINS.get(key, key), value)
    parts = [writer.text(node.args[0], Level.CONDITIONAL)] if node.args else []
    for key, value in bounds.items():
        parts.append(f"{key}={writer.text(value, Level.CONDITIONAL)}")
    return f"{name}({', '.join(parts)})"


def method_call(writer: Writing, node: nodes.Call, method: nodes.Getattr) -> tuple[str, int]:
    owner, attribute = method.node, method.attr
    if attribute in {"get", "getenv"} and is_environment(owner) and node.args:
        if isinstance(node.args[0], nodes.Const):
            return environment(writer, str(node.args[0].value), node.args[1] if len(node.args) > 1 else None)
        raise UntranslatableError("a computed name of a variable of the environment")
    if isinstance(owner, nodes.Name) and owner.name == "env":
        given = [writer.text(each, Level.CONDITIONAL) for each in node.args]
        given += [f"{each.key}={writer.text(each.value, Level.CONDITIONAL)}" for each in node.kwargs]
        return f"env.{attribute}({', '.join(given)})", Level.ATOM
    given = [writer.text(each, Level.CONDITIONAL) for each in node.args]
    if attribute == "get" and len(given) in {1, 2}:
        container, fallback = writer.text(owner, Level.ATOM), given[1] if len(given) > 1 else '""'
        return f"{container}[{given[0]}] if {given[0]} in {container} else {fallback}", Level.CONDITIONAL
    if attribute == "join" and len(given) == 1:
        return (
            f"{writer.text(node.args[0], Level.FILTER)} | join({writer.text(owner, Level.CONDITIONAL)})",
            Level.FILTER,
        )
    if attribute in {"startswith", "endswith"} and len(node.args) == 1:
        return _edge(writer, owner, attribute, node.args[0])
    if attribute == "format" and isinstance(owner, nodes.Const) and isinstance(owner.value, str):
        return formatted(writer, owner.value.split("{}"), node.args)
    if attribute == "replace" and len(given) in {2, 3}:
        return replaced(writer, owner, given)
    if attribute not in _METHODS:
        raise UntranslatableError(f"the method '{attribute}' has no form for rattler-build")
    call = f"{_METHODS[attribute]}({', '.join(given)})" if given else _METHODS[attribute]
    return f"{writer.text(owner, Level.FILTER)} | {call}", Level.FILTER


def replaced(writer: Writing, owner: nodes.Expr, given: Sequence[str]) -> tuple[str, int]:
    """`replace`, with a number of times by parts; rattler-build has ` =` before a compiler's version, not a space."""
    old, new, *times = given
    is_tool = isinstance(owner, nodes.Call) and isinstance(owner.node, nodes.Name) and owner.node.name in _TOOLS
    if is_tool and old == '" "':
        old = '" ="'
    start = writer.text(owner, Level.FILTER)
    if times:
        return f"{start} | split({old}, {times[0]}) | join({new})", Level.FILTER
    return f"{start} | replace({old}, {new})", Level.FILTER


def _edge(writer: Writing, owner: nodes.Expr, attribute: str, given: nodes.Expr) -> tuple[str, int]:
    """`startswith` and `endswith`, by slices."""
    texts = given.items if isinstance(given, nodes.Tuple) else [given]
    comparisons = []
    for each in texts:
        if not isinstance(each, nodes.Const) or not isinstance(each.value, str) or not each.value:
            raise UntranslatableError(f"'{attribute}' with a computed text has no form for rattler-build")
        size = len(each.value)
        place = f":{size}" if attribute == "startswith" else f"-{size}:"
        comparisons.append(f"{writer.text(owner, Level.ATOM)}[{place}] == {quoted(each.value)}")
    return " or ".join(comparisons), Level.OR if len(comparisons) > 1 else Level.COMPARE


def environment(writer: Writing, name: str, default: nodes.Expr | None) -> tuple[str, int]:
    """conda-build shows variants, and values of its own, as variables of the environment."""
    if name in RENAMED or name in OF_SCRIPTS:
        return writer.name(name)
    if name in writer.names.always:
        return name, Level.ATOM
    given = '""' if default is None else writer.text(default, Level.CONDITIONAL)
    if name in writer.names.values or name == name.lower():
        return f"{name} | default({given})", Level.FILTER
    return f"env.get({quoted(name)}, default={given})", Level.ATOM
