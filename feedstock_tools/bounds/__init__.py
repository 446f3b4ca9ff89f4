"""Bounds on work with untrusted input: the limits, and a child process in which the system enforces them."""
