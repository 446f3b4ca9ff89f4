"""`python -m feedstock_tools` is the command `feedstock-tools`."""

from typing import NoReturn

from feedstock_tools.cli.interruption import end_at_once

__all__ = ["main"]


def main() -> NoReturn:
    """The entry point `feedstock-tools`."""
    end_at_once()
    from feedstock_tools.cli.program import main as run

    run()


if __name__ == "__main__":
    main()
