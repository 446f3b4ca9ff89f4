"""Fetch Slurm's programs and munge from the distribution (Debian, Ubuntu), and unpack them without installing anything.

    python -m tests.support.slurm_programs

They go into the folder of FEEDSTOCK_TOOLS_SLURM, else `/var/tmp/feedstock-tools/slurm`, where tests find them: they
start a cluster of three nodes from there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

_PACKAGES = (
    *("slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge"),
    *("libmunge2", "libhwloc15", "liblua5.1-0"),  # what images of the distribution lack of what they need
)


def programs_folder() -> Path:
    """The folder below which the programs are, as in a root."""
    return Path(os.environ.get("FEEDSTOCK_TOOLS_SLURM") or "/var/tmp/feedstock-tools/slurm")


def main(folder: Path) -> None:
    """Fetch and unpack them, unless they are there."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        Path(scratch).chmod(0o755)  # the downloader is another user
        subprocess.run(["apt-get", "-q", "download", *_PACKAGES], cwd=scratch, check=True)
        part = Path(scratch) / "root"
        for package in sorted(Path(scratch).glob("*.deb")):
            subprocess.run(["dpkg", "-x", str(package), str(part)], check=True)
        part.rename(folder)


if __name__ == "__main__":
    main(programs_folder())
    sys.exit(0)
