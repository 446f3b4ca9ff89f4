"""The process around a program that builds: ends it with all its descendants, and cleans up after it.

It is given a JSON file with `command`, `folder`, `wants`, `container` (the file that a container's id is written to,
and the program that knows containers; or null), `copied` (a folder, and where to copy it first; or null) and `at_place`
(the private folder to show at the place of all rows that share a build; or null). `wants` is `nothing`, a `terminal`,
or `company`: standard input that is open for as long as its caller lives, with its two outputs kept apart.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from feedstock_tools.builds.engines.process.supervision import supervise
from feedstock_tools.files.temporary import remove

_CHUNK = 1 << 16
#: The time limit for removing a container, in seconds.
REMOVAL_SECONDS = 60


def main(order_file: str) -> int:
    """Run the program and return its exit status; see this module for the file."""
    order = json.loads(Path(order_file).read_text(encoding="utf-8"))
    command, folder = order["command"], order["folder"]

    def work() -> int:
        if order["copied"] and _copy(*order["copied"]):
            return 1
        if order["at_place"] and not _show_at_place(Path(order["at_place"])):
            sys.stderr.write("This system cannot show its folder at the path of the other rows.\n")
            return 1
        return _WAYS[order["wants"]](command, folder)

    if not hasattr(os, "fork"):
        return work()
    status = supervise(work, sys.stdin.fileno())
    if order["container"]:
        _remove_container(Path(order["container"]["id_file"]), order["container"]["runtime"])
    return status


def _copy(source: str, copy: str) -> int:
    """Copy a folder, by sharing the blocks of its files where the disk can do that; returns the exit status."""
    file = next((path for path in Path(source).rglob("*") if path.is_file() and not path.is_symlink()), None)
    sharing = ["--reflink=always"]
    if file is not None and _run(["cp", *sharing, "--", str(file), f"{copy}.tried"], subprocess.DEVNULL):
        sys.stdout.write("This disk cannot share blocks between files: what the shared build has left is copied.\n")
        sys.stdout.flush()
        sharing = []
    remove(Path(f"{copy}.tried"))
    return _run(["cp", *sharing, "-a", "--", source, copy], None)


def _run(words: Sequence[str], output: int | None) -> int:
    return subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=output, stderr=output or subprocess.STDOUT, check=False
    ).returncode


def _show_at_place(folder: Path) -> bool:
    from feedstock_tools.builds.engines.embedded.fixed_place import UNIT, at_fixed_place

    return at_fixed_place(folder, folder, UNIT)[0] != folder


def _plainly(command: Sequence[str], folder: str) -> int:
    ended = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False)
    return ended.returncode if ended.returncode >= 0 else 128 - ended.returncode


def _in_company(command: Sequence[str], folder: str) -> int:
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE) as process:
        status = process.wait()
    return status if status >= 0 else 128 - status


def _in_terminal(command: Sequence[str], folder: str) -> int:
    """Run it as in a terminal, and pass on its output: `docker run -it` refuses to start without one."""
    own_end, terminal = os.openpty()
    process = subprocess.Popen(command, cwd=folder, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    # Reading fails once the other end is closed everywhere.
    with suppress(OSError):
        while chunk := os.read(own_end, _CHUNK):
            sys.stdout.buffer.write(chunk.replace(b"\r\n", b"\n"))
            sys.stdout.buffer.flush()
    status = process.wait()
    return status if status >= 0 else 128 - status


_WAYS: dict[str, Callable[[Sequence[str], str], int]] = {
    "nothing": _plainly,
    "terminal": _in_terminal,
    "company": _in_company,
}


def _remove_container(id_file: Path, runtime: str) -> None:
    """Remove a remaining container: a daemon's child does not end with the program that requested it.

    It is killed first: podman's `rm --force` would send SIGTERM, and wait for ten seconds.
    """
    with suppress(OSError, subprocess.SubprocessError):
        identity = id_file.read_text(encoding="utf-8").strip()
        for words in (("kill", identity), ("rm", "--force", identity)):
            subprocess.run([runtime, *words], capture_output=True, timeout=REMOVAL_SECONDS / 2, check=False)
