"""The environment variables that a build's process gets: listed, not inherited.

conda-smithy's `build-locally.py` sets some and its `run_docker_build.sh` passes a list into the container; a build
here sees the same names, and those that a process needs on any machine. The engine then gives a build script an
environment of its own (its strict isolation), which keeps only the search path, certificates and proxies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: conda-smithy 2026.8.5: templates/run_docker_build.sh.tmpl (`docker run -e …`), feedstock_content/build-locally.py.
_FROM_CONDA_SMITHY = (
    "BUILD_OUTPUT_ID",
    "BUILD_WITH_CONDA_DEBUG",
    "CI",
    "CPU_COUNT",
    "FEEDSTOCK_NAME",
    "GIT_BRANCH",
    "GITHUB_ACTIONS",
    "HOST_USER_ID",
    "MINIFORGE_HOME",
    "OSX_SDK_DIR",
    "RATTLER_BUILD_COLOR",
    "RATTLER_BUILD_ENABLE_GITHUB_INTEGRATION",
    "UPLOAD_ON_BRANCH",
    "flow_run_id",
    "remote_url",
    "sha",
)
#: The variables that programs need anywhere: the search path, the user, the language, certificates, proxies, access to
#: channels.
_OF_THE_MACHINE = (
    "ALL_PROXY",
    "CONDA_OVERRIDE_ARCHSPEC",
    "CONDA_OVERRIDE_GLIBC",
    "CONDA_OVERRIDE_LINUX",
    "CONDA_OVERRIDE_OSX",
    "CURL_CA_BUNDLE",
    "FEEDSTOCK_TOOLS_BOUNDS",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "NETRC",
    "NO_PROXY",
    "PATH",
    "RATTLER_AUTH_FILE",
    "REQUESTS_CA_BUNDLE",
    "SHELL",
    "SSH_AUTH_SOCK",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "USER",
    "XDG_RUNTIME_DIR",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
PASSED_ON = frozenset(_FROM_CONDA_SMITHY + _OF_THE_MACHINE)


@dataclass(frozen=True, slots=True)
class RowSetting:
    """What the environment of one row is made from, besides the machine.

    Attributes:
        configuration: the name of its configuration.
        cuda: the row's CUDA version: environments are solved for a machine whose driver has it; those of a CPU build
            for a machine without a GPU, whatever this machine has.
        folder: the private folder of the build, also for temporary files.
        cache: the engine's folder of fetched packages.
        jobs: the maximum number of parallel jobs of its tools. A `CPU_COUNT` of the machine's environment can lower
            it, but not raise it.
    """

    feedstock: Path
    configuration: str
    cuda: str | None
    folder: Path
    cache: Path
    jobs: int


def build_environment(machine: Mapping[str, str], row: RowSetting) -> dict[str, str]:
    """The environment for one row.

    Args:
        machine: the environment of the machine, whose names in `PASSED_ON` are kept.
    """
    kept = {name: value for name, value in machine.items() if name in PASSED_ON}
    defaults = {"FEEDSTOCK_NAME": row.feedstock.name, "MINIFORGE_HOME": str(row.feedstock / "miniforge3")}
    fixed = {
        "CONDA_OVERRIDE_CUDA": row.cuda or "",
        "CONFIG": row.configuration,
        "CPU_COUNT": str(_fewest(machine.get("CPU_COUNT", ""), row.jobs)),
        "IS_PR_BUILD": "True",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "RATTLER_CACHE_DIR": str(row.cache),
        "TMPDIR": str(row.folder / "tmp"),
        "UPLOAD_PACKAGES": "False",
    }
    return {**defaults, **kept, **fixed}


def _fewest(requested: str, jobs: int) -> int:
    """The number of jobs: the lower of the share and the requested number; invalid numbers are ignored."""
    return min(int(requested), jobs) if requested.isascii() and requested.isdigit() and int(requested) else jobs
