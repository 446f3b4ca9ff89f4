"""A recipe.yaml in one setting, with marks where it uses the values of variants.

Jinja evaluates the expressions, since the engine's language is the same except for a few functions; `verification`
compares the result with what the engine makes of the generated recipe.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial, reduce
from operator import add
from pathlib import Path
from typing import Any

from jinja2 import ChainableUndefined, StrictUndefined, TemplateError, UndefinedError, nodes
from jinja2.visitor import NodeTransformer

from feedstock_tools.errors import InputError
from feedstock_tools.importing.trees import (
    CLOSE,
    OPEN,
    RESERVED,
    Marked,
    MarkedNumber,
    OutputTree,
    RecipeTree,
    ScriptTree,
    as_texts,
    mark,
    marked,
    raw_of,
    unmarked,
)
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.requirements import SECTIONS
from feedstock_tools.recipe.v0.functions import Functions
from feedstock_tools.recipe.v0.jinja import Sandbox
from feedstock_tools.recipe.v1.certain_values import (
    PLATFORM_WORDS,
    UndecidedError,
    is_platform,
    matches,
    scalar,
)
from feedstock_tools.recipe.v1_engine import ParsedV1
from feedstock_tools.recipe.written.sites import ContextValue, context_of
from feedstock_tools.variants.model import Variant, WholeNumber
from feedstock_tools.yaml_reading.nodes import compose, parse_texts

_TEMPLATE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)


class Scope:
    """The names that expressions see in a setting, twice: with values alone, and with marks."""

    def __init__(
        self, recipe: ParsedV1, variant: Variant, platforms: tuple[Platform, Platform], environ: Mapping[str, str]
    ) -> None:
        self.path, self.variant = recipe.path, variant
        self.names: dict[str, Any] = {key: _typed(key, value) for key, value in variant.items()}
        target, builder = platforms
        self.names |= {word: is_platform(word, target) for word in PLATFORM_WORDS}
        self.names |= {
            "target_platform": marked("target_platform", target.subdir),
            "host_platform": marked("target_platform", target.subdir),
            "build_platform": marked("build_platform", builder.subdir),
            "hash": mark("hash"),
            "build_number": mark("build_number"),
            "env": _Variables(environ),
            **_FUNCTIONS,
            **_compilers(variant, target),
            "pin_subpackage": partial(self._pin, "subpackage"),
            "pin_compatible": partial(self._pin, "compatible"),
            **{name: mark(name) for name in ("PYTHON", "PREFIX", "SRC_DIR", "RECIPE_DIR", "SP_DIR", "SHLIB_EXT")},
        }
        self.values: dict[str, str] = {}
        for name, written in context_of(compose(recipe.text)).items():
            self.names[name] = self._variable(name, written)

    def _pin(self, kind: str, package: str, *_: Any, **bounds: Any) -> str:
        name = raw_of(package)
        parts = [f"{key}={value}" for key, value in bounds.items()]
        return mark(";".join((f"pin {kind} {name}", *parts)).replace(OPEN, "{").replace(CLOSE, "}"))

    def _variable(self, name: str, written: ContextValue | None) -> Any:
        if written is None:
            return []
        text, plain = written.text, written.plain
        if "${{" not in text:
            try:
                value = scalar(text) if plain and name != "version" else text
            except UndecidedError:
                value = text
            if not isinstance(value, str) or (name in RESERVED and name != "version"):
                return value
            self.values[name] = value
            return Marked(value, mark(name))
        whole = _TEMPLATE.fullmatch(text.strip())
        if whole:
            value = self._evaluated(whole[1])
            return "" if isinstance(value, ChainableUndefined) else value
        return Marked(self._text(text, raw=True), self._text(text))

    def resolved(self, node: Any) -> Any:
        """A part of the recipe: branches chosen, templates replaced."""
        if isinstance(node, list):
            parts = [part for item in node for part in self._item(item)]
            return [part for part in parts if part != "" and part is not None]
        if isinstance(node, Mapping):
            if "if" in node:
                chosen = self._item(node)
                return chosen[0] if chosen else None
            return {
                str(key): [self._skip(condition) for condition in as_items(value)]
                if key == "skip"
                else self.resolved(value)
                for key, value in node.items()
            }
        return self._text(node) if isinstance(node, str) else node

    def _item(self, item: Any) -> list[Any]:
        """An item of a list: itself, or those of the branch that its condition chooses."""
        if not (isinstance(item, Mapping) and "if" in item):
            return [self.resolved(item)]
        chosen = item.get("then") if self._truth(item["if"]) else item.get("else")
        if chosen is None:
            return []
        return [part for branch_item in as_items(chosen) for part in self._item(branch_item)]

    def _skip(self, condition: Any) -> str:
        if isinstance(condition, Mapping):
            return "true" if any(any_true(self._skip(item)) for item in self._item(condition)) else "false"
        return str(self._truth(condition)).lower()

    def _truth(self, text: Any) -> bool:
        inner = _TEMPLATE.fullmatch(str(text).strip())
        try:
            value = self._evaluated(inner[1] if inner else str(text), strict=True)
        except UndefinedError:  # a comparison with an undefined variable does not hold
            return False
        return value.lower() not in ("", "false") if isinstance(value, str) else bool(value)

    def _evaluated(self, expression: str, *, strict: bool = False) -> Any:
        try:
            return _compiled(expression.strip(), strict)(**self.names)
        except UndefinedError:
            if strict:
                raise
            return ""
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            message = f"the expression cannot be evaluated: {error}: {expression.strip()[:60]}"
            raise InputError(message, path=self.path) from error

    def _text(self, text: str, *, raw: bool = False) -> str:
        def shown(match: re.Match[str]) -> str:
            value = self._evaluated(match[1])
            if value is None or isinstance(value, ChainableUndefined):
                return ""
            if isinstance(value, bool):
                return str(value).lower()
            if raw:
                return raw_of(value) if isinstance(value, str) else str(int(value))
            return str(value)

        if "{%" in text:
            return self._statements(text)
        return _TEMPLATE.sub(shown, text)

    def _statements(self, text: str) -> str:
        try:
            return _environment("${{").from_string(text).render(self.names)
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            message = f"the template cannot be rendered: {error}: {text.strip()[:60]}"
            raise InputError(message, path=self.path) from error


def _typed(key: str, value: str) -> Any:
    if isinstance(value, WholeNumber):
        return MarkedNumber(int(value), marked(key, value).shown)
    return value == "true" if value in ("true", "false") else marked(key, value)


class _Variables:
    """The engine's `env`: variables that selectors may see, and no others."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def get(self, name: str, default: Any = "") -> Any:
        return self._environ.get(name, default)

    def exists(self, name: str) -> bool:
        return name in self._environ


