"""What builds: the contract of engines, and each engine behind it."""
