"""Render a `meta.yaml` for all variants of a platform, as conda-build does before it solves anything.

The recipe is rendered once for every combination of the variables that its top level loops over, and each of these once
for every combination of those that the whole recipe uses (conda_build/render.py: distribute_variants; metadata.py:
get_output_metadata_set). The result depends only on the keys that the recipe mentions, so results are cached by
these keys' values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import is_below, read_text
from feedstock_tools.recipe.model import RenderedOutput, RenderedRecipe, UsedVariables
from feedstock_tools.recipe.requirements import VariantRequirements, spec_name
from feedstock_tools.recipe.v0.functions import Functions, PackageNames, template_context
from feedstock_tools.recipe.v0.jinja import render
from feedstock_tools.recipe.v0.meta import Meta, force_keys, named_outputs, output_dicts, output_meta, parse_rendered
from feedstock_tools.recipe.v0.names import BuildStrings, Hashes, build_string_without_hash, pins_numpy
from feedstock_tools.recipe.v0.text import RecipeText, View, recipe_text, requirements_in
from feedstock_tools.recipe.v0.used import trim_requirements, usage_finder, words_of_script
from feedstock_tools.variants.model import Axis, Variant, VariantConfig, VariantSpace, explode, values_of
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import Namespace, default_variant, has_selectors, select_lines
from feedstock_tools.versions import parse_version

#: Called with each output and the package that it was made from, which is shared by variants that render alike.
Watch = Callable[[Meta, RenderedOutput], None]

#: More renderings than any recipe of conda-forge needs on one platform.
_MOST_RENDERINGS = 20_000

#: A statement that brings in another file.
_LOADS = re.compile(r"\{%[-+]?\s*(?:from|import|include)\b")
#: Keys that can determine how a recipe renders although its text lacks them.
_ALWAYS_RELEVANT = frozenset(
    ("python", "numpy", "perl", "lua", "r_base", "target_platform", "channel_targets", "cdt_name", "cdt_arch")
)


def read_recipe(folder: Path, rules: CondaBuildRules | None = None) -> RecipeText:
    """Read `meta.yaml` in `folder`."""
    path = folder / "meta.yaml"
    return recipe_text(read_text(path, within=folder), path, rules)


def render_recipe(
    recipe: RecipeText,
    config: VariantConfig,
    platform: Platform,
    *,
    environ: Mapping[str, str] | None = None,
    watch: Watch | None = None,
    keep_skipped: bool = False,
) -> RenderedRecipe:
    """The outputs of a recipe on a platform, one for every variant in which it differs.

    Args:
        config: the variants, built-in defaults included (`variants.combine` of `variants.defaults` and files).
        environ: the environment that selectors and templates see; this process's own has no influence.
        watch: called with every output and the package that it was made from.
        keep_skipped: outputs that are not built are among them; otherwise they are left out.
    """
    rendering = _Rendering(recipe, config, platform, environ or {}, keep_skipped=keep_skipped)
    outputs = tuple(output for _, output in rendering.outputs(watch))
    return RenderedRecipe(outputs, rendering.space, rendering.feedstock_name)


def render_with_packages(
    recipe: RecipeText, config: VariantConfig, platform: Platform, *, keep_pins: bool = False
) -> tuple[tuple[Meta, RenderedOutput], ...]:
    """As `render_recipe` in an empty environment: each output with the package that it was made from.

    All variants count as read from files, as `conda build -m` reads them; for `render_recipe` they are arguments.

    Args:
        keep_pins: `pin_compatible` and `pin_subpackage` appear in the requirements as `recipe.pins` reads them, not
            as bare names.
    """
    return tuple(_Rendering(recipe, config, platform, {}, keep_pins=keep_pins, of_files=True).outputs())


class TopLevel(NamedTuple):
    """The name of a recipe's top level, the variant keys that its build uses, and its requirements by section."""

    name: str
    keys: frozenset[str]
    requirements: Mapping[str, Sequence[str]]


