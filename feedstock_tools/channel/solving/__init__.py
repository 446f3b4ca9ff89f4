"""Solving: one environment or many at once, why there is none, and which builds a solver is free to choose."""
