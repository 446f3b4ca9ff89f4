"""The spec: its model, how it is read, and what is wrong with one."""
