"""A recipe.yaml in one setting, with marks where it uses the values of variants."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from feedstock_tools.importing.reading.marks import RESERVED, mark, unmarked
from feedstock_tools.importing.reading.scope_v1 import Scope, any_true, as_items
from feedstock_tools.importing.reading.trees import OutputTree, RecipeTree, ScriptTree, as_texts
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.v1_engine import ParsedV1
from feedstock_tools.variants.model import Variant
from feedstock_tools.yaml_reading.values import parse_texts

_SECTIONS = {"build": "build", "host": "host", "run": "run", "run_constrained": "run_constraints"}
_BUILD = frozenset({"number", "string", "skip", "script", "noarch", "files", "variant"})
_EXPORTS = {"weak_constraints": "weak_constrains", "strong_constraints": "strong_constrains"}
_REQUIREMENTS = frozenset({*_SECTIONS.values(), "run_exports", "ignore_run_exports"})
_PARTS = frozenset({"package", "build", "requirements", "tests", "about", "inherit", "staging"})


def tree_v1(
    recipe: ParsedV1, variant: Variant, platforms: tuple[Platform, Platform], environ: Mapping[str, str]
) -> RecipeTree:
    """The recipe in a variant, on a platform and its build platform.

    Raises:
        InputError: an expression cannot be evaluated.
    """
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
        requirements={key: _needs(requirements.get(name)) for key, name in _SECTIONS.items()},
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
