"""Expressions of conda-build's templates and selectors, written as expressions of rattler-build.

minijinja has filters where Python has methods, refuses names that are undefined, and compares values by type;
conda-build's selectors know Python's version as the number `py`, and read numbers out of variants.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

from feedstock_tools.conditions.spec import as_match
from feedstock_tools.conditions.tree import Match, VersionTest, compared
from feedstock_tools.to_v1.expressions import (
    OF_SCRIPTS,
    PLATFORMS,
    RENAMED,
    Level,
    Names,
    UntranslatableError,
    bare_text,
    constant,
    is_environment,
    is_nothing,
    is_text,
    names_in,
    parsed,
    quoted,
    text_parts,
)
from feedstock_tools.variants.selectors import DEFAULT_VARIANT

#: Those of Jinja that the engine has as well.
FILTERS = frozenset(
    {"replace", "split", "upper", "lower", "trim", "int", "default", "join", "first", "last"}
    | {"length", "list", "sort", "reverse", "unique", "min", "max", "version_to_buildstring", "abs"}
)
_FILTER_NAMES = {"count": "length", "d": "default"}
_FUNCTIONS = frozenset({"compiler", "stdlib", "cdt", "match", "pin_subpackage", "pin_compatible"})
#: Functions of Python that are filters in Jinja.
_CASTS = {"int": "int", "float": "float", "str": "string"}
_OLD_PYTHON = re.compile(r"py(\d)(\d+)")
_OWN_NAMES = frozenset({"hash", "build_number", "python", "numpy"})
#: Methods that give the parts of a text.
_SPLITTING = frozenset({"rsplit", "rpartition", "partition"})
#: The names that are the first two parts of a version, as digits.
_DIGITS = {name: f'({key} | split("."))[:2] | join("")' for name, key in (("py", "python"), ("np", "numpy"))}
_DEEPEST = 200
_IN_RECIPE = re.compile(r"\$\{\{\s*(.*?)\s*\}\}", re.DOTALL)


def translated(expression: str, names: Names, own: frozenset[str] = frozenset(), *, selector: bool = False) -> str:
    """An expression of a `meta.yaml` as one of a `recipe.yaml`; one that already is comes back unchanged.

    Args:
        own: variables of the recipe, which are always defined.
        selector: it is a selector, which sees numbers and truth values in variants.

    >>> translated("version.split('.')[0]", Names(), frozenset({"version"}))
    '(version | split("."))[0]'
    >>> translated("py >= 310 and not win", Names(), selector=True)
    'match(python, ">=3.10") and not win'
    """
    writer = Writer(names, own, selector)
    node = parsed(expression)
    return writer.condition(node, Level.CONDITIONAL) if selector else writer.text(node, Level.CONDITIONAL)


def written(node: nodes.Expr, names: Names, own: frozenset[str] = frozenset(), *, selector: bool = False) -> str:
    """As `translated`, for a tree."""
    return Writer(names, own, selector).text(node, Level.CONDITIONAL)


def rewritten(node: nodes.Expr) -> str:
    """The text of a tree that is an expression of rattler-build already."""
    return Writer(Names(), frozenset(), selector=False, is_done=True).text(node, Level.CONDITIONAL)


class _Defaulted(NodeTransformer):
    """Gives a default to names that are filtered or indexed and not `known`: conda-smithy loads without variants."""

    def __init__(self, known: Collection[str]) -> None:
        self.known = known
        self.is_changed = False

    def visit(self, node: nodes.Node) -> Any:
        self.generic_visit(node)
        if isinstance(node, nodes.Getitem) or (isinstance(node, nodes.Filter) and node.name in {"split", "int"}):
            owner = node.node
            if isinstance(owner, nodes.Name) and owner.name not in self.known and owner.name not in PLATFORMS:
                node.node = nodes.Filter(owner, "default", [nodes.Const("None")], [], None, None)
                self.is_changed = True
        return node


def with_defaults(known: Collection[str], place: str, text: str) -> str:
    """A text of a recipe whose templates do not filter or index names that are undefined without variants.

    >>> with_defaults((), ".package.name", 'x${{ cuda_version[:2] }}')
    'x${{ (cuda_version | default("None"))[:2] }}'
    """
    return text if "${{" not in text else _IN_RECIPE.sub(lambda match: _defaulted(known, match), text)


def _defaulted(known: Collection[str], match: re.Match[str]) -> str:
    defaulted = _Defaulted(known)
    tree = defaulted.visit(copy.deepcopy(parsed(match[1])))
    return f"${{{{ {rewritten(tree)} }}}}" if defaulted.is_changed else match[0]


class Writer:
    def __init__(self, names: Names, own: frozenset[str], selector: bool, *, is_done: bool = False) -> None:
        self.is_done = is_done
        self.names = names
        self.own = own
        self.selector = selector
        self.depth = 0
        #: Keys of variants that a surrounding condition tests.
        self.tested_keys: frozenset[str] = frozenset()

    def text(self, node: nodes.Node | None, level: int) -> str:
        """The node's text, in brackets if it binds more loosely than `level`."""
        if node is None:
            return '""'
        self.depth += 1
        if self.depth > _DEEPEST:
            raise UntranslatableError("the expression is nested too deeply")
        text, binding = self._written(node)
        self.depth -= 1
        return f"({text})" if binding < level else text

    def _written(self, node: nodes.Node) -> tuple[str, int]:
        match node:
            case nodes.Const() if isinstance(node.value, str) and "{{" in node.value and not self.is_done:
                return self._nested(node.value), Level.CONCAT
            case nodes.Const():
                return constant(node.value), Level.ATOM
            case nodes.TemplateData():
                return quoted(str(node.data)), Level.ATOM
            case nodes.Name():
                return self.name(node.name)
            case nodes.CondExpr():
                return self._conditional(node)
            case nodes.And():
                return f"{self.condition(node.left, Level.AND)} and {self.condition(node.right, Level.AND)}", Level.AND
            case nodes.Or():
                return self._or(node)
            case nodes.Not():
                return self._not(node)
            case nodes.Compare():
                return compare(self, node)
            case nodes.Filter():
                return self._filter(node)
            case nodes.Call():
                return self._call(node)
            case nodes.Test():
                return self._test(node)
            case nodes.Concat():
                return " ~ ".join(self.text(bare_text(part), Level.FILTER) for part in node.nodes), Level.CONCAT
            case nodes.BinExpr():
                return self._combined(node)
            case nodes.Neg():
                return f"-{self.text(node.node, Level.FILTER)}", Level.MULTIPLY
            case nodes.Getitem():
                return self._item(node)
            case nodes.List() | nodes.Tuple():
                items = ", ".join(self.text(item, Level.CONDITIONAL) for item in node.items)
                return (
                    f"[{items}]" if isinstance(node, nodes.List) or len(node.items) < 2 else f"({items})"
                ), Level.ATOM
            case nodes.Dict():
                pairs = (
                    f"{self.text(pair.key, Level.CONDITIONAL)}: {self.text(pair.value, Level.CONDITIONAL)}"
                    for pair in node.items
                )
                return "{" + ", ".join(pairs) + "}", Level.ATOM
            case nodes.Getattr(node=nodes.Name(name=owner)):
                raise UntranslatableError(f"'{owner}.{node.attr}' has no equivalent in rattler-build")
        raise UntranslatableError(f"{type(node).__name__.lower()} expressions have no equivalent in rattler-build")

    def _nested(self, text: str) -> str:
        """A text with templates in it, which conda-build renders once more."""
        parts = text_parts(text)
        return " ~ ".join(
            self.text(parsed(piece), Level.FILTER) if is_template else quoted(piece) for is_template, piece in parts
        )

    def _conditional(self, node: nodes.CondExpr) -> tuple[str, int]:
        test = self.condition(node.test, Level.OR)
        before = self.tested_keys
        self.tested_keys |= {name.name for name in names_in(node.test)}
        value = self.text(node.expr1, Level.OR)
        other = f" else {self.text(node.expr2, Level.CONDITIONAL)}" if node.expr2 is not None else ' else ""'
        self.tested_keys = before
        return f"{value} if {test}{other}", Level.CONDITIONAL

    def condition(self, node: nodes.Node, level: int) -> str:
        """A value where only its truth counts: texts such as `False` are true to minijinja."""
        if isinstance(node, nodes.Name) and self.selector:
            falsy = sorted(self.names.truth_of(node.name) - {"false"})
            if falsy:
                return f"({self.text(node, Level.FILTER)} not in ({', '.join(map(quoted, [*falsy, 'false']))},))"
            if node.name not in self.names.values and self.is_variant(node.name):
                return f"({node.name} | default(false))"
        return self.text(node, level)

    def is_variant(self, name: str) -> bool:
        known = name in self.own or name in PLATFORMS or name in RENAMED or name in OF_SCRIPTS
        known = known or bool(_OLD_PYTHON.fullmatch(name))
        return not self.is_done and not known and name not in {"py", "np", "hash", "True", "False", "None"}

    def name(self, name: str) -> tuple[str, int]:
        if self.is_done or name in self.own or name in PLATFORMS or name in OF_SCRIPTS:
            return name, Level.ATOM
        if name in RENAMED:
            renamed = RENAMED[name]
            return renamed, Level.FILTER if " | " in renamed else Level.ATOM
        if match := _OLD_PYTHON.fullmatch(name):
            return str(Match("python", f"{match[1]}.{match[2]}.*")), Level.ATOM
        if name in {"undefined", "None", "none"}:
            return "none", Level.ATOM
        if name in _DIGITS:
            return f"({_DIGITS[name]}) | int", Level.FILTER
        if name in _OWN_NAMES or name in self.names.always:
            return name, Level.ATOM
        return f'{name} | default("")', Level.FILTER

    def _text_of(self, node: nodes.Expr) -> tuple[str, int]:
        """A value as a text, which all are to rattler-build but the numbers that stand for versions."""
        name = node.name if isinstance(node, nodes.Name) and node.name not in self.own else ""
        return (_DIGITS[name], Level.FILTER) if name in _DIGITS else self._written(node)

    def _or(self, node: nodes.Or) -> tuple[str, int]:
        """`or` is a condition, or gives a default to a name: minijinja refuses to filter an undefined one.

        So does conda-smithy, for which all variant keys are undefined: a default stays in templates.
        """
        if (
            isinstance(node.left, nodes.Name)
            and isinstance(node.right, nodes.Const)
            and not self.own & {node.left.name}
        ):
            if node.left.name in self.names.always and self.selector:
                return node.left.name, Level.ATOM
            if self.is_variant(node.left.name):
                return f"{node.left.name} | default({constant(node.right.value)})", Level.FILTER
        return f"{self.condition(node.left, Level.OR)} or {self.condition(node.right, Level.AND)}", Level.OR

    def _not(self, node: nodes.Not) -> tuple[str, int]:
        inner = node.node
        if isinstance(inner, nodes.Test) and inner.name in {"defined", "undefined"}:
            opposite = {"defined": "undefined", "undefined": "defined"}[inner.name]
            return self._test(nodes.Test(inner.node, opposite, [], [], None, None))
        if isinstance(inner, nodes.Compare) and len(inner.ops) == 1 and inner.ops[0].op in {"eq", "ne"}:
            flipped = {"eq": "ne", "ne": "eq"}[inner.ops[0].op]
            return compare(self, nodes.Compare(inner.expr, [nodes.Operand(flipped, inner.ops[0].expr)]))
        return f"not {self.condition(inner, Level.NOT)}", Level.NOT

    def _filter(self, node: nodes.Filter) -> tuple[str, int]:
        name = _FILTER_NAMES.get(node.name, node.name)
        if node.node is None:
            raise UntranslatableError("a filter block has no equivalent in rattler-build")
        if name == "default":
            if isinstance(node.node, nodes.Name) and not self.is_done:
                if node.node.name in self.names.always or node.node.name in self.own or node.node.name in PLATFORMS:
                    return self.name(node.node.name)
                subject = node.node.name
            else:
                subject = self.text(node.node, Level.FILTER)
            given = ", ".join(self.text(argument, Level.CONDITIONAL) for argument in node.args[:1]) or '""'
            return f"{subject} | default({given})", Level.FILTER
        if name == "string":
            return self._text_of(node.node)
        if name == "float":
            raise UntranslatableError("the filter 'float' has no equivalent in rattler-build")
        if name == "int" and isinstance(node.node, nodes.Filter) and node.node.name in {"float"}:
            return self._filter(nodes.Filter(node.node.node, "int", [], [], None, None))
        if name not in FILTERS:
            raise UntranslatableError(f"the filter '{node.name}' has no equivalent in rattler-build")
        if name == "int":
            return self._whole(node.node)
        arguments = [self.text(argument, Level.CONDITIONAL) for argument in node.args]
        if name == "replace" and len(arguments) in {2, 3}:
            return replaced(self, node.node, arguments)
        given = ", ".join(arguments)
        call = f"{name}({given})" if given else name
        return f"{self.text(node.node, Level.FILTER)} | {call}", Level.FILTER

    def _whole(self, node: nodes.Expr) -> tuple[str, int]:
        """A text as a number; minijinja refuses texts that Jinja reads as 0, such as the CUDA version `None`."""
        text = f"{self.text(node, Level.FILTER)} | int"
        keys = sorted({name.name for name in names_in(parsed(text))} - self.tested_keys - self.own)
        for key in keys if not self.is_done else ():
            not_numbers = sorted(value for value in self.names.values.get(key, ()) if not value[:1].isdecimal())
            if not_numbers:
                test = (
                    f"{key} != {quoted(not_numbers[0])}"
                    if len(not_numbers) == 1
                    else f"{key} not in ({', '.join(map(quoted, not_numbers))})"
                )
                return f"{text} if {test} else 0", Level.CONDITIONAL
        return text, Level.FILTER

    def _test(self, node: nodes.Test) -> tuple[str, int]:
        subject = node.node.name if isinstance(node.node, nodes.Name) else ""
        if node.name in {"defined", "undefined"} and subject:
            if not self.is_done and (subject in self.own or subject in PLATFORMS):
                return ("true" if node.name == "defined" else "false"), Level.ATOM
            return f"{subject} is {node.name}", Level.COMPARE
        if node.name in {"none", "None"}:
            return f'{self.text(node.node, Level.FILTER)} == ""', Level.COMPARE
        if node.name in {"true", "false"}:
            return f"{self.text(node.node, Level.FILTER)} == {node.name}", Level.COMPARE
        if node.name in {"string", "number", "iterable", "odd", "even"} and not node.args:
            return f"{self.text(node.node, Level.FILTER)} is {node.name}", Level.COMPARE
        raise UntranslatableError(f"the test 'is {node.name}' has no equivalent in rattler-build")

    def _combined(self, node: nodes.BinExpr) -> tuple[str, int]:
        if isinstance(node, nodes.Add) and (is_text(node.left) or is_text(node.right)):
            left = bare_text(node.left)
            is_joined = isinstance(left, nodes.Concat) or (isinstance(left, nodes.Add) and is_text(left))
            start = self.text(left, Level.CONCAT if is_joined else Level.FILTER)
            return f"{start} ~ {self.text(bare_text(node.right), Level.FILTER)}", Level.CONCAT
        if isinstance(node, nodes.Mod) and isinstance(node.left, nodes.Const) and isinstance(node.left.value, str):
            arguments = node.right.items if isinstance(node.right, nodes.Tuple) else [node.right]
            return formatted(self, re.split(r"%[sd]", node.left.value), arguments)
        level = Level.ADD if isinstance(node, nodes.Add | nodes.Sub) else Level.MULTIPLY
        return f"{self.text(node.left, level)} {node.operator} {self.text(node.right, level + 1)}", level

    def _item(self, node: nodes.Getitem) -> tuple[str, int]:
        if is_environment(node.node) and isinstance(node.arg, nodes.Const):
            return environment(self, str(node.arg.value), None)
        owner = node.node
        if isinstance(owner, nodes.Call) and isinstance(owner.node, nodes.Getattr) and owner.node.attr in _SPLITTING:
            return part_of_split(self, owner, node.arg)
        if isinstance(node.arg, nodes.Slice):
            ends = (node.arg.start, node.arg.stop)
            inner = ":".join("" if end is None else self.text(end, Level.ADD) for end in ends)
        else:
            inner = self.text(node.arg, Level.CONDITIONAL)
        return f"{self.text(owner, Level.ATOM)}[{inner}]", Level.ATOM

    def _call(self, node: nodes.Call) -> tuple[str, int]:
        if node.dyn_args or node.dyn_kwargs:
            raise UntranslatableError("arguments with * have no equivalent in rattler-build")
        if isinstance(node.node, nodes.Getattr):
            return method_call(self, node, node.node)
        name = node.node.name if isinstance(node.node, nodes.Name) else ""
        if name in {"pin_subpackage", "pin_compatible"}:
            return pin(self, name, node), Level.ATOM
        if name in _CASTS and len(node.args) == 1:
            return self._filter(nodes.Filter(_cast(node.args[0]), _CASTS[name], [], [], None, None))
        if name not in _FUNCTIONS:
            called = f"the function '{name}'" if name else "the call of an expression"
            raise UntranslatableError(f"{called} has no equivalent in rattler-build")
        return f"{name}({', '.join(self.text(argument, Level.CONDITIONAL) for argument in node.args)})", Level.ATOM


