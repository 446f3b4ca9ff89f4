"""The hosts of a run: who builds its rows, and what they have free."""
