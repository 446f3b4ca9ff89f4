"""Make the root of a fresh Debian host, below which tests put the layers of hosts that they provision (Linux, as root).

    python -m maintenance.host_root [FOLDER]

It takes `debootstrap` from the distribution's packages without installing it, and 2 to 5 minutes. Beside the root goes
a folder with the packages that the roles of `feedstock-tools fleet up` install: hosts of tests reach no package source.
The folder is that of FEEDSTOCK_TOOLS_HOST_ROOT, else `/var/tmp/feedstock-tools/host-root`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_SUITE, _MIRROR = "bookworm", "http://deb.debian.org/debian"
#: What images of clouds have.
_INCLUDED = (
    *("openssh-server", "python3", "python3-venv", "iproute2", "ca-certificates", "procps", "sudo"),
    *("systemd", "systemd-sysv", "dbus"),
)
#: What the roles `toolchain` and `container` install, and the modules that hosts of universities have.
_OFFERED = (
    *("gcc", "g++", "gfortran", "make", "libopenblas-dev", "libfftw3-dev", "libhdf5-dev"),
    *("podman", "uidmap", "slirp4netns", "docker.io", "lmod"),
)


def root_folder() -> Path:
    """The folder of the root."""
    return Path(os.environ.get("FEEDSTOCK_TOOLS_HOST_ROOT") or "/var/tmp/feedstock-tools/host-root")  # noqa: S108


def debs_of(root: Path) -> Path:
    """The folder of packages beside a root."""
    return root.with_name(f"{root.name}-debs")


def nspawn_of(root: Path) -> Path:
    """The program that starts a root with systemd, beside it."""
    return root.with_name(f"{root.name}-nspawn") / "usr" / "bin" / "systemd-nspawn"


def main(root: Path) -> None:
    """Make the root, if it is missing, its packages, and what starts it."""
    if not root.exists():
        _make_root(root)
    if not all(any(debs_of(root).glob(f"{name}_*.deb")) for name in _OFFERED):
        _fetch_debs(root)
    if not nspawn_of(root).exists():
        _fetch_nspawn(nspawn_of(root).parents[2])


def _unpack(package: str, scratch: Path) -> Path:
    """Download a package of the distribution and unpack it, without installing it."""
    scratch.chmod(0o755)  # the downloader is another user
    _run("apt-get", "download", package, folder=scratch)
    _run("dpkg", "-x", *(str(path) for path in scratch.glob("*.deb")), "unpacked", folder=scratch)
    return scratch / "unpacked"


def _make_root(root: Path) -> None:
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root.parent) as scratch:
        unpacked, part = _unpack("debootstrap", Path(scratch)), Path(scratch, "root")
        program = str(unpacked / "usr/sbin/debootstrap")
        options = ("--variant=minbase", f"--include={','.join(_INCLUDED)}", _SUITE, str(part), _MIRROR)
        _run(program, *options, folder=Path(scratch), DEBOOTSTRAP_DIR=str(unpacked / "usr/share/debootstrap"))
        shutil.rmtree(part / "var/cache/apt/archives", ignore_errors=True)
        part.rename(root)


def _fetch_debs(root: Path) -> None:
    """Download what the roles install, and everything it needs that the root lacks, from a layer above the root."""
    made = debs_of(root)
    with tempfile.TemporaryDirectory(dir=root.parent) as scratch:
        upper, work, merged = (Path(scratch) / name for name in ("upper", "work", "merged"))
        for each in (upper, work, merged):
            each.mkdir()
        layers = f"lowerdir={root},upperdir={upper},workdir={work}"
        _run("mount", "-t", "overlay", "overlay", "-o", layers, str(merged))
        try:
            shutil.copy("/etc/resolv.conf", merged / "etc/resolv.conf")
            _run("chroot", str(merged), "apt-get", "-q", "update")
            install = ("install", "--download-only", "--no-install-recommends", "-y", "-q")
            _run("chroot", str(merged), "apt-get", *install, *_OFFERED)
            (upper / "var/cache/apt/archives/partial").rmdir()
            shutil.rmtree(made, ignore_errors=True)
            shutil.copytree(upper / "var/cache/apt/archives", made, ignore=shutil.ignore_patterns("lock"))
        finally:
            _run("umount", str(merged))


def _fetch_nspawn(folder: Path) -> None:
    """Unpack systemd-nspawn of the distribution, for a system without it."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        _unpack("systemd-container", Path(scratch)).rename(folder)


def _run(*command: str, folder: Path | None = None, **variables: str) -> None:
    subprocess.run(command, cwd=folder, env={**os.environ, **variables}, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else root_folder())
