"""The state of every configuration of a feedstock."""
