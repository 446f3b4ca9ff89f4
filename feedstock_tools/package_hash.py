"""The hash in the name of a package: made of the variant values, and of the virtual packages, that it depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

__all__ = ["HASH_LENGTH", "package_hash"]

#: Of how many hexadecimal digits it consists, behind an `h`.
HASH_LENGTH = 7

_SORTED = json.JSONEncoder(sort_keys=True).encode


def package_hash(contents: Mapping[str, object]) -> str:
    """The hash of what a package's `info/hash_input.json` lists, as conda-build makes it (conda_build/metadata.py).

    >>> package_hash({"target_platform": "linux-64", "zlib": "1.2"})
    'h75cb000'
    """
    return f"h{hashlib.sha1(_SORTED(contents).encode(), usedforsecurity=False).hexdigest()[:HASH_LENGTH]}"
