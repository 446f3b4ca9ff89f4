"""Channels: repodata, solving, installing, indexing. The one door to py-rattler."""
