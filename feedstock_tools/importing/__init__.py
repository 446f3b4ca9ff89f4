"""Recipes that people wrote, as specs."""
