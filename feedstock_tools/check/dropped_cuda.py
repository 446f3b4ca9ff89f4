"""CUDA versions that conda-forge's pinning dropped: configurations for them can no longer be built as they are."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from feedstock_tools.facts import CudaFacts
from feedstock_tools.file_names import CI_SUPPORT
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import read_text
from feedstock_tools.rerender.source import Pinning
from feedstock_tools.versions import parse_version

_KEY = re.compile(r"^cuda_compiler_version\s*:\s*(?P<inline>.*)$")
_USE_LOCAL = re.compile(r"^[ \t]*use_local:[ \t]*true", re.IGNORECASE | re.MULTILINE)
_VERSION = re.compile(r"(?<![\d.])(\d+\.\d+)(?![\d.])")


def named_by_feedstock(feedstock: Path, recipe: Path, pinning: Pinning | None) -> frozenset[str]:
    """The CUDA versions that a feedstock itself chooses: in its recipe's variant files, and in its migrations.

    A migration without `use_local` is a copy of the pinning's, and is over when the pinning no longer has it; without a
    pinning to compare with, it counts.
    """
    files = [recipe / "conda_build_config.yaml", recipe / "variants.yaml"]
    upstream = pinning.migrations if pinning else None
    for path in sorted((feedstock / CI_SUPPORT / "migrations").glob("*.y*ml")):
        own = _USE_LOCAL.search(read_text(path, within=feedstock)) is not None
        if own or pinning is None or (upstream is not None and (upstream / path.name).is_file()):
            files.append(path)
    return frozenset(version for path in files if path.is_file() for version in _named_in(path, feedstock))


def why_dropped(version: str, platform: Platform, facts: CudaFacts, pinning: Pinning | None) -> tuple[str, str] | None:
    """The mistake of building for a CUDA version, with its source; None if the pinning has the version.

    Args:
        pinning: the pinning to compare with; default: conda-forge's according to the facts.
    """
    if pinning is not None:
        if version in _named_in(pinning.config, None):
            return None
        return f"the pinning has no CUDA {version}, and nothing in the feedstock sets it", str(pinning.config)
    newest = max((row.date for row in facts.rows), default="")
    row = next((row for row in facts.rows if row.platform == platform and row.cuda == version), None)
    if row is None or row.date == newest:
        return None
    where = f"{facts.pinning_repository}/tree/{row.commit}"
    if row.origin == "ordering":
        return (
            f"conda-forge's pinning never had CUDA {version} for {platform}: only a migration's ordering named it",
            where,
        )
    return f"conda-forge's pinning dropped CUDA {version} for {platform} after {row.date}", where


def next_cuda(versions: Collection[str], platform: Platform, facts: CudaFacts) -> str | None:
    """The CUDA version that conda-forge's newest pinning, or a migration of it, has next for a platform; None if none.

    Args:
        versions: those that a feedstock builds for the platform.
    """
    newest = max((row.date for row in facts.rows), default="")
    built = max(versions, key=parse_version, default=None)
    later = [
        row.cuda
        for row in facts.rows
        if row.platform == platform and row.cuda and row.date == newest and built is not None
        if parse_version(row.cuda) > parse_version(built)
    ]
    return min(later, key=parse_version, default=None)


def _named_in(path: Path, within: Path | None) -> Iterator[str]:
    """The versions under `cuda_compiler_version` in a variant file, regardless of selectors."""
    inside = False
    for line in read_text(path, within=within).splitlines():
        text = line.split("#", 1)[0].rstrip()
        match = _KEY.match(text)  # indented, it is the ordering of a migration
        if match:
            inside = True
            yield from _VERSION.findall(match["inline"])
        elif inside and re.match(r"^\s*-\s", text):
            yield from _VERSION.findall(text)
        elif inside and text.strip():
            inside = bool(re.match(r"^\s*(if|then|else)\b", text))
