"""The differences between versions of conda-smithy and conda-build in how they rerender.

Read from the histories of conda-smithy (`configure_feedstock.py`, `variant_algebra.py`; 3.1.6 to 2026.8.5) and of
conda-build (`metadata.py`, `variants.py`, `render.py`; 3.18 to 26.7.1), release by release.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from feedstock_tools import __version__
from feedstock_tools.errors import InputError
from feedstock_tools.rerender import rule_tables
from feedstock_tools.variants.rules import CondaBuildRules, MigrationRules

#: The newest versions whose source was read.
NEWEST_SMITHY = "2026.8.5"
NEWEST_CONDA_BUILD = "26.7.1"

_KEPT = frozenset(
    {
        *("zip_keys", "pin_run_as_build", "MACOSX_DEPLOYMENT_TARGET", "MACOSX_SDK_VERSION", "macos_min_version"),
        *("macos_machine", "channel_sources", "channel_targets", "docker_image", "build_number_decrement"),
    }
)


@dataclass(frozen=True, slots=True)
class Rules:
    """How one version of conda-smithy with one of conda-build rerenders; the defaults are the newest of both.

    The function of conda-smithy's `configure_feedstock.py` that a field comes from is in brackets, after the version
    from which the default holds.
    """

    smithy: str = NEWEST_SMITHY
    conda_build_version: str = NEWEST_CONDA_BUILD
    #: The rules of conda-build.
    conda_build: CondaBuildRules = field(default_factory=CondaBuildRules)
    #: How migrations are applied (variant_algebra.py).
    migrations: MigrationRules = field(default_factory=MigrationRules)

    # Which platforms and which migrations.
    #: Platforms are those of `build_platform`; before, the keys of `provider` named them, `linux` for `linux_64`
    #: (3.7.5, `_get_platforms_of_provider`).
    has_build_platforms: bool = True
    #: Noarch outputs are rendered on `noarch_platforms`; before, on linux-64 (3.19.0, `_get_platforms_of_provider`).
    has_noarch_platforms: bool = True
    #: `os_version` sets DEFAULT_LINUX_VERSION for selectors (3.9.0, `_render_ci_provider`).
    sets_linux_version: bool = True
    #: `compiler('cuda')` in the recipe sets CF_CUDA_ENABLED for selectors (3.15.0, `_render_ci_provider`).
    sets_cuda_enabled: bool = True
    #: What CF_COMPILER_STACK and CF_MAX_PY_VER say without a setting (3.2.4, `_render_ci_provider`).
    compiler_stack: str = "comp7"
    max_py_ver: str = "37"
    #: BUILD_PLATFORM and CONFIG_VERSION are set for selectors (3.7.5, `_render_ci_provider`).
    sets_build_platform: bool = True
    #: `conda_build_tool: rattler-build` renders recipe.yaml (3.37.0, `_render_ci_provider`).
    knows_recipe_yaml: bool = True
    #: In recipe.yaml variables count as used in branches that are not taken, too: rattler-build until 0.57, which was
    #: current until conda-smithy 3.56.0.
    counts_untaken_branches: bool = False
    #: Of a staging output in recipe.yaml only requirements and sources count: rattler-build-conda-compat from a version
    #: after 1.4.11, current from about conda-smithy 3.61.0 on.
    merges_staging: bool = True
    #: The recipe's conda_build_config.yaml is ignored while the recipe is rendered; before, it was applied on top of
    #: the migrated variants again (3.9.0, `_render_ci_provider`).
    recipe_config_only_merged: bool = True
    #: Where migrations come from: nowhere (before 3.4.1), the feedstock (`migrations/`, and from 3.4.6
    #: `.ci_support/migrations/`), or the pinning if it has the same one (3.6.11, `set_migration_fns`).
    migrations_from: Literal["nowhere", "top folder", "feedstock", "pinning"] = "pinning"
    #: A migration of the feedstock equals one of the pinning if name and time stamp agree; before, the time stamp alone
    #: (3.52.0, `get_migrations_in_dir`).
    migrations_match_by_name: bool = True
    #: A migration may set `use_local` (3.9.0), and one without a time stamp is kept (3.8.5, `set_migration_fns`).
    migrations_may_be_local: bool = True
    migrations_without_time_kept: bool = True
    #: Migrations are applied ordered by time stamp; before, by path (3.9.0,
    #: `migrate_combined_spec`).
    migrations_by_time: bool = True

    # Which outputs count.
    #: Outputs are sorted by name, version and build string (3.47.2, `_render_ci_provider`).
    sorts_outputs: bool = True

    # Which keys a configuration holds (`_collapse_subpackage_variants`).
    #: Keys kept whether used or not: `cdt_arch`, `cdt_name` and `BUILD` too until 3.52.2, `c_stdlib` and
    #: `c_stdlib_version` too in 3.34.
    always_kept: frozenset[str] = _KEPT
    #: `target_platform` is kept unless all is noarch (3.7.5).
    keeps_target_platform: bool = True
    #: When `github_actions_labels` is kept: on GitHub Actions (3.58.1), with `github_actions.self_hosted` (3.28.0), or
    #: never.
    keeps_labels: Literal["never", "self-hosted", "on GitHub Actions"] = "on GitHub Actions"
    #: Keys that are used wherever `mpi` is (3.18.0, more from 3.31.1).
    used_with_mpi: tuple[str, ...] = ("mpich", "openmpi", "msmpi", "mpi_serial", "impi")
    #: `python_min` is used by a recipe that contains `{{ python_min }}` (3.45.4).
    finds_python_min: bool = True
    #: On macOS `c_stdlib_version` and MACOSX_DEPLOYMENT_TARGET become the higher of both (3.34.0), and
    #: MACOSX_SDK_VERSION is at least that (3.36.0, `_merge_deployment_target`).
    merges_deployment_target: bool = True
    raises_macos_sdk: bool = True
    #: The keys that split jobs are common to all outputs; before, those of the first output (3.47.2).
    splits_by_common_keys: bool = True
    #: Keys that split jobs wherever they are used (only in 3.8.1).
    splits_also_by: tuple[str, ...] = ()

    # Which values (`_get_used_key_values_by_input_order`).
    #: How used values are arranged: zipped rows that are used in the order of the input (3.31.1), 3.31.0's attempt at
    #: that (each key on its own), or as they come from the used variants.
    used_values: Literal["as used", "keys in input order", "rows in input order"] = "rows in input order"
    #: A key that splits jobs and is used by no output has all input values unless it is zipped (3.35.1).
    unused_loops_leave_zips: bool = True
    #: A zip group that appears in two orders in the files is written twice; before, once (3.37.0, `HashableDict`).
    repeats_zip_groups: bool = True
    #: A configuration that no output is built for is dropped (3.54.2, `_is_config_skipped`).
    drops_skipped_configurations: bool = True
    #: Which docker image (`finalize_config`): the first, with its zip group limited to it (3.8.6); the first (3.6.0);
    #: the fallback if there is none (3.3.5); where no compiler is used, the last of the two images of 2018, and one
    #: value for the channels and the decrement (3.1.12); or unchanged.
    docker_image: Literal["unchanged", "two compilers", "fallback", "first", "first row"] = "first row"
    #: The image where no setting names one: before, without its host (3.10.1, `_load_forge_config`).
    fallback_image: str = "quay.io/condaforge/linux-anvil-comp7"

    # How a configuration is named and written (`dump_subspace_config_files`, `package_key`).
    #: Names begin with `linux_64`; before, with `linux` for the architecture 64 (3.7.5).
    arch_in_names: bool = True
    #: How `target_platform` is named: not at all (3.9.0), if it is not the rendered platform (3.8.4), or like any key.
    target_in_names: Literal["never", "where other", "as a key"] = "never"
    #: `*` and blanks become `_` in names (3.6.8).
    underlines_names: bool = True
    #: Characters that are removed from names (`/,` in 3.52.0, all those forbidden on Windows in 3.55.0).
    forbidden_in_names: str = '<>:?*,"/|\\'
    #: Short names: names with at least the first number of characters are cut to the second, and get a hash of the
    #: third (3.50.1).
    short_name: tuple[int, int, int] = (49, 40, 8)
    #: Names with at least the first number of characters are cut to the second, with `_h` and a hash; 0: to the
    #: short name. None: the rule below holds, or none at all.
    longest_name: tuple[int, int] | None = None
    #: Names are cut so that their path fits on Windows (3.56.0).
    names_fit_windows: bool = True
    #: How `true` and `false` are written: plain (3.48.1), both as `true` (3.48.0), or quoted.
    booleans: Literal["quoted", "all true", "plain"] = "plain"

    # Packages and commits.
    #: Packages are `.conda` files without a setting: conda-forge built `.tar.bz2` until autumn 2022 (3.21.3).
    builds_conda_files: bool = True
    #: The message of a commit names other tools below its subject (3.52.0, `commit_changes`).
    names_tools_below: bool = True

    @classmethod
    def newest(cls) -> Rules:
        """The rules of the newest known versions."""
        return cls()

    @classmethod
    def parse(cls, text: str) -> Rules:
        """The rules of `SMITHY`, `SMITHY+` or `SMITHY+CONDA_BUILD`, such as `3.14.1+3.21.4`.

        The default for conda-build is the version that most rerenders by that conda-smithy were made with. Versions
        newer than the known ones behave as the newest of these.

        >>> Rules.parse("3.52.2").always_kept - Rules.parse("3.52.3").always_kept == {"BUILD", "cdt_arch", "cdt_name"}
        True
        >>> Rules.parse("3.14.1").conda_build_version
        '3.21.4'
        """
        smithy, _, conda_build = text.strip().partition("+")
        return _rules(smithy.strip(), conda_build.strip())

    @property
    def name(self) -> str:
        """The text that `parse` reads: `3.14.1+3.21.4`."""
        return f"{self.smithy}+{self.conda_build_version}"

    @property
    def note(self) -> str | None:
        """Which version is newer than the newest known one, for people; None if both are known."""
        for tool, version, newest in (
            ("conda-smithy", self.smithy, NEWEST_SMITHY),
            ("conda-build", self.conda_build_version, NEWEST_CONDA_BUILD),
        ):
            if numbers_of(version, tool) > numbers_of(newest, tool):
                return f"{tool} {version} is newer than {newest}, the newest known version, whose rules are used"
        return None

    def commit_message(self, pinning: str | None) -> str:
        """conda-smithy's message for a rerender by these rules, which also names this program.

        Args:
            pinning: the version of conda-forge-pinning; None if it is unknown.

        >>> print(Rules.parse("3.50.1+25.3.1").commit_message("2025.06.01.00.00.00"))
        MNT: Re-rendered with conda-build 25.3.1, conda-smithy 3.50.1, and conda-forge-pinning 2025.06.01.00.00.00
        """
        from importlib.metadata import version  # needed where a rerender is committed

        if not self.names_tools_below:
            last = f", conda-smithy {self.smithy}, and conda-forge-pinning {pinning}"
            return (
                f"MNT: Re-rendered with conda-build {self.conda_build_version}"
                f"{last if pinning else f' and conda-smithy {self.smithy}'}"
            )
        subject = f"MNT: Re-rendered with conda-smithy {self.smithy}"
        if pinning:
            subject += f" and conda-forge-pinning {pinning}"
        tools = {
            "conda-build": self.conda_build_version,
            "rattler-build": version("py-rattler-build"),
            "rattler-build-conda-compat": _of_its_day(rule_tables.COMPAT_OF_ITS_DAY, numbers_of(self.smithy)),
            "feedstock-tools": __version__,
        }
        return "\n".join([subject, "", "Other tools:", *(f"- {tool} {number}" for tool, number in tools.items())])


@lru_cache(maxsize=64)
def _rules(smithy: str, conda_build: str) -> Rules:
    wanted = numbers_of(smithy)
    if wanted < (3, 1, 6):
        raise InputError(f"conda-smithy {smithy} is too old", hint="The rules of 3.1.6 and later are known.")
    built_with = conda_build or _of_its_day(rule_tables.CONDA_BUILD_OF_ITS_DAY, wanted)
    changes = changes_up_to(rule_tables.SMITHY_CHANGES, wanted, "migrations")
    migrations = changes.pop("migrations", {})
    kept = _KEPT - changes.pop("not_kept", frozenset()) | changes.pop("kept_too", frozenset())
    return replace(
        Rules(),
        smithy=smithy,
        conda_build_version=built_with,
        conda_build=CondaBuildRules(
            **changes_up_to(rule_tables.CONDA_BUILD_CHANGES, numbers_of(built_with, "conda-build"))
        ),
        migrations=MigrationRules(**migrations),
        always_kept=kept,
        **changes,
    )


def changes_up_to(table: rule_tables.Table, wanted: tuple[int, ...], *merged: str) -> dict[str, Any]:
    """The settings of a version: the changes of all rows up to it, later ones over earlier ones.

    Args:
        merged: the settings that are mappings, of which a row has only the keys that change.
    """
    settings: dict[str, Any] = {}
    for version, changes in table:
        if wanted >= numbers_of(version):
            for key, value in changes.items():
                settings[key] = {**settings.get(key, {}), **value} if key in merged else value
    return settings


def _of_its_day(table: tuple[tuple[str, str], ...], smithy: tuple[int, ...]) -> str:
    made_with = [tool for version, tool in table if smithy >= numbers_of(version)]
    return made_with[-1] if made_with else table[0][1]


def numbers_of(version: str, tool: str = "conda-smithy") -> tuple[int, ...]:
    """The numbers of a version.

    Raises:
        InputError: the text is not a version of the tool.
    """
    parts = version.removeprefix("v").split(".")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise InputError(
            f"'{version}' is not a version of {tool}",
            hint="Give a version of conda-smithy, optionally with one of conda-build after a plus sign: 3.14.1+3.21.4.",
        )
    return tuple(int(part) for part in parts)
