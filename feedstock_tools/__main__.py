"""`python -m feedstock_tools` is the command `feedstock-tools`."""

from __future__ import annotations

import gc
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # the current folder of `python -m`: a file of a feedstock is no module of ours

try:
    from feedstock_tools.cli.interruption import end_at_once
except KeyboardInterrupt:  # Ctrl-C before it is handled
    import os

    os.write(2, b"Interrupted.\n")
    os._exit(130)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """The entry point `feedstock-tools`."""
    end_at_once()
    gc.set_threshold(50_000, 20, 20)  # by default, collecting garbage takes a tenth of a command's time
    from feedstock_tools.cli.program import main as run

    run()


if __name__ == "__main__":
    main()
