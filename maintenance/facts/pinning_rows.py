"""Rows for `variants/cuda.yaml`, read from a clone of conda-forge-pinning-feedstock.

A row is read as it stood at the last commit whose pinning, or a migration beside it, named its CUDA version for the
platform. A value that is the same for all rows of a pinning is taken as it is, one of a zip group from the row of the
version. A person may then add to the row (a note, keys that an old pinning did not have), and says so in the row.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.variants.files import parse, select_yaml
from feedstock_tools.variants.model import VariantConfig
from feedstock_tools.variants.rules import CondaBuildRules
from maintenance.facts.records import git

CONFIG = "recipe/conda_build_config.yaml"
MIGRATIONS = "recipe/migrations"
#: The keys of a row, in the order in which they are written.
KEYS = (
    *("c_compiler", "c_compiler_version", "cxx_compiler", "cxx_compiler_version"),
    *("fortran_compiler", "fortran_compiler_version", "c_stdlib", "c_stdlib_version", "macos_machine"),
    *("cuda_compiler", "cuda_compiler_version", "cudnn", "arm_variant_type", "cdt_name", "cdt_arch", "BUILD"),
    "docker_image",
)
#: Platforms that conda-forge builds for on another one, whose image is used.
BUILT_ON = {"linux-riscv64": "linux-64"}
#: Before alma8 the pinning asked which CentOS is wanted; CUDA images were CentOS 7 by then.
OLD_DEFAULT_LINUX = "cos7"


@lru_cache(maxsize=256)
def _file(clone: Path, commit: str, path: str) -> str:
    return git(clone, "show", f"{commit}:{path}")


def _environment(platform: Platform, cuda: bool, old: bool) -> dict[str, str]:
    """The variables that conda-smithy sets for the selectors of the pinning."""
    environment = {"BUILD_PLATFORM": BUILT_ON.get(platform.subdir, platform.subdir)}
    if cuda:
        environment["CF_CUDA_ENABLED"] = "True"
    if old:
        environment["DEFAULT_LINUX_VERSION"] = OLD_DEFAULT_LINUX
    return environment


@lru_cache(maxsize=256)
def _pinning(clone: Path, commit: str, platform: Platform, cuda: bool) -> VariantConfig:
    text = _file(clone, commit, CONFIG)
    return parse(text, None, platform, environ=_environment(platform, cuda, ":alma" not in text))


def _migration(clone: Path, commit: str, origin: str, platform: Platform) -> Mapping[str, Any]:
    text = _file(clone, commit, path_of(origin))
    return select_yaml(text, None, platform, _environment(platform, True, False), CondaBuildRules())[0]


def row_at(clone: Path, commit: str, platform: Platform, cuda: str | None, origin: str) -> dict[str, str] | None:
    """The values for a platform and CUDA version (None: CPU) at a commit; None where it is not named there.

    Args:
        origin: `pinning`, or `migration <name>`.
    """
    pinning = _pinning(clone, commit, platform, cuda is not None)
    if origin.startswith("migration "):
        migration = _migration(clone, commit, origin, platform)
        return _migrated_row(pinning, migration, str(cuda))
    versions = pinning.values.get("cuda_compiler_version", ())
    wanted = cuda or "None"
    if wanted not in versions:
        return None
    at = versions.index(wanted)
    group = pinning.group_of("cuda_compiler_version")
    row = {}
    for key in KEYS:
        values = pinning.values.get(key, ())
        if key in group or len(values) == 1:
            row[key] = values[at if key in group else 0]
    return row


def _migrated_row(pinning: VariantConfig, migration: Mapping[str, Any], cuda: str) -> dict[str, str] | None:
    """A row that a migration adds: its own values of the zip group, and the pinning's of the rest."""
    versions = migration.get("cuda_compiler_version", ())
    if cuda not in versions:
        return None
    at = versions.index(cuda)
    added = migration["__migrator"].get("additional_zip_keys", ())
    group = {*pinning.group_of("cuda_compiler_version"), *added}
    row = {}
    for key in KEYS:
        if key in group and key in migration:
            row[key] = migration[key][at]
        elif key not in group and len(pinning.values.get(key, ())) == 1:
            row[key] = pinning.values[key][0]
    return row


def path_of(origin: str) -> str:
    """The file of the pinning that an origin stands for."""
    return CONFIG if origin == "pinning" else f"{MIGRATIONS}/{origin.removeprefix('migration ')}.yaml"


def origins(clone: Path, commit: str) -> Iterator[str]:
    """The pinning, and every CUDA migration that is there at a commit."""
    yield "pinning"
    for path in git(clone, "ls-tree", "--name-only", commit, f"{MIGRATIONS}/").split():
        if "cuda" in path and path.endswith(".yaml"):
            yield f"migration {Path(path).stem}"


def last_row(clone: Path, platform: Platform, cuda: str | None) -> tuple[str, str, dict[str, str]]:
    """The newest commit that names a CUDA version for a platform, what names it, and its values.

    Raises:
        LookupError: no commit does.
    """
    for commit in git(clone, "rev-list", "--first-parent", "HEAD", "--", CONFIG, MIGRATIONS).split():
        for origin in origins(clone, commit):
            if cuda and f"- {cuda}" not in _file(clone, commit, path_of(origin)):
                continue  # most commits: much faster than reading them
            try:
                row = row_at(clone, commit, platform, cuda, origin)
            except InputError as error:  # a few commits left a zip group without values and were fixed the next day
                sys.stderr.write(f"{commit[:10]} is passed over: {error}\n")
                break
            if row is not None:
                return commit, origin, row
    raise LookupError(f"no commit names CUDA {cuda} for {platform}")


def as_text(clone: Path, platform: Platform, cuda: str | None) -> str:
    """The last row as it stands in the file.

    Raises:
        LookupError: no commit names it.
    """
    commit, origin, row = last_row(clone, platform, cuda)
    date = git(clone, "log", "-1", "--format=%cs", commit).strip()
    lines = [
        f"    - cuda: {json.dumps(cuda)}",
        f"      platform: {platform}",
        f"      commit: {json.dumps(commit)}",
        f"      date: {json.dumps(date)}",
        f"      origin: {origin}",
        "      values:",
        *(f"        {key}: {json.dumps(value)}" for key, value in row.items()),
    ]
    return "\n".join(lines) + "\n"
