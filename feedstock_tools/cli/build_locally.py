"""What `build-locally.py` hands over to: `feedstock-tools build` under the script's own name."""

from feedstock_tools.cli import run
from feedstock_tools.cli.build import command

if __name__ == "__main__":
    run(command, "build-locally.py")
