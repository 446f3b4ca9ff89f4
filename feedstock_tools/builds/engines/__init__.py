"""Engines: their contract, and each engine."""
