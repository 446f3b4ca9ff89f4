"""The side of a host: its store, its attempts, and the process of each."""
