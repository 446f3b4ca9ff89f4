"""The variables that a `recipe.yaml` mentions anywhere, in branches that are taken and in those that are not.

Until 0.57 rattler-build counted all of them as used; since then it counts those that rendering really read. Its rules
are followed, gaps included: attributes and items of variables do not count, nor arguments of most functions.
(rattler-build 0.54, src/used_variables.rs.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import nodes

_OPENING, _CLOSING = "${{", "}}"


def mentioned_variables(recipe: Any) -> Mapping[str | None, frozenset[str]]:
    """The variables that each output mentions, the top level of the recipe included.

    Args:
        recipe: the recipe as plain YAML (all strings).

    Returns:
        output name -> variables; under None those of outputs whose name is a template, and of a recipe without outputs.
    """
    if not isinstance(recipe, dict):
        return {None: frozenset()}
    outputs = recipe.get("outputs")
    if not isinstance(outputs, list):
        return {None: frozenset(_in_part(recipe))}
    common = frozenset(_in_part({key: value for key, value in recipe.items() if key != "outputs"}))
    found: dict[str | None, frozenset[str]] = {None: common}
    for output in outputs:
        package = output.get("package") if isinstance(output, dict) else None
        name = package.get("name") if isinstance(package, dict) else None
        output_name = name if isinstance(name, str) and _OPENING not in name else None
        found[output_name] = found.get(output_name, common) | frozenset(_in_part(output))
    return found


def _in_part(part: Any) -> Iterator[str]:
    yield from _in_texts(part)
    build = part.get("build") if isinstance(part, dict) else None
    skip = build.get("skip") if isinstance(build, dict) else None
    for condition in skip if isinstance(skip, list) else [skip]:
        if isinstance(condition, str):
            yield from _in_expression(condition)


def _in_texts(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "if" and isinstance(value, str):
                yield from _in_expression(value)
            else:
                yield from _in_texts(value)
    elif isinstance(node, list):
        for item in node:
            yield from _in_texts(item)
    elif isinstance(node, str) and _OPENING in node:
        for part in node.split(_OPENING)[1:]:
            expression, closed, _ = part.partition(_CLOSING)
            if closed:
                yield from _in_expression(expression)


def _in_expression(text: str) -> Iterator[str]:
    from jinja2 import Environment, TemplateSyntaxError, nodes

    try:
        tree = Environment(autoescape=True).parse("{{ " + text + " }}")
    except (TemplateSyntaxError, RecursionError):
        return
    for output in tree.find_all(nodes.Output):
        for node in output.nodes:
            yield from _variables(node)


def _variables(node: nodes.Node | None) -> Iterator[str]:
    from jinja2 import nodes

    if isinstance(node, nodes.Name):
        yield node.name
    elif isinstance(node, nodes.Test | nodes.Filter | nodes.UnaryExpr):
        yield from _variables(node.node)
    elif isinstance(node, nodes.BinExpr):
        yield from _variables(node.left)
        yield from _variables(node.right)
    elif isinstance(node, nodes.Concat):
        for part in node.nodes:
            yield from _variables(part)
    elif isinstance(node, nodes.Compare):
        yield from _variables(node.expr)
        for operand in node.ops:
            yield from _variables(operand.expr)
    elif isinstance(node, nodes.CondExpr):
        for branch in (node.test, node.expr1, node.expr2):
            yield from _variables(branch)
    elif isinstance(node, nodes.Call) and isinstance(node.node, nodes.Name) and node.args:
        yield from _in_call(node.node.name, node.args)


def _in_call(function: str, arguments: list[nodes.Expr]) -> Iterator[str]:
    from jinja2 import nodes

    first = arguments[0]
    if function in ("compiler", "stdlib"):
        if isinstance(first, nodes.Const):
            yield f"{first.value}_{function}"
            yield f"{first.value}_{function}_version"
    elif function == "cdt":
        yield from ("cdt_name", "cdt_arch")
    elif function in ("pin_subpackage", "pin_compatible"):
        yield from _variables(first)
    elif function == "match":
        for argument in arguments[:2]:
            yield from _variables(argument)
