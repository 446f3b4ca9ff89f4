"""Old spellings still work, and unknown ones get the nearest."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from feedstock_tools.cli import build, program
from feedstock_tools.cli.spelling import OLD_SPELLINGS
from tests.support.paths import EXAMPLES, ROOT


def run(*arguments: str) -> Result:
    return CliRunner().invoke(program._group, arguments)


GPUPROBE, GPUKERNEL = str(EXAMPLES / "gpuprobe"), str(EXAMPLES / "gpukernel")
#: Each old call, and the call that it stands for now.
CALLS = {
    ("generate", "--format"): (
        ["generate", GPUPROBE, "--format", "v1", "--output", "out", "--check"],
        ["generate", GPUPROBE, "--recipe-format", "v1", "--output", "out", "--check"],
    ),
    ("variants", "--list"): (["variants", "--list", "linux_64_cpu"], ["variants", "linux_64_cpu"]),
    ("gpu", "--gpu"): (["gpu", "--gpu=V100", "--cuda", "12.9"], ["gpu", "--model", "V100", "--cuda", "12.9"]),
    ("cuda resolve", "--all"): (
        ["cuda", "resolve", "cuda=11.2", "--limit", "2", "--all"],
        ["cuda", "resolve", "cuda=11.2", "--limit", "2"],
    ),
    ("ci", "--channel"): (
        ["ci", "--feedstock", "hello", "--channel", "mine", "--check"],
        ["ci", "--feedstock", "hello", "--missing", "mine", "--check"],
    ),
    ("why", "--configuration"): (
        ["why", "cuda_compiler_version", GPUKERNEL, "--configuration", "linux_64_cuda12.9"],
        ["why", "cuda_compiler_version", GPUKERNEL, "linux_64_cuda12.9"],
    ),
    ("build", "--verify"): (
        ["build", "--feedstock", "hello", "--verify", "some"],
        ["build", "--feedstock", "hello", "--build-twice", "some"],
    ),
    ("variants", "--check"): (["variants", "--check"], ["variants", "--check", "--output", "variants"]),
}


@pytest.mark.parametrize("old", OLD_SPELLINGS, ids=lambda old: f"{old.command} {old.old}")
def test_an_old_spelling_works_like_the_new_one_with_a_note(
    old: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(EXAMPLES / "gpuprobe" / "recipe", "hello/recipe")
    spelling = next(each for each in OLD_SPELLINGS if each is old)
    before, now = (run(*call) for call in CALLS[spelling.command, spelling.old])
    note = f"note: {spelling.title} is obsolete"
    assert (before.exit_code, before.stdout) == (now.exit_code, now.stdout)
    assert note in before.stderr
    assert before.stderr.endswith(now.stderr)
    assert note not in now.stderr
    assert spelling.new.strip("`").split()[0] in before.stderr


def test_build_locally_takes_the_old_spellings_of_build() -> None:
    refused = CliRunner().invoke(build.command, ["--verify=some"], prog_name="build-locally.py")
    assert "note: `--verify` is obsolete and will be removed; use `--build-twice`" in refused.stderr
    assert "'--build-twice': 'some' is neither a number of rows nor all" in refused.stderr


@pytest.mark.parametrize("old", [["--configuration", "linux_64_cuda12.9"], ["--configuration=linux_64_cuda12.9"]])
def test_a_configuration_before_the_key_stays_a_configuration(old: list[str]) -> None:
    before = run("why", *old, "cuda_compiler_version", GPUKERNEL)
    assert before.exit_code == 0, before.stderr
    assert before.stdout == run("why", "cuda_compiler_version", "linux_64_cuda12.9", GPUKERNEL).stdout


@pytest.mark.parametrize("output", [["--output", "variants"], ["--output=variants"], ["-ovariants"]])
def test_an_option_that_is_obsolete_alone_gets_no_note_beside_another(
    output: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    checked = run("variants", "--check", *output)
    assert "variants/linux_64_cpu.yaml: missing" in checked.stdout.replace("\\", "/")
    assert not checked.stderr


def test_the_page_lists_the_old_spellings() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8").partition("## Old spellings")[2]
    assert [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")] == [
        f"{each.command} {each.old}" for each in OLD_SPELLINGS
    ]


def test_arguments_after_two_dashes_are_not_options() -> None:
    assert "obsolete" not in run("variants", "--", "--list").stderr


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (["rerendr"], "Did you mean rerender?"),
        (["cuda", "resolv"], "Did you mean resolve?"),
        (["pinning", "fecth"], "Did you mean fetch?"),
        (["build", "--lits"], "--fleet, --list"),  # the words before them are click's
        (["linux_64_cuda11.2"], "feedstock-tools build linux_64_cuda11.2"),
    ],
)
def test_unknown_names_get_the_nearest(arguments: list[str], nearest: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert nearest in result.stderr.replace("'", "")


def test_help_lists_every_command_in_a_group() -> None:
    by_option, alone = run("--help"), run()
    assert by_option.stdout == alone.stdout
    for title, commands in program.MENU.items():
        section = by_option.stdout.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        assert [name for name in commands if f"  {name} " not in section] == []
