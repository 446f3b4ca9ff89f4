"""The paths of an interpreter. Imported by this tool, and run as a script by other Pythons, from 3.7 on."""

from __future__ import annotations

import json
import os
import sys
import sysconfig


def describe() -> dict[str, object]:
    """Version and places of the interpreter that runs this; of the one behind it, in a virtual environment."""
    base = {"installed_base": sys.base_prefix, "base": sys.base_prefix}
    executable = getattr(sys, "_base_executable", None) or sys.executable
    abi_flags = getattr(sys, "abiflags", "").replace("m", "")
    return {
        "version": "{}.{}.{}".format(*sys.version_info[:3]),
        "prefix": sys.base_prefix,
        "executable": os.path.realpath(executable),
        "stdlib": sysconfig.get_path("stdlib", vars=base),
        "dynload": sysconfig.get_config_var("DESTSHARED"),
        "include": sysconfig.get_path("include", vars=base),
        "libdir": sysconfig.get_config_var("LIBDIR"),
        "plain": sys.implementation.name == "cpython" and not abi_flags,
        "debian": "posix_local" in sysconfig.get_scheme_names(),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(describe()))
