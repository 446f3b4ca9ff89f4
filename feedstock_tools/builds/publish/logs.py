"""Copying the logs of other machines into the folder of logs, under names of their own."""

from __future__ import annotations

import shutil
from itertools import chain
from pathlib import Path, PurePosixPath

from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.files.writing import replacing
from feedstock_tools.reading import open_file

#: Bytes; no build may print more into its log.
_LARGEST = 4 << 30
#: How many machines may have given different logs the same name.
_MOST = 10_000


def copied_log(root: Path, log: str, artifacts: Artifacts) -> str:
    """Copy a log that is missing here; return its path below the artifacts folder, as records have it.

    Two machines may give different logs the same name, so it may get another one. A log that the other machine has
    lost, or one that is too large, is left out: then the path is one that no log has.

    Args:
        root: the folder of the other machine.
        log: a path for which `is_plain_log` holds.

    Raises:
        WorkError: it cannot be written.
    """
    if not log:
        return ""
    source = root / log
    try:
        with open_file(source, within=root) as stream:
            if source.stat().st_size > _LARGEST:
                return _free(log, None, artifacts)
            name = _free(log, source, artifacts)
            if not (artifacts.root / name).exists():
                with replacing(artifacts.root / name, message="cannot copy the log") as part, part.open("wb") as target:
                    shutil.copyfileobj(stream, target, 1 << 20)
            return name
    except InputError:
        return _free(log, None, artifacts)


def _free(log: str, source: Path | None, artifacts: Artifacts) -> str:
    """The first name that no log here has, or one with the same contents."""
    path = PurePosixPath(log)
    others = (path.with_name(f"{path.stem[:200]}-{number}{path.suffix[:20]}") for number in range(2, _MOST))
    for name in chain((path,), others):
        place = artifacts.root / name
        if not (place.exists() or place.is_symlink()) or (source is not None and _is_same(source, place)):
            return name.as_posix()
    return log


def _is_same(log: Path, copy: Path) -> bool:
    same_size = copy.is_file() and log.stat().st_size == copy.stat().st_size
    return same_size and sha256_of(log) == sha256_of(copy)
