"""The recorded session of the README: its script runs, its commands exist, and the picture shows them."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pexpect
import pytest

from maintenance.drawn import COMMANDS
from maintenance.terminal import COLUMNS, ROWS, TITLE, Terminal, drawn, played
from maintenance.terminal import COMMANDS as SESSION
from tests.support.needs import needs
from tests.support.paths import ROOT

pytestmark = needs("system", sys.platform != "win32", "pseudo-terminals, which Windows lacks")
PICTURE = ROOT / "docs" / "images" / "session.svg"
_SVG = "{http://www.w3.org/2000/svg}"


def rows(picture: str) -> list[str]:
    """The text of each row that a picture shows at some time."""
    return ["".join(text.itertext()) for text in ET.fromstring(picture).iter(f"{_SVG}text")]  # noqa: S314 - our own


@pytest.mark.parametrize("call", SESSION)
def test_the_picture_shows_the_commands_and_they_exist(call: str) -> None:
    assert f"$ {call}" in rows(PICTURE.read_text(encoding="utf-8"))
    words = call.split()[1:]
    name = " ".join(words[:2]) if " ".join(words[:2]) in COMMANDS else words[0]
    known = {spelling for option in COMMANDS[name].params for spelling in option.opts}
    assert {word for word in words if word.startswith("-")} <= known


def test_the_picture_is_small_and_for_light_dark_and_still_pages() -> None:
    text = PICTURE.read_text(encoding="utf-8")
    assert PICTURE.stat().st_size < 120_000
    assert "@media(prefers-color-scheme:dark)" in text
    assert "/tmp" not in text
    assert all(float(seconds) < 15 for seconds in re.findall(r"animation-duration:([\d.]+)s", text))


def test_without_motion_the_picture_shows_the_whole_session_at_a_glance() -> None:
    text = PICTURE.read_text(encoding="utf-8")
    style, _, moving = text.partition("@media screen and (prefers-reduced-motion:no-preference){")
    assert "animation" not in style
    assert ".played text{visibility:hidden}" in style
    assert ".still{animation-name:still}@keyframes still{0%{visibility:visible}" in moving
    still = ET.fromstring(text).find(f"{_SVG}g[@class='still']")  # noqa: S314 - our own
    assert still is not None
    shown = rows(ET.tostring(still, encoding="unicode"))
    assert len(shown) <= ROWS
    assert [row for row in shown if row.startswith("$")] == [f"$ {call}" for call in SESSION]
    assert shown[-1] == "1 configuration: 1 done"


def test_a_session_is_played_and_drawn(tmp_path: Path) -> None:
    call = "feedstock-tools cuda resolve cuda=11.2 gcc=11"
    session = played({call: (1, 1)}, tmp_path)
    assert ["".join(cell[0] for cell in row) for row in session.still][2] == "… 5 more lines"
    picture = drawn(session, (ROWS, COLUMNS), TITLE)
    shown = rows(picture)
    assert any(row.startswith("$ feed") and len(row) < len(call) for row in shown)
    assert f"$ {call}" in shown
    assert "or: cuda=11.4 gcc=11" in shown
    assert session.seconds > 2
    assert re.search(r"@keyframes s0\{0%\{visibility:hidden\}[1-9][\d.]*%\{visibility:visible\}", picture)


def test_a_command_that_does_not_exist_ends_the_recording(tmp_path: Path) -> None:
    with pytest.raises(pexpect.ExceptionPexpect, match="no-such-program"):
        played({"no-such-program": (1, 1)}, tmp_path)


def test_a_screen_shows_what_a_terminal_would() -> None:
    terminal = Terminal(3)
    terminal.write(f"one\r\ntwo\r\n\x1b[1;33mthree\x1b[0m\r\n{'long' * 50}")
    assert ["".join(cell[0] for cell in row) for row in terminal.rows()] == ["two", "three", "long" * 25]
    assert terminal.rows()[1][0] == ("t", "bold yellow")
    terminal.write("\r\x1b[2K\x1b[1A\x1b[2Kgone")
    assert ["".join(cell[0] for cell in row) for row in terminal.rows()] == ["two", "gone"]
