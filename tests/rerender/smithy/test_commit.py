"""`rerender --commit` and `--online`: what is committed, with which message, and the number of a feedstock at Azure."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from feedstock_tools.channel.http import build_number
from feedstock_tools.cli.rerender import rerender as command
from feedstock_tools.errors import FeedstockError, InputError, WorkError
from feedstock_tools.rerender.rules import Rules
from tests.support.git import committed, git
from tests.support.serving import Answers, serving

RECIPE = "package: {name: demo, version: '1'}\nextra: {recipe-maintainers: [me]}\n"
PINNING = "2026.01.02.03.04.05"


@pytest.fixture
def feedstock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A feedstock in a repository with one commit."""
    folder = tmp_path / "demo-feedstock"
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe/meta.yaml").write_text(RECIPE)
    (folder / "circle.yml").write_text("obsolete\n")
    (folder / ".gitignore").write_text("*.sh\n")
    for key, value in {
        "GIT_AUTHOR_NAME": "me",
        "GIT_AUTHOR_EMAIL": "me@localhost",
        "GIT_COMMITTER_NAME": "me",
        "GIT_COMMITTER_EMAIL": "me@localhost",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }.items():
        monkeypatch.setenv(key, value)
    committed(folder)
    return folder


def rerender(feedstock: Path, release: Path, *words: str) -> Result:
    return CliRunner().invoke(command, [str(feedstock), "--pinning", "none", "--smithy", str(release), *words])


def kept_pinning(folder: Path) -> Path:
    folder.mkdir()
    (folder / "conda_build_config.yaml").write_text("c_compiler: [gcc]\n")
    (folder / "pinning.json").write_text(f'{{"version": "{PINNING}", "channel": "c", "sha256": "0"}}')
    return folder


def test_without_it_nothing_is_staged(feedstock: Path, release: Path) -> None:
    assert rerender(feedstock, release).exit_code == 0
    assert (feedstock / "README.md").is_file()
    assert git(feedstock, "diff", "--cached", "--name-only") == ""


def test_everything_that_was_written_and_removed_is_committed_with_its_modes(
    feedstock: Path, release: Path, tmp_path: Path
) -> None:
    git(feedstock, "config", "core.fileMode", "false")
    done = rerender(feedstock, release, "--commit", "--pinning", str(kept_pinning(tmp_path / "pinning")))
    assert done.exit_code == 0, done.output
    assert git(feedstock, "status", "--porcelain") == ""
    modes = {line.split("\t")[1]: line.split()[0] for line in git(feedstock, "ls-files", "--stage").splitlines()}
    assert modes[".scripts/build_steps.sh"] == "100755", "ignored files belong to a rerender, too"
    assert modes["build-locally.py"] == "100755"
    assert modes["README.md"] == "100644"
    assert "circle.yml" not in modes
    message = git(feedstock, "log", "-1", "--format=%B").strip()
    first, empty, heading, *tools = message.splitlines()
    assert first == f"MNT: Re-rendered with conda-smithy 2026.8.5 and conda-forge-pinning {PINNING}"
    assert (empty, heading, tools[0]) == ("", "Other tools:", "- conda-build 26.7.1")
    assert "nothing to commit" in rerender(feedstock, release, "--commit").stderr or "committed" in message


def test_the_options_of_conda_smithy_are_taken(feedstock: Path, tmp_path: Path) -> None:
    pinning = tmp_path / "pinning.yaml"
    pinning.write_text("c_compiler: [gcc]\n")
    words = ["--feedstock_directory", str(feedstock), "-c", "auto", f"--exclusive-config-file={pinning}"]
    done = CliRunner().invoke(command, [*words, "--no-check-uptodate", "--smithy", "none"])
    assert done.exit_code == 0, done.output
    assert git(feedstock, "log", "-1", "--format=%s").startswith("MNT: Re-rendered with conda-smithy")
    assert CliRunner().invoke(command, [str(feedstock), "-e", "nowhere.yaml"]).exit_code != 0


def test_an_earlier_rerender_is_committed_too(feedstock: Path, release: Path) -> None:
    rerender(feedstock, release, "--commit", "one platform fewer")
    assert git(feedstock, "log", "-1", "--format=%s").strip() == "one platform fewer"
    (feedstock / "conda-forge.yml").write_text("noarch_platforms: linux_64\nprovider: {osx_64: null}\n")
    assert rerender(feedstock, release).exit_code == 0
    again = rerender(feedstock, release, "--commit")
    assert " 0 changes\ncommitted: MNT: Re-rendered with conda-smithy 2026.8.5\n" in again.stderr
    assert git(feedstock, "ls-files", ".ci_support/osx*") == ""
    assert git(feedstock, "status", "--porcelain") == "?? conda-forge.yml\n", "the user's own files stay as they are"
    assert "nothing to commit" in rerender(feedstock, release, "--commit").stderr


