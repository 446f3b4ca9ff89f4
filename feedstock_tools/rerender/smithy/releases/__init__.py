"""Releases of conda-smithy: chosen, read as data, and their templates rendered."""
