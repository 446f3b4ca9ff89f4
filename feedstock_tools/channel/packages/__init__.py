"""Conda packages as files: packed, read and compared."""
