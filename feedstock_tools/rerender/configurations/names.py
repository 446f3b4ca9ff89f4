"""The names of configurations: platform, then every variable that splits jobs with its value.

(conda_smithy/configure_feedstock.py: package_key, dump_subspace_config_files.)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from feedstock_tools.platforms import Platform
from feedstock_tools.rerender.rules import Rules

#: Never allowed in a file's name, whatever the version: characters that lead out of the folder, and control characters.
_UNSAFE = re.compile(r"[/\\\x00-\x1f\x7f]")
_LONGEST_PATH = 259
_WORKSPACE = "C:/Users/runnerx/_work/{repository}/{repository}/.ci_support/"
#: The limit of file systems; no version of conda-smithy wrote longer names.
_LONGEST_FILE = 240


def configuration_name(
    platform: Platform, loop_values: Mapping[str, str], repository: str, rules: Rules | None = None
) -> str:
    """The name of a configuration (its file without `.yaml`).

    Args:
        loop_values: the variables that split jobs, with the configuration's first value.
        repository: the feedstock's name on GitHub, part of the path whose length is limited.

    >>> configuration_name(Platform("linux", "64"), {"python": "3.9.* *_cpython"}, "x-feedstock")
    'linux_64_python3.9.____cpython'
    """
    chosen = rules or Rules.newest()
    key = "".join(
        f"{name}{value}" for name, value in sorted(loop_values.items()) if _named(name, value, platform, chosen)
    )
    if chosen.underlines_names:
        key = key.replace("*", "_").replace(" ", "_")
    front = platform.name if chosen.arch_in_names or platform.arch != "64" else platform.os
    name = f"{front}_{key}"
    for character in chosen.forbidden_in_names:
        name = name.replace(character, "")
    name = _UNSAFE.sub("", name)
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    if chosen.names_fit_windows:
        outer = len(_WORKSPACE.format(repository=repository))
        if outer + len(f"{name}.yaml") > _LONGEST_PATH:
            name = f"{name[: max(_LONGEST_PATH - outer - 15, len(front) + 1)]}_h{digest}"
    elif chosen.longest_name is not None and len(name) >= chosen.longest_name[0]:
        name = f"{name[: chosen.longest_name[1]]}_h{digest}" if chosen.longest_name[1] else short_name(name, chosen)
    return name if len(name) <= _LONGEST_FILE else f"{name[: _LONGEST_FILE - 10]}_h{digest}"


def _named(name: str, value: str, platform: Platform, rules: Rules) -> bool:
    if name != "target_platform" or rules.target_in_names == "as a key":
        return True
    return rules.target_in_names == "where other" and value != platform.subdir


def short_name(name: str, rules: Rules | None = None) -> str:
    """The name of a CI job: truncated, with a hash, if it is long."""
    longest, keep, digits = (rules or Rules.newest()).short_name
    if len(name) < longest:
        return name
    return f"{name[:keep]}_h{hashlib.sha256(name.encode()).hexdigest()[:digits]}"
