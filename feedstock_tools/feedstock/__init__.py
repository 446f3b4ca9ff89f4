"""A feedstock on disk: its folders, its configurations and their names."""
