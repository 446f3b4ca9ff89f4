"""The output of a run while it is under way and at its end."""
