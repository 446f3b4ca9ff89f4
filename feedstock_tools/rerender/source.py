"""The source of a rerender: a feedstock's recipe, conda-forge.yml, variant files and migrations, read once.

(Which migrations apply: conda_smithy/configure_feedstock.py, get_migrations_in_dir and set_migration_fns.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import CI_SUPPORT
from feedstock_tools.recipe.model import RenderedOutput, RenderedRecipe
from feedstock_tools.rerender.forge import Forge, Rendering, read_forge
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.variants.files import defaults, load, load_conditional
from feedstock_tools.variants.migration import load_migration, migrate
from feedstock_tools.variants.model import VariantConfig, combine
from feedstock_tools.yaml_reading.nodes import read_texts

_CONFIG = "conda_build_config.yaml"
_MIGRATIONS = Path("share", "conda-forge", "migrations")


#: In place of a pinning: the feedstock needs none.
NoPinning = Literal["none"]


@dataclass(frozen=True, slots=True)
class Pinning:
    """The global pinning: its variant file, and the folder of its migrations, if any."""

    config: Path
    migrations: Path | None


@dataclass(frozen=True, slots=True)
class Migrations:
    """The migrations to apply, those of the feedstock that are over, and those applied that it does not have yet."""

    applied: tuple[Path, ...] = ()
    finished: tuple[Path, ...] = ()
    added: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class _Header:
    path: Path
    timestamp: str | None
    number: str
    use_local: bool


def find_pinning(path: Path) -> Pinning:
    """The pinning at `path`: a folder laid out as the conda-forge-pinning package, its own feedstock, or its variant
    file.

    Raises:
        InputError: there is none.
    """
    folder = path / "recipe" if (path / "recipe" / _CONFIG).is_file() else path
    config = folder / _CONFIG if path.is_dir() else path
    if not config.is_file():
        raise InputError(
            "there is no pinning here",
            path=path,
            hint=f"Give the folder that contains {_CONFIG} and {_MIGRATIONS}, or the file itself.",
        )
    folders = (config.parent / _MIGRATIONS, config.parent / "migrations")
    return Pinning(config, next((place for place in folders if place.is_dir()), None))


def migrations_of(feedstock: Path, pinning: Pinning | None, rules: Rules, added: Sequence[Path] = ()) -> Migrations:
    """Which migrations of a feedstock apply, in the pinning's copy if it has the same migration.

    Args:
        added: more migrations, whether the pinning has them or not; the feedstock's own of the same names do not count.
    """
    own = _migrations_of(feedstock, pinning, rules)
    names = {path.name for path in added}
    applied, finished = (
        tuple(path for path in paths if path.name not in names) for paths in (own.applied, own.finished)
    )
    return Migrations((*added, *applied), finished, tuple(added))


def _migrations_of(feedstock: Path, pinning: Pinning | None, rules: Rules) -> Migrations:
    if rules.migrations_from == "nowhere":
        return Migrations()
    top = rules.migrations_from == "top folder"
    own = _headers(feedstock / "migrations" if top else feedstock / CI_SUPPORT / "migrations", feedstock)
    names = {header.path.name for header in own} if rules.migrations_match_by_name else None
    if rules.migrations_from != "pinning" or pinning is None or pinning.migrations is None:
        return Migrations(tuple(header.path for header in own))
    upstream = {_identity(header, rules): header for header in _headers(pinning.migrations, None, names)}
    finished: list[Path] = []
    from_feedstock: list[Path] = []
    from_pinning: list[Path] = []
    for header in own:
        same = upstream.get(_identity(header, rules))
        timeless = header.timestamp is None and rules.migrations_without_time_kept
        if timeless or (header.use_local and rules.migrations_may_be_local):
            from_feedstock.append(header.path)
        elif same is None:
            finished.append(header.path)
        else:
            unchanged = same.number == header.number
            (from_pinning if unchanged else from_feedstock).append(same.path if unchanged else header.path)
    # conda-smithy orders migrations with the same time stamp by their paths, and so by where its folders are; a
    # feedstock's folder usually sorts before that of the cached pinning.
    return Migrations((*from_feedstock, *from_pinning), tuple(finished))


def _identity(header: _Header, rules: Rules) -> tuple[str | None, ...]:
    return (header.path.name, header.timestamp) if rules.migrations_match_by_name else (header.timestamp,)


def _headers(folder: Path, within: Path | None, names: Collection[str] | None = None) -> list[_Header]:
    """The migrations of a folder; only those with the given names, if names identify migrations."""
    return [_header(path, within) for path in sorted(folder.glob("*.yaml")) if names is None or path.name in names]


def _header(path: Path, within: Path | None) -> _Header:
    content: Any = read_texts(path, within=within) or {}
    settings = content.get("__migrator", {}) if isinstance(content, dict) else None
    if not isinstance(settings, dict):
        raise InputError("a migration and its __migrator must be mappings", path=path)
    timestamp = content.get("migrator_ts")
    return _Header(
        path,
        timestamp if isinstance(timestamp, str) else None,
        str(settings.get("migration_number", "1")),
        str(settings.get("use_local", "false")).lower() == "true",
    )


if TYPE_CHECKING:  # a rerender imports what its format of recipe needs, and no more: importing both takes longer
    from feedstock_tools.recipe.v0.text import RecipeText
    from feedstock_tools.recipe.v1_engine import ParsedV1

_CONDITIONAL_CONFIG = "variants.yaml"


@dataclass(frozen=True)
class Source:
    """The inputs for all platforms: `files` are the variant files in the order in which they are combined.

    `pinning` is conda-forge's, or the user's own; the other files are the feedstock's.
    """

    parsed: RecipeText | ParsedV1
    forge: Forge
    files: list[Path]
    migrations: Migrations
    rules: Rules
    pinning: Pinning | None = None

    @property
    def v1(self) -> ParsedV1 | None:
        """The recipe, if it is a recipe.yaml."""
        return cast("ParsedV1", self.parsed) if self.forge.is_v1 else None

    @property
    def recipe(self) -> Path:
        return self.forge.recipe

    @property
    def text(self) -> str:
        return self.forge.recipe_text

    def within(self, path: Path) -> Path | None:
        """The folder that no link of an input may lead out of: the feedstock, for its own files."""
        pinning = self.pinning
        foreign = pinning is not None and (path == pinning.config or path.parent == pinning.migrations)
        return None if foreign or path in self.migrations.added else self.forge.folder

    @property
    def conditional(self) -> Path | None:
        """The variants.yaml beside a recipe.yaml, if there is one."""
        path = self.recipe.with_name(_CONDITIONAL_CONFIG)
        return path if self.forge.is_v1 and path.is_file() else None

    @property
    def applied_again(self) -> Path | None:
        """The file that older versions applied on top of the migrated variants again, if there is one."""
        own = self.recipe.with_name(_CONFIG)
        return None if self.rules.recipe_config_only_merged or own not in self.files else own


def read_source(feedstock: Path, pinning: Path | None, rules: Rules, added: Sequence[Path] = ()) -> Source:
    """Find the inputs of a feedstock's rerender; `added` are migrations to apply to it."""
    forge = read_forge(feedstock, rules)
    global_pinning = find_pinning(pinning) if pinning else None
    migrations = migrations_of(feedstock, global_pinning, rules, added)
    files = [global_pinning.config] if global_pinning else []
    own = forge.recipe.with_name(_CONFIG)
    if own.is_file():
        files.append(own)
    parsed: RecipeText | ParsedV1
    if forge.is_v1:
        from feedstock_tools.recipe.v1.recipe import without_staging_builds
        from feedstock_tools.recipe.v1_engine import parse_v1

        text = forge.recipe_text
        parsed = parse_v1(without_staging_builds(text, forge.recipe) if rules.merges_staging else text, forge.recipe)
    else:
        from feedstock_tools.recipe.v0.text import recipe_text

        parsed = recipe_text(forge.recipe_text, forge.recipe, rules.conda_build)
    return Source(parsed, forge, files, migrations, rules, global_pinning)


