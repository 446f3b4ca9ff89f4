"""Builds: a ledger of years, a matrix."""
