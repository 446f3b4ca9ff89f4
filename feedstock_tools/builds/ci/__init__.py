"""Workflows for CI services, and their jobs."""
