"""Rerender a feedstock: recipe, pinning, migrations and conda-forge.yml to configurations.

Everything is read and checked first; this module writes nothing and ignores the process's environment.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.errors import InputError
from feedstock_tools.files.changes import Changes
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import CI_SUPPORT, LARGEST_SCRIPT, LARGEST_SETTINGS, read_bytes
from feedstock_tools.recipe.model import OutlinedOutput, OutlinedRecipe, RenderedOutput, RenderedRecipe
from feedstock_tools.rerender.collapse import JobSettings, collapse, configuration_name
from feedstock_tools.rerender.configuration import Configuration, platform_of, read_configurations
from feedstock_tools.rerender.forge import Rendering
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.smithy import (
    CiUpdate,
    Package,
    PackageWatch,
    Release,
    RenderedPlatform,
    Tree,
    describes_plain_recipe,
    follow_configurations,
    whole_tree,
)
from feedstock_tools.rerender.source import (
    Source,
    kept_labels,
    read_source,
    render_everything,
    render_source,
    variants_of,
)
from feedstock_tools.stages import stage
from feedstock_tools.variants.files import defaults, load
from feedstock_tools.variants.model import VariantConfig, combine

if TYPE_CHECKING:
    from feedstock_tools.recipe.v1_engine import ParsedV1

PYTHON_MIN = re.compile(r".*\{\{ python_min \}\}")


@dataclass(frozen=True)
class Rerender:
    """The new contents of a feedstock's `.ci_support`, and its migrations that are over.

    `platforms` are the rendered ones; configurations of others are not touched.
    """

    feedstock: Path
    configurations: tuple[Configuration, ...]
    finished_migrations: tuple[Path, ...]
    rules: Rules
    platforms: tuple[Platform, ...] | None = None
    tree: Tree | None = None
    added_migrations: tuple[Path, ...] = ()

    @cached_property
    def files(self) -> Mapping[str, bytes]:
        """The files of `.ci_support` by name."""
        return {
            f"{configuration.name}.yaml": configuration.to_bytes(booleans=self.rules.booleans)
            for configuration in self.configurations
        }

    def ci_files(self) -> CiUpdate:
        """The changes to the feedstock's CI files that make their job lists match the configurations."""
        return self._ci_files

    @cached_property
    def _ci_files(self) -> CiUpdate:
        kept: tuple[Configuration, ...] = ()
        if self.platforms is not None:
            kept = tuple(
                configuration
                for configuration in read_configurations(self.feedstock)
                if configuration.platform not in self.platforms
            )
        return follow_configurations(self.feedstock, (*self.configurations, *kept), self.rules.smithy)

    def lost_jobs(self) -> tuple[LostJobs, ...]:
        """The kinds of jobs, CPU or CUDA, that a platform has now and loses by this rerender."""
        left = {(each.platform, kind) for each in self.configurations for kind in _kinds(each.values.get(_CUDA, ()))}
        before = Counter(
            (platform, kind)
            for platform, values in _present(self.feedstock)
            if self.platforms is None or platform in self.platforms
            for kind in _kinds(values)
        )
        return tuple(LostJobs(*job, before[job]) for job in sorted(before.keys() - left))

    def changes(self) -> Changes:
        """The changes to the feedstock: configurations, finished migrations, and the job lists of its CI files.

        Raises:
            InputError: `.ci_support` is not a folder of the feedstock's own; else as `ci_files`.
        """
        own = _configuration_changes(
            self.feedstock, self.files, self.finished_migrations, self.platforms, self.added_migrations
        )
        if self.tree is not None:
            return _with_tree(own, self.tree)
        jobs = {self.feedstock / name: text.encode() for name, text in self.ci_files().texts.items()}
        return replace(own, files={**own.files, **jobs})


@dataclass(frozen=True, slots=True)
class Request:
    """What to rerender and how: the arguments of `rerender`, except its bounds."""

    feedstock: Path
    rules: Rules
    pinning: Path | None = None
    platforms: tuple[Platform, ...] | None = None
    migrations: tuple[Path, ...] = ()
    smithy: Release | None = None
    azure_number: int | None = None


