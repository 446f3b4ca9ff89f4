"""`meta.yaml`, rendered as conda-build does."""
