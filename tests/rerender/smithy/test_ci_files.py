"""The job lists of CI files follow the configurations; every other byte stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.smithy.job_lists import (
    AZURE_FILES,
    GITHUB_FILE,
    azure_entries,
    follow_configurations,
    github_entries,
    matrix_text,
    read_ci_files,
    update_ci_files,
)
from feedstock_tools.rerender.smithy.jobs import Job

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


def test_the_matrix_of_azure_follows_the_configurations_and_nothing_else_changes(
    configuration: Callable[..., Configuration],
) -> None:
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


def test_a_file_that_follows_its_configurations_does_not_change(configuration: Callable[..., Configuration]) -> None:
    texts = {AZURE_FILES["linux"]: AZURE_LINUX}
    configurations = [configuration("linux_64_a"), configuration("linux_64_b")]
    first = update_ci_files(texts, configurations, {}, "3.14.1")
    second = update_ci_files({**texts, **first.texts}, configurations, {}, "3.14.1")
    assert first.texts
    assert (second.texts, second.stale, second.notes) == ({}, (), ())


def test_lines_end_as_those_of_the_file_do(configuration: Callable[..., Configuration]) -> None:
    texts = {AZURE_FILES["linux"]: AZURE_LINUX.replace("\n", "\r\n")}
    new = update_ci_files(texts, [configuration("linux_64_")], {}, "3.14.1").texts[AZURE_FILES["linux"]]
    assert new.count("\r\n") == new.count("\n")


def test_the_jobs_of_github_actions_follow_the_configurations_and_nothing_else_changes(
    configuration: Callable[..., Configuration],
) -> None:
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


@pytest.mark.parametrize(("jobs", "parallel"), [(50, ""), (60, "    maxParallel: 50\n")])
def test_more_jobs_than_azure_allows_share_what_it_allows(
    configuration: Callable[..., Configuration], jobs: int, parallel: str
) -> None:
    configurations = [configuration(f"linux_64_{number:02}") for number in range(jobs)]
    new = update_ci_files({AZURE_FILES["linux"]: AZURE_LINUX}, configurations, {}, "3.14.1").texts[AZURE_FILES["linux"]]
    assert new.partition("  timeoutInMinutes")[0].endswith(f"image:new\n{parallel}")


def test_systems_share_by_their_number_of_jobs(configuration: Callable[..., Configuration]) -> None:
    configurations = [configuration(f"{name}_64_{number:02}") for name in ("linux", "osx") for number in range(3)]
    forge = {"azure": {"max_parallel": 4, "settings_linux": {"strategy": {"maxParallel": 1}}}}
    new = update_ci_files({AZURE_FILES["linux"]: AZURE_LINUX}, configurations, forge, "3.14.1")
    assert "    maxParallel: 2\n" in new.texts[AZURE_FILES["linux"]]


@pytest.mark.parametrize(
    ("texts", "forge", "note"),
    [
        ({}, {}, "conda-smithy would create .azure-pipelines/azure-pipelines-linux.yml with one job: run it once"),
        (
            {AZURE_FILES["linux"]: "steps:\n- script: make\n"},
            {},
            ".azure-pipelines/azure-pipelines-linux.yml has no job list to change: "
            "run conda-smithy once to write one job",
        ),
        (
            {AZURE_FILES["linux"]: AZURE_LINUX},
            {"provider": {"linux_64": "travis"}},
            "conda-smithy would remove the jobs of .azure-pipelines/azure-pipelines-linux.yml, "
            "whose configurations are gone: run it once",
        ),
    ],
)
def test_whole_files_are_left_to_conda_smithy(
    configuration: Callable[..., Configuration], texts: dict[str, str], forge: dict[str, Any], note: str
) -> None:
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
def test_a_file_of_another_form_is_left_as_it_is(configuration: Callable[..., Configuration], text: str) -> None:
    update = update_ci_files({AZURE_FILES["linux"]: text}, [configuration("linux_64_")], {}, "3.14.1")
    assert update.texts == {}
    assert "has no job list to change" in update.notes[0]


def test_no_files_and_no_jobs_is_nothing_to_do() -> None:
    update = update_ci_files({}, [], {})
    assert (update.texts, update.stale, update.notes) == ({}, (), ())


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        ({"azure": []}, "'azure' in conda-forge.yml must be a mapping"),
        ({"azure": {"settings_linux": {"variables": 1}}}, "'azure.settings_linux.variables' in conda-forge.yml"),
        ({"workflow_settings": {"pagefile_size": [4]}}, "'workflow_settings.pagefile_size' in conda-forge.yml"),
        ({"provider": {"linux_64": "github_actions"}, "build_platform": {"linux_64": "linux_s390x"}}, None),
        ({"provider": {"linux_s390x": "github_actions"}, "build_platform": {"linux_64": "linux_s390x"}}, "no runner"),
    ],
)
def test_what_conda_forge_yml_cannot_mean_is_said(
    configuration: Callable[..., Configuration], forge: dict[str, Any], message: str | None
) -> None:
    def update() -> None:
        update_ci_files({AZURE_FILES["linux"]: AZURE_LINUX}, [configuration("linux_64_")], forge)

    if message is None:
        update()
    else:
        with pytest.raises(InputError, match=message):
            update()


def test_the_files_of_a_feedstock_are_read(tmp_path: Path) -> None:
    path = tmp_path / AZURE_FILES["linux"]
    path.parent.mkdir()
    path.write_bytes(AZURE_LINUX.encode())
    assert read_ci_files(tmp_path) == {AZURE_FILES["linux"]: AZURE_LINUX}
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="UTF-8"):
        read_ci_files(tmp_path)
    path.write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    with pytest.raises(InputError, match="larger than 4096 KiB"):
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


def test_conda_forge_yml_says_what_follows(configuration: Callable[..., Configuration], tmp_path: Path) -> None:
    (tmp_path / ".azure-pipelines").mkdir()
    (tmp_path / AZURE_FILES["linux"]).write_text(AZURE_LINUX)
    one = [configuration("linux_64_")]
    assert follow_configurations(tmp_path, one, "3.14.1").texts
    (tmp_path / "conda-forge.yml").write_text("provider: {linux_64: travis}\n")
    assert follow_configurations(tmp_path, one, "3.14.1").texts == {}
    (tmp_path / "conda-forge.yml").write_text("- provider\n")
    with pytest.raises(InputError, match="must be a mapping"):
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
