"""What builds print reaches terminals and pages as text: nothing in it acts on them."""

from __future__ import annotations

import io
import re
import time
import tracemalloc
from pathlib import Path

import pytest

from feedstock_tools.builds.engines.contract import Failed, Log, Output
from feedstock_tools.redaction import secrets_in_file
from feedstock_tools.report.matrix import printable
from feedstock_tools.report.matrix_page import _tail
from feedstock_tools.report.observers import UNFOLDED, Fold, Lines, LiveTable, Terminal
from tests.support.feedstocks import CPU, TinyFeedstock
from tests.support.rows import made_up_row

WORK = made_up_row("linux_64_cuda_compiler_version11.8_py3.11")
#: Attack → the bytes that a build prints, around the word `text`.
ATTACKS = {
    "clear the screen": b"\x1b[2J\x1b[Htext\n",
    "set the title": b"\x1b]0;title\x07text\n",
    "answer a question": b'\x1b[6n\x1b[c\x1bP$q"p\x1b\\text\n',
    "write to the clipboard": b"\x1b]52;c;ZWNobyBoaQ==\x07text\n",
    "make a link": b"\x1b]8;;https://example.org\x1b\\text\x1b]8;;\x1b\\\n",
    "hide what follows": b"\x1b[8mtext\n",
    "leave a colour": b"\x1b[31mtext\n",
    "long parameters": b"\x1b[" + b"1;" * 5000 + b"mtext\n",
    "another character set": b"\x0e\x1b(0text\n",
    "controls of eight bits": b"\xc2\x9b2J\xc2\x9d0;t\xc2\x9ctext\n",
    "turn the line around": "\u202etext\u2066\n".encode(),
    "no UTF-8": b"\xff\xfe\x9b2Jtext\xed\xa0\x80\n",
    "overwrite a line": b"harmless\rtext\n",
    "backspaces": b"harmless\b\b\b\b\b\b\b\btext\n",
    "half a sequence": b"text\x1b[",
    "markup": b"[bold]text[/bold] :boom: <script>alert(1)</script>\n",
}
#: What may be left of escape sequences: colours, of a bearable length.
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,32}m")
_ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(shown: str) -> None:
    assert "text" in shown
    left = _COLOUR.sub("", shown)
    assert not _ACTS.search(left), repr(left)
    colours = _COLOUR.findall(shown)
    assert not colours or colours[-1] in ("\x1b[0m", "\x1b[m")


def test_messages_are_broken_at_blanks_and_what_is_copied_is_not() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream, width=20)
    terminal.answer("it was built on the stand-in channel: /a/path/without/any/blank")
    terminal.answer("  cd /some/place && source build_env.sh", copied=True)
    assert stream.getvalue().splitlines() == [
        "it was built on the",
        "  stand-in channel:",
        "  /a/path/without/any/blank",
        "  cd /some/place && source build_env.sh",
    ]


@pytest.mark.parametrize("attack", ATTACKS)
def test_output_is_text_on_a_terminal(attack: str) -> None:
    stream = io.StringIO()
    terminal = Terminal(stream)
    terminal.event(WORK, Output(ATTACKS[attack], "script"))
    terminal.event(WORK, Log(ATTACKS[attack].decode(errors="replace"), "script"))
    terminal.event(WORK, Failed("demo", "its build script failed"))
    harmless(stream.getvalue())
    assert stream.getvalue().endswith("-- demo failed: its build script failed\n")


def test_a_flood_does_not_wait_for_the_terminal() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream)
    block = b"\xff\x1b[2J" * 200_000
    began = time.thread_time()
    for _ in range(200):
        terminal.event(WORK, Output(block, "script"))
    assert time.thread_time() - began < 5
    terminal.event(WORK, Failed("demo", "its build script failed"))
    *_, left_out, reason = stream.getvalue().splitlines()
    assert re.fullmatch(r"-- [\d.]+ MiB that were printed too fast to be shown are in the log file", left_out)
    assert reason == "-- demo failed: its build script failed"