def _cast(node: nodes.Expr) -> nodes.Expr:
    """A call such as `float(vc)` within another, as the filter with the same meaning."""
    if isinstance(node, nodes.Call) and isinstance(node.node, nodes.Name) and node.node.name in _CASTS and node.args:
        return nodes.Filter(_cast(node.args[0]), _CASTS[node.node.name], [], [], None, None)
    return node


_OPERATORS = {"eq": "==", "ne": "!=", "lt": "<", "lteq": "<=", "gt": ">", "gteq": ">=", "in": "in", "notin": "not in"}
_MIRRORED = {"lt": "gt", "gt": "lt", "lteq": "gteq", "gteq": "lteq"}


def compare(writer: Writer, node: nodes.Compare) -> tuple[str, int]:
    if len(node.ops) != 1:
        parts = []
        left: nodes.Expr = node.expr
        for operand in node.ops:
            parts.append(_compared(writer, left, operand.op, operand.expr))
            left = operand.expr
        return " and ".join(parts), Level.AND
    return _compared(writer, node.expr, node.ops[0].op, node.ops[0].expr), Level.COMPARE


def _compared(writer: Writer, left: nodes.Expr, operator: str, right: nodes.Expr) -> str:
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


def _numbered(writer: Writer, left: nodes.Expr, name: str, operator: str, value: int) -> str:
    """A variant compared with a number: its values are texts to rattler-build."""
    if operator in {"eq", "ne"}:
        return f'{writer.text(left, Level.CONCAT)} {_OPERATORS[operator]} "{value}"'
    if name in writer.names.always and writer.names.are_numbers(name):
        return f"{name} | int {_OPERATORS[operator]} {value}"
    default = "" if name in writer.names.always else " | default(0)"
    return f"{name}{default} | int {_OPERATORS[operator]} {value}"


