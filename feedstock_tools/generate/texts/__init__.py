"""The files that are generated from a spec."""
