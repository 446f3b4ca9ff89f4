"""The tests. `python -m tests` runs them; CONTRIBUTING.md says how."""
