"""What versions of conda-build and conda-smithy do differently with variants, as data that the readers take."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CondaBuildRules", "MigrationRules"]


@dataclass(frozen=True, slots=True)
class CondaBuildRules:
    """Behaviours of conda-build that changed between versions; the defaults are those of the newest."""

    #: A line that is a comment and nothing else is blanked (kept, without text); older versions removed it.
    blank_comment_lines: bool = True
    #: A variable counts as used in `{{ }}` only by its whole name; before, any prefix of the name did.
    whole_names_only: bool = True
    #: `{% for x in v %}` and `{% set y = v %}` count as uses of `v`.
    for_and_set_use: bool = True
    #: `stdlib('c')` counts as a use of `c_stdlib` and `c_stdlib_version`.
    stdlib_uses: bool = True


@dataclass(frozen=True, slots=True)
class MigrationRules:
    """Behaviours of conda-smithy's variant algebra that changed between versions; the defaults are the newest."""

    #: `key_add` compares whole rows of the zip group, and knows `additional_zip_keys`; before, the primary key alone.
    add_whole_rows: bool = True
    #: A migration without an operation takes the rows that its `primary_key` chooses.
    primary_key_chooses_rows: bool = True
    #: With an ordering, lists of different lengths are merged as a whole; before, position by position.
    merge_by_ordering: bool = True
