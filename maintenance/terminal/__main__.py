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
        screens, seconds = played(COMMANDS, prepared(Path(folder).resolve()))
    target.write_text(drawn(screens, seconds, ROWS, COLUMNS, TITLE), encoding="utf-8")
    sys.stdout.write(f"{target}: {len(screens)} screens, {seconds:.0f} s, {target.stat().st_size / 1024:.0f} KiB\n")
