"""CUDA compilers from NVIDIA's wheels, fetched on request, for `compiler('cuda')` of the stand-in channel.

For CUDA 13 the wheels hold nvcc and CCCL, whose headers those of the toolkit include. For 11.8 and 12.x they hold NVRTC
and ptxas; an `nvcc` made of the two compiles device code (`nvcc_from_nvrtc`). All bring the CUDA runtime, with its
headers. pip fetches them from this machine's configured index.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.files.locks import locked
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.versions import parse_version
from feedstock_tools.wording import listed

if TYPE_CHECKING:
    from feedstock_tools.channel.metadata import PackageFile
    from feedstock_tools.channel.pip import Watch

_RECORD = "toolkit.json"
#: NVIDIA's projects, by the major version of CUDA.
_PROJECTS = {
    11: ("nvidia-cuda-nvrtc-cu11", "nvidia-cuda-nvcc-cu11", "nvidia-cuda-runtime-cu11"),
    12: ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvcc-cu12", "nvidia-cuda-runtime-cu12"),
    13: ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-runtime", "nvidia-cuda-cccl"),
}
#: What one takes to fetch.
DOWNLOAD = "44 to 134 MB"
#: The first version of CUDA whose compiler is in wheels.
_FIRST_IN_WHEELS = "11.7"
#: The projects that have no release for each minor version: the newest up to it serves.
_NOT_OF_EACH = ("nvidia-cuda-cccl",)
#: The programs of a toolkit that a package provides, if it has them.
_PROGRAMS = ("nvcc", "ptxas", "fatbinary", "cudafe++", "nvlink", "bin2c")
#: How the names of packages with nvcc begin.
NVCC = ("cuda-nvcc", "nvcc_")
#: The packages that have the CUDA runtime: up to 11.8, and from 12.0 on.
_RUNTIMES = ("cudatoolkit", "cuda-cudart")
#: Which host compiler nvcc takes: that of the build, as conda-forge's activation has it. Scripts are run in the order
#: of their names, and this has to come after the compiler's: hence the tilde.
_ACTIVATE = """\
# Made by feedstock-tools for its stand-in channel.
export NVCC_PREPEND_FLAGS="${NVCC_PREPEND_FLAGS:-}${CXX:+ -ccbin=${CXX}}"
"""
#: Where compilers find headers and the runtime, which conda-forge has in `targets` of the prefix: in the toolkit, and
#: those of other libraries in the wheels that PyTorch runs with.
_ACTIVATE_WHOLE = """\
if [ "${{CONDA_BUILD:-0}}" = "1" ]; then TREE="${{PREFIX}}"; else TREE="${{CONDA_PREFIX}}"; fi
HEADERS=""
for each in {folder}/include {folder}/include/cccl "${{TREE}}"/lib/python*/site-packages/nvidia/cu{major}/include; do
  if [ -d "${{each}}" ]; then HEADERS="${{HEADERS}} -isystem ${{each}}"; fi