def rerender(
    feedstock: Path,
    *,
    pinning: Path | None = None,
    rules: Rules | None = None,
    platforms: Collection[Platform] | None = None,
    smithy: Release | None = None,
    azure_number: int | None = None,
    migrations: Sequence[Path] = (),
    bounds: Bounds | None = None,
) -> Rerender:
    """The configurations of a feedstock, as conda-smithy of the given rules makes them.

    Args:
        pinning: a folder laid out as the conda-forge-pinning package, or its variant file; without one the recipe's own
            conda_build_config.yaml is the only variant file.
        rules: which versions of conda-smithy and conda-build to follow; default the newest.
        platforms: render only these; default: all in conda-forge.yml.
        smithy: the release of conda-smithy that writes the whole tree; without one `.ci_support` and job lists do.
        azure_number: the feedstock's number at Azure for the README; default: the one in the README.
        migrations: migrations to apply to the feedstock, besides those that it has.
        bounds: what the work may take, in a child process; None to do it in this process.

    Raises:
        InputError: something in the feedstock or pinning is invalid; with file and line.

    >>> found = rerender(Path("solver-feedstock"), pinning=Path("pinning"))
    >>> sorted(found.files)[0], bool(found.changes())
    ('linux_64_cuda_compiler_version12.9.yaml', True)
    """
    only = None if platforms is None else tuple(platforms)
    request = Request(feedstock, rules or Rules.newest(), pinning, only, tuple(migrations), smithy, azure_number)
    return run_bounded(partial(rerendered, request), bounds)


def rerendered(request: Request) -> Rerender:
    """The answer to a request, without bounds; raises `InputError` as `rerender` does."""
    stage("rerendering")
    source = read_source(request.feedstock, request.pinning, request.rules, request.migrations)
    platforms = _rendered_platforms(source, request)
    by_name = {configuration.name: configuration for platform in platforms for configuration in platform.configurations}
    return Rerender(
        request.feedstock,
        tuple(by_name[name] for name in sorted(by_name)),
        source.migrations.finished,
        source.rules,
        request.platforms,
        _tree(source, request, platforms),
        source.migrations.added,
    )


def _rendered_platforms(source: Source, request: Request) -> list[RenderedPlatform]:
    """The requested platforms; one that several providers build in the same way is rendered once."""
    done: dict[object, RenderedPlatform] = {}
    for rendering in source.forge.renderings:
        if request.platforms is not None and rendering.platform not in request.platforms:
            continue
        labels = kept_labels(rendering, source)
        same = (rendering.platform, rendering.keep_noarch, tuple(sorted(rendering.environ.items())), labels)
        if same not in done:
            done[same] = _render(
                source, rendering, labels, PackageWatch(rendering.platform) if request.smithy else None
            )
    return list(done.values())


def _tree(source: Source, request: Request, rendered: Sequence[RenderedPlatform]) -> Tree | None:
    """The whole tree of the feedstock, as the request's release writes it; None without a release."""
    if request.smithy is None:
        return None
    others = _other_platforms(source, request.platforms) if request.platforms is not None else ()
    platforms = [*rendered, *others]
    return whole_tree(
        request.smithy,
        source.rules.smithy,
        source.forge,
        platforms,
        unbuilt=_described_packages(source, platforms),
        azure_number=request.azure_number,
    )


def _other_platforms(source: Source, platforms: tuple[Platform, ...]) -> Iterator[RenderedPlatform]:
    """The platforms whose configurations stay as they are: their jobs and packages belong to the whole tree, too."""
    present = read_configurations(source.forge.folder)
    others = {
        rendering.platform: rendering for rendering in source.forge.renderings if rendering.platform not in platforms
    }
    for rendering in others.values():
        packages = _render(source, rendering, kept_labels(rendering, source), PackageWatch(rendering.platform)).packages
        own = tuple(configuration for configuration in present if configuration.platform == rendering.platform)
        yield RenderedPlatform(rendering.platform.name, own, packages)


def _described_packages(source: Source, platforms: Sequence[RenderedPlatform]) -> tuple[Package, ...]:
    """The packages that the README describes instead of those that are built; none: those that are built."""
    built = next((platform.packages for platform in platforms if platform.packages), ())
    if not describes_plain_recipe(source.rules.smithy):
        return () if built else _unbuilt_packages(source)
    try:
        return _unbuilt_packages(source)
    except InputError:  # conda-smithy then describes the first platform's packages
        if not built:
            raise
        return built


