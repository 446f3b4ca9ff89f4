"""The compiler of this machine, and the files with which a stand-in compiler package activates it.

The packages have the names and the activation of conda-forge's compilers: programs with the triplet in front
(`x86_64-conda-linux-gnu-cc`) and the variables CC, CXX, CFLAGS, LDFLAGS, HOST, BUILD and the rest. Behind the programs
is the compiler on PATH (for another Linux, Debian's cross compiler), or zig: PyPI's ziglang, fetched into the user's
cache when a build first needs it, in exactly one version with known hashes.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.errors import WorkError
from feedstock_tools.files.locks import locked
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.platforms import Platform

if TYPE_CHECKING:
    from feedstock_tools.channel.metadata import PackageFile
    from feedstock_tools.channel.pip import Watch

ZIG_VERSION = "0.17.1"
#: The platform of the machine → SHA-256 and bytes of its wheel of that version.
_WHEELS = {
    "linux-64": ("ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54", 101_083_562),
    "linux-aarch64": ("b7c5f02fccd40f89b999ee16a1f5ddced56e6182370f8affe494bcf8a28cf07e", 98_063_064),
    "osx-64": ("4e0b4b9c02b8d0d220e9948010f860b62ff11d96abb39762eca5fa2ef3f7bc97", 104_485_232),
    "osx-arm64": ("09953b6af7f64168b915180a42774f520f92d86ef6331b28e33915c7e1f0bb23", 100_390_379),
}
#: Bytes of its files that are unpacked.
_UNPACKED = 250_000_000
#: zig's names of the platforms with compilers in the stand-in channel, with the glibc of conda-forge's sysroot.
_TARGETS = {"linux-64": "x86_64-linux-gnu.2.17", "linux-aarch64": "aarch64-linux-gnu.2.17"}
#: Unlike gcc and clang, zig checks for undefined behaviour where nothing is optimized, with a library of its own that
#: takes 20 s to compile.
_AS_OTHERS = ("-fno-sanitize=undefined",)
#: What zig's linker refuses though packages do without it: how the Pythons of Debian and Fedora link extensions, and
#: how builds leave out the names of static libraries. A pattern of sh.
_UNKNOWN_TO_ZIG = "-Wl,-Bsymbolic-functions|-Wl,-z,pack-relative-relocs|-Wl,--package-metadata=*|-Wl,--exclude-libs,*"
#: Headers and C libraries of other systems, three quarters of its files: they are not unpacked.
_OTHER_SYSTEMS = re.compile(
    r"ziglang/lib/(libtsan|libc/(mingw|musl|wasi|darwin|freebsd|netbsd|openbsd)"
    r"|libc/include/[^/]*(windows|darwin|macos|maccatalyst|bsd|wasi|musl|haiku|serenity)[^/]*)/"
)
_TRIPLETS = {
    "linux-64": "x86_64-conda-linux-gnu",
    "linux-aarch64": "aarch64-conda-linux-gnu",
    "linux-ppc64le": "powerpc64le-conda-linux-gnu",
    "osx-64": "x86_64-apple-darwin13.4.0",
    "osx-arm64": "arm64-apple-darwin20.0.0",
}
#: The first word of the names of a Linux's cross compiler and emulator in Debian.
_MACHINES = {"linux-64": "x86_64", "linux-aarch64": "aarch64", "linux-ppc64le": "powerpc64le"}
_BINUTILS = ("ar", "as", "ld", "nm", "objcopy", "objdump", "ranlib", "readelf", "size", "strings", "strip")
_PAIRS = (("gcc", "g++"), ("clang", "clang++"), ("cc", "c++"))
_PROBE_SECONDS = 60


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
    return cache / "ziglang"


def zig_compiles_for(platform: Platform) -> bool:
    """Whether zig, once fetched, can compile for a platform on this machine."""
    builder = Platform.here()
    return builder.subdir in _WHEELS and (platform == builder or platform.subdir in _TARGETS)


def find_zig(folder: Path) -> Zig | None:
    """The fetched zig in a folder; None if it has not been fetched."""
    zig = _zig_in(folder)
    return zig if (zig.folder / "zig").is_file() else None


def fetch_zig(folder: Path, machine: Mapping[str, str], watch: Watch | None = None, why: str = "") -> Zig:
    """The zig in a folder, fetched with pip (100 MB) if it is missing; afterwards no network is needed.

    Args:
        why: it is needed, for `watch`.
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
    """zig in a folder; compilers record its place, so a folder that several links lead to counts as one."""
    place = folder.resolve()
    return Zig(place / ZIG_VERSION, place / "cache")


