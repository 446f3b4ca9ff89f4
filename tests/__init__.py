"""The tests. `python -m tests` runs them; docs/contributing.md tells how they are laid out."""
