"""A `recipe.yaml` as conda-smithy loads it without variants: its context filled in, unknown names left as they are.

Its linter always does, and a rerender where rattler-build renders nothing for a platform (rattler-build-conda-compat,
jinja/jinja.py: render_recipe_with_context; render.py: render_recipe). Names of variants are undefined there: a template
may compare them or give them a default, but not filter them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2

from feedstock_tools.bounds.limits import step
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.v0.jinja import FAILURES, Sandbox
from feedstock_tools.recipe.v1.templates import check_templates
from feedstock_tools.yaml_reading.nodes import Node, compose, members, parse_scalars, parse_texts

_INTEGER = re.compile(r"[-+]?[0-9]+")
_WORDS = {**dict.fromkeys(("true", "True", "TRUE"), True), **dict.fromkeys(("false", "False", "FALSE"), False)}
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TEMPLATE = "<template>"  # Jinja's name for the file of a template that has none


class _Missing(jinja2.DebugUndefined):
    """An unknown name, written as it stands in the recipe."""

    def __str__(self) -> str:
        return f"${super().__str__()}"


class _Environment:
    """The variables of the machine, which are unknown."""

    def get(self, env_var: str, default: str | None = None) -> str:
        return f'env_"{env_var}" '

    def exists(self, env_var: str) -> str:
        return f'env_exists_"{env_var}" '


def load_without_variants(text: str, path: Path) -> dict[str, Any]:
    """The sections of a recipe as conda-smithy loads them."""
    check_templates(parse_texts(text, path), path, text)
    with step(path):
        written = members(members(compose(text, path)).get("context"))
        values = {name: _plain(node) for name, node in written.items() if node.id == "scalar"}
        for name, value in values.items():
            if isinstance(value, str):
                values[name] = _filled(written[name], value, values, path)
        found = parse_scalars(_rendered(text, values, path), path, _plain)
    return found if isinstance(found, dict) else {}


def _filled(node: Node, text: str, values: Mapping[str, Any], path: Path) -> Any:
    line = node.start_mark.line
    rendered = _rendered(text, values, path, line)
    if node.style in ("'", '"'):
        return rendered
    try:
        found = parse_scalars(f"value: {rendered.encode('unicode_escape').decode()}", None, _plain)["value"]
    except InputError as error:
        message = f"conda-smithy cannot load it: '{rendered}' is not a value in YAML"
        raise InputError(message, path=path, line=line + 1) from error
    return found.encode().decode("unicode_escape") if isinstance(found, str) else found


def _rendered(text: str, values: Mapping[str, Any], path: Path, before: int = 0) -> str:
    """Render a text that `before` lines of the recipe precede."""
    try:
        return _environment().from_string(text).render(values)
    except FAILURES as error:
        line = getattr(error, "lineno", None)
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == _TEMPLATE:
                line = trace.tb_lineno
            trace = trace.tb_next
        raise InputError(
            f"conda-smithy cannot load it: {error}",
            path=path,
            line=None if line is None else before + line,
            hint="It knows no variants then: give a key a default, as in `cuda_version | default('None')`.",
        ) from error


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = Sandbox(
        variable_start_string="${{", variable_end_string="}}", trim_blocks=True, lstrip_blocks=True, undefined=_Missing
    )
    environment.globals.update(
        compiler=lambda language: f"{language}_compiler_stub",
        stdlib=lambda language: f"{language}_stdlib_stub",
        pin_subpackage=lambda name, *_, **__: f"subpackage_pin {name}",
        pin_compatible=lambda name, *_, **__: f"compatible_pin {name}",
        cdt=lambda *_, **__: "cdt_stub",
        env=_Environment(),
        match=lambda value, *_, **__: f"match {value}",
        is_unix=lambda subdir: not subdir.startswith("win"),
        is_win=lambda subdir: subdir.startswith("win"),
        is_linux=lambda subdir: subdir.startswith("linux"),
        linux=True,
        x86_64=True,
        unix=True,
        target_platform="linux-64",
        build_platform="linux-64",
        mpi="mpi",
    )
    environment.filters.update(
        version_to_buildstring=_version_to_buildstring,
        split=lambda text, separator=None: text.split(separator),
        bool=bool,
    )
    return environment


def _version_to_buildstring(text: Any) -> str:
    if isinstance(text, _Missing):
        return f"{text._undefined_name}_version_to_build_string"
    return "".join((text.split() or [text])[0].split(".")[:2])


def _plain(node: Any) -> Any:
    """A scalar with the types of YAML 1.2, but numbers with a point stay texts."""
    text = node.value
    if node.style:
        return text
    if text in _NULLS:
        return None
    return int(text) if _INTEGER.fullmatch(text) and len(text) < 1000 else _WORDS.get(text, text)
