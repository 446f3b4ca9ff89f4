"""Solving every environment of a feedstock before anything is built."""
