"""Names from files never reach the terminal as control sequences."""

import os
from pathlib import Path

import pytest

from feedstock_tools.wording import shown, shown_log
from tests.support import command
from tests.support.feedstocks import HERE, TinyFeedstock
from tests.support.needs import needs
from tests.support.paths import ROOT

pytestmark = pytest.mark.usefixtures("within_limits")

EVIL = f"{HERE.name}_\x1b]0;owned\x07\x1b[2J"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("a\x9b2Jb", r"a\x9b2Jb"),
        ("a\rb\x07", r"a\rb\x07"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("\u061c1", r"\u061c1"),
        ("caf\udce9", r"caf\udce9"),
        ("naïve\tλ\n", "naïve\tλ\n"),
    ],
)
def test_what_a_terminal_acts_on_is_escaped(text: str, printed: str) -> None:
    assert shown(text) == printed


def test_the_log_of_a_build_keeps_its_colours_and_nothing_else() -> None:
    assert shown_log("\x1b[1;31merror\x1b[0m\r\n\x1b[2J") == "\x1b[1;31merror\x1b[0m\n\\x1b[2J"
    assert shown_log("10 %\r20 %") == "10 %\n20 %"


COMMANDS = [
    ("build", "--list"),
    ("status",),
    ("status", "--markdown"),
    ("build",),
    ("build", "nothing"),
    ("build", "--all"),
    ("plan",),
    ("outputs",),
    ("rerender", "--check"),
    ("why", "python"),
    ("why", EVIL),
    ("cuda", "check"),
    ("rehearse",),
    ("dossier",),
    ("publish", "channel"),
    ("ci", "--matrix", "github"),
    ("test", EVIL),
    (EVIL,),
    ("build", EVIL, "--feedstock", "\x1b[2J"),
]


@needs("system", os.name != "nt", "Windows has no such names")
@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: repr(" ".join(arguments)))
def test_a_name_with_escape_sequences_is_printed_as_text(feedstock: TinyFeedstock, arguments: tuple[str, ...]) -> None:
    (original, *_) = sorted((feedstock.folder / ".ci_support").glob("*.yaml"))
    original.with_name(f"{EVIL}.yaml").write_bytes(original.read_bytes())
    run = feedstock.run(*arguments)
    assert "\x1b" not in run.stdout + run.stderr
    assert "\x07" not in run.stdout + run.stderr
    assert "Traceback" not in run.stderr


def test_commands_print_through_one_door() -> None:
    folder = ROOT / "feedstock_tools" / "cli"
    users = {path.name for path in folder.glob("*.py") if "click.echo(" in path.read_text(encoding="utf-8")}
    assert users == {"printing.py"}


def test_a_missing_folder_is_bad_input(tmp_path: Path) -> None:
    run = command.run(command.tool("status", "--feedstock", "nowhere"), tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(f"error: {tmp_path / 'nowhere'}: there is no such folder")
