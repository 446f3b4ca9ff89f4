"""`python -m feedstock_tools` is the command `feedstock-tools`."""

from feedstock_tools.cli import main

main()
