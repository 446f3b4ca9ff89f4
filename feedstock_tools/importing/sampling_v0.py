"""A meta.yaml in one setting, with marks where it uses the values of variants.

The machinery is that of `recipe.v0`; only the values that templates print differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from feedstock_tools.importing.trees import (
    RESERVED,
    Marked,
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
from feedstock_tools.recipe.packages import by_kind
from feedstock_tools.recipe.requirements import SECTIONS, as_list, requirement_lists
from feedstock_tools.recipe.v0.functions import Functions, PackageNames, template_context
from feedstock_tools.recipe.v0.jinja import render
from feedstock_tools.recipe.v0.meta import Meta, output_dicts, output_meta, parse_rendered
from feedstock_tools.recipe.v0.text import RecipeText
from feedstock_tools.variants.model import Variant, VariantSpace
from feedstock_tools.variants.selectors import Namespace, has_selectors, select_lines

_SET = re.compile(r"""(\{%-?\s*set\s+(\w+)\s*=\s*)("[^"{}]*"|'[^'{}]*')(\s*-?%\})""")
_IF, _ENDIF = re.compile(r"\{%-?\s*(?:if|for)\b"), re.compile(r"\{%-?\s*end(?:if|for)\b")
_ANY_SET = re.compile(r"\{%-?\s*set\s+(\w+)")
_OWN = "_as_written_"
_TRUE = ("true", "yes", "on", "y")
#: Keys of `build` that have a place in the tree.
_BUILD = frozenset(
    {"number", "string", "skip", "script", "noarch", "noarch_python", "run_exports", "ignore_run_exports"}
    | {"ignore_run_exports_from", "track_features", "force_use_keys", "force_ignore_keys", "entry_points"}
    | {"script_env", "python_version_independent"}
)
_TESTS = ("imports", "commands", "requires", "files", "source_files")
_OUTPUT = frozenset(
    {"name", "version", "script", "files", "build", "requirements", "test", "about", "type", "number", "string"}
    | {"noarch", "noarch_python", "run_exports", "entry_points", "skip"}
)


@dataclass(frozen=True, slots=True)
class _Calls(Functions):
    """The functions of templates, which show how they were called."""

    def compiler(self, language: str, *_: Any, **__: Any) -> str:
        return Marked(self._target(str(language), "compiler"), mark(f"compiler {language}"))

    def stdlib(self, language: str, *_: Any, **__: Any) -> str:
        return Marked(self._target(str(language), "stdlib"), mark(f"stdlib {language}"))

    def cdt(self, package: str, *_: Any, **__: Any) -> str:
        return mark(f"cdt {package}")

    def _pin(self, kind: str, package: str, names: tuple[str, ...], args: tuple[Any, ...], bounds: Any) -> str:
        if not str(package).strip():
            return ""
        given = {**dict(zip(names, args, strict=False)), **bounds}
        parts = [f"{name}={given[name]}" for name in names if name in given]
        return mark(";".join((f"pin {kind} {raw_of(package)}", *parts)).replace("\ue000", "{").replace("\ue001", "}"))


def tree_v0(
    recipe: RecipeText,
    variant: Variant,
    space: VariantSpace,
    platforms: tuple[Platform, Platform],
    environ: Mapping[str, str],
) -> RecipeTree:
    """The recipe in a variant, on a platform and its build platform."""
    target, builder = platforms
    namespace = Namespace(target.subdir, builder.subdir, variant, environ, recipe.rules)
    view = recipe.view(namespace)
    package = PackageNames()
    for _ in range(2):
        context = _context(recipe, namespace, variant, target, environ, package)
        template, values = _with_names(view.template, recipe.raw)
        context |= {f"{_OWN}{name}": Marked(value, mark(name)) for name, value in values.items()}
        rendered = render(recipe.path, None, template, context)
        if has_selectors(rendered):
            rendered, _numbers = select_lines(rendered, namespace, recipe.rules, recipe.path)
        data = parse_rendered(rendered, recipe.path)
        name = str((data.get("package") or {}).get("name", ""))
        meta = Meta(dict(data), variant, space, view, name)
        known = {**variant, **values}
        package = PackageNames(meta.name, meta.version, meta.build_number)
    version = meta.version
    output_mappings = output_dicts(meta)
    alone = not meta.outputs
    metas = [output_meta(meta, out, lambda: view, None) for out in output_mappings]
    outputs = tuple(
        _output(own_meta, {} if alone else out, known) for own_meta, out in zip(metas, output_mappings, strict=True)
    )
    outputs = tuple(replace(output, name=unmarked(output.name, known)) for output in outputs)
    top = _output(Meta(dict(data), variant, space, view, name), {}, known)
    return RecipeTree(
        name=unmarked(name, known),
        version=unmarked(version, known),
        number=number_in(unmarked(str(meta.section("build").get("number")), known)) or 0,
        skip=meta.skip,
        alone=alone,
        sources=tuple(item for item in as_list(data.get("source")) if isinstance(item, Mapping) and item),
        top=top,
        outputs=outputs,
        about=_section(data, "about"),
        extra=_section(data, "extra"),
        values={name: value for name, value in values.items() if name not in RESERVED},
    )


