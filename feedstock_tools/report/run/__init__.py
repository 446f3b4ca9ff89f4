"""What a run shows while it goes on and when it ends."""
