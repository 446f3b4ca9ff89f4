"""The embedded engine: py-rattler-build in a process of its own."""
