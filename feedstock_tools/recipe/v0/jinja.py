"""Rendering the templates of a `meta.yaml`, in a sandbox with limits on work and size.

Undefined names render as nothing, whatever is done with them, as in the first passes of conda-build
(jinja_context.py: UndefinedNeverFail). The size of a value is computed before the work, from what goes in: `'%s' % x`,
`a.replace(b, c)` and `[x] * n` can make gigabytes of a few characters.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce, wraps
from itertools import islice
from operator import add
from pathlib import Path
from string import Formatter
from types import CodeType
from typing import Any, cast

import jinja2
from jinja2 import nodes
from jinja2.loaders import split_template_path
from jinja2.runtime import Context
from jinja2.sandbox import SandboxedEnvironment
from jinja2.visitor import NodeTransformer

from feedstock_tools.bounds.limits import BoundError, most, step
from feedstock_tools.errors import InputError
from feedstock_tools.reading import is_file, read_text
from feedstock_tools.recipe.v0.text import written_line
from feedstock_tools.variants.selectors import has_selectors

#: Applies selectors to the text of a file.
Select = Callable[[str, Path], str]

#: The limits of one rendering: steps of loops, filters and calls; characters and items of all values; of the text.
_MOST_STEPS = 100_000
_LARGEST_TOTAL = 20_000_000
_LARGEST_TEXT = 8_000_000
_WEIGHED = (str, list, tuple, dict, set, frozenset)
#: The number of rendered parts that are checked together.
_AT_A_TIME = 256
#: The limit for one recipe; compiling this many takes half a second.
_MOST_TEMPLATES = 5_000
#: The largest single value, in characters and items.
_LARGEST = 1_000_000
#: What an item of a list counts, in characters: work with it takes as long.
_ITEM = 10
_LISTS = (list, tuple, set, frozenset)
_NUMBERS = (int, float)
#: Width and precision of a field of `%`, after its key.
_PERCENT = re.compile(r"%(?:\((?:[^()]|\([^()]*\))*\))?[#0 +-]*(\*|\d*)(?:\.(\*|\d*))?")
_WIDE = re.compile(r"\d{4,}|[*{]")
#: What stands for selectors in a template (`RecipeText.template`), and the number that a linter adds to a line.
_WRAPPED = re.compile(r"^(?:\{% (?:if _k\d+|endif) %\})+|\ue000\d+\ue001$")
#: The attributes of values that recipes have a use for; of other types what Jinja's sandbox lets through.
_ATTRIBUTES: Mapping[type, frozenset[str]] = {
    str: frozenset(
        (
            *("capitalize", "casefold", "center", "count", "endswith", "expandtabs", "find", "format"),
            *("format_map", "index", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier"),
            *("islower", "isnumeric", "isspace", "istitle", "isupper", "join", "ljust", "lower", "lstrip"),
            *("partition", "removeprefix", "removesuffix", "replace", "rfind", "rindex", "rjust", "rpartition"),
            *("rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "swapcase", "title", "upper"),
            "zfill",
        )
    ),
    bytes: frozenset({"decode"}),
    int: frozenset({"bit_length", "real", "numerator", "denominator"}),
}
#: The filters of Jinja that recipes may use.
_FILTERS = (
    *("abs", "capitalize", "count", "d", "default", "dictsort", "e", "escape", "first", "float", "format", "int"),
    *("items", "join", "last", "length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "replace"),
    *("reverse", "round", "safe", "select", "selectattr", "sort", "string", "sum", "title", "trim", "truncate"),
    *("unique", "upper", "wordcount"),
)


class Sandbox(SandboxedEnvironment):
    """A sandbox whose templates, and the files that they include, end in Jinja's errors alone, without warnings."""

    def _compile(self, source: str, filename: str) -> CodeType:
        """Compile the Python code that Jinja generated."""
        try:
            with warnings.catch_warnings():  # of Python, for that code: `{{ 1[x] }}`
                warnings.simplefilter("ignore", SyntaxWarning)
                return super()._compile(source, filename)
        except SyntaxError as error:  # an argument given twice, say
            raise jinja2.TemplateSyntaxError(error.msg, 1) from error


