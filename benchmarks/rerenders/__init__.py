"""Rerenders, compared with conda-smithy's."""
