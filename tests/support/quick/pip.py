"""In place of pip, in a folder that comes first on PYTHONPATH: takes as long, but hardly any processor time."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path


def main(arguments: list[str]) -> None:
    """`download ... --dest FOLDER`: every wheel of the folder that PIP_FIND_LINKS names."""
    time.sleep(0.6)
    folder = Path(arguments[arguments.index("--dest") + 1])
    folder.mkdir(exist_ok=True)
    for wheel in sorted(Path(os.environ["PIP_FIND_LINKS"]).glob("*.whl")):
        shutil.copy(wheel, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