def shared_top_level(recipe: RecipeText, config: VariantConfig, platform: Platform) -> TopLevel | None:
    """The top level of a recipe whose outputs share its build; None if they share none.

    conda-build runs the script of the top level once for each combination of those that it loops over, and gives each
    output the folders that it has left (conda_build/build.py: build). They are also those of an output with its name.
    """
    rendering = _Rendering(recipe, config, platform, {})
    top = next((top for top in rendering._tops() if not top.skip), None)
    if top is None or not top.outputs:
        return None
    script = recipe.path.parent / ("bld.bat" if platform.os == "win" else "build.sh")
    if not top.value("build", "script") and not script.is_file():
        return None
    used = rendering._used(top)
    if any(out.get("name") == top.name for out in top.outputs):
        used = used.union(*(out.used.own for meta, out in rendering._outputs_of(top, None) if meta.name == top.name))
    return TopLevel(top.name, used, rendering._finisher(top).of(top.variant).requirements)


@dataclass
class _Rendering:
    recipe: RecipeText
    config: VariantConfig
    platform: Platform
    environ: Mapping[str, str]
    keep_pins: bool = False
    keep_skipped: bool = False
    #: The variants are those of files, which the first parse knows already (metadata.py: MetaData.__init__).
    of_files: bool = False
    count: int = 0
    _views: dict[tuple[object, ...], tuple[View, Namespace]] = field(default_factory=dict)
    _texts_used: dict[tuple[object, ...], tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict)
    _scripts_used: dict[tuple[str, ...], frozenset[str]] = field(default_factory=dict)
    _rendered: dict[tuple[object, ...], dict[str, Any]] = field(default_factory=dict)
    _hashes: Hashes = field(default_factory=dict)
    _package: PackageNames = field(default_factory=PackageNames)

    def __post_init__(self) -> None:
        self.rules = self.recipe.rules
        self.space = explode(self.config)
        self.ignore_build_only = self.config.extended.get("ignore_build_only_deps", ())
        self.ignore_version = self.config.extended.get("ignore_version", ())
        self.finder = usage_finder(self.space.keys, self.recipe.raw, self.rules)
        self.names_package = "PKG_" in self.recipe.raw
        tokens = self.recipe.tokens
        loads = _LOADS.search(self.recipe.raw) is not None  # files whose selectors may read any key
        self.relevant = tuple(
            key
            for key in sorted(self.space.keys)
            if loads or key in tokens or key in _ALWAYS_RELEVANT or "_compiler" in key or "_stdlib" in key
        )
        self._relevant_values = values_of(self.relevant)

    def outputs(self, watch: Watch | None = None) -> Iterator[tuple[Meta, RenderedOutput]]:
        """All outputs that are wanted, with the packages that they were made from."""
        for top in self._tops():
            if top.skip and self.keep_skipped and self.rules.skipped_is_one_output:
                yield self._skipped(top, watch)
            elif self.keep_skipped or not top.skip:
                outputs = self._outputs_of(top, watch)
                yield from ((meta, output) for meta, output in outputs if self.keep_skipped or not output.skip)

    # --- the top level, once for each combination of the variables that it loops over

    def _tops(self) -> list[Meta]:
        takes_first = self.of_files and self.rules.first_values_first
        first = self.space.first() if takes_first else default_variant(self.platform.subdir)
        initial = self._render(first, self.space, "")
        if initial.noarch:
            self.space = self._one_python(self.space)
        self.loop_variables = frozenset(self.space.looping())
        name = initial.section("extra").get("feedstock-name")
        self.feedstock_name = str(name) if name else None
        variant = self.space.first()
        used = self._used(replace(initial, variant=variant, view=self._view(variant, False))) & self.loop_variables
        tops: dict[object, Meta] = {}
        for variant in self._reduced(self.space, used):
            part = self.space.where({key: (variant[key],) for key in used})
            top = self._render(variant, part, initial.name)
            if not top.name and not top.outputs:
                raise InputError("the recipe has no package/name", path=self.recipe.path)
            if "version" not in top.section("package") and not top.outputs:
                raise InputError("the recipe has no package/version", path=self.recipe.path)
            if isinstance(top.value("package", "name"), bool):
                raise InputError(f"package/name is not a text but {top.name.lower()}", path=self.recipe.path)
            own = self._used(top)
            string = build_string_without_hash(top)
            values = tuple(sorted((key, variant.get(key)) for key in own))
            tops[(top.name, top.version, string, variant.get("target_platform"), values)] = top
        return list(tops.values())

    def _one_python(self, space: VariantSpace) -> VariantSpace:
        """A noarch recipe is rendered with the newest Python only (in older versions with the first)."""
        if "python" not in space:
            return space
        if not self.rules.noarch_newest_python:
            return space.where({"python": space.values("python")[:1]})
        try:
            newest = max(space.values("python"), key=lambda value: parse_version(value.split(" ")[0]))
        except ValueError:
            return space
        return space.where({"python": (newest,)})

    def _reduced(self, space: VariantSpace, used: Collection[str]) -> list[Variant]:
        """The variants of the axes that contain a used key, and the first row of every other axis."""
        base = space.first()
        looped = VariantSpace(
            tuple(Axis(axis.keys, tuple(dict.fromkeys(axis.rows))) for axis in space.along(used).axes)
        )
        self.count += looped.count
        if self.count > _MOST_RENDERINGS:
            raise InputError(
                f"the recipe loops over more than {_MOST_RENDERINGS} variants",
                path=self.recipe.path,
                hint=f"It uses {', '.join(sorted(used))}.",
            )
        return [{**base, **row} for row in looped]

    # --- outputs, once for each combination of the variables that the whole recipe uses

    def _outputs_of(self, top: Meta, watch: Watch | None) -> list[tuple[Meta, RenderedOutput]]:
        packages = self._packages_of(top)
        order = _building_order([(meta.name, meta.requirements, meta.kind) for meta, _ in packages], self.recipe.path)
        # The keys an output uses follow from the rendered text, whatever versions the variant fills in.
        finishers: dict[Meta, _Finisher] = {}
        outputs: dict[object, tuple[Meta, RenderedOutput]] = {}
        for place in order:
            meta, variant = packages[place]
            finisher = finishers.get(meta)
            if finisher is None:
                finisher = finishers[meta] = self._finisher(meta)
            finished = finisher.of(variant)
            if watch is not None:
                watch(meta, finished)
            outputs[finisher.identity(variant) if meta.kind == "conda" else place] = (meta, finished)
        return list(outputs.values())

    def _skipped(self, top: Meta, watch: Watch | None) -> tuple[Meta, RenderedOutput]:
        """The only output of a recipe that its top level skips (metadata.py: parse_until_resolved)."""
        finished = self._finisher(top).of(top.variant)
        if watch is not None:
            watch(top, finished)
        return top, finished

    def _packages_of(self, top: Meta) -> list[tuple[Meta, Variant]]:
        """Every output of every rendering, with each of the variants that produced it."""
        used = self._used(top, force_global=True) & self.loop_variables
        renderings: dict[int, list[Meta]] = {}
        made_packages: list[tuple[Meta, Variant]] = []
        for variant in self._reduced(top.variants, used):
            reference = self._render(variant, top.variants, top.name)
            packages = renderings.get(reference.rendering)
            if packages is None:
                siblings = named_outputs(reference)
                noarch_view = partial(self._view, variant, True)
                outs = output_dicts(reference)
                packages = [output_meta(reference, out, noarch_view, siblings) for out in outs]
                renderings[reference.rendering] = packages
            made_packages.extend((package, variant) for package in packages)
        if self.rules.keep_equal_outputs:
            return made_packages
        return list({_as_written(package, variant): (package, variant) for package, variant in made_packages}.values())

    def _finisher(self, meta: Meta) -> _Finisher:
        own = self._used(meta)
        top_level = self._used(meta, force_top_level=True) if meta.is_output else own
        used = UsedVariables(own, top_level, top_level & self.loop_variables)
        return _Finisher(meta, used, BuildStrings(meta, own, self.ignore_version, self.rules, self._hashes))

    # --- one rendering

    def _relevant_of(self, variant: Variant) -> tuple[str | None, ...]:
        """The values of the keys that determine how a variant renders."""
        try:
            return self._relevant_values(variant)
        except KeyError:  # conda-build's defaults alone
            return tuple(variant.get(name) for name in self.relevant)

    def _view(self, variant: Variant, noarch: bool) -> View:
        return self._seen(variant, noarch)[0]

    def _seen(self, variant: Variant, noarch: bool) -> tuple[View, Namespace]:
        """The recipe as a variant sees it, and the names visible to it."""
        key = (noarch, self._relevant_of(variant))
        seen = self._views.get(key)
        if seen is None:
            subdir = "noarch" if noarch else variant.get("target_platform", self.platform.subdir)
            namespace = Namespace(subdir, self.platform.subdir, variant, self.environ, self.rules)
            seen = self._views[key] = (self.recipe.view(namespace), namespace)
        return seen

    def _render(self, variant: Variant, variants: VariantSpace, top_name: str) -> Meta:
        view, namespace = self._seen(variant, False)
        package = self._package if top_name and self.names_package else PackageNames()
        data = self._parse(view, namespace, variant, package)
        name = str((data.get("package") or {}).get("name", ""))
        meta = Meta(dict(data), variant, variants, view, name, rendering=id(data))
        self._package = PackageNames(meta.name, meta.version, meta.build_number)
        if self._package != package and self.names_package and not meta.skip:
            data = self._parse(view, namespace, variant, self._package)
            meta = replace(meta, data=dict(data), rendering=id(data))
        return meta

    def _parse(self, view: View, namespace: Namespace, variant: Variant, package: PackageNames) -> dict[str, Any]:
        path = self.recipe.path
        key = (self._relevant_of(variant), package)
        cached = self._rendered.get(key)
        if cached is not None:
            return cached
        functions = Functions(variant, self.platform.subdir, path, self.keep_pins)
        context = template_context(namespace, functions, self.environ, package)
        template = self.recipe.template
        if template is not None:
            context.update(view.holds)
        text = render(path, template, view.template, context, select=partial(self._selected, namespace))
        if has_selectors(text):
            text, _ = select_lines(text, namespace, self.rules, path)
        return self._rendered.setdefault(key, parse_rendered(text, path))

    def _selected(self, namespace: Namespace, text: str, path: Path) -> str:
        return select_lines(text, namespace, self.rules, path)[0]

    def _used(self, meta: Meta, *, force_top_level: bool = False, force_global: bool = False) -> frozenset[str]:
        """The variables that a package uses (metadata.py: get_used_vars)."""
        if force_global:
            used = self.finder.in_selectors(self.recipe.raw) | self.finder.in_text(meta.own_text)
        else:
            used, required = self._used_in_text(meta, force_top_level or not meta.is_output)
            if required:
                used |= trim_requirements(required, meta.requirements, self.ignore_build_only)
        used |= self._words_of_scripts(meta, "package:" not in meta.own_text)
        if "target_platform" in meta.variant and self._platform_counts(meta):
            used |= {"target_platform"}
        if "channel_targets" in meta.variant and self.rules.channel_targets_used:
            used |= {"channel_targets"}
        return (used - force_keys(meta, "force_ignore_keys")) | force_keys(meta, "force_use_keys")

    def _used_in_text(self, meta: Meta, with_top_level: bool) -> tuple[frozenset[str], frozenset[str]]:
        """The keys used in the text of a package outside and inside its requirements; the same for many variants."""
        key = (meta.view, with_top_level, meta.raw_block, meta.block)
        used = self._texts_used.get(key)
        if used is None:
            raw, text = meta.raw_block, meta.block
            if with_top_level:
                raw, text = meta.view.top_level_with(raw, selected=False), meta.view.top_level_with(text, selected=True)
            everywhere = self.finder.in_selectors(raw) | self.finder.in_text(text)
            required = self.finder.in_text(requirements_in(text))
            used = self._texts_used[key] = (everywhere - required, required)
        return used

    def _platform_counts(self, meta: Meta) -> bool:
        if self.rules.target_platform_used:
            return not meta.noarch
        return any(value != self.platform.subdir for value in meta.variants.values("target_platform"))

    def _words_of_scripts(self, meta: Meta, is_output: bool) -> frozenset[str]:
        names: tuple[str, ...] = ("build.sh", "bld.bat") if self.platform.os == "win" else ("build.sh",)
        if is_output:
            script = meta.output.get("script")
            names = (script,) if isinstance(script, str) else ()
        cached = self._scripts_used.get(names)
        if cached is not None:
            return cached
        folder = self.recipe.path.parent
        used: frozenset[str] = frozenset()
        for name in names:
            path = folder / name
            if is_below(path, folder):
                used |= words_of_script(path, folder).intersection(self.space.keys)
        self._scripts_used[names] = used
        return used


