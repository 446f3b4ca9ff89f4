"""Bounds on work with strangers' input: how far it may go, and a child process in which the system holds it to that."""