def _compilers(variant: Variant, target: Platform) -> dict[str, Any]:
    known = Functions(variant, target.subdir, Path())

    def compiler(language: str, **_: Any) -> str:
        return Marked(known.compiler(language), mark(f"compiler {language}"))

    def stdlib(language: str, **_: Any) -> str:
        return Marked(known.stdlib(language), mark(f"stdlib {language}"))

    return {"compiler": compiler, "stdlib": stdlib}


def _match(version: Any, spec: Any) -> bool:
    text = raw_of(version) if isinstance(version, str) else str(int(version))
    limits = [limit.strip() for limit in raw_of(spec).split(",")]
    if not text[:1].isdigit():  # such as "None", a version that precedes all numbers
        return all(limit.lstrip("=") == text or limit[:1] == "<" or limit[:2] == "!=" for limit in limits)
    if len(limits) == 1 and re.fullmatch(r"==?[A-Za-z]+", limits[0]):
        return False
    try:
        return matches(text, raw_of(spec))
    except UndecidedError as error:
        raise ValueError(f"'{text}' cannot be matched with '{raw_of(spec)}'") from error


_FUNCTIONS: Mapping[str, Any] = {
    "cdt": lambda package, **_: mark(f"cdt {package}"),
    "match": _match,
}


def _digits(value: Any) -> str:
    """`version_to_buildstring`: 312 of 3.12."""
    short = "".join(raw_of(str.__str__(value)).split(" ")[0].split(".")[:2])
    shown = getattr(value, "shown", "")
    known = {mark("python"): "python_digits", mark("numpy"): "numpy_digits"}
    return Marked(short, mark(known[shown])) if shown in known else short


