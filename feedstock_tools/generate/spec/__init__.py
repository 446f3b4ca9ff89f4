"""The spec: its model, its reader, and its checks."""