def _fetch(folder: Path, machine: Mapping[str, str], watch: Watch | None, why: str) -> None:
    from feedstock_tools.channel.pip import Download, Fetching, download_wheels, unwatched

    watch = watch or unwatched
    sha256, size = _WHEELS[Platform.here().subdir]
    title, began = f"zig {ZIG_VERSION}", time.monotonic()
    with temporary_folder(folder) as temporary:
        requirement = f"ziglang=={ZIG_VERSION} --hash=sha256:{sha256}"
        download = Download([requirement], title, size, why, room=size + _UNPACKED)
        (wheel,) = download_wheels(download, temporary / "wheels", machine, watch)
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


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler that works: the commands for C, for C++ (if any), and of the programs around it.

    `environment` are variables for its programs, and `activation` those that its package sets beside conda-forge's.
    """

    kind: str
    c: tuple[str, ...]
    cxx: tuple[str, ...] | None
    tools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    activation: Mapping[str, str] = field(default_factory=dict)


def find_compiler(*, path: str | None = None, zig: Zig | None = None) -> Compiler | None:
    """A compiler that makes programs for this machine: gcc, clang or cc on PATH, else zig; None if there is none.

    Args:
        path: searched instead of PATH.
        zig: the fetched zig.
    """
    named = _native_on_path(path)
    if named is not None:
        c, cxx = (shutil.which(name, path=path) for name in named)
        assert c is not None  # noqa: S101  (it has just worked)
        tools = {tool: (program,) for tool in _BINUTILS if (program := shutil.which(tool, path=path))}
        return Compiler(named[0], (c,), (cxx,) if cxx else None, tools)
    return _zig_compiler(zig, zig.command("cc"), zig.command("c++")) if zig else None


def _native_on_path(path: str | None) -> tuple[str, str] | None:
    """The names of the compilers of C and C++ for this machine, where that of C works."""
    return next((pair for pair in _PAIRS if (c := shutil.which(pair[0], path=path)) and _works(c)), None)


def compiler_on_path(platform: Platform, *, path: str | None = None) -> str | None:
    """The compiler of C on PATH that makes programs for a platform; None if there is none."""
    if platform == Platform.here():
        named = _native_on_path(path)
        return shutil.which(named[0], path=path) if named else None
    c = cross_gcc(platform, path=path)
    return c if c is not None and _works(c) else None


def refused_compiler(platform: Platform, *, path: str | None = None) -> str | None:
    """The first compiler of C on PATH for a platform, where `compiler_on_path` takes none; it links no program."""
    if platform == Platform.here():
        return next((c for pair in _PAIRS if (c := shutil.which(pair[0], path=path))), None)
    return cross_gcc(platform, path=path)


def debian_compiler(platform: Platform) -> str | None:
    """Debian's package of the C compiler for a platform, for a hint; None if it has none."""
    if platform == Platform.here():
        return "gcc"
    machine = _MACHINES.get(platform.subdir)
    return f"gcc-{machine.replace('_', '-')}-linux-gnu" if machine else None


def _zig_compiler(
    zig: Zig, c: tuple[str, ...], cxx: tuple[str, ...], activation: Mapping[str, str] | None = None
) -> Compiler:
    tools = {tool: zig.command(tool) for tool in ("ar", "objcopy", "ranlib")}
    return Compiler("zig", c, cxx, tools, {"ZIG_GLOBAL_CACHE_DIR": str(zig.cache)}, activation or {})


def cross_programs(platform: Platform, *, path: str | None = None) -> tuple[str, ...]:
    """The programs on PATH that compile for another Linux and run its programs, as Debian names them."""
    machine = _MACHINES.get(platform.subdir)
    if machine is None:
        return ()
    names = (f"{machine}-linux-gnu-gcc", f"{machine}-linux-gnu-g++", f"qemu-{machine}", f"qemu-{machine}-static")
    return tuple(program for name in names if (program := shutil.which(name, path=path)))


def cross_gcc(platform: Platform, *, path: str | None = None) -> str | None:
    """The C compiler on PATH for another Linux, as Debian names it (`aarch64-linux-gnu-gcc`), working or not."""
    machine = _MACHINES.get(platform.subdir)
    return shutil.which(f"{machine}-linux-gnu-gcc", path=path) if machine else None


