"""Rendering the templates of a `meta.yaml`, in a sandbox with limits on work and size.

Undefined names render as nothing, whatever is done with them, as in the first passes of conda-build
(jinja_context.py: UndefinedNeverFail).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, wraps
from itertools import islice
from pathlib import Path
from string import Formatter
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.runtime import Context
from jinja2.sandbox import SandboxedEnvironment
from jinja2.visitor import NodeTransformer

from feedstock_tools.bounded import step
from feedstock_tools.errors import InputError

__all__ = ["render"]

_MOST_STEPS = 100_000
_LARGEST_VALUE = 1_000_000
_LARGEST_TOTAL = 20_000_000
_LARGEST_TEXT = 8_000_000
#: The number of rendered parts that are checked together.
_AT_A_TIME = 256
#: The limit for one recipe; compiling this many takes half a second.
_MOST_TEMPLATES = 5_000
#: String methods whose result can be far longer than their input, with their limits.
_GROWING = frozenset({"ljust", "rjust", "center", "zfill", "expandtabs", "join", "replace"})


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
    """Makes loops count their steps, and sends `~` through a filter that limits the length of strings."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802 - as jinja2 names them
        self.generic_visit(node)
        node.iter = nodes.Filter(node.iter, "counted", [], [], None, None, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802 - as jinja2 names them
        self.generic_visit(node)
        parts = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(parts, "concatenated", [], [], None, None, lineno=node.lineno)


class _Environment(SandboxedEnvironment):
    """A sandbox whose loops are counted and whose values cannot grow without limit."""

    intercepted_binops = frozenset({"*", "**", "+", "%", "//", "/", "-"})

    def __init__(self, recipe: Path) -> None:
        super().__init__(undefined=_Undefined, loader=_Included(recipe))
        self.begin()
        self.globals = {"range": _bounded_range, "dict": dict, "namespace": jinja2.utils.Namespace}
        known = {**self.filters, "replace": _replace_filter, "join": _join_filter, "format": _format_filter}
        self.filters = {name: self._charging(known[name]) for name in _FILTERS}
        self.filters["counted"] = self._counted
        self.filters["concatenated"] = self._concatenated

    def begin(self) -> None:
        """Start the count of steps and sizes for a new rendering."""
        self.steps = self.size = 0

    def _step(self, what: str) -> None:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise jinja2.TemplateRuntimeError(f"its {what} take more than {_MOST_STEPS} steps")

    def _charge(self, value: Any) -> Any:
        if isinstance(value, str | list | tuple | dict):
            self.size += len(value)
            if self.size > _LARGEST_TOTAL:
                raise jinja2.TemplateRuntimeError("its values grow beyond the limit")
        return value

    def _charging(self, filter_: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(filter_)
        def charged(*args: Any, **kwargs: Any) -> Any:
            self._step("filters")
            return self._charge(filter_(*args, **kwargs))

        return charged

    def _counted(self, iterable: Iterable[Any]) -> Iterator[Any]:
        for item in iterable:
            self._step("loops")
            yield item

    def _concatenated(self, parts: list[Any]) -> str:
        return str(self._charge("".join(map(str, parts))))

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        return _Bounds().visit(tree)  # type: ignore[no-any-return]

    def unsafe_undefined(self, obj: Any, attribute: str) -> jinja2.Undefined:
        raise jinja2.exceptions.SecurityError(f"'{attribute}' of a {type(obj).__name__} is not available to a recipe")

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        if wrapped is not None:
            _check_format(str(getattr(value, "__self__", "")))
        return wrapped

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**":
            raise jinja2.TemplateRuntimeError("powers are not computed in recipes")
        if operator == "*":
            _hold(_product_size(left, right))
        if operator == "%" and isinstance(left, str):
            _check_format(left)
        return self._charge(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - as jinja2 names them
        __self._step("calls")
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        if isinstance(owner, str) and name in _GROWING:
            _hold(_grown(owner, name, args))
        return __self._charge(super().call(__context, __obj, *args, **kwargs))


#: The filters of Jinja that recipes may use.
_FILTERS = (
    *("abs", "capitalize", "count", "d", "default", "dictsort", "e", "escape", "first", "float", "format", "int"),
    *("items", "join", "last", "length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "replace"),
    *("reverse", "round", "safe", "select", "selectattr", "sort", "string", "sum", "title", "trim", "truncate"),
    *("unique", "upper", "wordcount"),
)
_WIDE = re.compile(r"\d{4,}|[*{]")


def _check_format(template: str) -> None:
    """Refuse format strings with very wide fields, or with a width taken from an argument."""
    specs = [spec or "" for _, _, spec, _ in Formatter().parse(template)] if "{" in template else []
    specs += re.findall(r"%([^a-zA-Z%]*)", template)
    if any(_WIDE.search(spec) for spec in specs):
        raise jinja2.TemplateRuntimeError("a format has a wider field than any recipe needs")


def _replace_filter(value: Any, old: Any, new: Any, count: int | None = None) -> str:
    text = str(value)
    _hold(_grown(text, "replace", (old, new)))
    return text.replace(str(old), str(new), -1 if count is None else count)


def _join_filter(value: Iterable[Any], d: Any = "", attribute: str | None = None) -> str:
    items = [str(getattr(item, attribute) if attribute and not attribute.startswith("_") else item) for item in value]
    _hold(_grown(str(d), "join", (items,)))
    return str(d).join(items)


def _format_filter(value: Any, *args: Any, **kwargs: Any) -> str:
    _check_format(str(value))
    return str(value) % (kwargs or args)


def _product_size(left: Any, right: Any) -> int:
    if isinstance(left, int) and isinstance(right, int):
        return left.bit_length() + right.bit_length()
    sequence, count = (left, right) if isinstance(right, int) else (right, left)
    return len(sequence) * max(count, 0) if isinstance(sequence, str | list | tuple) and isinstance(count, int) else 0


def _grown(owner: str, name: str, args: tuple[Any, ...]) -> int:
    if name == "replace" and len(args) >= 2:
        old, new = str(args[0]), str(args[1])
        return len(owner) + (owner.count(old) if old else len(owner) + 1) * len(new)
    if name == "join" and args and isinstance(args[0], list | tuple | str):
        return len(args[0]) * len(owner) + sum(len(str(item)) for item in args[0])
    return max((arg for arg in args if isinstance(arg, int)), default=0) * (len(owner) if name == "expandtabs" else 1)


def _hold(size: int) -> None:
    if size > _LARGEST_VALUE:
        raise jinja2.TemplateRuntimeError("a value grows beyond the limit")


def _bounded_range(*args: int) -> range:
    made = range(*args)
    if len(made) > _MOST_STEPS:
        raise jinja2.TemplateRuntimeError(f"a range is longer than {_MOST_STEPS}")
    return made


class _Included(jinja2.BaseLoader):
    """Templates beside the recipe, and nowhere else."""

    def __init__(self, recipe: Path) -> None:
        self._loader = jinja2.FileSystemLoader(recipe.parent)

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        return self._loader.get_source(environment, template)


@lru_cache(maxsize=8)
def _environment(recipe: Path) -> _Environment:
    return _Environment(recipe)


@lru_cache(maxsize=256)
def _compiled(recipe: Path, text: str) -> tuple[_Environment, jinja2.Template]:
    """A template with the environment that counts its steps, which may outlive its entry in the cache above."""
    environment = _environment(recipe)
    try:
        return environment, environment.from_string(text)
    except SyntaxError as error:  # raised by Python for the code that Jinja generated: an argument given twice, say
        raise jinja2.TemplateSyntaxError(error.msg, 1) from error


def render(recipe: Path, template: str | None, text: str, context: Mapping[str, Any]) -> str:
    """Render the text of a recipe after selectors have been applied.

    `template`, if given, renders to the same with the selectors as conditions in `context`, and is compiled once
    for all variants.

    Raises:
        InputError: the template is invalid, does something forbidden in the sandbox, or exceeds a limit; with the line.
    """
    if text.count("{{") + text.count("{%") > _MOST_TEMPLATES:
        raise InputError(f"has more than {_MOST_TEMPLATES} templates", path=recipe)
    if template is not None and template.count("{%") > _MOST_TEMPLATES:
        template = None
    if template is not None:
        try:
            _compiled(recipe, template)
        except (jinja2.TemplateSyntaxError, RecursionError):
            # A line that a selector removes may be half of a block; and errors count lines of the text.
            template = None
    try:
        with step(recipe):
            environment, compiled = _compiled(recipe, text if template is None else template)
            environment.begin()
            stream = compiled.generate(context)
            parts: list[str] = []
            size = 0
            while some := list(islice(stream, _AT_A_TIME)):
                size += sum(map(len, some))
                if size > _LARGEST_TEXT:
                    raise jinja2.TemplateRuntimeError("the rendered text is too large")
                parts.extend(some)
            return "".join(parts)
    except jinja2.TemplateSyntaxError as error:
        raise InputError(f"the template is invalid: {error.message}", path=recipe) from error
    except RecursionError as error:
        raise InputError("the template calls itself without end", path=recipe) from error
    except (
        jinja2.TemplateError,
        TypeError,
        ValueError,
        ArithmeticError,
        LookupError,
        AttributeError,
        MemoryError,
    ) as error:
        raise InputError(f"the template cannot be rendered: {error}", path=recipe) from error