def _python(writer: Writer, name: str, operator: str, right: nodes.Expr) -> str:
    """`py < 39` as a match of versions."""
    key = "python" if name == "py" else "numpy"
    if isinstance(right, nodes.Tuple | nodes.List) and operator in {"in", "notin"}:
        comparisons = [_python(writer, name, "eq", item) for item in right.items]
        comparison = f"({' or '.join(comparisons)})"
        return comparison if operator == "in" else f"not {comparison}"
    if not isinstance(right, nodes.Const) or not isinstance(right.value, int) or operator not in _OPERATORS:
        raise UntranslatableError(f"'{name}' is compared with something that is not a number")
    if writer.names.values and key not in writer.names.values:  # no configuration has one: conda-build's own counts
        default = "".join(DEFAULT_VARIANT[key].split(".")[:2])
        return constant(compared(int(default), _OPERATORS[operator], right.value))
    digits = str(right.value)
    sign = "==" if operator == "ne" else _OPERATORS[operator]
    match = as_match(VersionTest("python", sign, f"{digits[0]}.{digits[1:] or '0'}"), key)
    return f"not {match}" if operator == "ne" else str(match)


def _in(writer: Writer, left: nodes.Expr, operator: str, right: nodes.Tuple | nodes.List) -> str:
    """Membership; variants are texts, so values of other types cannot be equal to them."""
    items = list(right.items)
    if isinstance(left, nodes.Name) and writer.is_variant(left.name):
        items = list(_of_variant(writer, left.name, items))
    texts = [writer.text(item, Level.CONDITIONAL) for item in items]
    if len(texts) == 1:
        return f"{writer.text(left, Level.CONCAT)} {'==' if operator == 'in' else '!='} {texts[0]}"
    return f"{writer.text(left, Level.CONCAT)} {_OPERATORS[operator]} ({', '.join(texts)})"


