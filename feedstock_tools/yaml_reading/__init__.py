"""Reading YAML: as nodes with places, as plain values, and quickly for variant files; no other module composes YAML."""
