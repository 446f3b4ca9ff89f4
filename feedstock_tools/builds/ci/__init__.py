"""Workflows for CI services, and the jobs that they ask for."""
