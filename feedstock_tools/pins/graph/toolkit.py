"""The CUDA toolkit of a package's build, from its own version, its build string or its dependencies."""

from __future__ import annotations

import re

from feedstock_tools.channel.metadata import Record

#: `cuda11.3_0`, `cuda112py39h…_0`, `py3.9_cuda11.7_cudnn8.5.0_0`, `gpu_cuda128…`, but not `cuda_0` or `cudnn8`.
_IN_BUILD = re.compile(r"(?:^|[^a-z])cuda_?(?:(\d+)\.(\d+)|(\d{2})(\d)(?!\d))")
_IN_BUILD_OLD = re.compile(r"(?:^|[^a-z])cuda_?([89])(\d)(?!\d)")
_PACKAGES = frozenset({"cudatoolkit", "cuda-version", "pytorch-cuda", "cuda-cudart", "__cuda"})
_OWN = frozenset({"cudatoolkit", "cuda-version", "pytorch-cuda", "cuda-toolkit"})
_VERSION = re.compile(r"(\d+\.\d+|\d+)")


def toolkit_of(record: Record) -> str | None:
    """The toolkit by major and minor version (`11.2`), or as much of it as the metadata has (`12`); None if it uses
    none.

    The build string comes first, since it names the toolkit of the build, whereas a dependency names versions it may
    run with.
    """
    if record.name in _OWN:
        return ".".join(record.version.split(".")[:2])
    match = _IN_BUILD.search(record.build) or _IN_BUILD_OLD.search(record.build)
    if match:
        major, minor = (group for group in match.groups() if group is not None)
        return f"{major}.{minor}"
    specs = {
        name: text for spec in record.depends for name, _, text in [spec.partition(" ")] if name in _PACKAGES and text
    }
    for name in ("cudatoolkit", "cuda-version", "pytorch-cuda", "cuda-cudart", "__cuda"):
        version = _VERSION.search(specs.get(name, ""))
        if version:
            return version[1]
    return None
