"""conda-build's final package names, which a plan cannot always know.

The hash of a package covers the virtual packages that it runs on, including those that run exports add when
environments are solved, such as `__glibc` of `stdlib('c')` (conda_build/metadata.py, get_hash_contents). A plan solves
nothing, so for a `meta.yaml` it knows the hash without them.
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

_HASH_INPUT = "info/hash_input.json"


def with_final_name(package: Path, promise: PlannedOutput) -> PlannedOutput:
    """The planned output with the build string of a package file, if they differ only by virtual packages.

    Raises:
        WorkError: the file is not a readable package.
    """
    build = promise.build if promise.whole else read_package(package).build
    if build == promise.build:
        return promise
    document = read_documents(package, (_HASH_INPUT,))[_HASH_INPUT]
    return (
        replace(promise, build=build) if document and is_final(build, promise.build, json.loads(document)) else promise
    )


def is_final(build: str, planned: str, contents: object) -> bool:
    """Whether a build string is the planned one except for virtual packages in its hash.

    Args:
        contents: the contents of the package's hash. Without some of its virtual packages they must give the planned
            hash, and with all of them the package's own.
    """
    if not isinstance(contents, dict):
        return False
    final = package_hash(contents)
    return any(build == planned.replace(package_hash(fewer), final) for fewer in _without_virtual(contents))


def as_built(promise: PlannedOutput, record: BuildRecord) -> PlannedOutput:
    """A finished output of the plan, with the build string of its package."""
    start = f"{promise.name}-{promise.version}-"
    names = (package.file.rpartition("/")[2].removesuffix(".conda") for package in record.packages)
    return next((replace(promise, build=name.removeprefix(start)) for name in names if name.startswith(start)), promise)


def _without_virtual(contents: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The contents of a hash without each subset of its virtual packages."""
    virtual = [key for key in contents if key.startswith("__")]
    for count in range(1, len(virtual) + 1):
        for left_out in combinations(virtual, count):
            yield {key: value for key, value in contents.items() if key not in left_out}
