"""The files of the packages that configurations will build, hash included, computed without solving anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.packages import Package, package_of_content, package_of_meta
from feedstock_tools.recipe.requirements import is_broken, spec_name
from feedstock_tools.recipe.v0 import recipe as v0_recipe
from feedstock_tools.recipe.v0.meta import Meta
from feedstock_tools.recipe.v1 import recipe as v1_recipe
from feedstock_tools.recipe.v1_engine import parse_v1, read_v1
from feedstock_tools.rerender.configuration import Configuration, completed_variants, configured_variants
from feedstock_tools.rerender.forge import Forge, read_forge
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.variants.files import defaults, load
from feedstock_tools.variants.model import VariantConfig, combine

_RECIPE_CONFIG = "conda_build_config.yaml"


@dataclass(frozen=True, slots=True, order=True)
class PackageFile:
    """A package of a configuration: `<subdir>/<name>-<version>-<build_string><ending>` in a channel.

    `hash_input` is the text behind the hash in the build string; empty for rattler-build, whose hashes are complete.
    """

    configuration: str
    subdir: str
    name: str
    version: str
    build_string: str
    build_number: int
    ending: str
    hash_input: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def file_name(self) -> str:
        """The name of the file in its subdir."""
        return f"{self.name}-{self.version}-{self.build_string}{self.ending}"

    @property
    def path(self) -> str:
        """Subdir and file name, as they are in a channel."""
        return f"{self.subdir}/{self.file_name}"


def output_files(
    feedstock: Path, configurations: Sequence[Configuration], rules: Rules | None = None, bounds: Bounds | None = None
) -> tuple[PackageFile, ...]:
    """The packages of each configuration, sorted; named as conda-build does for `meta.yaml`, else as rattler-build
    does.

    Args:
        rules: which version of conda-build to follow; default the newest.
        bounds: what the work may take, in a child process; None to do it in this process.

    Raises:
        InputError: recipe, configuration or conda-forge.yml is invalid; with file and line.

    >>> feedstock = Path("solver-feedstock")
    >>> outputs(feedstock, read_configurations(feedstock))[0].path
    'linux-64/libsolver-1.4.0-cuda129h354b2ed_3.conda'
    """
    if bounds is not None:
        return run_bounded(partial(output_files, feedstock, configurations, rules), bounds)
    chosen = rules or Rules.newest()
    forge = read_forge(feedstock, chosen)
    folder = feedstock / forge.recipe_dir
    ending = _ending(forge, chosen)
    files: set[PackageFile] = set()
    for configuration in configurations:
        builder = forge.builder_of(configuration.platform)
        for output in _built(folder, configuration, builder, chosen, v1=forge.is_v1):
            subdir = "noarch" if output.noarch else configuration.platform.subdir
            files.add(
                PackageFile(
                    configuration.name,
                    subdir,
                    output.name,
                    output.version,
                    output.build_string,
                    output.build_number,
                    ".conda" if forge.is_v1 else ending,
                    output.hash_input,
                )
            )
    return tuple(sorted(files))


def _built(
    folder: Path, configuration: Configuration, builder: Platform, rules: Rules, *, v1: bool
) -> Iterator[RenderedOutput]:
    """The outputs that become packages of a channel: wheels do not, and their names follow from the build."""
    if v1:
        yield from (output for _, output in _contents_with_rattler_build(folder, configuration, builder, rules))
        return
    for meta, output in packages_with_conda_build(folder, configuration, builder, rules):
        if refused := [*output.refused_parts(), *_refused_requirements(meta, output)]:
            where = f"conda-build refuses {refused[0]} in {configuration.name}"
            raise InputError(where, path=folder / "meta.yaml", hint="`feedstock-tools lint` shows the lines.")
        if "None" in output.version.split("."):
            where = f"the version '{output.version}' of {output.name} follows from sources, which were not fetched"
            raise InputError(where, path=folder / "meta.yaml", hint="Write the version into the recipe.")
        if meta.kind.startswith("conda"):
            yield output


def _refused_requirements(meta: Meta, output: RenderedOutput) -> Iterator[str]:
    """The requirements of an output that conda-build refuses."""
    named = {spec_name(each) for env in ("host", "run") for each in output.requirements.get(env, ())}
    if output.name in named and not meta.is_output:
        yield f"{output.name}, which requires itself"
    for requirement in chain(*output.requirements.values()):
        if is_broken(requirement):
            yield f"the requirement '{requirement}' of {output.name}"


def packages_of(
    folder: Path, configuration: Configuration, builder: Platform, rules: Rules, *, v1: bool, text: str | None = None
) -> tuple[Package, ...]:
    """The packages that the recipe in a folder makes in a configuration, in build order.

    Args:
        v1: the recipe is a `recipe.yaml`.
        text: of that, in place of the file's.
    """
    platform = configuration.platform
    if v1:
        contents = _contents_with_rattler_build(folder, configuration, builder, rules, text)
        return tuple(package_of_content(content, output, platform) for content, output in contents)
    packages = packages_with_conda_build(folder, configuration, builder, rules, keep_pins=True)
    return tuple(package_of_meta(meta, output, platform, configuration.pin_run_as_build) for meta, output in packages)


def _contents_with_rattler_build(
    folder: Path, configuration: Configuration, builder: Platform, rules: Rules, text: str | None = None
) -> tuple[tuple[Mapping[str, Any], RenderedOutput], ...]:
    """Each output with the content of the rendered recipe that it was made from.

    As `rattler-build build -m` renders: the recipe's own variant file counts too, below the configuration.
    """
    path = folder / "recipe.yaml"
    recipe = read_v1(path) if text is None else parse_v1(text, path)
    variants = completed_variants(folder, configuration, rules.conda_build)
    return v1_recipe.render_with_contents_v1(recipe, variants, configuration.platform, builder)


def packages_with_conda_build(
    folder: Path, configuration: Configuration, builder: Platform, rules: Rules, *, keep_pins: bool = False
) -> tuple[tuple[Meta, RenderedOutput], ...]:
    """Each output with the package that it was made from.

    As `conda build -m` renders: the recipe's own variant file counts too, below the configuration.
    """
    behaviour = rules.conda_build
    layers = [defaults(builder, behaviour)]
    own = folder / _RECIPE_CONFIG
    if own.is_file():
        layers.append(load(own, builder, environ={}, rules=behaviour, within=folder))
    layers.append(configured_variants(configuration))
    config = _filtered(_without_torn_groups(combine(layers), configuration), layers[:0:-1])
    recipe = v0_recipe.read_recipe(folder, behaviour)
    return v0_recipe.render_with_packages(recipe, config, builder, keep_pins=keep_pins)


def _filtered(config: VariantConfig, layers: Sequence[VariantConfig]) -> VariantConfig:
    """Keep the rows of each zip group that match the values of the first layer with one of its keys, if any.

    If a file has only a part of a group, the values of another file remain and are filtered here: conda-build
    does so when it renders, but not when it rerenders for conda-smithy (variants.py,
    filter_combined_spec_to_used_keys).
    """
    named: dict[str, tuple[str, ...]] = {}
    for layer in layers:
        named = {**named, **{key: values for key, values in layer.values.items() if key not in named}}
    left: dict[str, tuple[str, ...]] = {}
    for group in config.zip_keys:
        lengths = {len(config.values.get(key, ())) for key in group}
        if len(lengths) > 1 or 0 in lengths:
            continue  # a mistake, reported when the group is exploded
        rows = list(zip(*(config.values[key] for key in group), strict=True))
        for key in (key for key in named if key in group):
            place, wanted = group.index(key), frozenset(named[key])
            rows = [row for row in rows if row[place] in wanted] or rows
        left |= dict(zip(group, zip(*rows, strict=True), strict=True))
    return config.with_values(left)


def _without_torn_groups(config: VariantConfig, configuration: Configuration) -> VariantConfig:
    """Limit the recipe's own zip groups that share keys with the configuration's, if these have one value each.

    conda-build uses as many rows of such a group as its shortest key has values (variants.py, explode_variants).
    """
    own = set(configuration.zip_keys)
    taken = {key for group in own for key in group}
    torn = [
        group
        for group in config.zip_keys
        if group not in own and any(key in taken and len(config.values.get(key, ())) == 1 for key in group)
    ]
    cut = {key: config.values[key][:1] for group in torn for key in group if key in config.values}
    return replace(config.with_values(cut), zip_keys=tuple(group for group in config.zip_keys if group not in torn))


def _ending(forge: Forge, rules: Rules) -> str:
    settings = forge.settings.get("conda_build")
    written = settings.get("pkg_format") if isinstance(settings, dict) else None
    if written is not None:
        return ".conda" if str(written) == "2" else ".tar.bz2"
    return ".conda" if rules.builds_conda_files else ".tar.bz2"
