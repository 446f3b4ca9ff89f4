"""The parameters of a CI job: its runner, image and settings, by version of conda-smithy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.ci_rules import ci_rules
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.smithy.jobs import Job, azure_jobs, github_jobs, short_name

NAMESPACE = "namespace-profile-a-on-linux-64;container.privileged=true;container.mount-scratch=true"


def fields(job: Job) -> dict[str, Any]:
    return dict(job.fields)


def test_today_s_jobs_of_github_actions_carry_the_workflow_settings(
    configuration: Callable[..., Configuration],
) -> None:
    forge = {
        "docker": {"run_args": "--cpus 2"},
        "workflow_settings": {"store_build_artifacts": [{"os": "linux", "value": True}], "pagefile_size": 4},
    }
    linux, windows = github_jobs([configuration("linux_64_"), configuration("win_64_")], forge, ci_rules("2026.8.5"))
    assert list(fields(linux).items()) == [
        ("CONFIG", "linux_64_"),
        ("CONFIG_SHORT", "linux_64_"),
        ("DOCKER_IMAGE", "image:new"),
        ("STORE_BUILD_ARTIFACTS", "True"),
        ("UPLOAD_PACKAGES", "True"),
        ("build_workspace_dir", "build_artifacts"),
        ("docker_run_args", "--cpus 2"),
        ("free_disk_space", "skip"),
        ("os", "ubuntu"),
        ("pagefile_size", "4"),
        ("resize_partitions", "False"),
        ("runs_on", "['ubuntu-latest']"),
        ("tools_install_dir", "~/miniforge3"),
    ]
    assert fields(windows) == {
        "CONFIG": "win_64_",
        "STORE_BUILD_ARTIFACTS": "False",
        "UPLOAD_PACKAGES": "True",
        "build_platform": "win-64",
        "build_workspace_dir": r"D:\\bld\\",
        "docker_run_args": "",
        "free_disk_space": "skip",
        "os": "windows",
        "pagefile_size": "4",
        "resize_partitions": "False",
        "runs_on": "['windows-2022']",
        "tools_install_dir": r"D:\Miniforge",
    }


@pytest.mark.parametrize(
    ("version", "self_hosted", "labels", "runs_on"),
    [
        ("3.36.0", False, (), ["ubuntu-latest"]),
        ("3.36.0", True, (), ["ubuntu-latest"]),  # the default was the wrong way round until 3.37
        ("3.37.0", True, (), ["linux", "x64", "self-hosted"]),
        ("3.54.1", True, ("hosted",), ["ubuntu-latest"]),
        ("3.54.1", True, ("big", "never read"), ["big", "linux", "x64", "self-hosted"]),
        ("3.54.1", False, ("big",), ["ubuntu-latest"]),
        ("3.57.0", False, ("big", "bigger"), ["big", "bigger"]),
        ("3.57.0", False, ("default",), ["ubuntu-latest"]),
        ("3.57.0", False, ("self-hosted@big",), ["big", "linux", "x64", "self-hosted"]),
        ("3.57.0", False, ("cirun-big",), ["cirun-big--${{ github.run_id }}-linux_64_"]),
        ("2026.6.14", False, ("namespace-profile-a-on-linux-64",), [NAMESPACE]),
    ],
)  # fmt: skip
def test_labels_choose_the_runner(
    configuration: Callable[..., Configuration],
    version: str,
    self_hosted: bool,
    labels: tuple[str, ...],
    runs_on: list[str],
) -> None:
    values = {"github_actions_labels": labels} if labels else {}
    forge = {"provider": {"linux_64": "github_actions"}, "github_actions": {"self_hosted": self_hosted}}
    (job,) = github_jobs([configuration("linux_64_", **values)], forge, ci_rules(version))
    assert job.fields["runs_on"] == str(runs_on)


@pytest.mark.parametrize(
    ("version", "field", "value"),
    [("3.54.1", "CONDA_FORGE_DOCKER_RUN_ARGS", '"--gpus all"'), ("3.62.0", "docker_run_args", " --gpus all")],
)
def test_a_runner_with_a_gpu_gives_it_to_docker(
    configuration: Callable[..., Configuration], version: str, field: str, value: str
) -> None:
    forge = {"provider": {"linux_64": "github_actions"}, "github_actions": {"self_hosted": True}}
    labelled = configuration("linux_64_", github_actions_labels=("linux-GPU-x64",))
    (job,) = github_jobs([labelled], forge, ci_rules(version))
    assert job.fields[field] == value


def test_a_job_of_github_actions_cannot_hold_a_second_line(configuration: Callable[..., Configuration]) -> None:
    forge = {"docker": {"run_args": "--cpus 2\n          - CONFIG: other"}}
    with pytest.raises(InputError, match="docker_run_args of a job of GitHub Actions must be one line"):
        github_jobs([configuration("linux_64_")], forge, ci_rules())


def test_a_mac_is_named_by_what_it_builds_on(configuration: Callable[..., Configuration]) -> None:
    forge = {"build_platform": {"osx_arm64": "osx_64"}}
    (cross,) = azure_jobs([configuration("osx_arm64_")], forge, ci_rules("2026.8.5"))
    (native,) = azure_jobs([configuration("osx_arm64_")], {"provider": {"osx_arm64": "azure"}}, ci_rules("2026.8.5"))
    assert (cross.fields["VMIMAGE"], native.fields["VMIMAGE"]) == ("macOS-15", "macOS-15-arm64")


def test_packages_are_not_uploaded_where_the_provider_is_told_not_to(
    configuration: Callable[..., Configuration],
) -> None:
    (job,) = azure_jobs([configuration("osx_64_")], {"azure": {"upload_packages": False}}, ci_rules())
    assert job.fields["UPLOAD_PACKAGES"] == "False"


def test_old_settings_of_azure_become_workflow_settings(configuration: Callable[..., Configuration]) -> None:
    forge = {
        "provider": {"win_64": "azure", "linux_64": "azure"},
        "azure": {
            "store_build_artifacts": True,
            "free_disk_space": ["docker", "apt"],
            "settings_linux": {"swapfile_size": "10GiB", "variables": {"CONDA_FORGE_DOCKER_RUN_ARGS": "--ipc host"}},
            "settings_win": {"variables": {"CONDA_BLD_PATH": r"C:\\b\\", "SET_PAGEFILE": "True"}},
        },
    }
    linux, windows = azure_jobs([configuration("linux_64_"), configuration("win_64_")], forge, ci_rules("2026.8.5"))
    assert fields(linux) == {
        "CONFIG": "linux_64_",
        "UPLOAD_PACKAGES": "True",
        "DOCKER_IMAGE": "image:new",
        "docker_run_args": "--ipc host",
        "build_workspace_dir": "build_artifacts",
        "free_disk_space": "max",
        "pagefile_size": 10,
        "resize_partitions": False,
        "store_build_artifacts": True,
        "tools_install_dir": "~/miniforge3",
        "CONFIG_SHORT": "linux_64_",
    }
    assert (windows.fields["build_workspace_dir"], windows.fields["pagefile_size"]) == (r"C:\\b\\", 16)
    assert windows.fields["tools_install_dir"] == r"D:\Miniforge"


@pytest.mark.parametrize(
    ("version", "long", "short"),
    [
        ("3.14.1", "linux_64_" + 10 * "c1", "linux_64_" + 10 * "c1"),
        ("3.14.1", "linux_64_" + 40 * "c1", "linux_64_c1c1c1c1c1c1c1c1c1c1c1c1c1_hb8bdc1c6d3"),
        ("3.50.1", "linux_64_" + 40 * "c1", "linux_64_c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c_hb8bdc1c6"),
        ("2026.8.5", "linux_64_" + 80 * "c1" + "_h01234567", "linux_64_c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c_h01234567"),
    ],
)
def test_long_names_are_cut_for_services(version: str, long: str, short: str) -> None:
    assert short_name(long, ci_rules(version)) == short
