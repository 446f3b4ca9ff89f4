"""Options mean the same wherever they are taken, and every command takes the feedstock in the same ways."""

import re
from pathlib import Path

import pytest

from feedstock_tools.cli.commands import is_folder
from maintenance.drawn import COMMANDS, Taken, shared, taken
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")


#: A spec is updated from generated files, facts from a file.
UNLIKE = {"--update"}


@pytest.mark.parametrize("uses", [uses for name, uses in shared().items() if name not in UNLIKE])
def test_an_option_is_the_same_in_every_command(uses: list[Taken]) -> None:
    first = uses[0]
    for each in uses:
        assert (each.names, each.metavar, each.meaning) == (first.names, first.metavar, first.meaning), each.command


def test_a_short_name_belongs_to_one_option() -> None:
    owners: dict[str, set[str]] = {}
    for each in taken():
        for name in each.names:
            owners.setdefault(name, set()).add(each.name)
    assert {name: options for name, options in owners.items() if len(options) > 1} == {}


@pytest.mark.parametrize("each", taken(), ids=lambda each: f"{each.command} {each.name}")
def test_every_option_says_what_it_does_in_a_sentence(each: Taken) -> None:
    assert re.match(r"[A-Z]", each.meaning), each
    option = next(one for one in COMMANDS[each.command].params if each.name in (*one.opts, *one.secondary_opts))
    assert str(getattr(option, "help", "")).endswith("."), each


def test_every_command_takes_the_options_of_all_commands() -> None:
    for name in ("--quiet", "--verbose", "--color"):
        assert {each.command for each in taken() if each.name == name} == set(COMMANDS)


#: Further arguments that a command needs before it notices that there is no feedstock.
TAKE_A_FEEDSTOCK = {
    "generate": (),
    "import": (),
    "rerender": (),
    "outputs": (),
    "why": ("python",),
    "cuda check": (),
    "lint": (),
    "rehearse": (),
    "plan": (),
    "build": ("--list",),
    "test": ("linux_64_cpu",),
    "status": (),
    "dossier": (),
    "ci": (),
    "collect": (str(ROOT / "docs"),),
    "publish": ("channel",),
    "clean": (),
}


#: The words of these are versions, names and commits, so only the option names the feedstock.
BY_OPTION_ALONE = {
    "diff": (),
    "edit add-cuda": ("12.9",),
    "edit add-python": ("3.14",),
    "edit build-number": ("1",),
    "edit drop-cuda": ("12.9",),
    "edit drop-python": ("3.14",),
    "edit enable-gpu": (),
    "edit license-file": ("LICENSE",),
    "edit maintainer": ("add", "somebody"),
    "edit migration": ("add", "python314"),
    "edit noarch": ("python",),
    "edit pinning": ("close", "zlib14"),
    "edit platform": ("add", "linux-aarch64"),
    "edit provider": ("linux-64", "azure"),
    "edit python-min": (),
    "edit requirement": ("add", "numpy", "--section", "run"),
    "edit setting": ("drop", "bot"),
    "edit stdlib": (),
    "edit to-v1": (),
    "edit version": ("1.0",),
    "review": (),
}


def test_every_command_on_a_feedstock_takes_the_option() -> None:
    takes = {each.command for each in taken() if each.name == "--feedstock"}
    assert takes == {*TAKE_A_FEEDSTOCK, *BY_OPTION_ALONE}


@pytest.mark.parametrize("command", BY_OPTION_ALONE)
def test_the_option_names_the_feedstock(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert "empty" in chosen(command, *BY_OPTION_ALONE[command], "--feedstock", "empty")
    assert not list((tmp_path / "empty").iterdir())


@pytest.mark.parametrize(
    "words",
    [
        "version ./hello 2.0",
        "version hello 2.0",
        "version 2.0 ./hello",
        "version 2.0 hello",
        "./hello version 2.0",
        "maintainer ./hello add anna",
        "enable-gpu hello maintainer add anna",
    ],
)
def test_an_edit_says_how_the_feedstock_is_named(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hello").mkdir()
    (tmp_path / "hello" / "feedstock.yaml").write_text("name: hello\n")
    assert re.search(r"'(.*hello)' is a folder\..* --feedstock \1$", chosen("edit", *words.split()))


def test_the_page_names_the_commands_that_take_the_option_alone() -> None:
    (sentence,) = re.findall(r"^(.*) take `--feedstock` only", PAGE, re.MULTILINE)
    assert set(re.findall(r"`([\w-]+)`", sentence)) == {command.split()[0] for command in [*BY_OPTION_ALONE, "collect"]}


def chosen(command: str, *arguments: str) -> str:
    """The error of a command in a folder without a feedstock, which names the folder."""
    from click.testing import CliRunner

    from feedstock_tools.cli import program

    run = CliRunner().invoke(program._group, [*command.split(), *arguments], standalone_mode=False)
    return str(run.exception)


@pytest.mark.parametrize("command", TAKE_A_FEEDSTOCK)
def test_the_feedstock_can_be_named_by_option_and_by_word(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    words = TAKE_A_FEEDSTOCK[command]
    by_option = chosen(command, *words, "--feedstock", "empty")
    assert "empty" in by_option, by_option
    if command != "collect":
        assert chosen(command, *words, "./empty") == by_option
        twice = chosen(command, *words, "./empty", "--feedstock", "empty")
        assert "name the feedstock once" in twice
    assert not list((tmp_path / "empty").iterdir())


def test_a_word_is_a_folder_if_it_holds_a_feedstock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "there is no feedstock in this folder" in chosen("outputs", "hello")
    (tmp_path / "hello").mkdir()
    (tmp_path / "hello" / "feedstock.yaml").write_text("name: hello\n")
    assert "hello/.ci_support" in chosen("outputs", "hello").replace("\\", "/")
    assert "there is no feedstock in this folder" in chosen("outputs", "hello", "--feedstock", ".")


def test_a_folder_named_like_a_feedstock_that_does_not_exist_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"{tmp_path / 'nosuch-feedstock'}: there is no such folder" in chosen(
        "build", "nosuch-feedstock", "linux_64"
    )
    assert not is_folder("nosuch-feedstock", only_existing=True, feedstock=None), "it may be a package"


@pytest.mark.parametrize("word", ["linux_64_", "osx_64_cuda11.2", "*cuda*", "hello?"])
def test_a_word_for_configurations_is_no_folder(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's feedstock may hold another one, which would be built or rehearsed in its place."""
    (tmp_path / word / "recipe").mkdir(parents=True)
    (tmp_path / word / "recipe/meta.yaml").write_text("package: {name: other, version: 1}\n")
    monkeypatch.chdir(tmp_path)
    assert not is_folder(word, only_existing=False, feedstock=None)
    assert is_folder(f"./{word}", only_existing=False, feedstock=None)


@pytest.mark.parametrize("command", ["plan", "status", "cuda show"])
def test_there_is_one_form_of_a_result(command: str) -> None:
    assert "--json and --markdown exclude each other" in chosen(command, "--json", "--markdown")