class _TooMuchError(jinja2.TemplateRuntimeError):
    """A template takes more than it may."""


def _hold(size: float) -> None:
    """Refuse a value of such a size."""
    if size > _LARGEST and size > most(_LARGEST):
        raise _TooMuchError("a value grows beyond the limit")


def _weight(value: Any) -> int:
    """The characters and items of a value, with all that is in it; what it holds twice counts twice."""
    if isinstance(value, str):
        return len(value)
    total, pending = 0, [value]
    limit = most(_LARGEST)
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            total += len(part)
        elif isinstance(part, _LISTS):
            total += _ITEM * len(part)
            pending += part
        elif not isinstance(part, _NUMBERS) and isinstance(part, Mapping):  # a slow question
            total += _ITEM * len(part)
            pending += [*part.keys(), *part.values()]
        if total > limit:
            raise _TooMuchError("its values grow beyond the limit")
    return total


def _product_size(left: Any, right: Any) -> int:
    """The size of `left * right`; for numbers their bits."""
    if isinstance(left, int) and isinstance(right, int):
        return left.bit_length() + right.bit_length()
    sequence, count = (left, right) if isinstance(right, int) else (right, left)
    if not isinstance(sequence, str | bytes | list | tuple) or not isinstance(count, int):
        return 0
    return max(len(sequence), 0 if isinstance(sequence, bytes) else _weight(sequence)) * max(count, 0)


def _grown(owner: str, name: str, args: Sequence[Any]) -> int:
    """An upper bound for what a method of a string makes."""
    if name == "replace" and len(args) >= 2:
        old, new = str(args[0]), str(args[1])
        return len(owner) + (owner.count(old) if old else len(owner) + 1) * len(new)
    if name == "join" and args and isinstance(args[0], list | tuple | str):
        return len(args[0]) * len(owner) + _weight(args[0])
    if name in ("ljust", "rjust", "center", "zfill", "expandtabs"):
        width = max((arg for arg in args if isinstance(arg, int)), default=0)
        return width * (len(owner) if name == "expandtabs" else 1)
    return 0


def _check_format(template: str, values: Iterable[Any]) -> None:
    """Refuse to format where fields are very wide, or values that are filled in make too much."""
    specs = [spec or "" for _, _, spec, _ in Formatter().parse(template)] if "{" in template else []
    specs += [part for match in _PERCENT.findall(template) for part in match]
    if any(_WIDE.search(spec) for spec in specs):
        raise _TooMuchError("a format has a wider field than any recipe needs")
    fields = template.count("%") + template.count("{")
    _hold(len(template) + fields * max((_weight(value) for value in values), default=0))


def _replace_filter(value: Any, old: Any, new: Any, count: int | None = None) -> str:
    text = value if isinstance(value, str) else str(value)
    _hold(_grown(text, "replace", (old, new)))
    return text.replace(str(old), str(new), -1 if count is None else count)


def _join_filter(value: Iterable[Any], d: Any = "", attribute: str | None = None) -> str:
    items = [str(getattr(item, attribute) if attribute and not attribute.startswith("_") else item) for item in value]
    _hold(_grown(str(d), "join", (items,)))
    return str(d).join(items)


def _format_filter(value: Any, *args: Any, **kwargs: Any) -> str:
    _check_format(str(value), (*args, *kwargs.values()))
    return str(value) % (kwargs or args)


def _sum_filter(iterable: Iterable[Any], attribute: str | None = None, start: Any = 0) -> Any:
    """The sum of numbers; to add up lists takes time that grows with the square of their number."""
    if attribute is not None:
        iterable = [item[attribute] if isinstance(item, Mapping) else 0 for item in iterable]
    numbers = [start, *iterable]
    if not all(isinstance(number, int | float) for number in numbers):
        raise jinja2.TemplateRuntimeError("only numbers are added up in recipes")
    return sum(numbers)


