"""A `meta.yaml` for one variant: parsed sections, and its outputs as packages of their own.

(conda_build/metadata.py: parse, get_output_dicts_from_metadata, combine_top_level_metadata_with_output,
get_output_metadata.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from feedstock_tools.bounds.limits import BoundError, most
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.requirements import SECTIONS, as_list, requirement_lists
from feedstock_tools.recipe.v0.text import OutputKey, RecipeText, View, requirements_section, written_line
from feedstock_tools.variants.model import Variant, VariantSpace
from feedstock_tools.yaml_reading.nodes import Schema, parse_types
from feedstock_tools.yaml_reading.quick import NotSimpleError, may_have_anchors, parse_block

#: Digits of a build number: channels and solvers read 64 bits.
_MOST_DIGITS = 18
#: A number, which stays a text.
_NUMBER = re.compile(r"[0-9][0-9.]*")
#: Words that YAML's types give another value.
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null"})
_SECTIONS = ("package", "source", "build", "requirements", "test", "app", "outputs", "about", "extra")
_SECTION_START = re.compile(r"^(?=[^\s#\-])", re.MULTILINE)
_OUTPUTS_START = re.compile(r"outputs:[ \t]*\n(?:[ \t]*\n)*(?=([ ]*)- )")
#: More sections than any recipe has; beyond this number they are parsed together.
_MOST_PARTS = 200
#: YAML's old booleans, in any case.
_BOOLEANS = {"y": True, "on": True, "true": True, "yes": True, "n": False, "no": False, "false": False, "off": False}
#: More than any recipe has; each output is compared with all others.
_MOST_OUTPUTS = 500
_PIN_SUBPACKAGE = re.compile(r"{{\s*pin_subpackage\(.*\)\s*}}")


@dataclass(eq=False)
class Meta:
    """A package before it is complete: the top level of a recipe, or one of its outputs.

    It is the same for all variants for which the recipe renders to the same text; `variant` is one of them, and the
    variant's versions are not yet in its requirements. Values read from it are cached; only `replace_section` replaces
    sections, and nothing else changes.
    `host_noarch` says that an output's own key `noarch` made conda-build treat its platform as `noarch`, in its
    selectors too. `siblings` are the outputs' names and types, if the recipe names them all; `rendering` distinguishes
    one rendering from another.
    """

    data: dict[str, Any]
    variant: Variant
    variants: VariantSpace
    view: View
    top_name: str
    kind: str = "conda"
    host_noarch: bool = False
    output: Mapping[str, Any] = field(default_factory=dict)
    siblings: list[OutputKey] | None = None
    rendering: int = 0

    def replace_section(self, name: str, content: Any) -> None:
        """Replace a section, and drop the values cached from it."""
        self.data[name] = content
        for read in ("name", "noarch", "requirements", "output_keys"):
            self.__dict__.pop(read, None)

    def section(self, name: str) -> dict[str, Any]:
        """A section that is a mapping; empty where the recipe has none."""
        value = self.data.get(name)
        return value if isinstance(value, dict) else {}

    def value(self, section: str, key: str) -> Any:
        """A value of a section, with YAML's old booleans converted."""
        content = self.data.get(section)
        value = content.get(key) if isinstance(content, dict) else None
        return _BOOLEANS.get(value.lower(), value) if isinstance(value, str) else value

    @cached_property
    def name(self) -> str:
        return str(self.value("package", "name") or "")

    @property
    def version(self) -> str:
        return str(self.value("package", "version") or "")

    @property
    def build_number(self) -> int:
        """The build number; 0 if it is missing or not yet a number.

        Raises:
            InputError: it has more digits than a solver reads.
        """
        number = self.value("build", "number")
        if isinstance(number, str) and len(number) > _MOST_DIGITS and number.isdecimal():
            message = f"build/number has {len(number)} digits; it may have up to {_MOST_DIGITS}"
            raise InputError(message, path=self.view.recipe.path)
        try:
            return int(number) if number else 0
        except (TypeError, ValueError):
            return 0

    @cached_property
    def noarch(self) -> str | None:
        value = self.value("build", "noarch")
        if self.value("build", "noarch_python"):
            return "python"
        return None if not value else "generic" if value is True else str(value)

    @property
    def skip(self) -> bool:
        return bool(self.value("build", "skip"))

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """The rendered section `outputs`."""
        return list(self.data.get("outputs") or ())

    @cached_property
    def output_keys(self) -> list[OutputKey]:
        """Name and type of every rendered output."""
        if self.siblings is not None:
            return self.siblings
        name = self.name
        return [(str(out.get("name", name)), str(out.get("type", "conda"))) for out in self.outputs]

    @cached_property
    def requirements(self) -> dict[str, list[str]]:
        return requirement_lists(self.data.get("requirements"))

    @property
    def is_output(self) -> bool:
        """Whether this is an output of another name than the recipe's."""
        return bool(self.top_name) and self.top_name != self.name

    @cached_property
    def block(self) -> str:
        """This package's block of text in the outputs."""
        return self.view.block((self.name, self.kind), self.output_keys)

    @cached_property
    def raw_block(self) -> str:
        """The same before selectors."""
        return self.view.block((self.name, self.kind), self.output_keys, selected=False)

    @cached_property
    def own_text(self) -> str:
        """This package's own text: its block, or the whole recipe for the top level."""
        return self.view.alone(self.block) if self.is_output else self.view.full


