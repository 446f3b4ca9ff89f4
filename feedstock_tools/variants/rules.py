"""The differences between versions of conda-build and conda-smithy in handling variants, as data for the readers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CondaBuildRules:
    """Behaviours of conda-build that changed between versions; the defaults are those of the newest.

    `rerender/rule_tables.py` says which version has which. The sources are functions of conda-build:
    `find_used_variables_in_text` and `DEFAULT_VARIANTS` of variants.py, `select_lines`, `get_selectors`,
    `get_used_vars` and `get_hash_contents` of metadata.py, `distribute_variants` of render.py.
    """

    #: A line with only a comment is blanked (kept, without text); older versions removed it (24.5.0).
    blank_comment_lines: bool = True
    #: A variable counts as used in `{{ }}` only by its whole name; before, any prefix of the name did (24.11.0).
    whole_names_only: bool = True
    #: `{{v}}`, with nothing between the name and the braces, counts; from 24.11.0 to 26.5 some character had to follow.
    bare_names_in_braces: bool = True
    #: `{% for x in v %}` and `{% set y = v %}` count as uses of `v` (24.9.0).
    for_and_set_use: bool = True
    #: In `{% for %}` and `{% set %}` a variable counts only if its name ends there; before, a prefix did (24.11.0).
    whole_names_in_for_and_set: bool = True
    #: The first parse, whose requirements decide what the top level loops over, uses the first values of the variant
    #: files; before, conda-build's defaults (24.11.0).
    first_values_first: bool = True
    #: In `{% set y = … %}` a variable counts only if its name begins there; before, a suffix did (25.11.0).
    whole_suffix_in_set: bool = True
    #: In `{% if … %}` a variable counts anywhere; before, only right after `if` (3.20.4).
    anywhere_in_conditions: bool = True
    #: `stdlib('c')` counts as a use of `c_stdlib` and `c_stdlib_version`, and of CONDA_BUILD_SYSROOT (24.3.0).
    stdlib_uses: bool = True
    #: Outputs that render alike in several variants are all kept; before, only the last of them (24.5.1).
    keep_equal_outputs: bool = True
    #: A recipe that its top level skips is one output; before, its outputs were skipped ones (24.9.0).
    skipped_is_one_output: bool = True
    #: Virtual packages in `run` (`__cuda`) are part of a package's hash (3.25.0).
    hash_virtual_packages: bool = True
    #: A use of `c_compiler` or `cxx_compiler` also counts as a use of CONDA_BUILD_SYSROOT (3.20.5).
    compiler_uses_sysroot: bool = True
    #: `cdt('x')` counts as a use of every `cdt_*` key (25.3.0).
    cdt_uses: bool = True
    #: `target_platform` counts as used by everything but noarch outputs; before, only if it is not the rendered
    #: platform (3.20.5).
    target_platform_used: bool = True
    #: `channel_targets` counts as used by every output (3.21.0; 3.20.5 counted it as a requirement).
    channel_targets_used: bool = True
    #: A noarch recipe is rendered for the newest Python only; before, for the first in the list (3.21.0).
    noarch_newest_python: bool = True
    #: `build_platform` is a selector (3.20.0).
    build_platform_selector: bool = True
    #: Every system and architecture of conda is a selector; before, those of Linux, macOS and Windows (3.28.0).
    all_platforms_select: bool = True
    #: Architectures besides x86 select on every system; before, on Linux only, so `arm64` was not a selector (3.20.0).
    architectures_everywhere: bool = True
    #: A zip group that selectors leave empty makes a file invalid; before, it was skipped (3.20.0).
    refuses_empty_groups: bool = True
    #: Empty items of `run_constrained` are refused, as those of other requirements always were (24.7.0).
    refuses_empty_constraints: bool = True
    #: `pin_run_as_build` contains `r-base` besides `python` by default (24.1.0).
    r_base_pinned: bool = True


@dataclass(frozen=True, slots=True)
class MigrationRules:
    """Behaviours of conda-smithy's variant algebra that changed between versions; the defaults are the newest."""

    #: `key_add` compares whole rows of the zip group, and supports `additional_zip_keys`; before, only the primary key.
    add_whole_rows: bool = True
    #: `key_add` supports `additional_zip_keys`, and leaves other zipped keys that it does not set empty (3.26.0).
    knows_additional_zip_keys: bool = True
    #: `key_add` merges keys that have an ordering and are neither primary nor newly zipped (3.50.1).
    orders_other_keys: bool = True
    #: A migration without an operation uses the rows that its `primary_key` selects.
    primary_key_chooses_rows: bool = True
    #: With an ordering, lists of different lengths are merged as a whole; before, position by position.
    merge_by_ordering: bool = True