def _unbuilt_packages(source: Source) -> tuple[Package, ...]:
    """What the recipe would make if nothing were skipped, on one platform and without migrations: for the README.

    Selectors see what conda-smithy set for the platform that it rendered last.
    """
    platform = Platform.parse("linux-64")
    behaviour = source.rules.conda_build
    environ = source.forge.renderings[-1].environ if source.forge.renderings else {}
    files = (
        load(path, platform, environ=environ, rules=behaviour, within=source.within(path)) for path in source.files
    )
    config = combine([defaults(platform, behaviour), *files])
    watch = PackageWatch(platform, skipped=True)
    render_everything(source, config, platform, environ, watch)
    return watch.packages


def _render(
    source: Source, rendering: Rendering, labels: tuple[str, ...], watch: PackageWatch | None
) -> RenderedPlatform:
    """The configurations of one platform, by name, and its packages where somebody watches for them."""
    platform, rules = rendering.platform, source.rules
    config = variants_of(source, rendering)
    rendered = _outline(source, config, rendering, watch) or _in_order(
        render_source(source, config, rendering, watch), rules
    )
    outputs: list[RenderedOutput | OutlinedOutput] = [
        output for output in rendered.outputs if rendering.keep_noarch or not output.noarch
    ]
    if not rendered.outputs and source.v1 is not None:
        outputs += _unrendered(source.v1, config, rendering, watch)
    if not outputs:
        return RenderedPlatform(platform.name, (), ())
    settings = JobSettings(
        platform,
        rules,
        kept=labels,
        uses_python_min=any(PYTHON_MIN.match(line) for line in source.text.splitlines()),
        ordered=source.forge.is_v1,
        fallback_image=source.forge.fallback_image if rendering.build_platform.os == "linux" else None,
    )
    jobs = collapse(outputs, config, rendered.space, settings)
    repository = f"{rendered.feedstock_name or outputs[0].name}-feedstock"
    configurations = {}
    for job in jobs:
        name = configuration_name(platform, job.loop_values, repository, rules)
        configurations[name] = Configuration(name, platform, job.values, job.zip_keys, job.pin_run_as_build)
    packages = _packages(watch, rendering, rules) if watch else ()
    return RenderedPlatform(platform.name, tuple(configurations[name] for name in sorted(configurations)), packages)


def _unrendered(
    recipe: ParsedV1, config: VariantConfig, rendering: Rendering, watch: PackageWatch | None
) -> Iterator[RenderedOutput]:
    from feedstock_tools.recipe.v1.recipe import unrendered_v1

    loaded, output = unrendered_v1(recipe, config)
    if not output.skip and (rendering.keep_noarch or not output.noarch):
        if watch is not None:
            watch(loaded, output)
        yield output


def _outline(
    source: Source, config: VariantConfig, rendering: Rendering, watch: PackageWatch | None
) -> OutlinedRecipe | None:
    """The outputs without their contents, where they and their order are not needed for the configurations."""
    recipe, rules = source.v1, source.rules
    if recipe is None or not (rules.sorts_outputs and rules.splits_by_common_keys):
        return None
    from feedstock_tools.recipe.v1.outline import outline_recipe_v1

    return outline_recipe_v1(
        replace(recipe, environ=rendering.environ),
        config,
        rendering.platform,
        all_branches=rules.counts_untaken_branches,
        watch=watch,
    )


def _in_order(recipe: RenderedRecipe, rules: Rules) -> RenderedRecipe:
    if not rules.sorts_outputs:
        return recipe
    return replace(recipe, outputs=tuple(sorted(recipe.outputs, key=lambda output: output.file_stem)))


def _packages(watch: PackageWatch, rendering: Rendering, rules: Rules) -> tuple[Package, ...]:
    packages = [package for package in watch.packages if rendering.keep_noarch or not package.noarch]
    return tuple(sorted(packages, key=lambda package: package.file_stem) if rules.sorts_outputs else packages)


def _content(path: Path, feedstock: Path) -> bytes:
    return read_bytes(path, LARGEST_SCRIPT, within=feedstock) if path.is_file() else b""


