"""The memory of a process in huge pages: a fork of it then copies, and ends, far fewer entries of page tables."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

_SIZE = 1 << 21
#: `MADV_COLLAPSE` of Linux 6.1; an older kernel refuses it.
_COLLAPSE = 25


def collapse_memory() -> None:
    """Let what this process has in memory lie in huge pages, as far as the system can: call it before many forks."""
    if sys.platform != "linux":
        return
    advise = ctypes.CDLL(None).madvise
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, rights, _, _, _, *name = line.split(maxsplit=5)
        if not rights.startswith("rw-p") or name not in ([], ["[heap]"]):
            continue
        first, last = (int(address, 16) for address in addresses.split("-"))
        begin, end = -(-first // _SIZE) * _SIZE, last // _SIZE * _SIZE
        if begin < end:
            advise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), _COLLAPSE)
