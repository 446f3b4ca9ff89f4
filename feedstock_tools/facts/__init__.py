"""Facts with their sources, read from the data that ships with the package."""
