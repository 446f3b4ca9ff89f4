"""The menu of configurations, for `build` without a name in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.planned import PlannedConfiguration
from feedstock_tools.wording import shown


def choose_from_menu(configurations: Sequence[PlannedConfiguration]) -> PlannedConfiguration:
    """Ask for one of the configurations by number, as conda-smithy's script does.

    Raises:
        InputError: the answer is empty, or not a number of the menu.
    """
    sys.stderr.write("config not selected, please choose from the following:\n\n")
    for number, configuration in enumerate(configurations, 1):
        sys.stderr.write(f"{number}. {shown(configuration.name)}\n")
    sys.stderr.write("\n> ")
    sys.stderr.flush()
    typed = sys.stdin.readline().strip()
    if not typed.isdecimal() or not 1 <= int(typed) <= len(configurations):
        mistake = f"'{typed}' is not one of the numbers 1 to {len(configurations)}" if typed else "no option selected"
        raise InputError(mistake)
    return configurations[int(typed) - 1]
