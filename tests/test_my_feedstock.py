"""docs/my-feedstock.md: its commands, run in order on its feedstock, print what it shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from feedstock_tools.platforms import Platform
from tests.support import command
from tests.support.my_feedstock import ADDRESS, make_feedstock, make_source
from tests.support.needs import needs
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "my-feedstock.md"
_CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)

pytestmark = [
    pytest.mark.usefixtures("unmeasured"),
    needs(
        "system",
        Platform.here().subdir == "linux-64" and sys.version_info[:2] == (3, 11),
        "the page builds on linux-64, and its Python 3.11 is the one that runs feedstock-tools",
    ),
]


@dataclass(frozen=True)
class Call:
    """A command of the page, and what it shows below: `…` for omitted text in a line, or for omitted lines."""

    command: str
    shown: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """What the command must print."""
        return re.compile(re.escape(self.shown).replace("…", r"[\s\S]*?") + r"\Z")


def calls(text: str) -> Iterator[Call]:
    """The commands of a page, in order: a line, or all up to a line END, or those that end with a backslash and one."""
    for block in _CONSOLE.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            words = re.match(r".*<<'END'\n(?:.*\n)*?END\n|(?:.*\\\n)*.*\n", part)
            assert words
            yield Call(words[0].rstrip("\n"), part[words.end() :].rstrip())


def variables(folder: Path) -> dict[str, str]:
    """The environment of the commands, with `feedstock-tools` on PATH."""
    program = folder / "bin" / "feedstock-tools"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nPYTHONUNBUFFERED=1 exec "{sys.executable}" -m feedstock_tools "$@"\n')
    program.chmod(0o755)
    person = {f"GIT_{role}_{key}": "anna" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    own = {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
    return command.environment(**own, **person, NO_COLOR="1")


def started(call: str, feedstock: Path) -> subprocess.Popen[str]:
    """A command that runs in the feedstock's folder: others than those of feedstock-tools alone in a shell."""
    own, call = variables(feedstock.parent), call.replace("\\\n", "")
    if call.startswith("feedstock-tools ") and not re.search(r"[|<>&;$*]", call):
        program = "import sys; sys.stdout.reconfigure(line_buffering=True)"
        return command.start(command.patched(program, *shlex.split(call)[1:]), feedstock, own)
    return command.start(["bash", "-c", call], feedstock, own)


def printed(call: str, feedstock: Path) -> str:
    """What a command prints in the feedstock's folder, both streams; the page pipes them through others."""
    call, _, through = call.partition(" 2>&1 | ")
    with started(call, feedstock) as run:
        output = run.communicate()[0]
    if through:
        output = subprocess.run(
            ["bash", "-c", through], input=output, capture_output=True, text=True, check=True
        ).stdout
    text = output.replace(f"{feedstock.parent.as_uri()}/", ADDRESS)
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip()


def test_the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    digest = make_source(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    assert digest in text
    feedstock = make_feedstock(tmp_path)
    for call in calls(text):
        given = printed(call.command, feedstock)
        assert call.pattern.match(given), f"$ {call.command}\n{given}"