def _of_variant(writer: Writer, key: str, items: Sequence[nodes.Expr]) -> Iterator[nodes.Expr]:
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


#: Methods of texts that are filters in minijinja.
_METHODS = {"replace": "replace", "split": "split", "upper": "upper", "lower": "lower", "strip": "trim"}
_TOOLS = frozenset({"compiler", "stdlib"})
_PINS = {"min_pin": "lower_bound", "max_pin": "upper_bound"}


def formatted(writer: Writer, texts: Sequence[str], arguments: Sequence[nodes.Expr]) -> tuple[str, int]:
    if len(texts) != len(arguments) + 1 or any("%" in text or "{" in text for text in texts):
        raise UntranslatableError("this formatting of a text has no equivalent in rattler-build")
    parts = [quoted(texts[0])]
    for value, text in zip(arguments, texts[1:], strict=True):
        parts += [writer.text(bare_text(value), Level.FILTER), quoted(text)]
    return " ~ ".join(part for part in parts if part != '""'), Level.CONCAT


def part_of_split(writer: Writer, call: nodes.Call, place: nodes.Node) -> tuple[str, int]:
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


def pin(writer: Writer, name: str, node: nodes.Call) -> str:
    bounds = {_PINS.get(keyword.key, keyword.key): keyword.value for keyword in node.kwargs}
    order = ("min_pin", "max_pin", "exact") if name == "pin_subpackage" else ("lower_bound", "upper_bound")
    for key, value in zip(order, node.args[1:], strict=False):
        bounds.setdefault(_PINS.get(key, key), value)
    first = [writer.text(node.args[0], Level.CONDITIONAL)] if node.args else []
    exact = bounds.pop("exact", nodes.Const(False))
    parts = [f"{key}={writer.text(value, Level.CONDITIONAL)}" for key, value in bounds.items()]
    exactly, loosely = (f"{name}({', '.join([*first, *rest])})" for rest in (["exact=true"], parts))
    if isinstance(exact, nodes.Const):
        return exactly if exact.value else loosely
    return f"{exactly} if {writer.text(exact, Level.OR)} else {loosely}"