class _Concatenations(NodeTransformer):
    """Makes `~` add texts, so that marked ones stay marked."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802 - as jinja2 names them
        self.generic_visit(node)
        return nodes.Filter(
            nodes.List(node.nodes, lineno=node.lineno), "joined_up", [], [], None, None, lineno=node.lineno
        )


class _Environment(Sandbox):
    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        return _Concatenations().visit(super()._parse(source, name, filename))  # type: ignore[no-any-return]

    def compile_expression(self, source: str, undefined_to_none: bool = True) -> Any:
        template = self.from_string(f"{{% set result = ({source}) %}}")

        def evaluate(**names: Any) -> Any:
            return template.make_module(names).__dict__.get("result")

        return evaluate


@cache
def _environment(opening: str = "{{", *, strict: bool = False) -> Sandbox:
    undefined = StrictUndefined if strict else ChainableUndefined
    environment = _Environment(undefined=undefined, variable_start_string=opening)
    environment.filters |= {
        "replace": lambda value, old, new: value.replace(old, new) if isinstance(value, str) else str(value),
        "split": lambda value, separator=None: value.split(separator),
        "version_to_buildstring": _digits,
        "joined_up": lambda parts: reduce(add, (part if isinstance(part, str) else str(part) for part in parts), ""),
    }
    environment.tests |= {
        "startingwith": lambda value, start: str.startswith(value, start),
        "endingwith": lambda value, end: str.endswith(value, end),
        "containing": lambda value, part: part in value,
    }
    return environment


@cache
def _compiled(expression: str, strict: bool) -> Any:
    return _environment(strict=strict).compile_expression(expression)


def as_items(value: Any) -> list[Any]:
    """A value as a list; nothing as an empty one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def any_true(value: Any) -> bool:
    """Whether one of the values is true, as text."""
    return any(str(item).lower() == "true" for item in as_items(value))


_BUILD = frozenset({"number", "string", "skip", "script", "noarch", "files", "variant"})
_EXPORTS = {"weak_constraints": "weak_constrains", "strong_constraints": "strong_constrains"}
_REQUIREMENTS = frozenset({*SECTIONS.values(), "run_exports", "ignore_run_exports"})
_PARTS = frozenset({"package", "build", "requirements", "tests", "about", "inherit", "staging"})


def tree_v1(
    recipe: ParsedV1, variant: Variant, platforms: tuple[Platform, Platform], environ: Mapping[str, str]
) -> RecipeTree:
    """The recipe in a variant, on a platform and its build platform."""
    content = parse_texts(recipe.text, recipe.path)
    scope = Scope(recipe, variant, platforms, environ)
    data = {key: scope.resolved(part) for key, part in content.items() if key != "context"}
    known = {**variant, **scope.values}
    version = str((data.get("recipe") or data.get("package") or {}).get("version", ""))
    alone = "outputs" not in data
    name = str((data.get("package") or data.get("recipe") or {}).get("name", ""))
    build = data.get("build") or {}
    number = _number(build.get("number"))
    listed = [data] if alone else [item for item in data.get("outputs") or [] if isinstance(item, Mapping)]
    staged = [item for item in listed if "staging" in item]
    outputs = tuple(_output(item, version, build, alone=alone) for item in listed if "staging" not in item)
    outputs = tuple(replace(output, name=unmarked(output.name, known)) for output in outputs)
    top = _output({**(staged[0] if staged else {}), "package": {"name": name}}, version, {}, alone=False)
    return RecipeTree(
        name=unmarked(name, known),
        version=unmarked(version, known),
        number=number or 0,
        skip=any_true(build.get("skip")),
        alone=alone,
        sources=tuple(_as_v0(item) for item in as_items(data.get("source")) if isinstance(item, Mapping)),
        top=top,
        outputs=outputs,
        about=data.get("about") or {},
        extra=data.get("extra") or {},
        values={name: value for name, value in scope.values.items() if name not in RESERVED},
    )


def _number(value: Any) -> int | None:
    text = str(value or "").strip()
    return int(text) if text.isdigit() else None


def _as_v0(source: Mapping[str, Any]) -> dict[str, Any]:
    """A source with the names that its keys have in a meta.yaml."""
    names = {"git": "git_url", "rev": "git_rev", "tag": "git_rev", "branch": "git_rev", "target_directory": "folder"}
    return {names.get(key, "fn" if key == "file_name" else key): value for key, value in source.items()}


