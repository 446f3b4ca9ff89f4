"""What commands print fits the width of a terminal; in a pipe lines are whole."""

import os
import re
import sys

import pexpect
import pytest

from tests.support import command
from tests.support.feedstocks import TinyFeedstock
from tests.support.needs import needs

pytestmark = [
    pytest.mark.usefixtures("within_limits"),
    needs("system", hasattr(os, "openpty"), "a pseudo-terminal"),
]

_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LONG = "a" * 90


def printed_on_a_screen(feedstock: TinyFeedstock, *words: str, columns: int = 80, terminal: str) -> str:
    """What a command prints in a terminal."""
    child = pexpect.spawn(
        sys.executable,
        ["-m", "feedstock_tools", *words],
        cwd=feedstock.folder,
        env={**command.environment(), "TERM": terminal},
        dimensions=(40, columns),
        timeout=120,
        encoding="utf-8",
    )
    text: str = child.read()
    child.close()
    return text.replace("\r\n", "\n")


def on_a_screen(feedstock: TinyFeedstock, *words: str, columns: int = 80) -> list[str]:
    """The lines that a command prints in a terminal, as they stand at its end."""
    text = _SEQUENCE.sub("", printed_on_a_screen(feedstock, *words, columns=columns, terminal="xterm-256color"))
    return [line.rpartition("\r")[2] for line in text.splitlines()]


@pytest.mark.parametrize("words", [("build", "--list"), ("status",), ("plan",), ("cuda", "variants"), ("cuda", "show")])
def test_no_line_is_wider_than_the_terminal(feedstock: TinyFeedstock, words: tuple[str, ...]) -> None:
    (original, *_) = sorted((feedstock.folder / ".ci_support").glob("*.yaml"))
    original.with_name(f"{original.stem}_{_LONG}.yaml").write_bytes(original.read_bytes())
    assert max(map(len, on_a_screen(feedstock, *words))) <= 80


def test_wide_and_a_pipe_leave_names_whole(feedstock: TinyFeedstock) -> None:
    (feedstock.folder / "conda-forge.yml").write_text("conda_build_tool: rattler-build\n")
    (original, *_) = sorted((feedstock.folder / ".ci_support").glob("*.yaml"))
    name = f"{original.stem}_{_LONG}"
    original.with_name(f"{name}.yaml").write_bytes(original.read_bytes())
    assert name in feedstock.run("outputs").stdout.splitlines()
    assert name in on_a_screen(feedstock, "outputs", "--wide")
    narrow = on_a_screen(feedstock, "outputs")
    assert name not in narrow
    assert any(line.startswith(name[:30]) and line.endswith("a" * 30) and "…" in line for line in narrow)


def test_a_dumb_terminal_gets_text_alone(feedstock: TinyFeedstock) -> None:
    printed = printed_on_a_screen(feedstock, "build", "nothing_like_this", terminal="dumb")
    assert "error: " in printed
    assert "\x1b" not in printed
    assert "\r" not in printed
