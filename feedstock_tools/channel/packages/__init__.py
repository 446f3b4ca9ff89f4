"""Conda packages as files: written, read in one strict way, and compared."""
