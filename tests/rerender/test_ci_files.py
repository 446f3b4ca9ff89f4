"""The job lists of CI files follow the configurations; every other byte stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.rerender.ci_azure import azure_entries, matrix_text
from feedstock_tools.rerender.ci_files import (
    AZURE_FILES,
    GITHUB_FILE,
    follow_configurations,
    read_ci_files,
    update_ci_files,
)
from feedstock_tools.rerender.ci_github import github_entries
from feedstock_tools.rerender.ci_jobs import Job, azure_jobs, github_jobs, short_name
from feedstock_tools.rerender.ci_rules import ci_rules
from feedstock_tools.rerender.ci_settings import placements
from feedstock_tools.rerender.configuration import Configuration

AZURE_LINUX = """\
# generated
jobs:
- job: linux
  pool:
    vmImage: ubuntu-latest   # kept as it is
  strategy:
    matrix:
      linux_64_python3.8.____cpython:
        CONFIG: linux_64_python3.8.____cpython
        UPLOAD_PACKAGES: 'True'
        DOCKER_IMAGE: image:old
      linux_64_python3.9.____cpython:
        CONFIG: linux_64_python3.9.____cpython
        UPLOAD_PACKAGES: 'True'
        DOCKER_IMAGE: image:old
    maxParallel: 8
  timeoutInMinutes: 360

  steps:
  - script: echo "$(CONFIG)"
"""

GITHUB = """\
name: Build conda package
on:
  push:

jobs:
  build:
    name: ${{ matrix.CONFIG }}
    runs-on: ${{ matrix.runs_on }}
    strategy:
      fail-fast: false
      max-parallel: 50
      matrix:
        include:
          - CONFIG: linux_64_
            UPLOAD_PACKAGES: True
            os: ubuntu
            runs_on: ['ubuntu-latest']
            DOCKER_IMAGE: image:old
    steps:

    - name: Checkout code
      uses: actions/checkout@v4
