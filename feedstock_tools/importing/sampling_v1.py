"""A recipe.yaml in one setting, with marks where it uses the values of variants.

Expressions have the values that a rerender gives them; `verification` compares the result with what the engine makes of
the generated recipe.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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
    number_in,
    raw_of,
    unmarked,
)
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import read_text
from feedstock_tools.recipe.packages import by_kind
from feedstock_tools.recipe.requirements import SECTIONS, as_list
from feedstock_tools.recipe.v0.functions import Functions
from feedstock_tools.recipe.v0.jinja import render
from feedstock_tools.recipe.v1 import expressions
from feedstock_tools.recipe.v1_engine import ParsedV1
from feedstock_tools.recipe.written.sites import ContextValue, context_of
from feedstock_tools.variants.model import Variant, WholeNumber
from feedstock_tools.yaml_reading.nodes import compose, parse_texts

#: Names whose values are known only when the package is built.
_ALWAYS_MARKED = ("hash", "build_number", "PYTHON", "PREFIX", "SRC_DIR", "RECIPE_DIR", "SP_DIR", "SHLIB_EXT")


class _UndefinedError(expressions.UndecidedError):
    """A condition reads a name that nothing defines."""


@dataclass
class _Marks(expressions.Scope):
    """The names that expressions see in a setting, with marks.

    `texts` are the texts that the recipe gives names to. A name that nothing defines is an empty text, or an error if
    `is_condition`.
    """

    path: Path = field(kw_only=True)
    names: Mapping[str, Hashable] = field(kw_only=True)
    environ: Mapping[str, str] = field(kw_only=True)
    functions: Functions = field(kw_only=True)
    texts: dict[str, str] = field(default_factory=dict)
    is_condition: bool = False

    def given(self, name: str) -> Hashable:
        if name not in self.names and self.is_condition:
            raise _UndefinedError
        return self.names.get(name, "")

    def is_defined(self, name: str) -> bool:
        return self.sees(name) or name in self.names

    def called(self, name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Hashable:
        match name, arguments:
            case "compiler" | "stdlib", [language, *_]:
                package = getattr(self.functions, name)(language)
                return Marked(package, mark(f"{name} {language}"))
            case "cdt", [package, *_]:
                return mark(f"cdt {package}")
            case "pin_subpackage" | "pin_compatible", [package, *_]:
                parts = [f"{key}={value}" for key, value in keywords.items()]
                text = ";".join((f"pin {name.removeprefix('pin_')} {raw_of(package)}", *parts))
                return mark(text.replace(OPEN, "{").replace(CLOSE, "}"))
            case "env.get", [variable, *default]:
                absent: Hashable = default[0] if default else keywords.get("default", "")
                return self.environ.get(variable, absent)
            case "env.exists", [variable]:
                return variable in self.environ
            case "match", _:
                return super().called(name, arguments, keywords)
        raise expressions.UndecidedError

    def filtered(self, name: str, subject: Hashable, arguments: Sequence[Hashable]) -> Hashable:
        found = super().filtered(name, subject, arguments)
        if name == "version_to_buildstring" and isinstance(subject, Marked) and isinstance(found, str):
            digits = {mark("python"): "python_digits", mark("numpy"): "numpy_digits"}.get(subject.shown)
            return Marked(found, mark(digits)) if digits else found
        return found

    def written(self, name: str, written: ContextValue | None) -> Hashable:
        if written is None:
            return ()
        text = written.text
        match expressions.TEMPLATE.split(text.strip()):
            case ["", whole, ""]:
                value = self.value(whole)
                return "" if value == expressions.NOTHING else value
            case [_, _, *_]:
                return self.text(text)
        try:
            value = expressions.scalar(text) if written.plain and name != "version" else text
        except expressions.UndecidedError:
            value = text
        if not isinstance(value, str) or (name in RESERVED and name != "version"):
            return value
        self.texts[name] = value
        return Marked(value, mark(name))

    def value(self, expression: str) -> Hashable:
        """The value of an expression.

        Raises:
            InputError: it has none that is certain.
        """
        try:
            return expressions.value_of(expression, self)
        except _UndefinedError:
            raise
        except expressions.UndecidedError as error:
            shown = expression.strip()[:60]
            lines = enumerate(read_text(self.path, within=self.path.parent).splitlines(), 1)
            line = next((number for number, text in lines if shown in text), None)
            raise InputError(f"the expression cannot be evaluated: {shown}", path=self.path, line=line) from error

    def text(self, text: str) -> str:
        """A text with the values of its templates; it prints with marks."""
        if "{%" in text:
            return render(self.path, None, text.replace("${{", "{{"), self._all_names())
        parts = (
            self.value(part) if number % 2 else part for number, part in enumerate(expressions.TEMPLATE.split(text))
        )
        return expressions.joined(map(_printed, parts))  # type: ignore[return-value]

    def _all_names(self) -> dict[str, Any]:
        """The names that the statements of a text see."""

        def called(name: str, *arguments: Any, **keywords: Any) -> Hashable:
            return self.called(name, arguments, keywords)

        env = SimpleNamespace(get=partial(called, "env.get"), exists=partial(called, "env.exists"))
        functions = {name: partial(called, name) for name in (*expressions.FUNCTIONS, "match")}
        return {**self.names, **{name: self.of(name) for name in self.context}, **functions, "env": env}

    def truth(self, text: Any) -> bool:
        """Whether a condition holds; one with an undefined name does not."""
        inner = expressions.TEMPLATE.fullmatch(str(text).strip())
        try:
            value = replace(self, is_condition=True).value(inner[1] if inner else str(text))
        except _UndefinedError:
            return False
        return value.lower() not in ("", "false") if isinstance(value, str) else expressions.is_true(value)

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
                str(key): [self._skip(condition) for condition in as_list(value)]
                if key == "skip"
                else self.resolved(value)
                for key, value in node.items()
            }
        return str(self.text(node)) if isinstance(node, str) else node

    def _item(self, item: Any) -> list[Any]:
        """An item of a list: itself, or those of the branch that its condition chooses."""
        if not (isinstance(item, Mapping) and "if" in item):
            return [self.resolved(item)]
        chosen = item.get("then") if self.truth(item["if"]) else item.get("else")
        if chosen is None:
            return []
        return [part for branch_item in as_list(chosen) for part in self._item(branch_item)]

    def _skip(self, condition: Any) -> str:
        if isinstance(condition, Mapping):
            return "true" if any(_any_true(self._skip(item)) for item in self._item(condition)) else "false"
        return str(self.truth(condition)).lower()


def _printed(value: Hashable) -> Hashable:
    """A value as part of a text."""
    if value == expressions.NOTHING or value is None:
        return ""
    return Marked(str(int(value)), value.shown) if isinstance(value, MarkedNumber) else expressions.as_text(value)


def _scope(
    recipe: ParsedV1, variant: Variant, platforms: tuple[Platform, Platform], environ: Mapping[str, str]
) -> _Marks:
    target, builder = platforms
    names: dict[str, Hashable] = {
        **{key: _typed(key, value) for key, value in variant.items()},
        **{word: expressions.is_platform(word, target) for word in expressions.PLATFORM_WORDS},
        "target_platform": marked("target_platform", target.subdir),
        "host_platform": marked("target_platform", target.subdir),
        "build_platform": marked("build_platform", builder.subdir),
        **{name: mark(name) for name in _ALWAYS_MARKED},
    }
    functions = Functions(variant, target.subdir, recipe.path)
    context = context_of(compose(recipe.text))
    scope = _Marks(target, context, {}, path=recipe.path, names=names, environ=environ, functions=functions)
    for name in context:
        scope.of(name)
    return scope


def _typed(key: str, value: str) -> Hashable:
    if isinstance(value, WholeNumber):
        return MarkedNumber(int(value), marked(key, value).shown)
    return value == "true" if value in ("true", "false") else marked(key, value)


def _any_true(value: Any) -> bool:
    """Whether one of the values is true, as text."""
    return any(str(item).lower() == "true" for item in as_list(value))


_BUILD = frozenset({"number", "string", "skip", "script", "noarch", "files", "variant"})
#: Keys of a source, and their names in a meta.yaml.
_SOURCE: Mapping[str, str] = {
    **{"git": "git_url", "rev": "git_rev", "tag": "git_rev", "branch": "git_rev"},
    **{"target_directory": "folder", "file_name": "fn"},
}
_PARTS = frozenset({"package", "build", "requirements", "tests", "about", "inherit", "staging"})


def tree_v1(
    recipe: ParsedV1, variant: Variant, platforms: tuple[Platform, Platform], environ: Mapping[str, str]
) -> RecipeTree:
    """The recipe in a variant, on a platform and its build platform."""
    content = parse_texts(recipe.text, recipe.path)
    scope = _scope(recipe, variant, platforms, environ)
    data = {key: scope.resolved(part) for key, part in content.items() if key != "context"}
    known = {**variant, **scope.texts}
    version = str((data.get("recipe") or data.get("package") or {}).get("version", ""))
    alone = "outputs" not in data
    name = str((data.get("package") or data.get("recipe") or {}).get("name", ""))
    build = data.get("build") or {}
    number = number_in(build.get("number"))
    listed = [data] if alone else [item for item in data.get("outputs") or [] if isinstance(item, Mapping)]
    staged = [item for item in listed if "staging" in item]
    outputs = tuple(_output(item, version, build, alone=alone) for item in listed if "staging" not in item)
    outputs = tuple(replace(output, name=unmarked(output.name, known)) for output in outputs)
    top = _output({**(staged[0] if staged else {}), "package": {"name": name}}, version, {}, alone=False)
    return RecipeTree(
        name=unmarked(name, known),
        version=unmarked(version, known),
        number=number or 0,
        skip=_any_true(build.get("skip")),
        alone=alone,
        sources=tuple(
            {_SOURCE.get(key, key): value for key, value in item.items()}
            for item in as_list(data.get("source"))
            if isinstance(item, Mapping)
        ),
        top=top,
        outputs=outputs,
        about=data.get("about") or {},
        extra=data.get("extra") or {},
        values={name: value for name, value in scope.texts.items() if name not in RESERVED},
    )


def _output(item: Mapping[str, Any], version: str, above: Mapping[str, Any], *, alone: bool) -> OutputTree:
    """An output; `above` is the section `build` of the recipe, from which it takes what it lacks."""
    own = item.get("build") or {}
    build = dict(own) if alone else {**{key: above[key] for key in ("string",) if key in above}, **own}
    requirements = item.get("requirements") or {}
    package = item.get("package") or {}
    ignored = requirements.get("ignore_run_exports") or {}
    variant = build.get("variant") or {}
    steps = number_in(variant.get("down_prioritize_variant"))
    python = build.get("python") or {}
    others = {key: value for key, value in python.items() if key not in ("entry_points", "version_independent")}
    tests, more_tests = _tests(as_list(item.get("tests")))
    files = build.get("files")
    included = files.get("include") if isinstance(files, Mapping) else files
    return OutputTree(
        name=str(package.get("name", "")),
        version=str(package.get("version") or version),
        number=None if alone else number_in(own.get("number")),
        string=str(build["string"]) if build.get("string") else None,
        noarch=str(build["noarch"]) if build.get("noarch") else None,
        skip=False if alone else _any_true(own.get("skip")),
        script=_script(build.get("script")),
        files=as_texts(included),
        excluded=as_texts(files.get("exclude")) if isinstance(files, Mapping) else (),
        requirements={key: _needs(requirements.get(name)) for key, name in SECTIONS.items()},
        exports={kind: _needs(items) for kind, items in by_kind(requirements.get("run_exports")).items() if items},
        ignored={"packages": _needs(ignored.get("by_name")), "exporters": _needs(ignored.get("from_package"))},
        features=tuple(f"{package.get('name', '')}-p-{step}" for step in range(steps or 0)),
        keys={key: as_texts(variant.get(key)) for key in ("use_keys", "ignore_keys")},
        entry_points=as_texts(python.get("entry_points")),
        independent=_any_true(python.get("version_independent")),
        tests=tests,
        about={} if alone else item.get("about") or {},
        more_build={
            **{key: value for key, value in build.items() if key not in _BUILD and key != "python"},
            **({"python": others} if others else {}),
        },
        more_test={"tests": more_tests} if more_tests else {},
        more={} if alone else {key: value for key, value in item.items() if key not in _PARTS},
    )


def _needs(value: Any) -> tuple[str, ...]:
    texts = []
    for item in as_list(value):
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
    texts = (str(item) for item in as_list(value) if item is not None)
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
    is_text = isinstance(script, str | list) and not any(isinstance(line, Mapping) for line in as_list(script))
    return is_text and set(item) <= {"script", "requirements", "files"} and set(requirements) <= {"run"}
