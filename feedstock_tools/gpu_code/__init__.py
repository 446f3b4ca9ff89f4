"""GPU code in built files: which architectures they contain, and whether all those in the spec are there."""