done
export CFLAGS="${{CFLAGS:-}}${{HEADERS}}" CPPFLAGS="${{CPPFLAGS:-}}${{HEADERS}}" CXXFLAGS="${{CXXFLAGS:-}}${{HEADERS}}"
export NVCC_APPEND_FLAGS="${{NVCC_APPEND_FLAGS:-}}${{HEADERS}}" LDFLAGS="${{LDFLAGS:-}} -L{folder}/lib"
unset TREE HEADERS each
"""
_MISSING = """\
#!/bin/sh
echo "stand-in channel: there is no nvcc of CUDA {version}; 'feedstock-tools cuda fetch {version}' fetches one" >&2
exit 1
"""
_DEACTIVATE = "# Made by feedstock-tools for its stand-in channel.\nunset NVCC_PREPEND_FLAGS NVCC_APPEND_FLAGS\n"


@dataclass(frozen=True, slots=True)
class CudaToolkit:
    """A CUDA compiler on this machine: its version (`12.9`), its components, and the folder with its `bin`."""

    version: str
    made_of: tuple[str, ...]
    folder: Path

    @property
    def whole(self) -> bool:
        """Whether it has the real nvcc; the others only compile device code."""
        return (self.folder / "bin" / "nvcc").is_file()

    @property
    def limit(self) -> str:
        """What its nvcc does not serve, in words."""
        if self.whole:
            return f"the nvcc of CUDA {self.version} takes gcc or clang for its host compiler, not zig (Debian: g++)"
        return (
            f"the nvcc of CUDA {self.version}, made of NVRTC and ptxas, compiles device code only (`nvcc -fatbin`): "
            "CMake's CUDA language and PyTorch need a whole one, which NVIDIA's wheels have from CUDA 13 on"
        )

    @property
    def runtime(self) -> Path | None:
        """Its CUDA runtime, under the name that programs load: `libcudart.so.12`."""
        return next(iter(sorted((self.folder / "lib").glob("libcudart.so.*"))), None)

    @property
    def identity(self) -> str:
        """Its part in the identity of builds that use it."""
        return f"CUDA {self.version}: {', '.join(self.made_of)}"


def toolkits_folder(environment: Mapping[str, str]) -> Path:
    from feedstock_tools.data import cache_root

    return cache_root(environment) / "cuda-toolkits"


def found_toolkits(folder: Path | None) -> tuple[CudaToolkit, ...]:
    """The toolkits in a folder, by version; a missing folder has none.

    Compilers contain their places, so a folder that several links lead to has one place.
    """
    if folder is None or not folder.is_dir():
        return ()
    records = ((path.parent, json.loads(path.read_bytes())) for path in folder.resolve().glob(f"*/{_RECORD}"))
    toolkits = [CudaToolkit(record["version"], tuple(record["made_of"]), place) for place, record in records]
    return tuple(sorted(toolkits, key=lambda toolkit: tuple(map(int, toolkit.version.split(".")))))


def fetch_toolkit(version: str, folder: Path, machine: Mapping[str, str], watch: Watch | None = None) -> CudaToolkit:
    """Fetch the wheels of a CUDA version with pip and assemble a toolkit; a complete one is returned as it is.

    Args:
        version: `11.8`, `12.4`, `13.0`.
    """
    from feedstock_tools.channel.pip import Download, download_wheels, unwatched

    requirements = _requirements(version)
    with locked(folder):
        for toolkit in found_toolkits(folder):
            if toolkit.version == version and len(toolkit.made_of) == len(requirements):
                return toolkit
        try:
            with temporary_folder(folder) as temporary:
                download = Download(requirements, what=", ".join(requirements))
                wheels = download_wheels(download, temporary / "wheels", machine, watch or unwatched)
                toolkit_folder = _put_together(version, wheels, temporary / "toolkit")
                shutil.rmtree(folder / version, ignore_errors=True)
                toolkit_folder.rename(folder / version)
        except OSError as error:
            raise WorkError(f"cannot store the toolkit: {error.strerror or error}", path=folder) from error
    return next(toolkit for toolkit in found_toolkits(folder) if toolkit.version == version)


def fetchable() -> tuple[str, ...]:
    """The versions of CUDA whose compiler is in wheels, as far as known."""
    return tuple(each for each in load_cuda().toolkits if parse_version(each) >= parse_version(_FIRST_IN_WHEELS))


def _requirements(version: str) -> tuple[str, ...]:
    known = fetchable()
    if version not in known:
        raise InputError(
            f"no wheels with a compiler of CUDA '{version}' are known", hint=f"There are those of {listed(known)}."
        )
    major, _, minor = version.partition(".")
    following = f"{major}.{int(minor) + 1}"
    return tuple(
        f"{project}<{following}" if project in _NOT_OF_EACH else f"{project}=={version}.*"
        for project in _PROJECTS[int(major)]
    )


def _put_together(version: str, wheels: list[Path], folder: Path) -> Path:
    """Unpack wheels into one tree: theirs have `nvidia/<part>/` on top, and all parts have bin, include and lib."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                place = _place(member, folder)
                if place is None:
                    continue
                place.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, place.open("wb") as target:
                    shutil.copyfileobj(source, target)
                if "bin" in place.relative_to(folder).parts:
                    place.chmod(0o755)
    if not (folder / "bin" / "ptxas").is_file():
        raise WorkError(f"the wheels of CUDA {version} contain no ptxas", hint="NVIDIA has changed their contents.")
    if not (folder / "lib64").exists():
        (folder / "lib64").symlink_to("lib")  # where nvcc.profile looks
    _complete_for_cmake(folder)
    record = {"version": version, "made_of": ["-".join(wheel.name.split("-")[:2]) for wheel in wheels]}
    (folder / _RECORD).write_text(json.dumps(record, indent=2), encoding="utf-8")
    return folder


