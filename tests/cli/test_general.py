"""The options of all commands, and signs of life: how much is printed besides the answer, and in which colours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from feedstock_tools.cli import printing
from feedstock_tools.cli.progress import Pulse
from feedstock_tools.wording import uncoloured
from tests.support import command
from tests.support.feedstocks import CPU, TinyFeedstock
from tests.support.needs import needs
from tests.support.paths import ROOT

EXAMPLE = ROOT / "examples" / "gpukernel"
RED = "\x1b[31m\x1b[1merror\x1b[0m: "


def ran(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return command.run(command.tool(*arguments), EXAMPLE, command.environment(**variables))


@pytest.mark.parametrize("words", [("--quiet", "rerender", "--check"), ("rerender", "--check", "-q")])
def test_quiet_leaves_the_answer(words: tuple[str, ...]) -> None:
    loud, quiet = ran("rerender", "--check"), ran(*words)
    assert loud.stderr
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (loud.returncode, loud.stdout, "")


def test_quiet_leaves_errors_and_exit_codes() -> None:
    loud, quiet = ran("outputs", "nothing_like_this"), ran("outputs", "nothing_like_this", "--quiet")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (2, "", loud.stderr)
    assert quiet.stderr.startswith("error: ")


def test_quiet_leaves_what_a_check_found(tmp_path: Path) -> None:
    folder = tmp_path / "hello"
    shutil.copytree(ROOT / "examples" / "hello", folder, ignore=shutil.ignore_patterns("build_artifacts"))
    run = ran("generate", str(folder), "--check", "-q")
    assert run.returncode == 1
    assert "is missing" in run.stderr


def test_a_quiet_build_prints_its_table(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(1)
    run = feedstock.build(f"{CPU}_py3.11", "--quiet", "--jobs", "2")
    assert run.returncode == 0
    assert run.stdout.startswith("\npackage ")
    assert not run.stderr


def test_verbose_names_files_and_stages_with_times() -> None:
    run = ran("lint", "--verbose")
    loud = ran("lint")
    assert (run.returncode, run.stdout) == (loud.returncode, loud.stdout)
    lines = run.stderr.splitlines()
    assert any(line.endswith(f"reads {EXAMPLE / 'conda-forge.yml'}") for line in lines), run.stderr
    assert any(line.endswith("s  looking for mistakes in the recipe") for line in lines)
    times = [float(line.partition(" s  ")[0]) for line in lines if " s  " in line]
    assert times == sorted(times)


def test_verbose_names_programs(tmp_path: Path) -> None:
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe" / "meta.yaml").write_text("package: {name: a, version: '1'}\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    run = command.run(command.tool("-v", "diff", "HEAD"), tmp_path)
    assert "/git --no-pager " in run.stderr


def test_quiet_and_verbose_exclude_each_other() -> None:
    for words in (("-q", "lint", "-v"), ("lint", "--verbose", "--quiet")):
        run = ran(*words)
        assert run.returncode == 2
        assert "--quiet and --verbose exclude each other" in run.stderr


@pytest.mark.parametrize(
    ("words", "variables", "coloured"),
    [
        ((), {}, False),
        ((), {"FORCE_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
        (("--color", "auto"), {"FORCE_COLOR": "1"}, True),
    ],
)
def test_colours_follow_the_option_then_the_environment(
    words: tuple[str, ...], variables: dict[str, str], coloured: bool
) -> None:
    run = ran(*words, "outputs", "nothing_like_this", **{"NO_COLOR": "", "FORCE_COLOR": "", **variables})
    assert run.stderr.startswith(RED if coloured else "error: ")


def test_the_lines_of_a_diff_have_colours(tmp_path: Path) -> None:
    folder = tmp_path / "hello"
    shutil.copytree(ROOT / "examples" / "hello", folder, ignore=shutil.ignore_patterns("build_artifacts"))
    plain = ran("generate", str(folder), "--diff", "--check")
    coloured = ran("generate", str(folder), "--diff", "--check", "--color", "always")
    assert "\x1b[32m+" in coloured.stdout
    assert uncoloured(coloured.stdout) == plain.stdout


def test_a_log_loses_its_colours_where_none_are_wanted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for wanted in ("1", ""):
        monkeypatch.setenv("NO_COLOR", wanted)
        printing.stream_of_logs(as_json=False).write("\x1b[31mred\x1b[0m\x1b[K\n")
    assert capsys.readouterr().out == "red\x1b[K\n\x1b[31mred\x1b[0m\x1b[K\n"


SLOW = "import time, feedstock_tools.check.linting.lint as m\nm.read_subject = lambda *a: time.sleep(3) or 1 / 0\n"


@needs("system", hasattr(os, "fork"), "fork")
def test_a_command_that_is_silent_in_a_pipe_gives_a_sign_of_life_each_five_minutes() -> None:
    variables = {name: text for name, text in command.environment().items() if name != "FEEDSTOCK_TOOLS_PROGRESS"}
    assert "-- looking" not in command.run(command.patched(SLOW, "lint"), EXAMPLE, variables).stderr
    sooner = f"import feedstock_tools.cli.progress as p\np._ELSEWHERE = 1.0\n{SLOW}"
    run = command.run(command.patched(sooner, "lint"), EXAMPLE, variables)
    assert re.search(r"^-- looking for mistakes in the recipe, \d+ s$", run.stderr, re.MULTILINE)
    quiet = command.run(command.patched(sooner, "lint", "-q"), EXAMPLE, variables)
    assert "-- looking" not in quiet.stderr


@needs("system", sys.platform != "win32", "pseudo-terminals, which Windows lacks")
def test_in_a_terminal_a_sign_keeps_to_one_line_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    import pty

    monkeypatch.delenv("FEEDSTOCK_TOOLS_PROGRESS")
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    saved = os.dup(2)
    os.dup2(theirs, 2)
    try:
        monkeypatch.setattr("feedstock_tools.cli.progress.sys.stderr.isatty", lambda: True)
        times = iter([0.0, 0.5, 1.5, 2.0, 2.1, 2.2])
        monkeypatch.setattr("feedstock_tools.cli.progress.time.monotonic", lambda: next(times))
        pulse = Pulse("lint")
        pulse.beat()
        pulse.beat()
        pulse.stage("solving")
        pulse.beat()
        pulse.before_output()
        pulse.beat()
        os.write(2, b".")
    finally:
        os.dup2(saved, 2)
    assert b"".join(iter(lambda: os.read(ours, 1), b".")) == b"\r\x1b[K-- lint, 2 s\r\x1b[K-- solving, 2 s\r\x1b[K"
