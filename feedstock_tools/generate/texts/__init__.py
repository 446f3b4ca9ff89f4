"""The files that a spec is generated to."""
