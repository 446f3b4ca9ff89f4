"""The status page, live: served on this machine alone, and read-only."""
