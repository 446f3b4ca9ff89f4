"""The templates and selectors of a `meta.yaml`: followed, and written for rattler-build."""