class _Finisher:
    """Makes the outputs of a package, one for each of the variants for which it renders to the same text."""

    def __init__(self, meta: Meta, used: UsedVariables, strings: BuildStrings) -> None:
        self._requirements = meta.requirements
        self._strings = strings
        self._keys = (meta.name, *sorted(key for key in used.own if key in meta.variant))
        self._values = values_of(self._keys[1:])
        self._made = partial(
            RenderedOutput,
            name=meta.name,
            version=meta.version,
            build_number=meta.build_number,
            noarch=meta.noarch,
            variants=meta.variants,
            used=used,
            skip=meta.skip,
            pins_numpy=pins_numpy(meta),
            has_files=bool(
                meta.output.get("files")
                or (meta.value("build", "script") and any(meta.requirements.get(each) for each in ("build", "host")))
            ),
        )

    def of(self, variant: Variant) -> RenderedOutput:
        """The output in a variant."""
        requirements = VariantRequirements(self._requirements, variant)
        string, contents = self._strings.of(variant)
        return self._made(build_string=string, hash_input=contents, requirements=requirements, variant=variant)

    def identity(self, variant: Variant) -> tuple[object, ...]:
        """The output's identity within the recipe: its name, and the values of the keys that it uses."""
        return (self._keys, self._values(variant))