def test_what_cannot_be_committed_is_not_written(
    feedstock: Path, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("PATH", str(tmp_path))
        with pytest.raises(InputError, match="git is not on PATH"):
            command.main(
                [str(feedstock), "--pinning", "none", "--smithy", str(release), "--commit"], standalone_mode=False
            )
    (feedstock / ".git").rename(tmp_path / "git")
    with pytest.raises(InputError, match="is not the top of a git repository"):
        command.main([str(feedstock), "--pinning", "none", "--smithy", str(release), "--commit"], standalone_mode=False)
    assert not (feedstock / "README.md").exists()


def test_a_commit_that_git_refuses_is_one_message(feedstock: Path, release: Path) -> None:
    hook = feedstock / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'not today' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(WorkError, match="git commit failed: not today"):
        command.main([str(feedstock), "--pinning", "none", "--smithy", str(release), "--commit"], standalone_mode=False)
    assert (feedstock / "README.md").is_file()


def test_messages_are_those_of_the_version() -> None:
    assert Rules.parse("3.50.1+25.3.1").commit_message(None) == (
        "MNT: Re-rendered with conda-build 25.3.1 and conda-smithy 3.50.1"
    )
    lines = Rules.parse("3.52.0").commit_message(PINNING).splitlines()
    assert lines[0] == f"MNT: Re-rendered with conda-smithy 3.52.0 and conda-forge-pinning {PINNING}"
    tools = dict(line.removeprefix("- ").split() for line in lines[3:])
    assert list(tools) == ["conda-build", "rattler-build", "rattler-build-conda-compat", "feedstock-tools"]
    assert (tools["conda-build"], tools["rattler-build-conda-compat"]) == ("25.7.0", "1.4.6")


def test_the_version_of_a_cloned_pinning_is_the_time_of_its_commit(
    feedstock: Path, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "conda-forge-pinning-feedstock"
    (clone / "recipe").mkdir(parents=True)
    (clone / "recipe/conda_build_config.yaml").write_text("c_compiler: [gcc]\n")
    (clone / "recipe/meta.yaml").write_text("package:\n  name: conda-forge-pinning\n")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-02T05:04:05+02:00")
    committed(clone)
    (clone / "recipe/meta.yaml").write_text("package:\n  name: conda-forge-pinning\n  version: '1'\n")
    rerender(feedstock, release, "--commit", "--pinning", str(clone))
    assert git(feedstock, "log", "-1", "--format=%s").strip() == "MNT: Re-rendered with conda-smithy 2026.8.5"
    git(clone, "checkout", "--quiet", ".")
    git(feedstock, "rm", "--quiet", "README.md")
    git(feedstock, "commit", "--quiet", "--message", "without")
    rerender(feedstock, release, "--commit", "--pinning", str(clone))
    subject = git(feedstock, "log", "-1", "--format=%s").strip()
    assert subject == f"MNT: Re-rendered with conda-smithy 2026.8.5 and conda-forge-pinning {PINNING}"


@pytest.mark.parametrize("words", [["--check"], ["--verify"]])
def test_it_excludes_what_writes_nothing(words: list[str], feedstock: Path, release: Path) -> None:
    assert rerender(feedstock, release, "--commit", *words).exit_code == 2


class Azure(Answers):
    """Answers by the organisation: with a number, with nothing, with an error, or a byte at a time."""

    def respond(self) -> None:
        organisation, project = self.path.split("/")[1:3]
        if organisation == "slow":
            self.send_response(200)
            self.end_headers()
            for _ in range(50):
                self.wfile.write(b" ")
                time.sleep(0.05)
            return
        found = {"conda-forge": f'{{"value": [{{"id": 4711, "project": "{project}"}}]}}', "nobody": '{"value": []}'}
        self.answer(found.get(organisation, "<html>").encode())


@pytest.fixture
def azure() -> Iterator[str]:
    with serving(Azure) as address:
        yield address


def test_the_number_at_azure_is_looked_up_only_if_asked_for(
    azure: str, feedstock: Path, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("feedstock_tools.channel.http.AZURE", azure)
    rerender(feedstock, release)
    assert "definitionId=None" in (feedstock / "README.md").read_text()
    rerender(feedstock, release, "--online")
    assert "definitionId=4711" in (feedstock / "README.md").read_text()
    rerender(feedstock, release)
    assert "definitionId=4711" in (feedstock / "README.md").read_text()
    monkeypatch.setattr("feedstock_tools.channel.http.AZURE", "http://127.0.0.1:1")
    failed = rerender(feedstock, release, "--online")
    assert (failed.exit_code, "note: the number in README.md stays as it is" in failed.stderr) == (0, True)
    (feedstock / "conda-forge.yml").write_text("azure: {build_id: 12}\n")
    assert "note: the number" not in rerender(feedstock, release, "--online").stderr
    assert "definitionId=12" in (feedstock / "README.md").read_text()


@pytest.mark.parametrize(
    ("organisation", "message"), [("nobody", "names no"), ("html", "names no"), ("slow", "within")]
)
def test_an_answer_without_a_number_is_one_message(organisation: str, message: str, azure: str) -> None:
    seconds = 0.5 if organisation == "slow" else 30
    with pytest.raises(FeedstockError, match=message):
        build_number(organisation, "builds", "demo-feedstock", server=azure, seconds=seconds)