def variants_of(source: Source, rendering: Rendering) -> VariantConfig:
    """The variants of a platform: defaults, pinning and the recipe's own file, with migrations on top."""
    platform, environ, rules = rendering.platform, rendering.environ, source.rules
    behaviour = rules.conda_build
    base = defaults(platform, behaviour)
    within = source.within
    loaded = [load(path, platform, environ=environ, rules=behaviour, within=within(path)) for path in source.files]
    conditional = source.conditional
    typed = (
        [load_conditional(conditional, platform, environ=environ, rules=behaviour, within=within(conditional))]
        if conditional is not None
        else []
    )
    steps = [
        load_migration(path, platform, environ=environ, rules=behaviour, within=within(path))
        for path in source.migrations.applied
    ]
    if not rules.migrations_by_time:
        steps = [replace(step, timestamp=0.0) for step in steps]
    migrated = migrate(combine([base, *loaded, *typed]), steps, rules.migrations)
    again = [config for path, config in zip(source.files, loaded, strict=True) if path == source.applied_again]
    return combine([base, migrated, *again])


def render_source(
    source: Source,
    config: VariantConfig,
    rendering: Rendering,
    watch: Callable[[Any, RenderedOutput], None] | None = None,
) -> RenderedRecipe:
    """The outputs of the recipe on one platform.

    `watch`: called with every output and what it was made from.
    """
    platform, environ = rendering.platform, rendering.environ
    if source.v1 is not None:
        from feedstock_tools.recipe.v1.recipe import render_recipe_v1

        recipe = replace(source.v1, environ=environ)
        return render_recipe_v1(
            recipe, config, platform, all_branches=source.rules.counts_untaken_branches, watch=watch
        )
    from feedstock_tools.recipe.v0.recipe import render_recipe

    return render_recipe(cast("RecipeText", source.parsed), config, platform, environ=environ, watch=watch)


def render_everything(
    source: Source,
    config: VariantConfig,
    platform: Platform,
    environ: Mapping[str, str],
    watch: Callable[[Any, RenderedOutput], None],
) -> None:
    """Show `watch` every output of the recipe on a platform, those that are not built too."""
    if source.v1 is not None:
        from feedstock_tools.recipe.v1.recipe import render_recipe_v1, unrendered_v1

        if not render_recipe_v1(source.v1, config, platform, watch=watch).outputs:
            watch(*unrendered_v1(source.v1, config))
    else:
        from feedstock_tools.recipe.v0.recipe import render_recipe

        recipe = cast("RecipeText", source.parsed)
        render_recipe(recipe, config, platform, environ=environ, watch=watch, keep_skipped=True)


def kept_labels(rendering: Rendering, source: Source) -> tuple[str, ...]:
    """Runner labels stay in the files of jobs whose runner they determine."""
    rules = source.rules
    on_github = rules.keeps_labels == "on GitHub Actions" and rendering.provider == "github_actions"
    own_runners = rules.keeps_labels == "self-hosted" and source.forge.self_hosted
    return ("github_actions_labels",) if on_github or own_runners else ()
