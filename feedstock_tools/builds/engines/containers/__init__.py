"""Engines that build in a container."""