@pytest.mark.parametrize("attack", ATTACKS)
def test_output_is_text_among_the_lines_of_many_rows(attack: str) -> None:
    for fold in (UNFOLDED, Fold("::group::", "::endgroup::")):
        stream = io.StringIO()
        lines = Lines(stream, 1, fold)
        lines.event(WORK, Output(ATTACKS[attack], "script"))
        lines.event(WORK, Failed("demo", "its build script failed"))
        if fold is UNFOLDED:
            harmless(stream.getvalue())


@pytest.mark.parametrize("attack", ATTACKS)
def test_output_is_text_beside_the_live_table(attack: str) -> None:
    stream = io.StringIO()
    table = LiveTable(stream)
    table.begin(WORK)
    table.event(WORK, Output(ATTACKS[attack], "script"))
    table.event(WORK, Failed("demo", "its build script failed"))
    harmless(stream.getvalue())


@pytest.mark.parametrize("attack", ATTACKS)
def test_output_is_text_on_a_page(attack: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(ATTACKS[attack] * 300)
    tail = _tail(tmp_path / "log")
    assert "text" in tail
    assert not _ACTS.search(tail)
    assert not _ACTS.search(printable(ATTACKS[attack].decode(errors="surrogateescape")))


def printing(content: bytes) -> str:
    """A command of a shell that prints these bytes."""
    return "printf '" + "".join(f"\\x{byte:02x}" for byte in content[:60]) + "'\n"


def test_all_readers_of_a_hostile_log_show_text(feedstock: TinyFeedstock) -> None:
    script = "".join(printing(attack) for attack in ATTACKS.values())
    (feedstock.folder / "recipe" / "build-library.sh").write_text(f"set +x\n{script}\nexit 3\n")
    runs = [
        feedstock.build(f"{CPU}_py3.11"),
        feedstock.build(f"{CPU}_py3.11", f"{CPU}_py3.12", "--jobs", "2"),
        feedstock.ask("status", "--channel", str(feedstock.channel)),
        feedstock.ask("status", "--markdown", "--channel", str(feedstock.channel)),
        feedstock.ask("status", "--json", "--channel", str(feedstock.channel)),
        feedstock.ask("status", "--html", "page.html", "--channel", str(feedstock.channel)),
    ]
    for run in runs:
        assert "Traceback" not in run.stderr
        shown = _COLOUR.sub("", run.stdout + run.stderr)
        assert not _ACTS.search(shown), repr(_ACTS.search(shown))
    page = (feedstock.folder / "page.html").read_text(encoding="utf-8")
    assert not _ACTS.search(page)
    assert "<script>alert" not in page
    (log, *_) = (feedstock.artifacts / "logs").glob("*.log")
    assert b"\xff\xfe\x9b2Jtext" in log.read_bytes()


def test_readers_of_a_huge_log_need_no_memory(feedstock: TinyFeedstock) -> None:
    (feedstock.folder / "recipe" / "build-library.sh").write_text("echo before\nexit 3\n")
    assert feedstock.build(f"{CPU}_py3.11").returncode == 1
    (log,) = (feedstock.artifacts / "logs").glob("*.log")
    with log.open("r+b") as stream:  # two gigabytes with little on the disk
        stream.seek(2 << 30)
        stream.write(b"the end\xff\x1b[2J\n")
    began = time.monotonic()
    for words in (("status",), ("status", "--json"), ("status", "--html", "page.html")):
        run = feedstock.ask(*words, "--channel", str(feedstock.channel))
        assert run.returncode == 0, run.stderr
    assert time.monotonic() - began < 30
    page = (feedstock.folder / "page.html").read_text(encoding="utf-8")
    assert "the end\ufffd" in page
    assert len(page) < 200_000


def test_secrets_of_a_log_in_one_line_are_looked_for_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as stream:
        stream.write(b"begin ")
        stream.seek(100 << 20)
        stream.write(b" https://me:word@example.org/")
    tracemalloc.start()
    assert secrets_in_file(path, {"KEY": "not-in-it-at-all"}) == {"a password in a URL": 1}
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 40 << 20
