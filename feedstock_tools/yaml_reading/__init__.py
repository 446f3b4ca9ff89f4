"""Reading YAML with the line and column of everything in it."""