def _uses_subpackage(meta: Meta) -> bool:
    """Whether the top level is a package that needs its outputs, so that conda-build turns it into an output."""
    run = meta.requirements.get("run", [])
    extra = next((out for out in meta.outputs if out.get("name") == meta.name), None)
    if extra is not None:
        run = [*run, *requirement_lists(extra.get("requirements")).get("run", [])]
    for out in meta.outputs:
        name = out.get("name")
        if name and any(re.match(rf"^{re.escape(str(name))}(\s|\Z|$)", spec) for spec in run):
            return True
    return bool(_PIN_SUBPACKAGE.search(requirements_section(meta.view.full)))


def output_dicts(meta: Meta) -> list[dict[str, Any]]:
    """The outputs of a rendered top level; a recipe without any is one output.

    An output with the recipe's own name and the top level inherit each other's values.
    """
    outputs = meta.outputs
    if len(outputs) > most(_MOST_OUTPUTS):
        raise BoundError(f"has more than {_MOST_OUTPUTS} outputs", path=meta.view.recipe.path)
    own = [meta.data] if not outputs or any(out.get("name") == meta.name for out in outputs) else []
    for part in (*own, *outputs):
        _refuse_requirements(part.get("requirements"), meta.view.recipe)
    if not outputs:
        outputs = [{"name": meta.name}]
    elif _uses_subpackage(meta) and all(out.get("name", "") != meta.name for out in outputs):
        outputs = [*outputs, {"name": meta.name}]
    outputs = [dict(out) for out in outputs]
    for out in outputs:
        if out.get("name") == meta.name and "package:" in meta.view.full:
            _share_with_top_level(meta, out)
    return outputs


def _refuse_requirements(section: Any, recipe: RecipeText) -> None:
    """What is no text among the requirements that conda-build reads (utils.py: insert_variant_versions)."""
    sections: Mapping[str, Any] = section if isinstance(section, Mapping) else {"run": section}
    for env in SECTIONS:
        if env == "run_constrained" and not recipe.rules.refuses_empty_constraints:
            continue
        for item in as_list(sections.get(env)):
            if item is None or isinstance(item, bool):
                what = "an empty item" if item is None else f"the item '{str(item).lower()}'"
                raise InputError(f"requirements/{env} has {what}", path=recipe.path, hint="Expected only texts.")


def _share_with_top_level(meta: Meta, out: dict[str, Any]) -> None:
    for section in ("requirements", "build", "about"):
        top_level = meta.data.get(section) or {}
        own: dict[str, Any] = (
            requirement_lists(out.get(section)) if section == "requirements" else dict(out.get(section) or {})
        )
        if isinstance(top_level, dict):
            for key, value in top_level.items():
                own.setdefault(key, value)
        out[section] = own
        meta.replace_section(section, own)


def named_outputs(meta: Meta) -> list[OutputKey] | None:
    """Name and type of the outputs of a rendered top level; None if the name of one of them is not written there."""
    return meta.output_keys if all("name" in out for out in meta.outputs) else None