def find_cross_compiler(platform: Platform, *, path: str | None = None, zig: Zig | None = None) -> Compiler | None:
    """A compiler for another Linux, with an emulator for its programs: Debian's cross gcc on PATH, else zig; or None.

    The emulator is QEMU's user mode, in the variable of conda-forge's cross builds: `CROSSCOMPILING_EMULATOR`.
    """
    machine = _MACHINES.get(platform.subdir)
    if machine is None:
        return None
    emulators = (shutil.which(name, path=path) for name in (f"qemu-{machine}", f"qemu-{machine}-static"))
    emulator = next((program for program in emulators if program), None)
    libraries = f"/usr/{machine}-linux-gnu"
    activation = {"CROSSCOMPILING_EMULATOR": emulator, "QEMU_LD_PREFIX": libraries} if emulator else {}
    c = cross_gcc(platform, path=path)
    if c is not None and _works(c):
        cxx = shutil.which(f"{machine}-linux-gnu-g++", path=path)
        tools = {tool: (f,) for tool in _BINUTILS if (f := shutil.which(f"{machine}-linux-gnu-{tool}", path=path))}
        return Compiler("cross gcc", (c,), (cxx,) if cxx else None, tools, activation=activation)
    if zig is None or not zig_compiles_for(platform):
        return None
    commands = zig.compiler_for(platform, "cc"), zig.compiler_for(platform, "c++")
    return _zig_compiler(zig, *commands, activation if Path(libraries).is_dir() else {})