#: Filters of Jinja in a form that measures first.
_BOUNDED_FILTERS: Mapping[str, Callable[..., Any]] = {
    "replace": _replace_filter,
    "join": _join_filter,
    "format": _format_filter,
    "sum": _sum_filter,
}


class _Undefined(jinja2.Undefined):
    """Every operation on it returns another one; as text it is empty, as a condition false."""

    def _again(self, *_args: Any, **_kwargs: Any) -> _Undefined:
        return _Undefined(name=self._undefined_name)

    def _nothing(self) -> str:
        return ""

    __add__ = __radd__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _again  # type: ignore[assignment]
    __mod__ = __rmod__ = __pos__ = __neg__ = __call__ = __getitem__ = __lt__ = __le__ = __gt__ = __ge__ = _again  # type: ignore[assignment]
    __pow__ = __rpow__ = __sub__ = __rsub__ = _again  # type: ignore[assignment]
    __str__ = __repr__ = _nothing

    def __int__(self) -> int:  # type: ignore[override]
        return 0

    def __float__(self) -> float:  # type: ignore[override]
        return 0.0

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        return _Undefined(name=f"{self._undefined_name}.{name}")


class _Bounds(NodeTransformer):
    """Makes loops count their steps, and `~`, comparisons, slices and keys go through filters that measure values."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802 - as jinja2 names them
        self.generic_visit(node)
        node.iter = nodes.Filter(node.iter, "counted", [], [], None, None, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802 - as jinja2 names them
        self.generic_visit(node)
        parts = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(parts, "concatenated", [], [], None, None, lineno=node.lineno)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:  # noqa: N802 - as jinja2 names them
        self.generic_visit(node)
        node.expr = _weighed(node.expr)
        for operand in node.ops:
            operand.expr = _weighed(operand.expr)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Getitem:  # noqa: N802 - as jinja2 names them
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = _weighed(node.node)
        else:
            node.arg = _weighed(node.arg)
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Pair:  # noqa: N802 - as jinja2 names them
        self.generic_visit(node)
        node.key = _weighed(node.key)
        return node


def _weighed(node: nodes.Expr) -> nodes.Expr:
    if isinstance(node, nodes.Const):
        return node
    return nodes.Filter(node, "weighed", [], [], None, None, lineno=node.lineno)


class _Environment(Sandbox):
    """A sandbox whose loops are counted and whose values cannot grow without limit."""

    intercepted_binops = frozenset({"*", "**", "+", "%", "//", "/", "-"})

    def __init__(self, recipe: Path, undefined: type[jinja2.Undefined]) -> None:
        self.included = _Included(recipe)
        super().__init__(undefined=undefined, loader=self.included, finalize=self._charge, optimized=False)
        self.begin()
        self.globals = {"range": _bounded_range, "dict": dict, "namespace": jinja2.utils.Namespace}
        filters = {**self.filters, **_BOUNDED_FILTERS}
        self.filters = {name: self._charging(filters[name]) for name in _FILTERS}
        tests: Any = self.tests
        self.tests = {name: self._charging(test) for name, test in tests.items()}
        self.filters["counted"] = self._counted
        self.filters["weighed"] = self._charge
        self.filters["concatenated"] = self._concatenated

    def begin(self) -> None:
        """Start the count of steps and sizes for a new rendering."""
        self.steps = self.size = 0

    def _step(self, steps: str) -> None:
        self.steps += 1
        if self.steps > _MOST_STEPS and self.steps > most(_MOST_STEPS):
            raise _TooMuchError(f"its {steps} take more than {_MOST_STEPS} steps")

    def _charge(self, value: Any) -> Any:
        """Count a value that is made, or looked at as a whole, with all that is in it."""
        if type(value) is str:  # most values, and every one passes here
            self.size += len(value)
        elif isinstance(value, _WEIGHED):
            self.size += _weight(value)
        if self.size > _LARGEST_TOTAL and self.size > most(_LARGEST_TOTAL):
            raise _TooMuchError("its values grow beyond the limit")
        return value

    def _charging(self, filter_: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(filter_)
        def charged(*args: Any, **kwargs: Any) -> Any:
            self._step("filters")
            for value in (*args, *kwargs.values()):
                self._charge(value)
            return self._charge(filter_(*args, **kwargs))

        return charged

    def _counted(self, iterable: Iterable[Any]) -> Iterator[Any]:
        for item in iterable:
            self._step("loops")
            yield item

    def _concatenated(self, parts: list[Any]) -> str:
        self._charge(parts)
        texts = (part if isinstance(part, str) else str(part) for part in parts)
        return cast("str", self._charge(reduce(add, texts, "")))

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        return _Bounds().visit(tree)  # type: ignore[no-any-return]

    def unsafe_undefined(self, obj: Any, attribute: str) -> jinja2.Undefined:
        raise jinja2.exceptions.SecurityError(f"'{attribute}' of a {type(obj).__name__} is not available to a recipe")

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        allowed = _ATTRIBUTES.get(type(obj))
        return (allowed is None or attr in allowed) and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None
        template = str(getattr(value, "__self__", ""))

        def bounded(*args: Any, **kwargs: Any) -> str:
            _check_format(template, (*args, *kwargs.values()))
            return wrapped(*args, **kwargs)

        return bounded

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**":
            raise jinja2.TemplateRuntimeError("powers are not computed in recipes")
        if operator == "*":
            _hold(_product_size(left, right))
        if operator == "%" and isinstance(left, str):
            _check_format(left, (right,))
        return self._charge(super().call_binop(context, operator, self._charge(left), self._charge(right)))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - as jinja2 names them
        __self._step("calls")
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        for value in (owner, *args, *kwargs.values()):
            __self._charge(value)
        if isinstance(owner, str):
            _hold(_grown(owner, name, args))
        return __self._charge(super().call(__context, __obj, *args, **kwargs))


def _bounded_range(*args: int) -> range:
    numbers = range(*args)
    if len(numbers) > most(_MOST_STEPS):
        raise _TooMuchError(f"a range is longer than {_MOST_STEPS}")
    return numbers


#: What a template can raise besides the errors with messages of their own.
FAILURES = (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, MemoryError)


class _Included(jinja2.BaseLoader):
    """Templates beside the recipe, and nowhere else; their selectors are applied by `select` of the rendering."""

    def __init__(self, recipe: Path) -> None:
        self._folder = recipe.parent
        self.select: Select | None = None

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        path = self._folder.joinpath(*split_template_path(template))
        if not is_file(path):
            raise jinja2.TemplateNotFound(template)
        text = read_text(path, within=self._folder)
        changed = path.stat().st_mtime_ns
        if self.select is not None and has_selectors(text):
            return self.select(text, path), str(path), lambda: False  # another rendering may select other lines
        return text, str(path), lambda: is_file(path) and path.stat().st_mtime_ns == changed


@lru_cache(maxsize=8)
def _environment(recipe: Path, undefined: type[jinja2.Undefined]) -> _Environment:
    return _Environment(recipe, undefined)


@lru_cache(maxsize=256)
def _compiled(recipe: Path, text: str, undefined: type[jinja2.Undefined]) -> tuple[_Environment, jinja2.Template]:
    """A template with the environment that counts its steps, which may outlive its entry in the cache above."""
    environment = _environment(recipe, undefined)  # type: ignore[arg-type]  # a class whose instances have a hash of their own
    return environment, jinja2.Template.from_code(environment, _code(text), environment.make_globals(None))


@lru_cache(maxsize=256)
def _code(text: str) -> CodeType:
    """The code of a template, which is that of the same text in any recipe, such as another state of a feedstock."""
    return _environment(Path(), _Undefined).compile(text)


def render(
    recipe: Path,
    template: str | None,
    text: str,
    context: Mapping[str, Any],
    undefined: type[jinja2.Undefined] = _Undefined,
    select: Select | None = None,
) -> str:
    """Render the text of a recipe after selectors have been applied.

    `template`, if given, renders to the same with the selectors as conditions in `context`, and is compiled once
    for all variants. `undefined` is the kind of an undefined name; default: one that renders as nothing. `select`
    applies selectors to the text of an included file.

    Raises:
        InputError: the template is invalid, does something forbidden in the sandbox, or exceeds a limit; with the line.
    """
    if text.count("{{") + text.count("{%") > most(_MOST_TEMPLATES):
        raise BoundError(f"has more than {_MOST_TEMPLATES} templates", path=recipe)
    chosen = text
    try:
        with step(recipe):
            chosen = template if template and _compiles(recipe, template, undefined) else text
            environment, compiled = _compiled(recipe, chosen, undefined)  # type: ignore[arg-type]
            environment.included.select = select
            return _rendered(environment, compiled, context)
    except jinja2.TemplateSyntaxError as error:
        path, within = (recipe, chosen) if error.filename is None else (Path(error.filename), error.source or "")
        _, line = _place(path, within, error.lineno)
        raise InputError(f"the template is invalid: {error.message}", path=path, line=line) from error
    except _TooMuchError as error:
        shown, line = _place(recipe, chosen, _failed_line(error))
        raise BoundError(f"the template cannot be rendered: {error}{shown}", path=recipe, line=line) from error
    except RecursionError as error:
        raise InputError("the template calls itself without end", path=recipe) from error
    except FAILURES as error:
        _, line = _place(recipe, chosen, _failed_line(error))
        raise InputError(f"the template cannot be rendered: {error}", path=recipe, line=line) from error


def _compiles(recipe: Path, template: str, undefined: type[jinja2.Undefined]) -> bool:
    """Whether the template with conditions can stand for the text: small enough, and valid with every line in it.

    A line that a selector removes may be half of a block; and errors count lines of the text.
    """
    if template.count("{%") > _MOST_TEMPLATES:
        return False
    try:
        _compiled(recipe, template, undefined)  # type: ignore[arg-type]
    except (jinja2.TemplateSyntaxError, RecursionError):
        return False
    return True


def _rendered(environment: _Environment, compiled: jinja2.Template, context: Mapping[str, Any]) -> str:
    """Render a template piece by piece, up to the largest text."""
    environment.begin()
    stream = compiled.generate(context)
    parts: list[str] = []
    size = 0
    while some := list(islice(stream, _AT_A_TIME)):
        size += sum(map(len, some))
        if size > most(_LARGEST_TEXT):
            raise _TooMuchError("the rendered text is too large")
        parts.extend(some)
    return "".join(parts)


def _failed_line(error: BaseException) -> int:
    """The line of the recipe's template that failed, not of a file that it includes; 0 for none."""
    number, trace = 0, error.__traceback__
    while trace is not None:
        code = trace.tb_frame
        if "__jinja_exception__" in code.f_globals and code.f_code.co_filename == "<template>":
            number = trace.tb_lineno
        trace = trace.tb_next
    return number


def _place(recipe: Path, text: str, number: int) -> tuple[str, int | None]:
    """A line of the template as it is shown in a message, and its number in the recipe's file."""
    lines = text.splitlines()
    if not 0 < number <= len(lines):
        return "", None
    line = _WRAPPED.sub("", lines[number - 1].strip())
    return f": {line[:60]}{'…' if len(line) > 60 else ''}", written_line(recipe, line, after=number) if line else None
