"""zig, a compiler of C and C++ for many platforms in one download: PyPI's ziglang, stored in the user's cache.

It is fetched when a build first needs it, in exactly one version with known hashes, and never
installed into a Python environment.
"""

from __future__ import annotations

import re
import shutil
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.channel.web.pip import Download, Fetching, Watch, download_wheels, unwatched
from feedstock_tools.errors import WorkError
from feedstock_tools.files.locks import locked
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.platforms import Platform

ZIG_VERSION = "0.17.1"
#: The platform of the machine → SHA-256 and bytes of its wheel of that version.
_WHEELS = {
    "linux-64": ("ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54", 101_083_562),
    "linux-aarch64": ("b7c5f02fccd40f89b999ee16a1f5ddced56e6182370f8affe494bcf8a28cf07e", 98_063_064),
    "osx-64": ("4e0b4b9c02b8d0d220e9948010f860b62ff11d96abb39762eca5fa2ef3f7bc97", 104_485_232),
    "osx-arm64": ("09953b6af7f64168b915180a42774f520f92d86ef6331b28e33915c7e1f0bb23", 100_390_379),
}
#: zig's names of the platforms with compilers in the stand-in channel, with the glibc of conda-forge's sysroot.
_TARGETS = {"linux-64": "x86_64-linux-gnu.2.17", "linux-aarch64": "aarch64-linux-gnu.2.17"}
#: Unlike gcc and clang, zig checks for undefined behaviour where nothing is optimized, with a library of its own that
#: takes 20 s to compile.
_AS_OTHERS = ("-fno-sanitize=undefined",)
#: Headers and C libraries of other systems, three quarters of its files: they are not unpacked.
_OTHER_SYSTEMS = re.compile(
    r"ziglang/lib/(libtsan|libc/(mingw|musl|wasi|darwin|freebsd|netbsd|openbsd)"
    r"|libc/include/[^/]*(windows|darwin|macos|maccatalyst|bsd|wasi|musl|haiku|serenity)[^/]*)/"
)


@dataclass(frozen=True, slots=True)
class Zig:
    """zig on this machine: the folder of its version, and the one for the C libraries that it has built."""

    folder: Path
    cache: Path

    def command(self, tool: str) -> tuple[str, ...]:
        """The command of a tool (`cc`, `ar`) for this machine."""
        return (str(self.folder / "zig"), tool, *(_AS_OTHERS if tool in ("cc", "c++") else ()))

    def compiler_for(self, platform: Platform, tool: str) -> tuple[str, ...]:
        """The command of a compiler (`cc`, `c++`) for another platform."""
        return (*self.command(tool), "-target", _TARGETS[platform.subdir])


def zig_folder(cache: Path) -> Path:
    """The folder of zig, in this program's folder of the user's cache."""
    return cache / "ziglang"


def zig_compiles_for(platform: Platform) -> bool:
    """Whether zig, once fetched, can compile for a platform on this machine."""
    builder = Platform.here()
    return builder.subdir in _WHEELS and (platform == builder or platform.subdir in _TARGETS)


def find_zig(folder: Path) -> Zig | None:
    """The fetched zig in a folder; None if it has not been fetched."""
    zig = _zig_in(folder)
    return zig if (zig.folder / "zig").is_file() else None


def fetch_zig(folder: Path, machine: Mapping[str, str], watch: Watch = unwatched, why: str = "") -> Zig:
    """The zig in a folder, fetched with pip (100 MB) if it is missing; afterwards no network is needed.

    Args:
        folder: `zig_folder`'s.
        machine: the environment for pip.
        why: it is needed, for `watch`.

    Raises:
        WorkError: pip cannot fetch it, its hash is wrong, or the folder cannot be written.
    """
    zig = find_zig(folder)
    if zig is not None:
        return zig
    with locked(folder):
        if find_zig(folder) is None:
            try:
                _fetch(folder, machine, watch, why)
            except OSError as error:
                raise WorkError(f"cannot store zig: {error.strerror or error}", path=folder) from error
    return _zig_in(folder)


def _zig_in(folder: Path) -> Zig:
    """What compilers call contains its place, so a folder that several links lead to has one."""
    place = folder.resolve()
    return Zig(place / ZIG_VERSION, place / "cache")


def _fetch(folder: Path, machine: Mapping[str, str], watch: Watch, why: str) -> None:
    sha256, size = _WHEELS[Platform.here().subdir]
    title, began = f"zig {ZIG_VERSION}", time.monotonic()
    for left in folder.glob(".making-*"):  # left by a killed fetch: the holder of the lock is alone
        shutil.rmtree(left, ignore_errors=True)
    with temporary_folder(folder) as temporary:
        requirement = f"ziglang=={ZIG_VERSION} --hash=sha256:{sha256}"
        (wheel,) = download_wheels(Download([requirement], title, size, why), temporary / "wheels", machine, watch)
        with zipfile.ZipFile(wheel) as archive:
            for number, member in enumerate(archive.infolist()):
                if number % 100 == 0:
                    watch(Fetching(title, "unpacking", time.monotonic() - began, size, size))
                if member.filename.startswith("ziglang/") and not _OTHER_SYSTEMS.match(member.filename):
                    archive.extract(member, temporary)
        unpacked = temporary / "ziglang"
        if not (unpacked / "zig").is_file():
            raise WorkError(f"the wheel of ziglang {ZIG_VERSION} contains no zig", path=wheel)
        (unpacked / "zig").chmod(0o755)
        shutil.rmtree(folder / ZIG_VERSION, ignore_errors=True)
        unpacked.rename(folder / ZIG_VERSION)
    libraries = "its first C++ program takes it up to a minute more, since it compiles its own libraries then"
    watch(Fetching(title, "ready", time.monotonic() - began, size, size, libraries))
