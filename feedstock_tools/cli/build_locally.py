"""What `build-locally.py` hands over to: `feedstock-tools build` under the script's own name."""

import sys
from pathlib import Path

from feedstock_tools.cli import bounds_of, run
from feedstock_tools.cli.build import command
from feedstock_tools.feedstock.folder import example_of_checkout

if __name__ == "__main__":
    run(command, "build-locally.py", example_of_checkout(Path.cwd()), bounds_of("build", sys.argv[1:]))