def _complete_for_cmake(folder: Path) -> None:
    """Add what CMake's FindCUDAToolkit asks for and wheels lack: the runtime under its linker's name, and a folder."""
    for library in sorted((folder / "lib").glob("libcudart.so.*")):
        link = folder / "lib" / "libcudart.so"
        if not link.exists():
            link.symlink_to(library.name)
    (folder / "include" / "cccl").mkdir(parents=True, exist_ok=True)


def _place(member: zipfile.ZipInfo, folder: Path) -> Path | None:
    """The target of a member; None if a compiler does not need it, or if it would leave the folder."""
    parts = Path(member.filename).parts
    if len(parts) < 4 or parts[0] != "nvidia" or member.is_dir() or ".." in parts or ".alt." in parts[-1]:
        return None
    return folder.joinpath(*parts[2:])


def cuda_compiler_files(role: str, package: str, version: str, toolkit: CudaToolkit | None) -> Iterator[PackageFile]:
    """The files of a stand-in package with one of the roles `nvcc` (programs) and `nvcc_activation`.

    Args:
        package: its name, which is part of the activation script's name.
        version: the CUDA version; `toolkit` is the fetched one, if any. Without one, its nvcc prints how to fetch it.
    """
    from feedstock_tools.channel.metadata import PackageFile

    if role == "nvcc":
        for name, words in _programs(toolkit).items():
            yield PackageFile(f"bin/{name}", f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'.encode(), executable=True)
        if toolkit is None:
            yield PackageFile("bin/nvcc", _MISSING.format(version=version).encode(), executable=True)
    if role == "nvcc_activation" or package.startswith("nvcc_"):
        script = _ACTIVATE
        if toolkit is not None and toolkit.whole:
            folder, major = shlex.quote(str(toolkit.folder)), version.partition(".")[0]
            script += _ACTIVATE_WHOLE.format(folder=folder, major=major)
        yield PackageFile(f"etc/conda/activate.d/~{package}_activate.sh", script.encode())
        yield PackageFile(f"etc/conda/deactivate.d/~{package}_deactivate.sh", _DEACTIVATE.encode())


def cuda_runtime_files(package: str, version: str, toolkits: Iterable[CudaToolkit]) -> Iterator[PackageFile]:
    """The CUDA runtime in a stand-in package that has one: a link to that of the newest toolkit of its major version.

    Args:
        package: its name; packages other than `cudatoolkit` and `cuda-cudart` have none.
        version: its CUDA version.
        toolkits: the fetched ones, by version.
    """
    from feedstock_tools.channel.metadata import PackageFile

    if package in _RUNTIMES:
        major = version.partition(".")[0]
        found = [toolkit.runtime for toolkit in toolkits if toolkit.version.partition(".")[0] == major]
        for runtime in [path for path in found if path is not None][-1:]:
            yield PackageFile(f"lib/{runtime.name}", link=str(runtime))


def _programs(toolkit: CudaToolkit | None) -> dict[str, tuple[str, ...]]:
    """Name → command of each program that a toolkit has."""
    if toolkit is None:
        return {}
    programs: dict[str, tuple[str, ...]] = {name: (str(toolkit.folder / "bin" / name),) for name in _PROGRAMS}
    programs = {name: words for name, words in programs.items() if Path(words[0]).is_file()}
    if toolkit.whole:
        return programs
    driver = Path(__file__).with_name("nvcc_from_nvrtc.py")
    return {**programs, "nvcc": (sys.executable, "-I", str(driver), str(toolkit.folder), toolkit.version)}
