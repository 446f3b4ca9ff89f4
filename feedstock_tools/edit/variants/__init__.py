"""Versions of CUDA and Python that a feedstock builds: added and dropped."""
