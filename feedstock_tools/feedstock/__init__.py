"""A feedstock on disk: its folders, its configurations and what people call them."""
