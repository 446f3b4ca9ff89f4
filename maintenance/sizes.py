"""Print what the packages of the current environment take on the disk, largest first: python -m maintenance.sizes

In a fresh environment with feedstock-tools alone: the figures of docs/dependencies.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path


def sizes() -> Iterator[tuple[str, float]]:
    """Each package with the size of its files in MB, without the bytecode that Python writes beside them."""
    for package in distributions():
        yield package.metadata["Name"], sum(_files(package)) / 1e6


def _files(package: Distribution) -> Iterator[int]:
    for file in package.files or ():
        path = Path(str(package.locate_file(file)))
        if path.suffix != ".pyc" and path.is_file():
            yield path.stat().st_size


if __name__ == "__main__":
    found = sorted(sizes(), key=lambda each: each[1], reverse=True)
    lines = [f"{size:8.2f} MB  {name}\n" for name, size in found]
    sys.stdout.write("".join(lines) + f"{sum(size for _, size in found):8.2f} MB\n")
