"""Record the session of the README: python -m maintenance.terminal [FILE]

FILE is docs/images/session.svg where none is given. It takes half a minute; builds run on the stand-in channel if
conda-forge cannot be reached.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from maintenance.terminal.drawing import drawn
from maintenance.terminal.recording import COLUMNS, ROWS
from maintenance.terminal.session import COMMANDS, ROOT, TITLE, played, prepared

if __name__ == "__main__":
    target = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "docs" / "images" / "session.svg"
    with tempfile.TemporaryDirectory() as folder:
        session = played(COMMANDS, prepared(Path(folder).resolve()))
    picture = drawn(session.screens, session.seconds, session.still, (ROWS, COLUMNS), TITLE)
    target.write_text(picture, encoding="utf-8")
    said = f"{len(session.screens)} screens, {session.seconds:.0f} s, {target.stat().st_size / 1024:.0f} KiB"
    sys.stdout.write(f"{target}: {said}\n")
