"""The checks of a built package, and its way into the channel."""
