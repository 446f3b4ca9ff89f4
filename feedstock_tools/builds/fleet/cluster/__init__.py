"""Hosts that are jobs of a Slurm cluster: submitted while rows wait, ended when nothing is left."""
