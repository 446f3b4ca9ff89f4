"""The worker of a job, as dask-jobqueue starts it: with the options of Dask's own worker, of which it heeds the name.

python -m feedstock_tools.builds.fleet.cluster.job ADDRESS --name NAME --folder FOLDER --root ROOT …
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path

from feedstock_tools.builds.fleet.worker import main

if __name__ == "__main__":
    parser = ArgumentParser()
    for option in ("--name", "--folder", "--root"):
        parser.add_argument(option, required=True)
    given, _ = parser.parse_known_args()
    sys.exit(main(given.folder, str(Path(given.root) / f"feedstock-tools-{given.name}"), given.name))
