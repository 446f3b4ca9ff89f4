"""Build the documentation as a site that needs no network. Opened from a folder it has no search, which needs a server.

    python -m maintenance.site FOLDER      write the site into a folder
    python -m maintenance.site             show it on this machine, and again after each change

Needs the extra `site`. A page that no navigation names, a link or an anchor that leads nowhere fails the build.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def main() -> None:
    """Build or show the site, and end with the exit status of mkdocs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where the site is written")
    folder = parser.parse_args().folder
    call = ["serve"] if folder is None else ["build", "--clean", "--site-dir", str(folder.resolve())]
    os.chdir(TOP)
    sys.path.insert(0, str(TOP))  # whose modules make pages
    from mkdocs.__main__ import cli  # late: the extra may be missing

    cli.main(call)


if __name__ == "__main__":
    main()
