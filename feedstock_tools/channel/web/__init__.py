"""Requests to the servers of channels: credentials, and limits of time."""
