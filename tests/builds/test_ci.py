"""Workflows for CI services: their contents, the services' linters and schemas, and the matrix of a run."""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from feedstock_tools.builds.ci import SERVICES, CiJob, ci_changes, ci_files, ci_jobs, not_on_azure
from feedstock_tools.errors import InputError
from feedstock_tools.report.publishing import github_lines
from tests.support import command
from tests.support.feedstocks import HERE, TinyFeedstock


def written(folder: Path, *services: str) -> dict[str, str]:
    """The files for some services, written without options."""
    return ci_files(folder, services, install=None, channel="conda-forge", branch="main")


def texts(folder: Path) -> dict[str, Any]:
    """The generated files by service, parsed as YAML."""
    files = written(folder, *SERVICES)
    return {service: yaml.safe_load(files[path]) for service, (path, _) in SERVICES.items()}


def test_files_lie_beside_those_of_conda_smithy(feedstock: TinyFeedstock) -> None:
    theirs = feedstock.folder / ".github" / "workflows" / "conda-build.yml"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs\n")
    assert feedstock.ask("ci", "--check").returncode == 1
    assert feedstock.ask("ci").returncode == 0
    assert feedstock.ask("ci", "--check").returncode == 0
    assert theirs.read_text() == "theirs\n"
    (feedstock.folder / ".azure-pipelines" / "feedstock-tools.yml").write_text("mine\n")
    run = feedstock.ask("ci")
    assert run.returncode == 2
    assert "was not written by `feedstock-tools ci`" in run.stderr


def test_the_workflow_may_read_and_no_more(tmp_path: Path) -> None:
    workflow = texts(tmp_path)["github"]
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert all("${{" not in step.get("run", "") for step in steps)
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout")]
    assert all(step["with"] == {"persist-credentials": False} for step in checkouts)


def test_scripts_of_the_pipeline_take_values_from_the_environment(tmp_path: Path) -> None:
    steps = [step for job in texts(tmp_path)["azure"]["jobs"] for step in job["steps"]]
    assert all("$(" not in step.get("bash", "") and "${{" not in step.get("bash", "") for step in steps)


def test_a_script_of_the_pipeline_ends_where_a_command_fails(tmp_path: Path) -> None:
    """Azure's agent looks at the last command's status only; GitHub's runner starts bash with `-e`."""
    scripts = [step["bash"] for job in texts(tmp_path)["azure"]["jobs"] for step in job["steps"] if "bash" in step]
    assert all(script.startswith("set -e\n") for script in scripts if len(script.splitlines()) > 1)


def test_a_script_of_ours_is_used_and_conda_smithy_s_is_not(tmp_path: Path) -> None:
    def build() -> str:
        return str(texts(tmp_path)["github"]["jobs"]["build"]["steps"][-2]["run"])

    assert "feedstock-tools build " in build()
    (tmp_path / "build-locally.py").write_text("import conda_smithy\n")
    assert "feedstock-tools build " in build()
    (tmp_path / "build-locally.py").write_text("from feedstock_tools.bootstrap import run_in_environment\n")
    assert "python build-locally.py " in build()


@pytest.mark.parametrize("value", ["${{ github.token }}", "a\nrun: b", 'x" y', "$(whoami)", ""])
def test_no_expression_gets_into_a_file(tmp_path: Path, value: str) -> None:
    with pytest.raises(InputError, match="in a CI file"):
        ci_files(tmp_path, ["github"], install="feedstock-tools", channel=value, branch="main")


def test_the_matrix_of_a_run_is_what_the_channel_lacks(gpu_feedstock: TinyFeedstock) -> None:
    gpu_feedstock.keep_outputs(2)
    (gpu_feedstock.folder / "conda-forge.yml").write_text("conda_build_tool: rattler-build\n")
    everything = gpu_feedstock.ask("ci", "--matrix", "github").stdout
    include = json.loads(everything.partition("include=")[2])
    assert gpu_feedstock.build(f"{HERE.name}_cpu").returncode == 0
    run = gpu_feedstock.ask("ci", "--matrix", "github", "--missing", str(gpu_feedstock.artifacts))
    assert run.returncode == 0, run.stderr
    missing = {job["configurations"] for job in json.loads(run.stdout.partition("include=")[2])}
    assert missing < {job["configurations"] for job in include}
    assert run.stdout.startswith("any=true\n")


def test_a_platform_without_a_machine_is_left_out() -> None:
    assert ci_jobs([("win_64_", "win-64")]) == ((), {"win-64": 1})
    assert not_on_azure([CiJob("linux-64", ("a",)), CiJob("linux-aarch64", ("b",))]) == ("linux-aarch64",)
    assert github_lines(()) == "any=false\ninclude=[]"


def test_more_configurations_than_a_service_has_jobs_share_jobs() -> None:
    names = [(f"linux_64_{number}", "linux-64") for number in range(400)]
    jobs, left_out = ci_jobs(names)
    assert not left_out
    assert len(jobs) <= 256
    assert [name for job in jobs for name in job.configurations] == [name for name, _ in names]


@pytest.mark.parametrize("name", ["a b", "a;b", "$(b)", "a\nb", "-x", "##vso[task]"])
def test_names_that_a_shell_or_service_would_read_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot be passed to a CI service"):
        ci_jobs([(name, "linux-64")])


@pytest.mark.parametrize(("service", "schema"), [("github", "github-workflows"), ("azure", "azure-pipelines")])
def test_the_schema_of_a_service_is_kept(tmp_path: Path, service: str, schema: str) -> None:
    file = files("check_jsonschema").joinpath("builtin_schemas", "vendor", f"{schema}.json")
    path, _ = SERVICES[service]
    read = YAML(typ="safe").load(written(tmp_path, service)[path])  # YAML 1.2, where `on` is a word
    errors = Draft7Validator(json.loads(file.read_text(encoding="utf-8"))).iter_errors(read)
    assert [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in errors] == []


def test_a_linter_of_workflows_finds_nothing_unsafe(tmp_path: Path) -> None:
    ci_changes(tmp_path, written(tmp_path, "github")).apply()
    words = ["--offline", "--no-config", "--persona=auditor", str(tmp_path / ".github")]
    run = command.run([str(Path(sys.executable).with_name("zizmor")), *words])
    assert run.returncode == 0, run.stdout
