"""Build the documentation as a site that needs no network. Opened from a folder it has no search, which needs a server.

    python -m maintenance.site FOLDER      write the site into a folder
    python -m maintenance.site             show it on this machine, and again after each change

Needs the extra `site`. A page that no navigation names, a link or an anchor that leads nowhere fails the build.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def main() -> int:
    """Build or show the site; the exit status of mkdocs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where the site is written")
    folder = parser.parse_args().folder
    call = ["serve"] if folder is None else ["build", "--clean", "--site-dir", str(folder.resolve())]
    return subprocess.run([sys.executable, "-m", "mkdocs", *call], cwd=TOP, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