def _as_written(package: Meta, variant: Variant) -> str:
    """The section of an output with the versions of a variant filled in."""
    out = dict(package.output)
    if out.get("requirements"):
        out["requirements"] = VariantRequirements(out["requirements"], variant)
    return repr(out)


def _building_order(
    packages: Sequence[tuple[str, Mapping[str, Sequence[str]], str]], path: Path | None = None
) -> list[int]:
    """The indices of `packages` (name, requirements by environment, type) in conda-build's order: dependencies first.

    Outputs with the same name keep their order; wheels and the like come last.
    """
    places: dict[str, list[int]] = {}
    last = []
    for place, (name, _, kind) in enumerate(packages):
        if kind.startswith("conda"):
            places.setdefault(name, []).append(place)
        else:
            last.append(place)
    needs: dict[str, set[str]] = {name: set() for name in places}
    for name, requirements, kind in packages:
        if not kind.startswith("conda"):
            continue
        sections = ("run", "host") if "host" in requirements else ("run", "host", "build")
        specs = (spec for section in sections for spec in requirements.get(section, ()) if spec)
        needs[name].update({spec_name(spec) for spec in specs} & needs.keys() - {name})
    order: list[int] = []
    sorter = TopologicalSorter(needs)
    try:
        sorter.prepare()
    except CycleError as error:
        circle = ", ".join(sorted(set(error.args[1])))
        raise InputError(f"outputs depend on each other in a cycle: {circle}", path=path) from error
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        for name in ready:
            order.extend(places[name])
        sorter.done(*ready)
    return [*order, *last]
