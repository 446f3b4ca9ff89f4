"""A spec and the templates to recipe files and variant files."""