def _with_names(template: str, raw: str) -> tuple[str, dict[str, str]]:
    """The template with a name in place of each text that it sets, and the texts; only for names that are set once."""
    counts = Counter(_ANY_SET.findall(raw))
    values: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        name = match[2]
        before = template[: match.start()]
        is_inside = len(_IF.findall(before)) > len(_ENDIF.findall(before))
        if is_inside or counts[name] != 1 or (name in RESERVED and name != "version"):
            return match[0]
        values[name] = match[3][1:-1]
        return f"{match[1]}{_OWN}{name}{match[4]}"

    return _SET.sub(named, template), values


def _context(
    recipe: RecipeText,
    namespace: Namespace,
    variant: Variant,
    target: Platform,
    environ: Mapping[str, str],
    package: PackageNames,
) -> dict[str, Any]:
    calls = _Calls(variant, target.subdir, recipe.path, True)
    context = template_context(namespace, calls, environ, package)
    values = {key: marked(key, value) for key, value in variant.items() if key in recipe.tokens}
    return {
        **context,
        **values,
        "target_platform": marked("target_platform", target.subdir),
        "PKG_HASH": mark("hash"),
        "PKG_BUILDNUM": Marked(str(package.build_number), mark("build_number")),
        "CONDA_PY": Marked(str(context["CONDA_PY"]), mark("python_digits")),
        "CONDA_NPY": Marked(str(context["CONDA_NPY"]), mark("numpy_digits")),
        "PKG_VERSION": Marked(package.version, mark("version")),
        **{name: mark(name) for name in ("PYTHON", "PREFIX", "SRC_DIR", "RECIPE_DIR", "SP_DIR", "SHLIB_EXT")},
        **{name: mark(name) for name in ("BUILD_PREFIX", "STDLIB_DIR", "CPU_COUNT")},
    }


def _section(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def _is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() in _TRUE)


def _output(meta: Meta, out: Mapping[str, Any], known: Mapping[str, str]) -> OutputTree:
    """An output of conda-build, after what it inherits; `out` is its own mapping, empty for the recipe itself."""
    build = meta.section("build")
    test = _section(out, "test") or ({} if meta.is_output else meta.section("test"))
    noarch = meta.noarch
    lists = requirement_lists(meta.data.get("requirements"))
    return OutputTree(
        name=str(out.get("name") or meta.name),
        version=meta.version,
        number=number_in(unmarked(str(build.get("number")), known)),
        string=str(build["string"]) if build.get("string") else None,
        noarch=noarch,
        skip=_is_true(build.get("skip")),
        script=_script(build, out),
        files=_files(out.get("files"), "include"),
        excluded=_files(out.get("files"), "exclude"),
        requirements={section: as_texts(list(lists.get(section, ()))) for section in SECTIONS},
        exports={
            kind: texts for kind, items in by_kind(build.get("run_exports")).items() if (texts := as_texts(items))
        },
        ignored={
            "packages": as_texts(build.get("ignore_run_exports")),
            "exporters": as_texts(build.get("ignore_run_exports_from")),
        },
        features=as_texts(build.get("track_features")),
        keys={
            "use_keys": as_texts(build.get("force_use_keys")),
            "ignore_keys": as_texts(build.get("force_ignore_keys")),
        },
        entry_points=as_texts(build.get("entry_points")),
        independent=_is_true(build.get("python_version_independent")),
        tests={key: as_texts(test.get(key)) for key in _TESTS},
        about=_section(out, "about"),
        more_build={key: value for key, value in build.items() if key not in _BUILD},
        more_test={key: value for key, value in test.items() if key not in _TESTS},
        more={key: value for key, value in out.items() if key not in _OUTPUT},
    )


def _files(value: Any, key: str) -> tuple[str, ...]:
    if isinstance(value, Mapping):
        return as_texts(value.get(key))
    return as_texts(value) if key == "include" else ()


def _script(build: Mapping[str, Any], out: Mapping[str, Any]) -> ScriptTree:
    script = out.get("script")
    variables, passed = {}, []
    for entry in as_texts(build.get("script_env")):
        name, sign, value = entry.partition("=")
        if sign:
            variables[name.strip()] = value.strip()
        else:
            passed.append(name)
    if isinstance(script, str) and script.strip() and not re.search(r"\s", script.strip()):
        return ScriptTree(script.strip(), (), variables, tuple(passed))
    own = build.get("script") or script
    if isinstance(own, str) and re.fullmatch(r"[\w./-]+\.(sh|bat)", own.strip()):
        return ScriptTree(own.strip(), (), variables, tuple(passed))
    return ScriptTree(None, as_texts(own), variables, tuple(passed))
