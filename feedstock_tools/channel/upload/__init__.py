"""Uploads to channels elsewhere."""