def _output(item: Mapping[str, Any], version: str, above: Mapping[str, Any], *, alone: bool) -> OutputTree:
    """An output; `above` is the section `build` of the recipe, from which it takes what it lacks."""
    own = item.get("build") or {}
    build = dict(own) if alone else {**{key: above[key] for key in ("string",) if key in above}, **own}
    requirements = item.get("requirements") or {}
    package = item.get("package") or {}
    ignored = requirements.get("ignore_run_exports") or {}
    variant = build.get("variant") or {}
    python = build.get("python") or {}
    tests, more_tests = _tests(as_items(item.get("tests")))
    files = build.get("files")
    included = files.get("include") if isinstance(files, Mapping) else files
    return OutputTree(
        name=str(package.get("name", "")),
        version=str(package.get("version") or version),
        number=None if alone else _number(own.get("number")),
        string=str(build["string"]) if build.get("string") else None,
        noarch=str(build["noarch"]) if build.get("noarch") else None,
        skip=False if alone else any_true(own.get("skip")),
        script=_script(build.get("script")),
        files=as_texts(included),
        excluded=as_texts(files.get("exclude")) if isinstance(files, Mapping) else (),
        requirements={key: _needs(requirements.get(name)) for key, name in SECTIONS.items()},
        exports=_exports(requirements.get("run_exports")),
        ignored={"packages": _needs(ignored.get("by_name")), "exporters": _needs(ignored.get("from_package"))},
        features=tuple(f"{package.get('name', '')}-p-{step}" for step in range(_steps(variant))),
        keys={key: as_texts(variant.get(key)) for key in ("use_keys", "ignore_keys")},
        entry_points=as_texts(python.get("entry_points")),
        independent=any_true(python.get("version_independent")),
        tests=tests,
        about={} if alone else item.get("about") or {},
        more_build={
            **{key: value for key, value in build.items() if key not in _BUILD and key != "python"},
            **({"python": python_rest} if (python_rest := _rest_of_python(python)) else {}),
        },
        more_test={"tests": more_tests} if more_tests else {},
        more={} if alone else {key: value for key, value in item.items() if key not in _PARTS},
    )


def _exports(value: Any) -> dict[str, tuple[str, ...]]:
    by_kind = value if isinstance(value, Mapping) else {"weak": value}
    return {_EXPORTS.get(str(kind), str(kind)): _needs(items) for kind, items in by_kind.items() if items}


def _rest_of_python(python: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in python.items() if key not in ("entry_points", "version_independent")}


def _steps(variant: Mapping[str, Any]) -> int:
    return _number(variant.get("down_prioritize_variant")) or 0


def _needs(value: Any) -> tuple[str, ...]:
    texts = []
    for item in as_items(value):
        if isinstance(item, Mapping):
            kind, pin = next(iter(item.items()))
            parts = [f"{key}={bound}" for key, bound in pin.items() if key != "name"]
            texts.append(mark(";".join((f"pin {kind.removeprefix('pin_')} {pin['name']}", *parts))))
        else:
            texts.append(str(item))
    return as_texts(texts)


def _script(value: Any) -> ScriptTree:
    if isinstance(value, Mapping):
        variables = {str(key): str(text) for key, text in (value.get("env") or {}).items()}
        own = _script(value.get("content"))
        file = value.get("file")
        return ScriptTree(str(file) if file else own.file, own.commands, variables, as_texts(value.get("secrets")))
    if isinstance(value, str) and re.fullmatch(r"[\w./-]+\.(sh|bat|py)", value.strip()):
        return ScriptTree(value.strip())
    return ScriptTree(None, _lines(value))


def _lines(value: Any) -> tuple[str, ...]:
    """The lines of commands, which the engine joins by line breaks anyway."""
    texts = (str(item) for item in as_items(value) if item is not None)
    return tuple(line.rstrip() for text in texts for line in text.splitlines() if line.strip())


def _tests(items: list[Any]) -> tuple[dict[str, tuple[str, ...]], list[Any]]:
    """The tests that a spec has keys for, and the others."""
    texts: dict[str, tuple[str, ...]] = dict.fromkeys(("imports", "commands", "requires", "files", "source_files"), ())
    others = []
    for item in items:
        python = item.get("python") if isinstance(item, Mapping) else None
        if isinstance(python, Mapping) and set(python) <= {"imports", "pip_check"} and len(item) == 1:
            if texts["imports"]:
                others.append(item)
                continue
            texts["imports"] = as_texts(python.get("imports"))
            texts["pip_check"] = ("true",) if str(python.get("pip_check", "true")) == "true" else ()
        elif isinstance(item, Mapping) and "script" in item and not texts["commands"] and _is_plain(item):
            run = (item.get("requirements") or {}).get("run")
            files = item.get("files") or {}
            texts["commands"] = _lines(item["script"])
            texts["requires"] = _needs(run)
            texts["files"], texts["source_files"] = as_texts(files.get("recipe")), as_texts(files.get("source"))
        else:
            others.append(item)
    return texts, others


def _is_plain(item: Mapping[str, Any]) -> bool:
    script = item["script"]
    requirements = item.get("requirements") or {}
    is_text = isinstance(script, str | list) and not any(isinstance(line, Mapping) for line in as_items(script))
    return is_text and set(item) <= {"script", "requirements", "files"} and set(requirements) <= {"run"}
