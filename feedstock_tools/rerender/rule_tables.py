"""The tables behind `Rules`: version -> its changes. A version has the changes of all rows up to it.

The first row of each table says how the oldest version differs from the newest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Version → its changes, by setting.
Table = tuple[tuple[str, Mapping[str, Any]], ...]

_CDT = frozenset({"cdt_arch", "cdt_name", "BUILD"})
_SDK = frozenset({"MACOSX_SDK_VERSION"})
_NOT_OF_OUTPUTS = frozenset({"channel_sources", "channel_targets", "docker_image", "build_number_decrement"})
_NONE: frozenset[str] = frozenset()

#: conda-smithy.
SMITHY_CHANGES: Table = (
    (
        "3.1.6",
        {
            "has_build_platforms": False,
            "has_noarch_platforms": False,
            "sets_linux_version": False,
            "sets_cuda_enabled": False,
            "compiler_stack": "comp4",
            "max_py_ver": "36",
            "sets_build_platform": False,
            "knows_recipe_yaml": False,
            "counts_untaken_branches": True,
            "merges_staging": False,
            "recipe_config_only_merged": False,
            "migrations_from": "nowhere",
            "migrations_match_by_name": False,
            "migrations_may_be_local": False,
            "migrations_without_time_kept": False,
            "migrations_by_time": False,
            "migrations": {
                "add_whole_rows": False,
                "knows_additional_zip_keys": False,
                "orders_other_keys": False,
                "primary_key_chooses_rows": False,
                "merge_by_ordering": False,
            },
            "sorts_outputs": False,
            "not_kept": _SDK | _NOT_OF_OUTPUTS,
            "keeps_target_platform": False,
            "keeps_labels": "never",
            "used_with_mpi": (),
            "finds_python_min": False,
            "merges_deployment_target": False,
            "raises_macos_sdk": False,
            "splits_by_common_keys": False,
            "used_values": "as used",
            "unused_loops_leave_zips": False,
            "repeats_zip_groups": False,
            "drops_skipped_configurations": False,
            "docker_image": "unchanged",
            "fallback_image": "condaforge/linux-anvil-comp7",
            "arch_in_names": False,
            "target_in_names": "as a key",
            "underlines_names": False,
            "forbidden_in_names": "",
            "short_name": (49, 35, 10),
            "longest_name": None,
            "names_fit_windows": False,
            "booleans": "quoted",
            "builds_conda_files": False,
            "names_tools_below": False,
        },
    ),
    ("3.1.12", {"not_kept": _SDK, "docker_image": "two compilers"}),
    ("3.1.13", {"kept_too": _CDT}),
    # 3.2.0 was released from another branch than 3.1.13.
    ("3.2.0", {"kept_too": _NONE}),
    ("3.2.4", {"compiler_stack": "comp7", "max_py_ver": "37"}),
    ("3.2.10", {"kept_too": _CDT}),
    ("3.3.5", {"docker_image": "fallback"}),
    ("3.4.1", {"migrations_from": "top folder"}),
    ("3.4.6", {"migrations_from": "feedstock"}),
    ("3.6.0", {"docker_image": "first"}),
    ("3.6.8", {"underlines_names": True}),
    ("3.6.11", {"migrations_from": "pinning"}),
    (
        "3.7.5",
        {
            "has_build_platforms": True,
            "sets_build_platform": True,
            "keeps_target_platform": True,
            "arch_in_names": True,
        },
    ),
    ("3.7.8", {"not_kept": _NONE}),
    (
        "3.8.1",
        {
            "splits_also_by": (
                *("c_compiler_version", "cxx_compiler_version", "fortran_compiler_version", "cuda_compiler_version"),
            )
        },
    ),
    ("3.8.2", {"splits_also_by": ()}),
    ("3.8.4", {"target_in_names": "where other"}),
    ("3.8.5", {"migrations_without_time_kept": True}),
    ("3.8.6", {"docker_image": "first row"}),
    (
        "3.9.0",
        {
            "sets_linux_version": True,
            "recipe_config_only_merged": True,
            "migrations_may_be_local": True,
            "migrations_by_time": True,
            "target_in_names": "never",
            "longest_name": (245, 0),
        },
    ),
    ("3.10.0", {"longest_name": (227, 0)}),
    ("3.10.1", {"fallback_image": "quay.io/condaforge/linux-anvil-comp7"}),
    ("3.15.0", {"sets_cuda_enabled": True}),
    ("3.18.0", {"used_with_mpi": ("mpich", "openmpi")}),
    ("3.19.0", {"has_noarch_platforms": True}),
    ("3.21.3", {"builds_conda_files": True}),
    ("3.26.0", {"migrations": {"knows_additional_zip_keys": True}}),
    ("3.28.0", {"keeps_labels": "self-hosted"}),
    ("3.31.0", {"used_values": "keys in input order"}),
    (
        "3.31.1",
        {"used_values": "rows in input order", "used_with_mpi": ("mpich", "openmpi", "msmpi", "mpi_serial", "impi")},
    ),
    ("3.34.0", {"merges_deployment_target": True, "kept_too": _CDT | {"c_stdlib", "c_stdlib_version"}}),
    ("3.35.0", {"kept_too": _CDT}),
    ("3.35.1", {"unused_loops_leave_zips": True}),
    ("3.36.0", {"raises_macos_sdk": True}),
    ("3.37.0", {"knows_recipe_yaml": True, "repeats_zip_groups": True}),
    ("3.45.4", {"finds_python_min": True}),
    ("3.47.2", {"sorts_outputs": True, "splits_by_common_keys": True}),
    ("3.48.0", {"booleans": "all true"}),
    ("3.48.1", {"booleans": "plain"}),
    (
        "3.50.1",
        {
            "short_name": (49, 40, 8),
            "longest_name": (200, 190),
            "migrations": {"merge_by_ordering": True, "orders_other_keys": True},
        },
    ),
    ("3.51.1", {"migrations": {"primary_key_chooses_rows": True}}),
    ("3.52.0", {"migrations_match_by_name": True, "forbidden_in_names": "/,", "names_tools_below": True}),
    ("3.52.3", {"kept_too": _NONE}),
    ("3.54.0", {"migrations": {"add_whole_rows": True}}),
    ("3.54.2", {"drops_skipped_configurations": True}),
    ("3.55.0", {"forbidden_in_names": '<>:?*,"/|\\'}),
    ("3.56.0", {"longest_name": None, "names_fit_windows": True, "counts_untaken_branches": False}),
    ("3.58.1", {"keeps_labels": "on GitHub Actions"}),
    ("3.61.0", {"merges_staging": True}),
)

#: conda-build.
CONDA_BUILD_CHANGES: Table = (
    (
        "0",
        {
            "blank_comment_lines": False,
            "whole_names_only": False,
            "bare_names_in_braces": True,
            "for_and_set_use": False,
            "whole_names_in_for_and_set": False,
            "first_values_first": False,
            "whole_suffix_in_set": False,
            "anywhere_in_conditions": False,
            "stdlib_uses": False,
            "keep_equal_outputs": False,
            "skipped_is_one_output": False,
            "hash_virtual_packages": False,
            "compiler_uses_sysroot": False,
            "cdt_uses": False,
            "target_platform_used": False,
            "channel_targets_used": False,
            "noarch_newest_python": False,
            "build_platform_selector": False,
            "all_platforms_select": False,
            "architectures_everywhere": False,
            "refuses_empty_groups": False,
            "refuses_empty_constraints": False,
            "r_base_pinned": False,
        },
    ),
    ("3.20.0", {"build_platform_selector": True, "architectures_everywhere": True, "refuses_empty_groups": True}),
    ("3.20.4", {"anywhere_in_conditions": True}),
    ("3.20.5", {"compiler_uses_sysroot": True, "target_platform_used": True, "channel_targets_used": True}),
    ("3.21.0", {"noarch_newest_python": True}),
    ("3.25.0", {"hash_virtual_packages": True}),
    ("3.28.0", {"all_platforms_select": True}),
    ("24.1.0", {"r_base_pinned": True}),
    ("24.3.0", {"stdlib_uses": True}),
    ("24.5.0", {"blank_comment_lines": True}),
    ("24.5.1", {"keep_equal_outputs": True}),
    ("24.7.0", {"refuses_empty_constraints": True}),
    ("24.9.0", {"for_and_set_use": True, "skipped_is_one_output": True}),
    (
        "24.11.0",
        {
            "whole_names_only": True,
            "bare_names_in_braces": False,
            "whole_names_in_for_and_set": True,
            "first_values_first": True,
        },
    ),
    ("25.3.0", {"cdt_uses": True}),
    ("25.11.0", {"whole_suffix_in_set": True}),
    ("26.7.0", {"bare_names_in_braces": True}),
)

#: conda-smithy -> the conda-build that most rerenders by that release were made with, in 10,615 commits of 74
#: feedstocks that name both; for releases that few of them name, the newest on the day of the release.
CONDA_BUILD_OF_ITS_DAY: tuple[tuple[str, str], ...] = (
    *(("3.1.12", "3.12.1"), ("3.2.0", "3.16.2"), ("3.2.1", "3.17.0"), ("3.2.2", "3.17.4"), ("3.2.3", "3.17.6")),
    *(("3.2.10", "3.17.7"), ("3.2.11", "3.17.8"), ("3.3.5", "3.18.2"), ("3.4.0", "3.18.4"), ("3.4.1", "3.18.7")),
    *(("3.4.2", "3.18.9"), ("3.6.1", "3.18.11"), ("3.6.10", "3.18.12"), ("3.6.12", "3.19.0"), ("3.6.13", "3.19.1")),
    *(("3.6.16", "3.19.2"), ("3.6.17", "3.19.3"), ("3.7.10", "3.20.2"), ("3.8.0", "3.20.3"), ("3.8.2", "3.20.4")),
    *(("3.8.3", "3.20.5"), ("3.8.6", "3.21.4"), ("3.15.0", "3.21.6"), ("3.15.1", "3.21.7"), ("3.16.2", "3.21.8")),
    *(("3.21.0", "3.21.9"), ("3.21.2", "3.22.0"), ("3.22.0", "3.23.1"), ("3.22.1", "3.23.2"), ("3.23.0", "3.23.3")),
    *(("3.24.0", "3.25.0"), ("3.25.0", "3.26.1"), ("3.27.0", "3.27.0"), ("3.30.2", "3.28.2"), ("3.30.3", "3.28.3")),
    *(("3.31.0", "24.1.2"), ("3.34.0", "24.3.0"), ("3.35.1", "24.5.0"), ("3.36.1", "24.5.1"), ("3.37.2", "24.7.1")),
    *(("3.40.1", "24.9.0"), ("3.44.8", "24.11.1"), ("3.44.9", "24.11.2"), ("3.45.3", "25.1.1"), ("3.46.0", "25.1.2")),
    *(("3.47.1", "25.3.1"), ("3.47.2", "25.4.1"), ("3.48.0", "25.4.2"), ("3.50.0", "25.5.0"), ("3.52.0", "25.7.0")),
    *(("3.53.0", "25.9.0"), ("3.53.3", "25.11.0"), ("3.54.0", "25.11.1"), ("3.54.2", "26.1.0"), ("3.58.1", "26.3.0")),
    *(("3.62.0", "26.5.0"), ("2026.8.5", "26.7.1")),
)

#: conda-smithy -> the rattler-build-conda-compat that most rerenders by that release were made with.
COMPAT_OF_ITS_DAY: tuple[tuple[str, str], ...] = (
    *(("3.52.0", "1.4.6"), ("3.53.0", "1.4.9"), ("3.53.3", "1.4.10"), ("3.55.1", "1.4.11"), ("3.60.0", "1.4.12")),
    *(("3.61.0", "1.4.13"), ("3.61.2", "1.4.14"), ("2026.6.14", "1.4.15"), ("2026.8.5", "1.4.18")),
)