def output_meta(
    meta: Meta, out: dict[str, Any], noarch_view: Callable[[], View], siblings: list[OutputKey] | None
) -> Meta:
    """The package that an output of the rendered top level `meta` makes.

    `noarch_view` returns the recipe as seen by an output whose platform is `noarch`; `siblings` are the
    `named_outputs` of the top level.
    """
    if out.get("requirements"):
        out["requirements"] = requirements = requirement_lists(out["requirements"])
        if out.get("name") == meta.name and "requirements" in meta.data:
            meta.replace_section("requirements", requirements)
    kind = str(out.get("type", "conda"))
    data = {**meta.data}
    if out.get("name") == meta.name:
        view = noarch_view() if meta.host_noarch else meta.view
        return Meta(data, meta.variant, meta.variants, view, meta.name, kind, meta.host_noarch, out, siblings)
    name = str(out.get("name", meta.name))
    data["package"] = {**meta.section("package"), "name": name, "version": out.get("version") or meta.version}
    own = _own_requirements(out["requirements"] if out.get("requirements") else {}, name if "name" in out else None)
    data["requirements"] = own
    data["build"], host_noarch = _own_build(meta, out)
    view = noarch_view() if host_noarch else meta.view
    output = Meta(data, meta.variant, meta.variants, view, meta.name, kind, host_noarch, out, siblings)
    output.requirements = own
    return output


def _own_requirements(requirements: Mapping[str, list[str]], name: str | None) -> dict[str, list[str]]:
    """An output's requirements without itself, and without the empty lists that conda-build drops."""
    own = {}
    for env, specs in requirements.items():
        if env in ("build", "host", "run"):
            others = specs if name is None else [spec for spec in specs if not _is_for(name, spec)]
            if others:
                own[env] = others
        else:
            own[env] = specs
    return own


def _is_for(name: str, spec: str) -> bool:
    """Whether a requirement names exactly this package."""
    return spec.startswith(name) and (len(spec) == len(name) or spec[len(name)].isspace())


