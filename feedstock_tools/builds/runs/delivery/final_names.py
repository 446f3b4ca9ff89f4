"""The names that conda-build gives in the end, where a plan could not know them.

The hash of a package holds the virtual packages that it is to run on, those included that run exports bring in when
environments are solved: `__glibc` of `stdlib('c')`, for one (conda_build/metadata.py, get_hash_contents). A plan solves
nothing, so of a `meta.yaml` it knows the hash without them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from feedstock_tools.builds.ledger import BuildRecord
from feedstock_tools.channel.archive import read_documents, read_package
from feedstock_tools.digests import package_hash
from feedstock_tools.feedstock.planned import PlannedOutput

__all__ = ["as_built", "is_final", "with_final_name"]

_HASH_INPUT = "info/hash_input.json"


def with_final_name(package: Path, promise: PlannedOutput) -> PlannedOutput:
    """The promise with the build string of a package file, where it is the planned one but for virtual packages.

    Raises:
        WorkError: the file is no readable package.
    """
    made = promise.build if promise.whole else read_package(package).build
    if made == promise.build:
        return promise
    document = read_documents(package, (_HASH_INPUT,))[_HASH_INPUT]
    return replace(promise, build=made) if document and is_final(made, promise.build, json.loads(document)) else promise


def is_final(made: str, planned: str, contents: object) -> bool:
    """Whether a build string is the one that was planned, but for virtual packages in its hash.

    Args:
        contents: what the hash of the package was made of. Without some of its virtual packages it has to give the hash
            that was planned, and with all of them the one that the package bears.
    """
    if not isinstance(contents, dict):
        return False
    final = package_hash(contents)
    return any(made == planned.replace(package_hash(fewer), final) for fewer in _without_virtual(contents))


def as_built(promise: PlannedOutput, record: BuildRecord) -> PlannedOutput:
    """The promise of an output that is done, with the build string that its package has."""
    start = f"{promise.name}-{promise.version}-"
    names = (package.file.rpartition("/")[2].removesuffix(".conda") for package in record.packages)
    return next((replace(promise, build=name.removeprefix(start)) for name in names if name.startswith(start)), promise)


def _without_virtual(contents: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """What a hash is made of, without each choice of its virtual packages."""
    virtual = [key for key in contents if key.startswith("__")]
    for count in range(1, len(virtual) + 1):
        for left_out in combinations(virtual, count):
            yield {key: value for key, value in contents.items() if key not in left_out}