def method_call(writer: Writer, node: nodes.Call, method: nodes.Getattr) -> tuple[str, int]:
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


def replaced(writer: Writer, owner: nodes.Expr, arguments: Sequence[str]) -> tuple[str, int]:
    """`replace`, by splitting if it has a count; rattler-build has ` =` before a compiler's version, not a space."""
    old, new, *count = arguments
    is_tool = isinstance(owner, nodes.Call) and isinstance(owner.node, nodes.Name) and owner.node.name in _TOOLS
    if is_tool and old == '" "':
        old = '" ="'
    start = writer.text(owner, Level.FILTER)
    if count:
        return f"{start} | split({old}, {count[0]}) | join({new})", Level.FILTER
    return f"{start} | replace({old}, {new})", Level.FILTER


def _edge(writer: Writer, owner: nodes.Expr, attribute: str, argument: nodes.Expr) -> tuple[str, int]:
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


def environment(writer: Writer, name: str, default: nodes.Expr | None) -> tuple[str, int]:
    """A variable of the environment, in which conda-build sets variants and values of its own."""
    if name in RENAMED or name in OF_SCRIPTS:
        return writer.name(name)
    if name in writer.names.always:
        return name, Level.ATOM
    fallback = '""' if default is None else writer.text(default, Level.CONDITIONAL)
    if name in writer.names.values or name == name.lower():
        return f"{name} | default({fallback})", Level.FILTER
    return f"env.get({quoted(name)}, default={fallback})", Level.ATOM
