"""The conditions that a recipe has, selectors and `if:`, as conditions of a spec where a spec can hold them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from feedstock_tools.generate.spec.conditions import WORDS, And, Compare, Condition, Equal, Not, Or, Word, negated
from feedstock_tools.importing.reading.marks import CLOSE, OPEN

#: The maximum number of lines between a condition and a line of its branch.
_FARTHEST = 40
_SELECTOR = re.compile(r"\[([^\[\]]+)\]\s*$")
_IF = re.compile(r"^\s*-?\s*if:\s*(.+?)\s*$")
_SKIP = re.compile(r"^\s*(?:-|skip:)\s+(.+?)\s*$")
_STATEMENT = re.compile(r"\{%-?\s*(?:el)?if\s+(.+?)\s*-?%\}")
_PLATFORM_KEYS = frozenset({"build_platform", "target_platform", "host_platform"})
_PLATFORMS = {"linux64": "linux-64", "win64": "win-64"}
_OPERATORS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_SUBJECTS = {"cuda_compiler_version": "cuda", "python": "python"}
_MATCH = re.compile(r"(>=|<=|==|!=|<|>)?\s*(\d+(?:\.\d+)*)(?:\.\*)?")


class _InexpressibleError(ValueError):
    pass


def condition_of(text: str) -> Condition | None:
    """An expression of a recipe as a condition of a spec; None if a spec cannot express it.

    >>> condition_of('unix and (cuda_compiler_version or "").startswith("12")')
    And(parts=(Word(name='unix'), Compare(subject='cuda', operator='==', version='12')))
    """
    inner = re.fullmatch(r"\$\{\{(.*)\}\}", text.strip(), re.DOTALL)
    try:
        tree = ast.parse((inner[1] if inner else text).strip(), mode="eval")
        return _condition(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _bare(text: str) -> str:
    """An expression without its comment and quotes."""
    bare = re.sub(r"\s#\s.*", "", text).strip()
    return bare[1:-1] if bare[:1] == bare[-1:] and bare[:1] in "\"'" and bare.count(bare[:1]) == 2 else bare


class WrittenConditions:
    """The conditions of a recipe that a spec can express: all of them, and those beside a text."""

    def __init__(self, text: str, *, is_v1: bool) -> None:
        self._lines = text.splitlines()
        self._is_v1 = is_v1
        self._by_line: dict[int, list[Condition]] = {}
        for number, line in enumerate(self._lines):
            self._by_line.setdefault(number, []).extend(_on_line(line, is_v1=is_v1))
        self._known: dict[str, list[Condition]] = {}

    @property
    def all(self) -> list[Condition]:
        """Each condition once."""
        return list(dict.fromkeys(condition for conditions in self._by_line.values() for condition in conditions))

    def near(self, text: str) -> list[Condition]:
        """The conditions on lines with the first word of a text, such as a requirement's name.

        In a recipe.yaml those of the nearest `if:` above count, too.
        """
        bare = text.strip(f"{OPEN}{CLOSE}")
        word = bare.split(" ")[-1 if text.startswith(OPEN) else 0] if bare else ""
        if word not in self._known:
            numbers = [number for number, line in enumerate(self._lines) if word and word in line]
            conditions = [condition for number in numbers for condition in self._at(number)]
            self._known[word] = list(dict.fromkeys(conditions))
        return self._known[word]

    def _at(self, number: int) -> list[Condition]:
        conditions = self._by_line[number]
        if not self._is_v1:
            return conditions
        indent = _indent(self._lines[number])
        for above in range(number, max(number - _FARTHEST, -1), -1):
            if self._by_line[above] and _indent(self._lines[above]) < indent:
                return [*conditions, *self._by_line[above]]
        return conditions


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _on_line(line: str, *, is_v1: bool) -> Iterator[Condition]:
    for pattern in (_IF, _SKIP) if is_v1 else (_SELECTOR, _STATEMENT):
        match = pattern.search(line.rstrip())
        if match and (condition := condition_of(_bare(match[1]) if is_v1 else match[1])) is not None:
            yield condition


def _condition(node: ast.expr) -> Condition:
    match node:
        case ast.BoolOp(op, values):
            parts = tuple(map(_condition, values))
            return And(parts) if isinstance(op, ast.And) else Or(parts)
        case ast.UnaryOp(ast.Not(), operand):
            return negated(_condition(operand))
        case ast.Name(name) if name in WORDS or name in _PLATFORMS:
            return Word(_PLATFORMS.get(name, name))
        case ast.Name(key) if re.fullmatch(r"is_\w+", key):
            return Equal(key, "true")
        case ast.Compare(left, [operator], [right]):
            return _compared(left, operator, right)
        case ast.Call(ast.Name("match"), [subject, ast.Constant(str(spec))], []):
            return _matched(subject, spec)
        case ast.Call(ast.Attribute(owner, "startswith"), [ast.Constant(str(start))], []):
            if _is_cuda(owner) and start.rstrip(".").isdigit():
                return Compare("cuda", "==", start.rstrip("."))
    raise _InexpressibleError


def _is_cuda(node: ast.expr) -> bool:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        return _is_cuda(node.values[0])
    return isinstance(node, ast.Name) and node.id == "cuda_compiler_version"


def _compared(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Condition:
    sign = _OPERATORS.get(type(operator))
    if isinstance(left, ast.Constant) and isinstance(right, ast.Name) and sign in ("==", "!="):
        left, right = right, left
    if _is_cuda(left):
        left = ast.Name("cuda_compiler_version")
    match left, right:
        case ast.Name(first), ast.Name(second) if {first, second} <= _PLATFORM_KEYS:
            if first == second or "build_platform" not in (first, second) or sign not in ("==", "!="):
                raise _InexpressibleError
            return Word("cross") if sign == "!=" else Not(Word("cross"))
        case ast.Name("target_platform" | "host_platform"), ast.Constant(str(subdir)) if sign in ("==", "!="):
            if subdir not in WORDS:
                raise _InexpressibleError
            return Word(subdir) if sign == "==" else Not(Word(subdir))
        case ast.Name("py"), ast.Constant(int(number)) if sign and 27 <= number < 400:
            return Compare("python", sign, f"{str(number)[0]}.{str(number)[1:]}")
        case ast.Name("cuda_compiler_version"), ast.Constant(str(value)) if sign in ("==", "!="):
            equal = Not(Word("cuda")) if value in ("None", "") else Compare("cuda", "==", value)
            return equal if sign == "==" else negated(equal)
        case ast.Name(key), ast.Constant(value) if sign in ("==", "!=") and isinstance(value, str | int):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if key in WORDS or key == "python" or '"' in text:
                raise _InexpressibleError
            return Equal(key, text) if sign == "==" else Not(Equal(key, text))
    raise _InexpressibleError


def _matched(subject: ast.expr, spec: str) -> Condition:
    if not isinstance(subject, ast.Name) or subject.id not in _SUBJECTS:
        raise _InexpressibleError
    parts = []
    for limit in spec.split(","):
        match = _MATCH.fullmatch(limit.strip())
        if match is None:
            raise _InexpressibleError
        parts.append(Compare(_SUBJECTS[subject.id], match[1] or "==", match[2]))
    return parts[0] if len(parts) == 1 else And(tuple(parts))
