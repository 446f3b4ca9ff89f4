"""Builds: the order of rows, ledgers, logs, a matrix, a fleet."""
