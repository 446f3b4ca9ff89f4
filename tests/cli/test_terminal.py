"""Names from files never reach the terminal as commands to it."""

import os
from pathlib import Path

import pytest

from feedstock_tools.wording import shown
from tests.support import command
from tests.support.feedstocks import HERE, TinyFeedstock

EVIL = f"{HERE.name}_\x1b]0;owned\x07\x1b[2J"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("a\x9b2Jb", r"a\x9b2Jb"),
        ("a\rb\x07", r"a\rb\x07"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("caf\udce9", r"caf\udce9"),
        ("naïve\tλ\n", "naïve\tλ\n"),
    ],
)
def test_what_a_terminal_acts_on_is_escaped(text: str, printed: str) -> None:
    assert shown(text) == printed


COMMANDS = [
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


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: repr(" ".join(arguments)))
def test_a_name_with_escape_sequences_is_printed_as_text(feedstock: TinyFeedstock, arguments: tuple[str, ...]) -> None:
    (original, *_) = sorted((feedstock.folder / ".ci_support").glob("*.yaml"))
    original.with_name(f"{EVIL}.yaml").write_bytes(original.read_bytes())
    run = feedstock.run(*arguments)
    assert "\x1b" not in run.stdout + run.stderr
    assert "\x07" not in run.stdout + run.stderr
    assert "Traceback" not in run.stderr


def test_a_missing_folder_is_bad_input(tmp_path: Path) -> None:
    run = command.run(command.tool("status", "--feedstock", "nowhere"), tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(f"error: {tmp_path / 'nowhere'}: there is no feedstock in this folder")
