"""Installing solved packages into a prefix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.repodata import first_cause
from feedstock_tools.channel.waiting import wait_for
from feedstock_tools.channel.web.credentials import rattler_client
from feedstock_tools.errors import WorkError
from feedstock_tools.platforms import Platform

if TYPE_CHECKING:
    from rattler import NoArchLiteral, RepoDataRecord

_NOARCH: dict[str, NoArchLiteral] = {"generic": "generic", "python": "python"}


def install(records: Sequence[Record], prefix: Path, platform: Platform, *, cache: Path | None = None) -> None:
    """Make the environment `prefix` contain exactly these packages; their scripts are not run.

    Args:
        records: the result of `solve`.
        cache: the cache of unpacked packages; default: rattler's. Packages of the stand-in
            channel need a cache of their own, as real packages have the same names.

    Raises:
        WorkError: a package cannot be fetched, is damaged, or cannot be linked.
    """
    import rattler
    from rattler.exceptions import InstallerError, TransactionError

    solved = [_repodata_record(record) for record in records]
    try:
        wait_for(
            rattler.install(
                solved,
                prefix,
                cache_dir=cache,
                platform=rattler.Subdir(platform.subdir),
                execute_link_scripts=False,
                show_progress=False,
                client=rattler_client(),
            ),
            "packages to be fetched and installed",
        )
    except (InstallerError, TransactionError, OSError) as error:
        raise WorkError(f"cannot create the environment: {first_cause(error)}", path=prefix) from error


def _repodata_record(record: Record) -> RepoDataRecord:
    from rattler import BuildString, PackageRecord, RepoDataRecord

    package = PackageRecord(
        record.name,
        record.version,
        BuildString(record.build),
        record.build_number,
        record.subdir,
        noarch=_NOARCH.get(record.noarch or ""),
        depends=list(record.depends),
        constrains=list(record.constrains),
        sha256=bytes.fromhex(record.sha256) or None,
        size=record.size or None,
    )
    return RepoDataRecord(package, record.file_name, record.url, record.channel)
