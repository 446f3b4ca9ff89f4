"""Rendering the templates of a `meta.yaml`, in a sandbox with bounds on work and size.

What is undefined renders as nothing, whatever is done with it, as in the first passes of conda-build
(jinja_context.py: UndefinedNeverFail).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.runtime import Context
from jinja2.sandbox import SandboxedEnvironment

from feedstock_tools.errors import InputError

__all__ = ["render"]

_MOST_STEPS = 100_000
_LARGEST_VALUE = 1_000_000
_LARGEST_TEXT = 8_000_000
#: String methods whose result can be far longer than what goes in, with the bound they are held to.
_GROWING = frozenset({"ljust", "rjust", "center", "zfill", "expandtabs", "format", "format_map", "join", "replace"})
_FORBIDDEN = frozenset({"format", "format_map"})


class _Undefined(jinja2.Undefined):
    """Anything done with it gives another; as text it is empty, as a condition false."""

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


class _Environment(SandboxedEnvironment):
    """A sandbox whose loops are counted and whose values cannot grow without bound."""

    intercepted_binops = frozenset({"*", "**", "+", "%", "//", "/", "-"})

    def __init__(self, recipe: Path) -> None:
        super().__init__(undefined=_Undefined, loader=_Included(recipe))
        self.steps = 0
        self.globals = {"range": _bounded_range, "dict": dict, "namespace": jinja2.utils.Namespace}
        self.filters = {name: filter_ for name, filter_ in self.filters.items() if name not in _UNSAFE_FILTERS}
        self.filters["counted"] = self._counted

    def _counted(self, iterable: Iterable[Any]) -> Iterator[Any]:
        for item in iterable:
            self.steps += 1
            if self.steps > _MOST_STEPS:
                raise jinja2.TemplateRuntimeError(f"its loops take more than {_MOST_STEPS} steps")
            yield item

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for loop in tree.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, "counted", [], [], None, None, lineno=loop.lineno)
        return tree

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return super().is_safe_attribute(obj, attr, value) and not (isinstance(obj, str) and attr in _FORBIDDEN)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**":
            raise jinja2.TemplateRuntimeError("powers are not computed in recipes")
        if operator == "*" and any(isinstance(side, str | list | tuple) for side in (left, right)):
            length = max(len(side) for side in (left, right) if isinstance(side, str | list | tuple))
            count = next((side for side in (left, right) if isinstance(side, int)), 0)
            _hold(length * max(count, 0))
        if operator == "*" and isinstance(left, int) and isinstance(right, int):
            _hold(left.bit_length() + right.bit_length())
        if operator == "+" and isinstance(left, str | list | tuple) and isinstance(right, str | list | tuple):
            _hold(len(left) + len(right))
        if operator == "%" and isinstance(left, str):
            raise jinja2.TemplateRuntimeError("texts are not formatted with % in recipes")
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - as jinja2 names them
        __self.steps += 1
        if __self.steps > _MOST_STEPS:
            raise jinja2.TemplateRuntimeError(f"it calls more than {_MOST_STEPS} functions")
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        if isinstance(owner, str) and name in _GROWING:
            _hold(_grown(owner, name, args))
        return super().call(__context, __obj, *args, **kwargs)


_UNSAFE_FILTERS = frozenset(
    {"format", "center", "indent", "wordwrap", "pprint", "tojson", "xmlattr", "filesizeformat", "random"}
)


def _grown(owner: str, name: str, args: tuple[Any, ...]) -> int:
    if name == "replace" and len(args) >= 2:
        old, new = str(args[0]), str(args[1])
        return len(owner) + (owner.count(old) if old else len(owner) + 1) * len(new)
    if name == "join" and args and isinstance(args[0], list | tuple | str):
        return len(args[0]) * len(owner) + sum(len(str(item)) for item in args[0])
    return max((arg for arg in args if isinstance(arg, int)), default=0) * (len(owner) if name == "expandtabs" else 1)


def _hold(size: int) -> None:
    if size > _LARGEST_VALUE:
        raise jinja2.TemplateRuntimeError("a value grows beyond bounds")


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
def _compiled(recipe: Path, text: str) -> jinja2.Template:
    return _environment(recipe).from_string(text)


def render(recipe: Path, template: str | None, text: str, context: Mapping[str, Any]) -> str:
    """Render the text that selectors left of a recipe.

    `template`, if there is one, renders to the same with the selectors as conditions in `context`, and is compiled once
    for all variants.

    Raises:
        InputError: the template is wrong, does what the sandbox forbids, or works too long; with the line.
    """
    if template is not None:
        try:
            _compiled(recipe, template)
        except (jinja2.TemplateSyntaxError, RecursionError):
            # A line that a selector takes out may be one half of something; and errors count lines of the text.
            template = None
    environment = _environment(recipe)
    environment.steps = 0
    try:
        parts = []
        size = 0
        for part in _compiled(recipe, text if template is None else template).generate(context):
            size += len(part)
            if size > _LARGEST_TEXT:
                raise jinja2.TemplateRuntimeError("what it renders to is too large")
            parts.append(part)
        return "".join(parts)
    except jinja2.TemplateSyntaxError as error:
        raise InputError(f"the template is wrong: {error.message}", path=recipe) from error
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
