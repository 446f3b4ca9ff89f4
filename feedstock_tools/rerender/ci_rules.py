"""The fields that versions of conda-smithy write into a CI job: a table with one row for each version with changes.

Read from conda-smithy's `configure_feedstock.py` and its templates, release by release, from 3.6.0 (October 2019) to
2026.8.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from feedstock_tools.rerender.rule_tables import Table
from feedstock_tools.rerender.rules import NEWEST_SMITHY, changes_up_to, numbers_of


@dataclass(frozen=True, slots=True)
class CiRules:
    """How one version of conda-smithy fills its job lists."""

    #: The fields of a job of Azure Pipelines, in order; `*` stands for the workflow settings.
    azure_fields: tuple[str, ...] = ("CONFIG", "CONDA_BLD_PATH", "UPLOAD_PACKAGES", "DOCKER_IMAGE")
    #: Whether fields are written as they are, `UPLOAD_PACKAGES: True`, and `maxParallel` is fixed text (until 3.7.0).
    azure_plain: bool = True
    #: System -> `maxParallel` if conda-forge.yml does not set it.
    azure_parallel: Mapping[str, int] | None = None
    #: Whether `maxParallel` is divided among the systems once there are more jobs than `azure.max_parallel`.
    azure_shares_parallel: bool = False
    #: The fields of a job of GitHub Actions, in order; none before conda-smithy knew GitHub Actions.
    github_fields: tuple[str, ...] = ()
    #: Build platform -> the label of GitHub's own runner.
    hosted_labels: Mapping[str, str] | None = None
    #: Build platform -> the labels that a self-hosted runner has besides `self-hosted`.
    self_hosted_labels: Mapping[str, tuple[str, ...]] | None = None
    #: Whether the whole list of `github_actions_labels` counts, also for GitHub's runners; else only its first value,
    #: and only with `github_actions.self_hosted`.
    all_labels: bool = False
    #: The default for `github_actions_labels` with and without `github_actions.self_hosted`.
    default_labels: tuple[str, str] = ("hosted", "self-hosted")
    #: Whether Linux runners of Namespace use a privileged container.
    namespace_privileged: bool = False
    #: The settings of `workflow_settings`, in order.
    workflow_settings: tuple[str, ...] = ()
    #: A short name keeps this many characters, and this many digits of the long name's hash.
    short_name: tuple[int, int] = (35, 10)
    #: Platforms in the order of conda-smithy's `build_platform`.
    platforms: tuple[str, ...] = (
        "linux_64",
        "linux_aarch64",
        "linux_ppc64le",
        "linux_s390x",
        "linux_armv7l",
        "win_64",
        "osx_64",
    )
    #: Platform -> provider if conda-forge.yml does not set it.
    providers: Mapping[str, str] | None = None
    #: The meaning of `default` and `native` for a platform.
    default_providers: Mapping[str, str] | None = None
    native_providers: Mapping[str, str] | None = None
    #: The meaning of `emulated`, and of `default` for a platform that `default_providers` lacks; none: no meaning.
    default_provider: str | None = None
    #: Whether `emulated` means what `default` means.
    emulated_as_default: bool = False
    #: Whether `default` and `emulated` mean `default_provider` if nothing else defines them, also in lists.
    words_in_lists: bool = False


_HOSTED = {
    "linux-64": "ubuntu-latest",
    "linux-aarch64": "ubuntu-latest",
    "osx-64": "macos-latest",
    "osx-arm64": "macos-latest",
    "win-64": "windows-latest",
    "win-arm64": "windows-latest",
}
_SELF_HOSTED = {
    "linux-64": ("linux", "x64"),
    "linux-aarch64": ("linux", "ARM64"),
    "osx-64": ("macOS", "x64"),
    "osx-arm64": ("macOS", "arm64"),
    "win-64": ("windows", "x64"),
    "win-arm64": ("windows", "ARM64"),
}
# Before 3.28 a separate table, with `self-hosted` in the middle.
_OLD_SELF_HOSTED = {
    "linux-64": ("linux", "self-hosted", "x64"),
    "linux-aarch64": ("linux", "self-hosted", "ARM64"),
    "osx-64": ("macOS", "self-hosted", "x64"),
    "osx-arm64": ("macOS", "self-hosted", "ARM64"),
    "win-64": ("windows", "self-hosted", "x64"),
    "win-arm64": ("windows", "self-hosted", "x64"),
}
_AZURE = {"linux_64": "azure", "osx_64": "azure", "win_64": "azure"}
_ALL_GITHUB = {"linux_64": "github_actions", "osx_64": "github_actions", "win_64": "github_actions"}
_NATIVE_2026 = {
    "linux_64": "github_actions",
    "linux_aarch64": "travis",
    "linux_ppc64le": "travis",
    "linux_s390x": "travis",
    "osx_64": "azure",
    "osx_arm64": "azure",
    "win_64": "github_actions",
    "win_arm64": "github_actions",
}
_DEFAULT_2026 = {
    "linux_64": "github_actions",
    "linux_aarch64": "github_actions",
    "linux_ppc64le": "github_actions",
    "linux_s390x": "github_actions",
    "osx_64": "azure",
    "osx_arm64": "azure",
    "win_64": "azure",
    "win_arm64": "azure",
}
_TRAVIS = {"linux_aarch64": "travis", "linux_ppc64le": "travis", "linux_s390x": "travis"}
_DRONE = {**_TRAVIS, "linux_aarch64": "drone"}
_PLATFORMS = (
    "emscripten_wasm32",
    "freebsd_64",
    "linux_32",
    "linux_64",
    "linux_aarch64",
    "linux_armv6l",
    "linux_armv7l",
    "linux_ppc64",
    "linux_ppc64le",
    "linux_riscv64",
    "linux_s390x",
    "osx_64",
    "osx_arm64",
    "wasi_wasm32",
    "win_32",
    "win_64",
    "win_arm64",
    "zos_z",
)

#: Version -> its changes. A version has the changes of all rows up to it; of labels, a row has only those that change.
_CHANGES: Table = (
    (
        "0",
        {
            "hosted_labels": _HOSTED,
            "self_hosted_labels": _OLD_SELF_HOSTED,
            "providers": _AZURE,
            "default_providers": _DRONE,
            "default_provider": "azure",
            "native_providers": _DRONE,
        },
    ),
    (
        "3.7.1",
        {
            "azure_fields": ("CONFIG", "UPLOAD_PACKAGES", "DOCKER_IMAGE"),
            "azure_parallel": {"linux": 8, "osx": 8, "win": 4},
            "azure_plain": False,
        },
    ),
    ("3.8.1", {"azure_parallel": {}}),
    ("3.10.0", {"github_fields": ("CONFIG", "UPLOAD_PACKAGES", "DOCKER_IMAGE", "os")}),
    ("3.10.2", {"azure_fields": ("CONFIG", "UPLOAD_PACKAGES", "DOCKER_IMAGE", "SHORT_CONFIG_NAME")}),
    ("3.11.0", {"azure_shares_parallel": True}),
    (
        "3.13.0",
        {
            "azure_fields": ("CONFIG", "UPLOAD_PACKAGES", "DOCKER_IMAGE", "SHORT_CONFIG"),
            "github_fields": ("CONFIG", "SHORT_CONFIG", "UPLOAD_PACKAGES", "DOCKER_IMAGE", "os", "labels"),
            "words_in_lists": True,
        },
    ),
    ("3.14.3", {"default_providers": {**_TRAVIS, "linux_aarch64": "azure"}, "native_providers": _TRAVIS}),
    ("3.16.2", {"default_providers": {**_TRAVIS, "linux_aarch64": "azure", "linux_ppc64le": "azure"}}),
    ("3.19.0", {"default_providers": _TRAVIS}),
    (
        "3.28.0",
        {
            "github_fields": (
                *("CONFIG", "SHORT_CONFIG", "UPLOAD_PACKAGES", "os", "runs_on", "DOCKER_IMAGE"),
                "CONDA_FORGE_DOCKER_RUN_ARGS",
            ),
            "self_hosted_labels": _SELF_HOSTED,
        },
    ),
    ("3.32.0", {"platforms": _PLATFORMS}),
    ("3.33.0", {"hosted_labels": {"osx-arm64": "macos-14"}}),
    ("3.35.0", {"hosted_labels": {"osx-64": "macos-13"}}),
    ("3.37.0", {"default_labels": ("self-hosted", "hosted")}),
    ("3.45.3", {"default_providers": dict.fromkeys(_TRAVIS, "azure")}),
    ("3.50.0", {"hosted_labels": {"linux-aarch64": "ubuntu-24.04-arm"}}),
    ("3.50.1", {"short_name": (40, 8)}),
    ("3.52.1", {"hosted_labels": {"osx-arm64": "macos-15"}}),
    ("3.53.0", {"hosted_labels": {"osx-64": "macos-15-intel", "osx-arm64": "macos-latest"}}),
    ("3.55.0", {"azure_fields": ("CONFIG", "UPLOAD_PACKAGES", "DOCKER_IMAGE", "SHORT_CONFIG", "VMIMAGE")}),
    ("3.56.0", {"providers": _ALL_GITHUB}),
    (
        "3.56.1",
        {
            "default_providers": {},
            "default_provider": "github_actions",
            "words_in_lists": False,
            "emulated_as_default": True,
            "native_providers": {
                **_TRAVIS,
                "linux_aarch64": "github_actions",
                "osx_arm64": "github_actions",
                "win_arm64": "github_actions",
            },
        },
    ),
    (
        "3.56.2",
        {
            "providers": _AZURE,
            "default_provider": "azure",
            "native_providers": {**_TRAVIS, "osx_arm64": "azure", "win_arm64": "github_actions"},
        },
    ),
    (
        "3.57.0",
        {
            "all_labels": True,
            "hosted_labels": {"win-arm64": "windows-11-arm"},
            "providers": {**_AZURE, "linux_64": "github_actions"},
            "default_provider": "github_actions",
            "default_providers": _DEFAULT_2026,
            "native_providers": _NATIVE_2026,
        },
    ),
    (
        "3.58.0",
        {"hosted_labels": {"linux-ppc64le": "ubuntu-latest"}, "self_hosted_labels": {"linux-ppc64le": ("linux",)}},
    ),
    (
        "3.61.0",
        {
            "azure_fields": ("CONFIG", "UPLOAD_PACKAGES", "DOCKER_IMAGE", "VMIMAGE", "*", "SHORT_CONFIG"),
            "github_fields": (
                *("CONFIG", "STORE_BUILD_ARTIFACTS", "SHORT_CONFIG", "UPLOAD_PACKAGES", "os", "runs_on"),
                *("DOCKER_IMAGE", "CONDA_FORGE_DOCKER_RUN_ARGS"),
            ),
            "workflow_settings": ("store_build_artifacts",),
        },
    ),
    (
        "3.62.0",
        {
            "azure_fields": (
                *("CONFIG", "UPLOAD_PACKAGES", "DOCKER_IMAGE", "VMIMAGE", "docker_run_args", "*", "SHORT_CONFIG"),
            ),
            "github_fields": (
                *("CONFIG", "STORE_BUILD_ARTIFACTS", "SHORT_CONFIG", "UPLOAD_PACKAGES", "os", "runs_on"),
                *("DOCKER_IMAGE", "tools_install_dir", "build_workspace_dir", "docker_run_args"),
            ),
            "workflow_settings": ("build_workspace_dir", "store_build_artifacts", "tools_install_dir"),
        },
    ),
    ("2026.5.29", {"hosted_labels": {"osx-arm64": "macos-15", "win-64": "windows-2022"}}),
    (
        "2026.6.14",
        {
            "azure_fields": (
                *("CONFIG", "UPLOAD_PACKAGES", "DOCKER_IMAGE", "VMIMAGE", "docker_run_args", "*", "CONFIG_SHORT"),
            ),
            "github_fields": (
                *("CONFIG", "CONFIG_SHORT", "DOCKER_IMAGE", "STORE_BUILD_ARTIFACTS", "UPLOAD_PACKAGES"),
                *("build_workspace_dir", "docker_run_args", "free_disk_space", "os", "pagefile_size"),
                *("resize_partitions", "runs_on", "tools_install_dir"),
            ),
            "namespace_privileged": True,
            "workflow_settings": (
                *("build_workspace_dir", "free_disk_space", "pagefile_size", "resize_partitions"),
                *("store_build_artifacts", "tools_install_dir"),
            ),
        },
    ),
    (
        "2026.8.5",
        {
            "azure_fields": (
                *("CONFIG", "UPLOAD_PACKAGES", "DOCKER_IMAGE", "build_platform", "VMIMAGE", "docker_run_args"),
                *("*", "CONFIG_SHORT"),
            ),
            "github_fields": (
                *("CONFIG", "CONFIG_SHORT", "DOCKER_IMAGE", "STORE_BUILD_ARTIFACTS", "UPLOAD_PACKAGES"),
                *("build_platform", "build_workspace_dir", "docker_run_args", "free_disk_space", "os"),
                *("pagefile_size", "resize_partitions", "runs_on", "tools_install_dir"),
            ),
            "providers": {**_ALL_GITHUB, "osx_64": "azure"},
            "default_providers": {**_DEFAULT_2026, "win_64": "github_actions", "win_arm64": "github_actions"},
            "native_providers": {**_NATIVE_2026, "linux_aarch64": "github_actions"},
        },
    ),
)


@lru_cache(maxsize=64)
def ci_rules(smithy: str | None = None) -> CiRules:
    """The rules of a version of conda-smithy such as `3.14.1` or `2026.8.5`; default: the newest known."""
    version = numbers_of(smithy or NEWEST_SMITHY)
    return CiRules(**changes_up_to(_CHANGES, version, "hosted_labels", "self_hosted_labels"))
