"""Do what users do in a container without network, with a folder of wheels for pip (Linux, as root).

    python -m maintenance.offline prepare FOLDER --pinning PINNING --feedstock FEEDSTOCK
    python -m maintenance.offline run FOLDER [wheel] [conda] [build-locally] [tests] [-- PYTEST ARGUMENT …]

`prepare` needs the network: it takes the Debian of `maintenance.host_root`, with git and man in a layer of its own
above it, and gives it this commit as a clone, its wheel and archive, all wheels that pip may ask for, a clone of
conda-forge's pinning, and a feedstock. `run` starts each step in namespaces of its own (processes, mounts, and a
network with the loopback alone) on what the steps before it left; `maintenance.offline.inside` has the steps. Without
names it takes all four, in this order; the exit status is 1 if one of them failed.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from feedstock_tools.builds.stand_in.compilers import ZIG_VERSION
from feedstock_tools.facts.tools import read_tools
from feedstock_tools.platforms import Platform
from maintenance import host_root
from maintenance.offline.inside import GIVEN, STEPS

ROOT = Path(__file__).resolve().parents[2]
#: What no other host of the tests has: the programs that clone this repository and show man pages.
_PROGRAMS = ("git", "man-db")
#: The projects that build a Python package in the tests, apart from those of the stand-in channel.
_BACKENDS = ("hatchling", "setuptools", "wheel", "editables", "scikit-build-core", "cmake", "ninja")
_ENTER = """
set -e
mount -t overlay overlay -o lowerdir={root},upperdir={folder}/layer,workdir={folder}/work {folder}/mounted
cd {folder}/mounted
mount --bind /dev dev
mount -t tmpfs tmpfs dev/shm
mount --bind /dev/pts dev/pts
mount -t proc proc proc
{loopback}
pivot_root . mnt
cd /
umount -l mnt
exec sh -c {last}
"""


def prepare(folder: Path, pinning: Path, feedstock: Path) -> None:
    """Make the layer and all that it is given; what an earlier call made is made again.

    Raises:
        subprocess.CalledProcessError: git, apt-get, pip or a mount failed.
    """
    host_root.main(host_root.root_folder())
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("layer", "work", "mounted"):
        (folder / name).mkdir(parents=True)
    given = folder / "layer" / GIVEN.relative_to("/")
    given.mkdir()
    _install(folder)
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", str(ROOT), str(given / "clone")], check=True)
    for source, name in ((pinning, "pinning"), (feedstock, "feedstock")):
        shutil.copytree(source, given / name, symlinks=True)
    built = [sys.executable, "-m", "hatchling", "build", "-d", str(given / "dist")]
    subprocess.run(built, cwd=given / "clone", check=True)
    _download(given)


def _install(folder: Path) -> None:
    """Install the programs in the layer, from the package sources of this machine."""
    for path in ("/etc/apt", "/etc/ssl/certs"):
        shutil.copytree(path, folder / "layer" / path.lstrip("/"), symlinks=True, dirs_exist_ok=True)
    shutil.copy("/etc/resolv.conf", folder / "layer" / "etc")
    install = f"apt-get update -q && apt-get install -q -y --no-install-recommends {' '.join(_PROGRAMS)}"
    _enter(folder, ["sh", "-c", install], network=True)


def _download(given: Path) -> None:
    """Fetch the wheels: of the lock with their hashes, of the tests, and those that become packages."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", f"--dest={given / 'wheelhouse'}"]
    clone = given / "clone"
    subprocess.run([*pip, "--require-hashes", "--no-deps", "-r", str(clone / "requirements.lock")], check=True)
    python = [
        "chroot",
        str(host_root.root_folder()),
        "python3",
        "-c",
        "import platform; print(platform.python_version())",
    ]
    version = subprocess.run(python, check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run([*pip, f"--python-version={version}", f"{clone}[test]", *_BACKENDS], check=True)
    for requirement in sorted(set(_packaged())):
        subprocess.run([*pip, "--no-deps", requirement], check=True)


def _packaged() -> Iterator[str]:
    """The wheels that the stand-in channel makes packages of on this machine, and the compiler for one without."""
    python = "{}.{}".format(*sys.version_info[:2])
    for wheel in read_tools().wheels:
        if wheel.subdir in ("noarch", Platform.here().subdir) and wheel.python in (None, python):
            yield f"{wheel.project}=={wheel.release}"
    yield f"ziglang=={ZIG_VERSION}"


def _enter(folder: Path, command: Sequence[str], *, network: bool = False) -> int:
    """Run a command in the container, with a home of its own, and return its exit status."""
    spaces = ["unshare", "--mount", "--pid", "--fork", *(() if network else ("--net",))]
    loopback = "" if network else "ip link set lo up"
    # The first process must be one that clears up after the children of others: a shell, which waits for `command`.
    last = shlex.quote(f"{shlex.join(command)}; exit $?")
    paths = {"root": host_root.root_folder(), "folder": folder}
    script = _ENTER.format(
        last=last, loopback=loopback, **{name: shlex.quote(str(path)) for name, path in paths.items()}
    )
    variables = {"HOME": "/home/user", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}
    return subprocess.run([*spaces, "sh", "-c", script], env=variables, check=network).returncode


def run(folder: Path, steps: Sequence[str], of_pytest: Sequence[str]) -> int:
    """Run the steps one after the other; 1 if one failed."""
    shutil.copy(Path(__file__).with_name("inside.py"), folder / "layer" / GIVEN.relative_to("/"))
    failed = [step for step in steps if _enter(folder, ["python3", f"{GIVEN}/inside.py", step, *of_pytest])]
    passed = f"{len(steps) - len(failed)} of {len(steps)} steps passed"
    sys.stdout.write(f"{passed}; failed: {', '.join(failed)}\n" if failed else f"{passed}\n")
    return 1 if failed else 0


def main(given: Sequence[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    preparing = commands.add_parser("prepare")
    running = commands.add_parser("run")
    for each in (preparing, running):
        each.add_argument("folder", type=lambda text: Path(text).resolve())
    preparing.add_argument("--pinning", type=Path, required=True, help="a clone of conda-forge-pinning-feedstock")
    preparing.add_argument("--feedstock", type=Path, required=True, help="a clone of a feedstock")
    running.add_argument("steps", nargs="*", metavar="STEP")
    end = given.index("--") if "--" in given else len(given)
    asked = parser.parse_args(given[:end])
    if asked.command == "prepare":
        for clone in (asked.pinning, asked.feedstock):
            if not (clone / "recipe").is_dir():
                parser.error(f"{clone} must be a clone with its files checked out; it has no folder recipe")
        prepare(asked.folder, asked.pinning, asked.feedstock)
        return 0
    unknown = set(asked.steps) - STEPS.keys()
    if unknown:
        parser.error(f"unknown steps: {', '.join(sorted(unknown))}; there are {', '.join(STEPS)}")
    return run(asked.folder, asked.steps or list(STEPS), given[end + 1 :])


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("maintenance.offline mounts layers: run it as root")
    sys.exit(main(sys.argv[1:]))
