"""Running programs of another architecture under QEMU's user mode, without changes to the machine.

They are registered with the kernel (binfmt_misc) in a namespace of only one process and its descendants,
which needs Linux 6.7 or later. Builds stay outside: a configure script that could run what it compiles would take a
cross build for a native one.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from feedstock_tools.builds.engines.embedded.fixed_place import NEW_MOUNTS, NEW_USERS, check_call, enter_namespaces
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.platforms import Platform
from feedstock_tools.processes import worker_command

#: Subdir → QEMU's name of the architecture, that of compilers, and its number in an ELF header (elf.h, EM_…).
_ARCHITECTURES = {
    "linux-64": ("x86_64", "x86_64", b"\x3e\x00"),
    "linux-aarch64": ("aarch64", "aarch64", b"\xb7\x00"),
    "linux-ppc64le": ("ppc64le", "powerpc64le", b"\x15\x00"),
    "linux-riscv64": ("riscv64", "riscv64", b"\xf3\x00"),
}
#: The start of a 64-bit, little-endian ELF file; then its type (2: program, 3: program that can lie anywhere).
_MAGIC = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00"
#: The mask of its bits: neither the system's ABI nor the choice between the two types counts.
_MASK = b"\xff" * 7 + b"\x00" + b"\xff" * 8 + b"\xfe\xff"
#: This module, which runs in a process of its own.
_MODULE = "feedstock_tools.builds.engines.embedded.emulation"
_ASKING_SECONDS = 30
#: Started by the kernel with the program's path, the name of its call, and its arguments.
_HANDLER = """#!/bin/sh
program=$1 name=$2
shift 2
exec {qemu} -L {libraries} -0 "$name" "$program" "$@"
"""


@dataclass(frozen=True, slots=True)
class Emulator:
    """QEMU for an architecture.

    Attributes:
        target: the subdir whose programs it runs.
        program: the path of QEMU's user-mode program.
        libraries: the folder that has the C library of the architecture, as `lib/ld-linux-…`.
    """

    target: str
    program: str
    libraries: str

    def to_json(self) -> dict[str, str]:
        """For a file that another process reads; keys are the names of the attributes."""
        return {"target": self.target, "program": self.program, "libraries": self.libraries}


def find_emulator(target: str, machine: Mapping[str, str]) -> Emulator | str:
    """The emulator for a platform on this machine, or the reason why there is none.

    Args:
        machine: the environment of the machine: `PATH`, and `QEMU_LD_PREFIX` if the C library is in an unusual place.
    """
    architecture, triplet, _ = _ARCHITECTURES.get(target, ("", "", b""))
    if sys.platform != "linux" or not architecture:
        return f"programs for {target} cannot run on {Platform.here().subdir}"
    names = (f"qemu-{architecture}-static", f"qemu-{architecture}")
    program = next(filter(None, (shutil.which(name, path=machine.get("PATH")) for name in names)), None)
    if program is None:
        return f"there is no {names[1]} on PATH that could run programs for {target} (Debian: qemu-user-static)"
    places = filter(None, (machine.get("QEMU_LD_PREFIX"), f"/usr/{triplet}-linux-gnu"))
    libraries = next((place for place in places if any(Path(place, "lib").glob("ld*.so*"))), None)
    if libraries is None:
        return f"there is no C library for {target} on this machine (Debian: libc6-arm64-cross, for linux-aarch64)"
    emulator = Emulator(target, program, libraries)
    return _why_not(emulator) or emulator


@cache
def _why_not(emulator: Emulator) -> str | None:
    """Why it cannot be used on this machine; None if it can."""
    try:
        with temporary_folder() as folder:
            command = worker_command(_MODULE, str(folder), *emulator.to_json().values())
            trial = subprocess.run(command, capture_output=True, text=True, timeout=_ASKING_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return f"programs for {emulator.target} cannot be run under QEMU: {error}"
    if trial.returncode == 0:
        return None
    reason = (trial.stderr.strip().splitlines() or [f"status {trial.returncode}"])[-1]
    return f"the kernel does not allow programs for {emulator.target} under QEMU in a namespace ({reason})"


def main(folder: str, target: str, program: str, libraries: str) -> int:
    """Try it, in a process of its own: status 0 if it can be used, else 1 and the reason on standard error."""
    try:
        emulate(Emulator(target, program, libraries), Path(folder))
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def emulate(emulator: Emulator, folder: Path) -> None:
    """Let this process and all its later children run programs of the emulator's platform, by whatever name.

    Call it before any thread is started. The programs have the permissions of this process.

    Args:
        folder: a private folder, for the handler that is registered with the kernel.

    Raises:
        OSError: the kernel does not allow it.
    """
    handler, point = folder / "emulator", folder / "binfmt"
    words = {"qemu": shlex.quote(emulator.program), "libraries": shlex.quote(emulator.libraries)}
    handler.write_text(_HANDLER.format_map(words), encoding="utf-8")
    handler.chmod(0o755)
    point.mkdir(exist_ok=True)
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    # Only root may register a handler: become root in a namespace, and the original user in another one inside it.
    enter_namespaces(libc, NEW_USERS | NEW_MOUNTS, (0, user), (0, group))
    check_call(libc.mount(b"none", os.fsencode(point), b"binfmt_misc", 0, None), "mount binfmt_misc")
    magic = _escaped(_MAGIC + _ARCHITECTURES[emulator.target][2])
    mask = _escaped(_MASK + b"\xff\xff")
    between = next(sign for sign in ":;|,+" if sign not in str(handler))
    # M: recognized by its first bytes. P: the handler gets the name by which the program was called.
    entry = ["", "feedstock-tools", "M", "", magic, mask, str(handler), "P"]
    (point / "register").write_text(between.join(entry))
    enter_namespaces(libc, NEW_USERS, (user, 0), (group, 0))


def _escaped(content: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in content)
