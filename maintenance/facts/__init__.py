"""The facts in `variants/`, read from their sources and compared with them: `python -m maintenance.facts --help`."""
