"""Channels of packages that are little more than their metadata."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from tests.support.feedstocks import HERE


def make_tiny_channel(folder: Path, pythons: Iterable[str] = ("3.11", "3.12")) -> None:
    """A channel with Pythons that are little more than names, and an empty compiler package."""
    subdir = HERE.subdir
    for minor in pythons:
        abi = PackageMetadata("python_abi", minor, f"1_cp{minor.replace('.', '')}", 1, "noarch", noarch="generic")
        python = PackageMetadata("python", f"{minor}.0", "h1_0_cpython", 0, subdir, depends=(f"python_abi {minor}.*",))
        write_package(folder, abi)
        write_package(folder, python, [PackageFile(f"bin/python{minor}", b"#!/bin/sh\n", executable=True)])
    write_package(folder, PackageMetadata("tiny-compiler", "1.0", "0", 0, subdir))
    index_channel(folder)
