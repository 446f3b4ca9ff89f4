"""Packages of which this machine keeps some files, by version: conda-forge's pinning and releases of conda-smithy."""