def _with_tree(changes: Changes, tree: Tree) -> Changes:
    """The changes of `.ci_support` with those that give a feedstock a whole tree."""
    feedstock = changes.folder
    files: dict[Path, bytes | None] = dict(changes.files)
    executable, seen = dict(changes.executable), dict(changes.seen)
    for name, file in tree.files.items():
        path = feedstock / name
        for part in (path, *path.parents[: len(Path(name).parents) - 1]):
            if part.is_symlink():
                raise InputError("is a link; a rerender writes into the feedstock alone", path=part)
        exists = path.is_file()
        seen[path] = _content(path, feedstock) if exists else None
        if seen[path] != file.content:
            files[path] = file.content
        if file.executable is not None and file.executable != _is_executable(path):
            executable[path] = file.executable
    files.update(dict.fromkeys(feedstock / name for name in tree.removed))
    seen.update(dict.fromkeys(feedstock / name for name in tree.absent))
    return replace(changes, files=files, executable=executable, seen=seen)


def _configuration_changes(
    feedstock: Path,
    wanted: Mapping[str, bytes],
    finished: tuple[Path, ...] = (),
    platforms: tuple[Platform, ...] | None = None,
    added: tuple[Path, ...] = (),
) -> Changes:
    """The changes after which `.ci_support` holds exactly the `wanted` files, without the `finished` migrations.

    `added`: migrations whose copies it holds, too.

    With `platforms`, files of other platforms stay as they are.
    """
    folder = feedstock / CI_SUPPORT
    if folder.is_symlink():
        raise InputError("is a link; configurations are only written into the feedstock itself", path=folder)
    files: dict[Path, bytes | None] = {}
    executable, seen = {}, {}
    for name, content in wanted.items():
        if Path(name).name != name or name.startswith("."):
            raise InputError(f"'{name}' is not a valid name for a configuration")
        path = folder / name
        seen[path] = _content(path, feedstock) if path.is_file() and not path.is_symlink() else None
        if seen[path] != content:
            files[path] = content
        if _is_executable(path):  # conda-smithy deletes all configurations and makes new files
            executable[path] = False
    for path in sorted(folder.glob("*.yaml")):
        if path.name not in wanted and (platforms is None or _is_of(path, platforms)):
            files[path] = None
    files.update(dict.fromkeys(finished))
    files.update((folder / "migrations" / path.name, read_bytes(path, within=None)) for path in added)
    return Changes(feedstock, files, executable, seen)


def _is_executable(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and bool(path.stat().st_mode & 0o100)


def _is_of(path: Path, platforms: tuple[Platform, ...]) -> bool:
    try:
        return platform_of(path, {}) in platforms
    except InputError:
        return False


_CUDA = "cuda_compiler_version"
#: The values of the key in a file as conda-smithy dumps it, which is quicker to find than to parse.
_VALUES = re.compile(rb"^cuda_compiler_version:\n((?:- .*\n)+)", re.MULTILINE)
_NONE = "None"


@dataclass(frozen=True, slots=True)
class LostJobs:
    """All jobs of a kind (`CPU`, `CUDA`) of a platform; `count` is how many there were."""

    platform: Platform
    kind: str
    count: int

    def __str__(self) -> str:
        wish = "cpu" if self.kind == "CPU" else "cuda"
        jobs = "its only" if self.count == 1 else f"all {self.count}"
        ask = f"feedstock-tools why --not {wish} --not {self.platform.subdir}"
        return f"{self.platform.subdir} loses {jobs} {self.kind} job{'' if self.count == 1 else 's'}: `{ask}` says why"


def _kinds(values: Sequence[str]) -> set[str]:
    return {"CPU" if value == _NONE else "CUDA" for value in values} or {"CPU"}


def _present(feedstock: Path) -> Iterator[tuple[Platform, list[str]]]:
    folder = feedstock / CI_SUPPORT
    for path in sorted(folder.glob("*.yaml")) if not folder.is_symlink() else ():
        try:
            platform = platform_of(path, {})
        except InputError:
            continue  # not one of conda-smithy's names
        found = _VALUES.search(read_bytes(path, LARGEST_SETTINGS, within=feedstock))
        items = found[1].decode(errors="replace").splitlines() if found else []
        yield platform, [item[2:].strip("'\"") for item in items]
