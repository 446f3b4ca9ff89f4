"""The files in `.ci_support`, and the rows that each of them holds."""