"""


NAMESPACE = "namespace-profile-a-on-linux-64;container.privileged=true;container.mount-scratch=true"


def configuration(name: str, **values: tuple[str, ...]) -> Configuration:
    system, arch = name.split("_")[:2]
    platform = Platform(system, arch)
    image = {"docker_image": ("image:new",)} if system == "linux" else {}
    return Configuration(name, platform, {"target_platform": (platform.subdir,), **image, **values})


def fields(job: Job) -> dict[str, Any]:
    return dict(job.fields)


def test_the_matrix_of_azure_follows_the_configurations_and_nothing_else_changes() -> None:
    texts = {AZURE_FILES["linux"]: AZURE_LINUX}
    configurations = [configuration("linux_64_python3.9.____cpython"), configuration("linux_64_python3.10.____cpython")]
    update = update_ci_files(texts, configurations, {}, "3.14.1")
    new = update.texts[AZURE_FILES["linux"]]
    expected = AZURE_LINUX.replace("python3.8", "python3.10").replace("image:old", "image:new")
    assert new == expected.replace("    maxParallel: 8\n", "")
    assert [str(job) for job in update.stale] == [
        ".azure-pipelines/azure-pipelines-linux.yml: the job linux_64_python3.10.____cpython is missing",
        ".azure-pipelines/azure-pipelines-linux.yml: the job linux_64_python3.8.____cpython is superfluous",
        ".azure-pipelines/azure-pipelines-linux.yml: the job linux_64_python3.9.____cpython is changed",
    ]
    assert update.notes == ()


def test_a_file_that_follows_its_configurations_does_not_change() -> None:
    texts = {AZURE_FILES["linux"]: AZURE_LINUX}
    configurations = [configuration("linux_64_a"), configuration("linux_64_b")]
    first = update_ci_files(texts, configurations, {}, "3.14.1")
    second = update_ci_files({**texts, **first.texts}, configurations, {}, "3.14.1")
    assert first.texts
    assert (second.texts, second.stale, second.notes) == ({}, (), ())


def test_lines_end_as_those_of_the_file_do() -> None:
    texts = {AZURE_FILES["linux"]: AZURE_LINUX.replace("\n", "\r\n")}
    new = update_ci_files(texts, [configuration("linux_64_")], {}, "3.14.1").texts[AZURE_FILES["linux"]]
    assert new.count("\r\n") == new.count("\n")


def test_the_jobs_of_github_actions_follow_the_configurations_and_nothing_else_changes() -> None:
    forge = {"provider": {"linux_64": "github_actions", "win_64": "github_actions"}}
    configurations = [configuration("win_64_"), configuration("linux_64_")]
    update = update_ci_files({GITHUB_FILE: GITHUB}, configurations, forge, "3.54.1")
    windows = (
        "          - CONFIG: win_64_\n"
        "            UPLOAD_PACKAGES: True\n"
        "            os: windows\n"
        "            runs_on: ['windows-latest']\n"
    )
    assert update.texts[GITHUB_FILE] == GITHUB.replace("image:old\n", "image:new\n" + windows)


def test_today_s_jobs_of_github_actions_carry_the_workflow_settings() -> None:
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
def test_labels_choose_the_runner(version: str, self_hosted: bool, labels: tuple[str, ...], runs_on: list[str]) -> None:
    values = {"github_actions_labels": labels} if labels else {}
    forge = {"provider": {"linux_64": "github_actions"}, "github_actions": {"self_hosted": self_hosted}}
    (job,) = github_jobs([configuration("linux_64_", **values)], forge, ci_rules(version))
    assert job.fields["runs_on"] == str(runs_on)


@pytest.mark.parametrize(
    ("version", "field", "value"),
    [("3.54.1", "CONDA_FORGE_DOCKER_RUN_ARGS", '"--gpus all"'), ("3.62.0", "docker_run_args", " --gpus all")],
)
def test_a_runner_with_a_gpu_gives_it_to_docker(version: str, field: str, value: str) -> None:
    forge = {"provider": {"linux_64": "github_actions"}, "github_actions": {"self_hosted": True}}
    labelled = configuration("linux_64_", github_actions_labels=("linux-GPU-x64",))
    (job,) = github_jobs([labelled], forge, ci_rules(version))
    assert job.fields[field] == value


def test_a_job_of_github_actions_cannot_hold_a_second_line() -> None:
    forge = {"docker": {"run_args": "--cpus 2\n          - CONFIG: other"}}
    with pytest.raises(InputError, match="docker_run_args of a job of GitHub Actions is to be one line"):
        github_jobs([configuration("linux_64_")], forge, ci_rules())


def test_a_platform_is_built_by_the_provider_of_its_build_platform() -> None:
    forge = {
        "build_platform": {"linux_aarch64": "linux_64", "osx_arm64": "osx_64"},
        "provider": {"linux_64": ["azure", "github_actions"], "win": "azure", "linux_ppc64le": "default"},
    }
    names = ["linux_64_", "linux_aarch64_", "osx_64_", "osx_arm64_", "win_64_", "linux_ppc64le_"]
    configurations = [configuration(name) for name in names]
    rules = ci_rules("3.54.1")
    assert {job.name for job in github_jobs(configurations, forge, rules)} == {"linux_64_", "linux_aarch64_"}
    assert {job.name for job in azure_jobs(configurations, forge, rules)} == set(names)


@pytest.mark.parametrize(
    ("version", "word", "providers"),
    [
        ("3.11.0", "default", {"linux_aarch64": "drone", "linux_ppc64le": "travis", "osx_64": None}),
        ("3.14.1", "default", {"linux_aarch64": "drone", "linux_ppc64le": "travis", "osx_64": "azure"}),
        ("3.14.3", "default", {"linux_aarch64": "azure", "linux_ppc64le": "travis", "osx_64": "azure"}),
        ("3.19.0", "default", {"linux_aarch64": "travis", "linux_ppc64le": "travis", "osx_64": "azure"}),
        ("3.19.0", "emulated", {"linux_aarch64": "azure", "linux_ppc64le": "azure", "osx_64": "azure"}),
        ("3.19.0", "native", {"linux_aarch64": "travis", "linux_ppc64le": "travis", "osx_64": None}),
        ("3.45.3", "default", {"linux_aarch64": "azure", "linux_ppc64le": "azure", "osx_64": "azure"}),
        ("3.57.0", "emulated", {"linux_aarch64": "github_actions", "osx_64": "azure", "win_64": "azure"}),
        ("3.57.0", "native", {"linux_aarch64": "travis", "win_64": "github_actions"}),
        ("2026.8.5", "native", {"linux_aarch64": "github_actions", "win_64": "github_actions"}),
    ],
)
def test_words_stand_for_providers(version: str, word: str, providers: dict[str, str | None]) -> None:
    forge = {"provider": dict.fromkeys(providers, word)}
    found = {
        placement.platform: name
        for name in ("azure", "github_actions", "travis", "drone")
        for placement in placements(forge, ci_rules(version), name)
        if placement.platform in providers
    }
    assert found == {platform: name for platform, name in providers.items() if name}


@pytest.mark.parametrize(("version", "placed"), [("3.11.0", []), ("3.56.0", ["osx_64"]), ("3.57.0", [])])
def test_words_in_lists_stood_for_azure(version: str, placed: list[str]) -> None:
    forge = {"provider": {"osx_64": ["default", "circle"], "linux_64": None, "win_64": None}}
    assert [placement.platform for placement in placements(forge, ci_rules(version), "azure")] == placed


def test_a_mac_is_named_by_what_it_builds_on() -> None:
    forge = {"build_platform": {"osx_arm64": "osx_64"}}
    (cross,) = azure_jobs([configuration("osx_arm64_")], forge, ci_rules("2026.8.5"))
    (native,) = azure_jobs([configuration("osx_arm64_")], {"provider": {"osx_arm64": "azure"}}, ci_rules("2026.8.5"))
    assert (cross.fields["VMIMAGE"], native.fields["VMIMAGE"]) == ("macOS-15", "macOS-15-arm64")


def test_packages_are_not_uploaded_where_the_provider_is_told_not_to() -> None:
    (job,) = azure_jobs([configuration("osx_64_")], {"azure": {"upload_packages": False}}, ci_rules())
    assert job.fields["UPLOAD_PACKAGES"] == "False"


def test_old_settings_of_azure_become_workflow_settings() -> None:
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


@pytest.mark.parametrize(("jobs", "parallel"), [(50, ""), (60, "    maxParallel: 50\n")])
def test_more_jobs_than_azure_allows_share_what_it_allows(jobs: int, parallel: str) -> None:
    configurations = [configuration(f"linux_64_{number:02}") for number in range(jobs)]
    new = update_ci_files({AZURE_FILES["linux"]: AZURE_LINUX}, configurations, {}, "3.14.1").texts[AZURE_FILES["linux"]]
    assert new.partition("  timeoutInMinutes")[0].endswith(f"image:new\n{parallel}")


def test_systems_share_by_their_number_of_jobs() -> None:
    configurations = [configuration(f"{name}_64_{number:02}") for name in ("linux", "osx") for number in range(3)]
    forge = {"azure": {"max_parallel": 4, "settings_linux": {"strategy": {"maxParallel": 1}}}}
    new = update_ci_files({AZURE_FILES["linux"]: AZURE_LINUX}, configurations, forge, "3.14.1")
    assert "    maxParallel: 2\n" in new.texts[AZURE_FILES["linux"]]


@pytest.mark.parametrize(
    ("texts", "forge", "note"),
    [
        ({}, {}, "conda-smithy would make .azure-pipelines/azure-pipelines-linux.yml with one job: run it once"),
        (
            {AZURE_FILES["linux"]: "steps:\n- script: make\n"},
            {},
            ".azure-pipelines/azure-pipelines-linux.yml has no job list to change: "
            "run conda-smithy once, it would write one job",
        ),
        (
            {AZURE_FILES["linux"]: AZURE_LINUX},
            {"provider": {"linux_64": "travis"}},
            "conda-smithy would take away the jobs of .azure-pipelines/azure-pipelines-linux.yml, "
            "whose configurations are gone: run it once",
        ),
    ],
)
def test_whole_files_are_left_to_conda_smithy(texts: dict[str, str], forge: dict[str, Any], note: str) -> None:
    update = update_ci_files(texts, [configuration("linux_64_")], forge, "3.14.1")
    assert update.texts == {}
    assert update.stale
    assert update.notes == (note,)


@pytest.mark.parametrize(
    "text",
    [
        AZURE_LINUX.replace("    matrix:\n", ""),
        AZURE_LINUX.replace("  strategy:\n", "  strategy: {parallel: 2}\n"),
        AZURE_LINUX.replace("- job: linux", "- job: mine"),
    ],
)
def test_a_file_of_another_form_is_left_as_it_is(text: str) -> None:
    update = update_ci_files({AZURE_FILES["linux"]: text}, [configuration("linux_64_")], {}, "3.14.1")
    assert update.texts == {}
    assert "has no job list to change" in update.notes[0]


def test_no_files_and_no_jobs_is_nothing_to_do() -> None:
    update = update_ci_files({}, [], {})
    assert (update.texts, update.stale, update.notes) == ({}, (), ())


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        ({"azure": []}, "'azure' in conda-forge.yml is to be a mapping"),
        ({"azure": {"settings_linux": {"variables": 1}}}, "'azure.settings_linux.variables' in conda-forge.yml"),
        ({"workflow_settings": {"pagefile_size": [4]}}, "'workflow_settings.pagefile_size' in conda-forge.yml"),
        ({"provider": {"linux_64": "github_actions"}, "build_platform": {"linux_64": "linux_s390x"}}, None),
        ({"provider": {"linux_s390x": "github_actions"}, "build_platform": {"linux_64": "linux_s390x"}}, "no runner"),
    ],
)
def test_what_conda_forge_yml_cannot_mean_is_said(forge: dict[str, Any], message: str | None) -> None:
    def update() -> None:
        update_ci_files({AZURE_FILES["linux"]: AZURE_LINUX}, [configuration("linux_64_")], forge)

    if message is None:
        update()
    else:
        with pytest.raises(InputError, match=message):
            update()


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


def test_a_version_that_is_none_is_an_error() -> None:
    with pytest.raises(InputError, match="'newest' is no version of conda-smithy"):
        ci_rules("newest")


def test_the_files_of_a_feedstock_are_read(tmp_path: Path) -> None:
    path = tmp_path / AZURE_FILES["linux"]
    path.parent.mkdir()
    path.write_bytes(AZURE_LINUX.encode())
    assert read_ci_files(tmp_path) == {AZURE_FILES["linux"]: AZURE_LINUX}
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="UTF-8"):
        read_ci_files(tmp_path)


@pytest.mark.parametrize("link", [".github", ".github/workflows", GITHUB_FILE])
def test_links_are_not_followed(link: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "workflows").mkdir(parents=True)
    place = tmp_path / "feedstock" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(outside)
    with pytest.raises(InputError, match="is a link"):
        read_ci_files(tmp_path / "feedstock")


def test_conda_forge_yml_says_what_follows(tmp_path: Path) -> None:
    (tmp_path / ".azure-pipelines").mkdir()
    (tmp_path / AZURE_FILES["linux"]).write_text(AZURE_LINUX)
    one = [configuration("linux_64_")]
    assert follow_configurations(tmp_path, one, "3.14.1").texts
    (tmp_path / "conda-forge.yml").write_text("provider: {linux_64: travis}\n")
    assert follow_configurations(tmp_path, one, "3.14.1").texts == {}
    (tmp_path / "conda-forge.yml").write_text("- provider\n")
    with pytest.raises(InputError, match="is to be a mapping"):
        follow_configurations(tmp_path, one, "3.14.1")


@given(
    st.dictionaries(
        st.text("abc.123_", min_size=1, max_size=140).map("linux_64_".__add__),
        st.one_of(st.booleans(), st.integers(0, 99), st.none(), st.text(" ab'#:-\\\n\x85é123", max_size=120)),
        min_size=1,
        max_size=4,
    )
)
def test_azure_s_matrix_is_what_pyyaml_writes(values: dict[str, Any]) -> None:
    matrix = {name: {"UPLOAD_PACKAGES": "True", "CONFIG": name, "setting": value} for name, value in values.items()}
    written = matrix_text([Job(name, "linux", content) for name, content in matrix.items()])
    ordered = {"strategy": {"matrix": dict(sorted(matrix.items()))}}
    dumped = yaml.dump(ordered, sort_keys=False).partition("\n")[2]
    assert written == "".join(f"  {line}" if line.strip() else line for line in dumped.splitlines(keepends=True))


def test_jobs_are_found_in_the_text_under_their_names() -> None:
    long = "linux_64_" + 130 * "x"
    text = AZURE_LINUX.replace(
        "      linux_64_python3.8.____cpython:\n        CONFIG", f"      ? {long}\n      : CONFIG"
    )
    entries = azure_entries(text, "linux")
    assert entries is not None
    assert list(entries) == [long, "linux_64_python3.9.____cpython"]
    assert list(github_entries(GITHUB) or {}) == ["linux_64_"]
