"""The program behind `build-locally.py`: `feedstock-tools build` under the script's own name."""

from __future__ import annotations

from feedstock_tools.cli.interruption import end_at_once, release

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command."""
    end_at_once()
    release()
    import sys
    from pathlib import Path

    from feedstock_tools.cli.build import build
    from feedstock_tools.cli.program import bounds_of, run
    from feedstock_tools.feedstock.folder import example_of_checkout

    run(build, "build-locally.py", example_of_checkout(Path.cwd()), bounds_of("build", sys.argv[1:]))


if __name__ == "__main__":
    main()
