"""Smooths arrays."""

from smooth._core import mean

__all__ = ["mean"]