@cache
def _works(compiler: str) -> bool:
    """Whether the compiler links a program: one without the headers or libraries of C is of no use."""
    program = '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n'
    try:
        trial = subprocess.run(
            [compiler, "-x", "c", "-", "-o", "/dev/null"],
            input=program,
            text=True,
            capture_output=True,
            timeout=_PROBE_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return trial.returncode == 0


def compiler_files(role: str, package: str, platform: Platform, compiler: Compiler | None) -> Iterator[PackageFile]:
    """The files of a stand-in package with one of the roles `c_compiler`, `cxx_compiler` and `binutils`.

    Args:
        package: its name, which the activation script carries as conda-forge's does.
        compiler: the compiler behind its programs; None if this machine cannot compile for the platform, which the
            programs then report.
    """
    from feedstock_tools.channel.metadata import PackageFile

    triplet = _TRIPLETS.get(platform.subdir)
    if triplet is None:
        return
    for suffix, command in _programs(role, compiler).items():
        yield PackageFile(f"bin/{triplet}-{suffix}", _wrapper(command, platform, suffix, compiler), executable=True)
    variables = _variables(role, triplet, platform, compiler)
    if variables:
        yield PackageFile(f"etc/conda/activate.d/activate-{package}.sh", _activation(variables))
        yield PackageFile(f"etc/conda/deactivate.d/deactivate-{package}.sh", _deactivation(variables))


def _programs(role: str, compiler: Compiler | None) -> dict[str, tuple[str, ...] | None]:
    if role == "c_compiler":
        command = compiler.c if compiler else None
        return {"cc": command, "gcc": command, "cpp": (*command, "-E") if command else None}
    if role == "cxx_compiler":
        command = compiler.cxx if compiler else None
        return {"c++": command, "g++": command}
    return dict(sorted(compiler.tools.items())) if compiler else {}


def _wrapper(command: tuple[str, ...] | None, platform: Platform, suffix: str, compiler: Compiler | None) -> bytes:
    if command is None or compiler is None:
        return f"#!/bin/sh\necho 'stand-in channel: this machine has no {suffix} for {platform}' >&2\nexit 1\n".encode()
    lines = [f"export {name}={shlex.quote(value)}" for name, value in compiler.environment.items()]
    if compiler.kind == "zig":
        lines.append(f'for word; do shift; case $word in {_UNKNOWN_TO_ZIG}) ;; *) set -- "$@" "$word";; esac; done')
    return "\n".join(["#!/bin/sh", *lines, f'exec {shlex.join(command)} "$@"', ""]).encode()


def _variables(role: str, triplet: str, platform: Platform, compiler: Compiler | None) -> dict[str, str]:
    """The variables set by activation, as conda-forge's compilers do (ctng-compiler-activation-feedstock,
    recipe/install-gcc.sh).

    `${TREE}` is the host prefix in a build, else the prefix of the environment.
    """
    zig = compiler is not None and compiler.kind == "zig"
    tuning = {"64": "-march=nocona -mtune=haswell ", "aarch64": ""}.get(platform.arch, "") if not zig else ""
    flags = f"{tuning}-ftree-vectorize -fPIC -fstack-protector-strong -fno-plt -O2 -ffunction-sections -pipe"
    include = "-isystem ${TREE}/include"
    builder = Platform.here()
    crosses = platform != builder
    own = _TRIPLETS.get(builder.subdir, triplet)
    if role == "c_compiler":
        return {
            "HOST": triplet,
            "BUILD": own,
            "CONDA_TOOLCHAIN_HOST": triplet,
            "CONDA_TOOLCHAIN_BUILD": own,
            "host_alias": triplet,
            "build_alias": own,
            "CC": f"${{CONDA_PREFIX}}/bin/{triplet}-cc",
            "CC_FOR_BUILD": f"${{CONDA_PREFIX}}/bin/{own}-cc",
            "CPP": f"${{CONDA_PREFIX}}/bin/{triplet}-cpp",
            "GCC": f"${{CONDA_PREFIX}}/bin/{triplet}-gcc",
            "CPPFLAGS": f"-DNDEBUG -D_FORTIFY_SOURCE=2 -O2 {include}",
            "CFLAGS": f"{flags} {include} ${{PREFIX_MAP}}",
            "LDFLAGS": _link_flags(zig),
            "CMAKE_ARGS": "-DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=${TREE} -DCMAKE_INSTALL_LIBDIR=lib",
            "MESON_ARGS": "-Dbuildtype=release --prefix=${TREE} -Dlibdir=lib",
            "CONDA_BUILD_CROSS_COMPILATION": "1" if crosses else "",
            **(compiler.activation if compiler else {}),
        }
    if role == "cxx_compiler":
        return {
            "CXX": f"${{CONDA_PREFIX}}/bin/{triplet}-c++",
            "CXX_FOR_BUILD": f"${{CONDA_PREFIX}}/bin/{own}-c++",
            "GXX": f"${{CONDA_PREFIX}}/bin/{triplet}-g++",
            "CXXFLAGS": f"-fvisibility-inlines-hidden -fmessage-length=0 {flags} {include} ${{PREFIX_MAP}}",
        }
    tools = sorted(compiler.tools) if compiler else []
    return {tool.upper(): f"${{CONDA_PREFIX}}/bin/{triplet}-{tool}" for tool in tools}


def _link_flags(zig: bool) -> str:
    own = "-Wl,--as-needed -Wl,-z,relro -Wl,-z,now -Wl,--gc-sections"
    if not zig:  # zig's linker knows fewer options
        own = f"-Wl,-O2 -Wl,--sort-common {own} -Wl,--disable-new-dtags -Wl,--allow-shlib-undefined"
        own += " -Wl,-rpath-link,${TREE}/lib"
    return f"{own} -Wl,-rpath,${{TREE}}/lib -L${{TREE}}/lib"


def _activation(variables: Mapping[str, str]) -> bytes:
    lines = [
        "# Made by feedstock-tools for its stand-in channel.",
        'if [ "${CONDA_BUILD:-0}" = "1" ]; then',
        '  TREE="${PREFIX}"',
        '  PREFIX_MAP="-fdebug-prefix-map=${SRC_DIR}=/usr/local/src/conda/${PKG_NAME}-${PKG_VERSION}'
        ' -fdebug-prefix-map=${PREFIX}=/usr/local/src/conda-prefix"',
        "else",
        '  TREE="${CONDA_PREFIX}"',
        '  PREFIX_MAP=""',
        "fi",
    ]
    for name, value in variables.items():
        lines.append(f'if [ -n "${{{name}+x}}" ]; then export CONDA_BACKUP_{name}="${{{name}}}"; fi')
        lines.append(f'export {name}="{value}"')
    return "\n".join([*lines, "unset TREE PREFIX_MAP", ""]).encode()


def _deactivation(variables: Mapping[str, str]) -> bytes:
    lines = ["# Made by feedstock-tools for its stand-in channel."]
    for name in variables:
        lines += [
            f'if [ -n "${{CONDA_BACKUP_{name}+x}}" ]; then',
            f'  export {name}="${{CONDA_BACKUP_{name}}}"',
            f"  unset CONDA_BACKUP_{name}",
            "else",
            f"  unset {name}",
            "fi",
        ]
    return "\n".join([*lines, ""]).encode()
