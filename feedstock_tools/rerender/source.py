"""The source of a rerender: a feedstock's recipe, conda-forge.yml, variant files and migrations, read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput, RenderedRecipe
from feedstock_tools.rerender.forge import Forge, Rendering, read_forge
from feedstock_tools.rerender.pinning import Migrations, Pinning, find_pinning, migrations_of
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.variants import VariantConfig, combine, defaults, load, load_migration, migrate
from feedstock_tools.variants.conditional import load_conditional

if TYPE_CHECKING:  # a rerender imports what its format of recipe needs, and no more: importing both takes longer
    from feedstock_tools.recipe.v0.recipe import Recipe
    from feedstock_tools.recipe.v1_engine import ParsedV1

_RECIPE_CONFIG = "conda_build_config.yaml"
_CONDITIONAL_CONFIG = "variants.yaml"


@dataclass(frozen=True)
class Source:
    """The inputs for all platforms: `files` are the variant files in the order in which they are combined.

    `pinning` is conda-forge's, or the user's own; the other files are the feedstock's.
    """

    parsed: Recipe | ParsedV1
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
        """The file of the recipe."""
        return self.forge.recipe

    @property
    def text(self) -> str:
        """Its text."""
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
        own = self.recipe.with_name(_RECIPE_CONFIG)
        return None if self.rules.recipe_config_only_merged or own not in self.files else own


def read_source(feedstock: Path, pinning: Path | None, rules: Rules, added: Sequence[Path] = ()) -> Source:
    """Find the inputs of a feedstock's rerender; `added` are migrations to apply to it.

    Raises:
        InputError: the feedstock, its recipe or the pinning is missing, or conda-forge.yml is invalid.
    """
    forge = read_forge(feedstock, rules)
    global_pinning = find_pinning(pinning) if pinning else None
    migrations = migrations_of(feedstock, global_pinning, rules, added)
    files = [global_pinning.config] if global_pinning else []
    own = forge.recipe.with_name(_RECIPE_CONFIG)
    if own.is_file():
        files.append(own)
    parsed: Recipe | ParsedV1
    if forge.is_v1:
        from feedstock_tools.recipe.v1.staging import without_staging_builds
        from feedstock_tools.recipe.v1_engine import parse_v1

        text = forge.recipe_text
        parsed = parse_v1(without_staging_builds(text, forge.recipe) if rules.merges_staging else text, forge.recipe)
    else:
        from feedstock_tools.recipe.v0.recipe import parse_recipe

        parsed = parse_recipe(forge.recipe_text, forge.recipe, rules.conda_build)
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

    return render_recipe(cast("Recipe", source.parsed), config, platform, environ=environ, watch=watch)


def render_everything(
    source: Source,
    config: VariantConfig,
    platform: Platform,
    environ: Mapping[str, str],
    watch: Callable[[Any, RenderedOutput], None],
) -> None:
    """Show `watch` every output of the recipe on a platform, those that are not built too."""
    if source.v1 is not None:
        from feedstock_tools.recipe.v1.recipe import render_recipe_v1

        render_recipe_v1(source.v1, config, platform, watch=watch)
    else:
        from feedstock_tools.recipe.v0.recipe import render_recipe

        recipe = cast("Recipe", source.parsed)
        render_recipe(recipe, config, platform, environ=environ, watch=watch, keep_skipped=True)


def kept_labels(rendering: Rendering, source: Source) -> tuple[str, ...]:
    """Runner labels stay in the files of jobs whose runner they determine."""
    rules = source.rules
    on_github = rules.keeps_labels == "on GitHub Actions" and rendering.provider == "github_actions"
    own_runners = rules.keeps_labels == "self-hosted" and source.forge.self_hosted
    return ("github_actions_labels",) if on_github or own_runners else ()
