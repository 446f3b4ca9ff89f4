"""Two states of a feedstock, compared by what they build."""
