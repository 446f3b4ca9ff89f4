"""Calls in templates: methods of texts, pins, variables of the environment, and formatting."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import nodes

from feedstock_tools.to_v1.template.expressions import (
    Level,
    UntranslatableError,
    Writing,
    bare_text,
    is_environment,
    quoted,
)
from feedstock_tools.to_v1.template.names import OF_SCRIPTS, RENAMED

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


def formatted(writer: Writing, texts: Sequence[str], arguments: Sequence[nodes.Expr]) -> tuple[str, int]:
    if len(texts) != len(arguments) + 1 or any("%" in text or "{" in text for text in texts):
        raise UntranslatableError("this formatting of a text has no equivalent in rattler-build")
    parts = [quoted(texts[0])]
    for value, text in zip(arguments, texts[1:], strict=True):
        parts += [writer.text(bare_text(value), Level.FILTER), quoted(text)]
    return " ~ ".join(part for part in parts if part != '""'), Level.CONCAT


def part_of_split(writer: Writing, call: nodes.Call, place: nodes.Node) -> tuple[str, int]:
    """`rsplit(".", 1)[0]` and `rpartition(".")[0]`: the parts before the last; `partition(".")[0]`: the first."""
    assert isinstance(call.node, nodes.Getattr)  # noqa: S101 - the caller checks this
    name = call.node.attr
    counts = [argument.value for argument in call.args[1:] if isinstance(argument, nodes.Const)]
    index = place.value if isinstance(place, nodes.Const) else None
    indices = {"rsplit": {0, 1, -1}, "rpartition": {0, 2, -1}, "partition": {0}}[name]
    if index not in indices or counts != ([1] if name == "rsplit" else []):
        raise UntranslatableError(f"this '{name}' has no equivalent in rattler-build")
    separator = writer.text(call.args[0], Level.CONDITIONAL)
    parts = f"({writer.text(call.node.node, Level.FILTER)} | split({separator}))"
    if name == "partition":
        return f"{parts}[0]", Level.ATOM
    return (f"{parts}[:-1] | join({separator})" if index == 0 else f"{parts} | last"), Level.FILTER


def pin(writer: Writing, name: str, node: nodes.Call) -> str:
    bounds = {_PINS.get(keyword.key, keyword.key): keyword.value for keyword in node.kwargs}
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
        arguments = [writer.text(argument, Level.CONDITIONAL) for argument in node.args]
        arguments += [f"{keyword.key}={writer.text(keyword.value, Level.CONDITIONAL)}" for keyword in node.kwargs]
        return f"env.{attribute}({', '.join(arguments)})", Level.ATOM
    arguments = [writer.text(argument, Level.CONDITIONAL) for argument in node.args]
    if attribute == "get" and len(arguments) in {1, 2}:
        container, fallback = writer.text(owner, Level.ATOM), arguments[1] if len(arguments) > 1 else '""'
        return f"{container}[{arguments[0]}] if {arguments[0]} in {container} else {fallback}", Level.CONDITIONAL
    if attribute == "join" and len(arguments) == 1:
        return (
            f"{writer.text(node.args[0], Level.FILTER)} | join({writer.text(owner, Level.CONDITIONAL)})",
            Level.FILTER,
        )
    if attribute in {"startswith", "endswith"} and len(node.args) == 1:
        return _edge(writer, owner, attribute, node.args[0])
    if attribute == "format" and isinstance(owner, nodes.Const) and isinstance(owner.value, str):
        return formatted(writer, owner.value.split("{}"), node.args)
    if attribute == "replace" and len(arguments) in {2, 3}:
        return replaced(writer, owner, arguments)
    if attribute not in _METHODS:
        raise UntranslatableError(f"the method '{attribute}' has no equivalent in rattler-build")
    call = f"{_METHODS[attribute]}({', '.join(arguments)})" if arguments else _METHODS[attribute]
    return f"{writer.text(owner, Level.FILTER)} | {call}", Level.FILTER


def replaced(writer: Writing, owner: nodes.Expr, arguments: Sequence[str]) -> tuple[str, int]:
    """`replace`, by splitting if it has a count; rattler-build has ` =` before a compiler's version, not a space."""
    old, new, *count = arguments
    is_tool = isinstance(owner, nodes.Call) and isinstance(owner.node, nodes.Name) and owner.node.name in _TOOLS
    if is_tool and old == '" "':
        old = '" ="'
    start = writer.text(owner, Level.FILTER)
    if count:
        return f"{start} | split({old}, {count[0]}) | join({new})", Level.FILTER
    return f"{start} | replace({old}, {new})", Level.FILTER


def _edge(writer: Writing, owner: nodes.Expr, attribute: str, argument: nodes.Expr) -> tuple[str, int]:
    """`startswith` and `endswith`, written with slices."""
    texts = argument.items if isinstance(argument, nodes.Tuple) else [argument]
    comparisons = []
    for affix in texts:
        if not isinstance(affix, nodes.Const) or not isinstance(affix.value, str) or not affix.value:
            raise UntranslatableError(f"'{attribute}' with a computed text has no equivalent in rattler-build")
        size = len(affix.value)
        place = f":{size}" if attribute == "startswith" else f"-{size}:"
        comparisons.append(f"{writer.text(owner, Level.ATOM)}[{place}] == {quoted(affix.value)}")
    return " or ".join(comparisons), Level.OR if len(comparisons) > 1 else Level.COMPARE


def environment(writer: Writing, name: str, default: nodes.Expr | None) -> tuple[str, int]:
    """A variable of the environment, in which conda-build sets variants and values of its own."""
    if name in RENAMED or name in OF_SCRIPTS:
        return writer.name(name)
    if name in writer.names.always:
        return name, Level.ATOM
    fallback = '""' if default is None else writer.text(default, Level.CONDITIONAL)
    if name in writer.names.values or name == name.lower():
        return f"{name} | default({fallback})", Level.FILTER
    return f"env.get({quoted(name)}, default={fallback})", Level.ATOM
