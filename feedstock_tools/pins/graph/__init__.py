"""Facts and channels as one graph: demands, resolving, explaining."""
