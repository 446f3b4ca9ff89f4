"""The process of one upload by rattler-build, started by `targets`.

rattler-build holds Python's global lock during an upload, so in the main process it could not be stopped. The
task comes on standard input, including the service's key, so that no process list shows it.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> int:
    """Upload the package named on standard input; the reason of a failure goes to standard output, without the key."""
    order = json.load(sys.stdin)
    key = order["key"]
    try:
        _upload(order, key)
    except Exception as error:  # rattler-build raises errors of several kinds here
        sys.stdout.write(str(error).replace(key, "…") if key else str(error))
        return 1
    return 0


def _upload(order: dict[str, Any], key: str | None) -> None:
    import rattler_build

    files, server, channel, auth = [order["package"]], order["server"], order["channel"], order["auth_file"]
    if order["kind"] == "anaconda":
        rattler_build.upload_package_to_anaconda(
            files, channel, channel=[order["label"]], api_key=key, url=server, auth_file=auth
        )
    elif order["kind"] == "prefix":
        rattler_build.upload_package_to_prefix(files, server, channel, api_key=key, auth_file=auth)
    else:
        rattler_build.upload_package_to_quetz(files, server, channel, api_key=key, auth_file=auth)
