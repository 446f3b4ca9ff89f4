"""Environments of frameworks such as TensorFlow."""
