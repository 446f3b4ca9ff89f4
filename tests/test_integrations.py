"""The GitHub Action, the hooks for pre-commit, and the settings that docs/integrations.md shows."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from maintenance.drawn import COMMANDS
from tests.support import command
from tests.support.needs import needs
from tests.support.paths import ROOT

ACTION = ROOT / "action.yml"
HOOKS = ROOT / ".pre-commit-hooks.yaml"
PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
REVIEW = "### feedstock-tools review against `origin/main`\n"


def steps() -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = yaml.safe_load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]
    return loaded


def step(text: str) -> dict[str, Any]:
    """The step whose script has a text."""
    (found,) = [each for each in steps() if text in each.get("run", "")]
    return found


def program(folder: Path, name: str, script: str) -> None:
    """A program of that name which records its words in `NAME.words`, one on each line."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f'#!/usr/bin/env bash\nprintf "%s\\n" "$@" > {shlex.quote(str(folder))}/{name}.words\n{script}\n')
    path.chmod(0o755)


def run_step(script: str, folder: Path, **values: str) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub's runner does: `bash -e -o pipefail` on a file."""
    file = folder / "step.sh"
    file.write_text(script)
    environ = {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(folder),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        **values,
    }
    return command.run(["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(file)], folder, environ)


def test_the_action_and_the_hooks_have_the_form_of_their_schemas() -> None:
    checker = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions", str(ACTION)]
    shown = command.run(checker, ROOT)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    for hook in yaml.safe_load(HOOKS.read_text(encoding="utf-8")):
        assert hook.keys() == {"id", "name", "description", "entry", "language", "pass_filenames", "files"}
        assert re.search(hook["files"], "recipe/meta.yaml")
        assert not re.search(hook["files"], "README.md")


def test_no_step_writes_an_expression_into_a_script() -> None:
    """The title of a branch would be a command."""
    assert not [each["run"] for each in steps() if "${{" in each.get("run", "")]


def environment_of_the_action(folder: Path, answer: str) -> None:
    """The environment that the first step makes; its Python records the words of feedstock-tools and answers."""
    program(
        folder / "feedstock-tools/bin",
        "python",
        f'[ "$2" = -m ] || exec {shlex.quote(sys.executable)} "$@"\n{answer}',
    )


def words_of(folder: Path, name: str) -> list[str]:
    return (folder / f"{name}.words").read_text().splitlines()


@needs("system", shutil.which("bash"), "bash")
@pytest.mark.parametrize(("status", "verdict"), [(0, "right"), (1, "wrong"), (0, "unknown")])
def test_the_step_that_reviews_keeps_the_comment_and_the_verdict(tmp_path: Path, status: int, verdict: str) -> None:
    answer = json.dumps({"verdict": verdict, "markdown": REVIEW})
    keep = 'cp "$(dirname "$0")/python.words" "$RUNNER_TEMP/review.words"'
    environment_of_the_action(tmp_path, f"{keep}; printf '%s' {shlex.quote(answer)}; exit {status}")
    done = run_step(
        step("feedstock_tools review")["run"],
        tmp_path,
        BASE="1f3a",
        FEEDSTOCK="/workspace/.",
        ARGUMENTS="--no-rehearse\n\n-c\na b\n",
    )
    assert done.returncode == 0, done.stderr
    own = ["-I", "-m", "feedstock_tools", "review", "--feedstock", "/workspace/.", "--json"]
    assert words_of(tmp_path, "review") == [*own, "--no-rehearse", "-c", "a b", "1f3a"]
    assert (tmp_path / "review.md").read_text() == (tmp_path / "summary").read_text() == REVIEW
    assert (tmp_path / "output").read_text() == f"verdict={verdict}\n"


@needs("system", shutil.which("bash"), "bash")
def test_a_review_that_cannot_be_made_fails_the_step(tmp_path: Path) -> None:
    environment_of_the_action(tmp_path, "exit 2")
    done = run_step(step("feedstock_tools review")["run"], tmp_path, BASE="", FEEDSTOCK="/w/.", ARGUMENTS="")
    assert done.returncode == 2
    assert words_of(tmp_path / "feedstock-tools/bin", "python")[3:] == ["review", "--feedstock", "/w/.", "--json"]
    assert not (tmp_path / "output").exists()


@needs("system", shutil.which("bash"), "bash")
def test_the_step_that_comments_replaces_its_comment(tmp_path: Path) -> None:
    program(tmp_path / "bin", "gh", "")
    done = run_step(step("gh pr comment")["run"], tmp_path, NUMBER="7", REPOSITORY="a/demo-feedstock", GH_TOKEN="")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "bin" / "gh.words").read_text().split() == [
        *("pr", "comment", "7", "--repo", "a/demo-feedstock", "--body-file", "review.md"),
        *("--edit-last", "--create-if-none"),
    ]


def test_no_step_starts_in_the_checkout_and_no_python_imports_from_where_it_starts() -> None:
    """A `pip.py` of the pull request would run in place of pip."""
    for each in steps():
        if "run" in each:
            assert each["working-directory"] == "${{ runner.temp }}"
            pythons = re.findall(r'"\$(?:BASE_)?PYTHON"( \S+)', each["run"])
            assert set(pythons) <= {" -I"}
            assert not re.search(r"(?m)^\s*(?:python|pip|feedstock-tools)\b", each["run"])


@needs("system", shutil.which("bash"), "bash")
def test_the_first_step_installs_what_the_lock_names_and_the_action_s_own_code(tmp_path: Path) -> None:
    said = f'case "$*" in *sysconfig*) echo {shlex.quote(str(tmp_path))};; *) echo "$@";; esac'
    program(tmp_path / "feedstock-tools/bin", "python", said)
    program(tmp_path / "bin", "python", "")
    script = step("-m venv")["run"]
    done = run_step(script, tmp_path, BASE_PYTHON=str(tmp_path / "bin/python"), ACTION="/action", PINNING="2026.1")
    assert done.returncode == 0, done.stderr
    assert words_of(tmp_path / "bin", "python") == ["-I", "-m", "venv", "feedstock-tools"]
    assert (tmp_path / "feedstock-tools.pth").read_text() == "/action\n"
    install, *fetched = done.stdout.splitlines()
    assert install.endswith("--require-hashes --no-deps --only-binary :all: -r /action/requirements.lock")
    assert fetched == ["-I -m feedstock_tools pinning fetch 2026.1", "-I -m feedstock_tools smithy fetch"]


def test_the_base_is_the_one_of_the_event_and_a_fork_gets_no_comment() -> None:
    """A branch of the same name in the checkout is not asked, and the token of a fork's event may not write."""
    assert step("feedstock_tools review")["env"]["BASE"] == "${{ inputs.base || github.event.pull_request.base.sha }}"
    assert "github.event.pull_request.head.repo.full_name == github.repository" in step("gh pr comment")["if"]


@pytest.mark.parametrize("words", ["feedstock-tools lint", "feedstock-tools rerender --check"])
def test_the_hooks_call_commands_that_exist(words: str) -> None:
    assert words in [hook["entry"] for hook in yaml.safe_load(HOOKS.read_text(encoding="utf-8"))]
    shown = command.run([*command.tool(), *words.split()[1:], "--help"], ROOT)
    assert shown.returncode == 0
    assert "--check" not in words or "--check" in shown.stdout


def test_what_the_page_shows_can_be_read() -> None:
    blocks = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
    for language, text in blocks:
        if language == "yaml":
            assert yaml.safe_load(text)
        elif language == "json":
            assert json.loads(text)["yaml.schemas"]
    workflow = yaml.safe_load(blocks[0][1])
    uses = workflow["jobs"]["review"]["steps"][1]["uses"]
    assert uses == "OWNER/feedstock-tools@COMMIT"
    named = re.findall(r"uses: (\S+)@(\S+)", PAGE)
    assert all(ref == "COMMIT" or re.fullmatch("[0-9a-f]{40}", ref) for _, ref in named)
    assert workflow["permissions"] == {}
    assert workflow["jobs"]["review"]["permissions"] == {"contents": "read", "pull-requests": "write"}
    given = yaml.safe_load(re.search(r"with: (\{command: rerender\})", PAGE)[1])  # type: ignore[index]
    assert given.keys() <= yaml.safe_load(ACTION.read_text(encoding="utf-8"))["inputs"].keys()


def accepted(words: list[str]) -> bool:
    """Whether the program takes these words; a wrong one is an error."""
    name, *rest = words[1:]
    with COMMANDS[name].make_context(name, rest):
        return words[0] == "feedstock-tools"


def test_the_tasks_of_pixi_and_conda_are_commands_that_the_program_takes() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    manifest = tomllib.loads(text)
    assert "feedstock-tools" in manifest["pypi-dependencies"]
    tasks = {name: task if isinstance(task, dict) else {"cmd": task} for name, task in manifest["tasks"].items()}
    assert all(accepted(shlex.split(task["cmd"])) for task in tasks.values())
    assert {name for task in tasks.values() for name in task.get("depends-on", ())} <= tasks.keys()

    environment, of_conda = re.findall(r"`conda run -n (\S+) (feedstock-tools [^`]+)`", PAGE)[0]
    assert yaml.safe_load((ROOT / "environment.yml").read_text())["name"] == environment
    assert accepted(shlex.split(of_conda))


def test_the_schema_is_written_where_vs_code_looks_and_checks_a_spec(tmp_path: Path) -> None:
    (setting,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    ((schema, spec),) = json.loads(setting)["yaml.schemas"].items()
    shutil.copy(ROOT / "examples" / "hello" / spec, tmp_path)
    write, check = re.findall(r"`(feedstock-tools generate --schema > \S+|check-jsonschema [^`]+)`", PAGE)
    assert (tmp_path / write.split()[-1]) == tmp_path / schema
    with (tmp_path / schema).open("w") as file:
        file.write(command.run(command.tool(*write.split()[1:3])).stdout)
    assert check.split()[0] == "check-jsonschema"
    done = command.run([sys.executable, "-m", "check_jsonschema", *check.split()[1:]], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
