"""Files on disk: locked, replaced as a set or one by one, and temporary ones that carry their owner."""
