"""Machines made into hosts of a fleet, and given back: one list of steps for Ansible and for a bash script."""