def _own_build(meta: Meta, out: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """An output's section `build`, and whether its key `noarch` makes its platform `noarch`."""
    build = dict(meta.section("build"))
    if meta.name != out.get("name") or out.get("script") or out.get("files"):
        for key in ("entry_points", "run_exports", "script"):
            if key in out:
                build[key] = out[key]
            else:
                build.pop(key, None)
    build["noarch"] = out.get("noarch", False)
    build["noarch_python"] = out.get("noarch_python", False)
    host_noarch = bool(build["noarch"] or build["noarch_python"])
    for key in ("number", "string"):
        if key in out:
            build[key] = out[key]
    for key in ("run_exports", "track_features", "features"):
        if out.get(key):
            build[key] = out[key]
    if "build" in out:
        number = out.get("number", meta.build_number)
        build = dict(out["build"]) if isinstance(out["build"], dict) else {}
        build.setdefault("number", number)
    return build, host_noarch


def force_keys(meta: Meta, key: str) -> frozenset[str]:
    """The keys that a recipe forces to be used or ignored."""
    if key not in meta.section("build"):
        return frozenset()
    return frozenset(str(item) for item in as_list(meta.value("build", key)))


# --- the YAML of a rendered recipe: parts that renderings have in common are parsed once


@lru_cache(maxsize=8192)
def _scalar(text: str) -> Any:
    """The value of a scalar that `blocks` takes for simple; most are texts, and need no reader of YAML."""
    if text[0] in "'\"":
        return text[1:-1]
    if _NUMBER.fullmatch(text) or (text[0].isalpha() and text.lower() not in _WORDS):
        return text
    return parse_types(text, None, Schema.TEXT_NUMBERS)


@lru_cache(maxsize=4096)
def _parsed(text: str, path: Path) -> Any:
    try:
        return parse_block(text, _scalar)
    except (NotSimpleError, InputError):
        return parse_types(text, path, Schema.TEXT_NUMBERS)


def _item(text: str, path: Path) -> Any:
    items = _parsed(text, path)
    if not isinstance(items, list) or len(items) != 1:
        raise InputError("must be one item of a list", path=path)
    return items[0]


def _section(text: str, path: Path) -> dict[str, Any]:
    start = _OUTPUTS_START.match(text)
    if start is None:
        section = _parsed(text, path)
        if not isinstance(section, dict):
            raise InputError("must be a mapping of sections", path=path)
        return section
    items = re.split(rf"^(?={start.group(1)}- )", text[start.end() :], flags=re.MULTILINE)
    return {"outputs": [_item(item, path) for item in items if item.strip()]}


@lru_cache(maxsize=256)
def _sections(text: str, path: Path) -> dict[str, Any]:
    content: dict[str, Any] = {}
    try:
        if may_have_anchors(text):
            raise InputError("has anchors, which span sections", path=path)
        parts = _SECTION_START.split(text)
        if len(parts) > _MOST_PARTS:
            raise InputError("has too many sections to parse one by one", path=path)
        for part in parts:
            if part.strip():
                content.update(_section(part, path))
    except InputError:
        content = _whole(text, path)
    for name in _SECTIONS:
        if name in content and not content[name]:
            content[name] = {}
        value = content.get(name, {})
        if not isinstance(value, dict) and not (name in ("source", "outputs") and isinstance(value, list)):
            raise InputError(f"the section '{name}' must be a mapping", path=path)
    return content


def _whole(text: str, path: Path) -> dict[str, Any]:
    try:
        content = _parsed(text, path)
    except InputError as error:
        mistake = error.mistakes[0]
        lines = text.splitlines()
        near = lines[mistake.line - 1].strip()[:80] if mistake.line and mistake.line <= len(lines) else ""
        line = written_line(path, near, after=mistake.line or 1) if near else None
        hint = f"Near: {near}" if near else None
        raise InputError(f"rendered, it {mistake.message}", path=path, line=line, hint=hint) from error
    if content is not None and not isinstance(content, dict):
        raise InputError("must be a mapping of sections", path=path)
    return dict(content or {})


def parse_rendered(text: str, path: Path) -> dict[str, Any]:
    """The sections of a rendered recipe; their contents are shared with other renderings and must not be changed.

    Renderings of one recipe have most of their sections and outputs in common. Parts are cut at lines that begin a
    section or an output; if YAML might read them differently, the whole text is parsed.

    Raises:
        InputError: it is not YAML, a section is not a mapping, or conda-build refuses a value.
    """
    data = dict(_sections(text, path))
    _refuse_values(data, path)
    return data


def _refuse_values(data: Mapping[str, Any], path: Path) -> None:
    """What conda-build refuses in the top level, skipped or not (metadata.py: ensure_valid_noarch_value,
    ensure_no_pip_requirements)."""
    build, requirements = data.get("build"), data.get("requirements")
    noarch = build.get("noarch") if isinstance(build, dict) else None
    lists: dict[str, Any] = requirements if isinstance(requirements, dict) else {}
    if isinstance(noarch, str) and _BOOLEANS.get(noarch.lower(), noarch) not in ("", "generic", "python", True, False):
        line = written_line(path, "noarch:")
        raise InputError(f"build/noarch is '{noarch}'", path=path, line=line, hint="Expected generic or python.")
    for name in ("outputs", "source"):
        items = data.get(name)
        wrong = [each for each in items if not isinstance(each, dict)] if isinstance(items, list) else []
        if wrong:
            raise InputError(f"{name} has an item that is not a mapping: {wrong[0]}", path=path)
    outputs = data.get("outputs") or []
    if not isinstance(outputs, list):
        raise InputError("the section 'outputs' must be a list", path=path, line=written_line(path, "outputs:"))
    if any("name" not in each for each in outputs):
        raise InputError("there is an output without a name", path=path)
    for part in (data, *outputs):
        own = part.get("build")
        number = own.get("number") if isinstance(own, dict) else None
        if isinstance(number, str) and number and not re.fullmatch(r"[+-]?[\d_]+", number.strip()):
            line = written_line(path, "number:")
            hint = "Expected a number from 0 on."
            raise InputError(f"the build number is '{number}'", path=path, line=line, hint=hint)
    for name in ("build", "run"):
        specs = lists.get(name)
        wrong = [each for each in specs if isinstance(each, dict)] if isinstance(specs, list) else []
        if wrong:
            raise InputError(f"requirements/{name} has a mapping: {wrong[0]}", path=path, hint="Expected only texts.")
