"""A release in one command: `python -m maintenance.release 0.2.0`."""
