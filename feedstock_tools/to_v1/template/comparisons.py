"""Comparisons in templates and selectors: versions of Python, numbers in variants, and values in lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jinja2 import nodes

from feedstock_tools.to_v1.template.expressions import (
    Level,
    UntranslatableError,
    Writing,
    constant,
    is_environment,
    is_nothing,
)

_OPERATORS = {"eq": "==", "ne": "!=", "lt": "<", "lteq": "<=", "gt": ">", "gteq": ">=", "in": "in", "notin": "not in"}
_MIRRORED = {"lt": "gt", "gt": "lt", "lteq": "gteq", "gteq": "lteq"}


def compare(writer: Writing, node: nodes.Compare) -> tuple[str, int]:
    if len(node.ops) != 1:
        parts = []
        left: nodes.Expr = node.expr
        for operand in node.ops:
            parts.append(_compared(writer, left, operand.op, operand.expr))
            left = operand.expr
        return " and ".join(parts), Level.AND
    return _compared(writer, node.expr, node.ops[0].op, node.ops[0].expr), Level.COMPARE


def _compared(writer: Writing, left: nodes.Expr, operator: str, right: nodes.Expr) -> str:
    if isinstance(left, nodes.Const) and isinstance(right, nodes.Name) and operator in {"eq", "ne", *_MIRRORED}:
        left, right, operator = right, left, _MIRRORED.get(operator, operator)
    name = left.name if isinstance(left, nodes.Name) else ""
    if operator in {"in", "notin"} and is_environment(right) and isinstance(left, nodes.Const):
        return f"{'' if operator == 'in' else 'not '}env.exists({constant(left.value)})"
    if name in {"py", "np"} and name not in writer.own and not writer.is_done:
        return _python(writer, name, operator, right)
    if isinstance(right, nodes.Tuple | nodes.List) and operator in {"in", "notin"}:
        return _in(writer, left, operator, right)
    if name and writer.is_variant(name) and writer.selector and isinstance(right, nodes.Const):
        if isinstance(right.value, bool) and operator in {"eq", "ne"}:
            return f"{writer.text(left, Level.CONCAT)} {_OPERATORS[operator]} {constant(right.value)}"
        if isinstance(right.value, int):
            return _numbered(writer, left, name, operator, right.value)
    if name in writer.names.values and isinstance(right, nodes.Const) and operator in {"eq", "ne"}:
        text = str(right.value).lower() if isinstance(right.value, bool) else right.value
        if text in {"true", "false"} and text in writer.names.values[name]:
            # Texts in variant files that rattler-build takes for truth values.
            return f'{writer.text(left, Level.CONCAT)} {"in" if operator == "eq" else "not in"} ({text}, "{text}")'
    if is_nothing(right) and operator in {"eq", "ne"}:
        if name in writer.names.always and writer.is_variant(name):
            return "false" if operator == "eq" else "true"  # values of variants are texts
        return f'{writer.text(left, Level.CONCAT)} {_OPERATORS[operator]} ""'
    return f"{writer.text(left, Level.CONCAT)} {_OPERATORS[operator]} {writer.text(right, Level.CONCAT)}"


def _numbered(writer: Writing, left: nodes.Expr, name: str, operator: str, value: int) -> str:
    """A variant compared with a number: its values are texts to rattler-build."""
    if operator in {"eq", "ne"}:
        return f'{writer.text(left, Level.CONCAT)} {_OPERATORS[operator]} "{value}"'
    if name in writer.names.always and writer.names.are_numbers(name):
        return f"{name} | int {_OPERATORS[operator]} {value}"
    default = "" if name in writer.names.always else " | default(0)"
    return f"{name}{default} | int {_OPERATORS[operator]} {value}"


def _python(writer: Writing, name: str, operator: str, right: nodes.Expr) -> str:
    """`py < 39` as a match of versions."""
    key = "python" if name == "py" else "numpy"
    if isinstance(right, nodes.Tuple | nodes.List) and operator in {"in", "notin"}:
        comparisons = [_python(writer, name, "eq", item) for item in right.items]
        comparison = f"({' or '.join(comparisons)})"
        return comparison if operator == "in" else f"not {comparison}"
    if not isinstance(right, nodes.Const) or not isinstance(right.value, int) or operator not in _OPERATORS:
        raise UntranslatableError(f"'{name}' is compared with something that is not a number")
    digits = str(right.value)
    version = f"{digits[0]}.{digits[1:] or '0'}"
    if operator == "eq":
        return f'match({key}, "{version}.*")'
    if operator == "ne":
        return f'not match({key}, "{version}.*")'
    if operator in {"gt", "lteq"}:  # 3.12.1 is not later than 312
        version = f"{digits[0]}.{int(digits[1:] or 0) + 1}"
        operator = {"gt": "gteq", "lteq": "lt"}[operator]
    return f'match({key}, "{_OPERATORS[operator]}{version}")'


def _in(writer: Writing, left: nodes.Expr, operator: str, right: nodes.Tuple | nodes.List) -> str:
    """Membership; variants are texts, so values of other types cannot be equal to them."""
    items = list(right.items)
    if isinstance(left, nodes.Name) and writer.is_variant(left.name):
        items = list(_of_variant(writer, left.name, items))
    texts = [writer.text(item, Level.CONDITIONAL) for item in items]
    if len(texts) == 1:
        return f"{writer.text(left, Level.CONCAT)} {'==' if operator == 'in' else '!='} {texts[0]}"
    return f"{writer.text(left, Level.CONCAT)} {_OPERATORS[operator]} ({', '.join(texts)})"


def _of_variant(writer: Writing, key: str, items: Sequence[nodes.Expr]) -> Iterator[nodes.Expr]:
    """The items that a value of a variant can be equal to: texts, and what rattler-build makes of some of them."""
    absent = False
    known = writer.names.values.get(key, frozenset())
    for item in items:
        if is_nothing(item):
            absent = True
        elif not isinstance(item, nodes.Const):
            yield item
        elif isinstance(item.value, str):
            if item.value in {"true", "false"} and item.value in known:
                yield nodes.Const(item.value == "true")
            yield item
        elif writer.selector:
            yield item if isinstance(item.value, bool) else nodes.Const(str(item.value))
    if absent and key not in writer.names.always:
        yield nodes.Const("")
