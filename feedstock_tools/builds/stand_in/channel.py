"""The stand-in channel: packages with the metadata of real ones, made on the spot if no real channel can be reached.

Its packages are marked in `info/about.json` (`extra: stand-in: …`), and its last folder is named `stand-in`. Python,
the compilers and fetched tools can be used; everything else is metadata. It is never mixed with a real channel.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path

from feedstock_tools.builds.stand_in import compilers
from feedstock_tools.builds.stand_in.identity import STAND_IN_FORMAT, digest, programs_called, stand_in_identity
from feedstock_tools.builds.stand_in.on_demand import ALIAS, recorded_wheels
from feedstock_tools.builds.stand_in.python import Installation, find_pythons, python_files, site_packages
from feedstock_tools.builds.stand_in.toolkits import (
    CudaToolkit,
    cuda_compiler_files,
    cuda_runtime_files,
    found_toolkits,
    toolkits_folder,
)
from feedstock_tools.builds.stand_in.tools import (
    LIBRARIES,
    byte_code,
    entry_points,
    found_tools,
    make_files,
    tools_folder,
    wheel_files,
)
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata, RunExports
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.properties import STAND_IN, ChannelProperties
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import WorkError
from feedstock_tools.facts.packages import MAKE, KnownPackage, Wheel, read_packages, read_tools, tools_file
from feedstock_tools.feedstock.folder import user_cache
from feedstock_tools.files.changes import write_whole
from feedstock_tools.files.locks import locked
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.platforms import Platform
from feedstock_tools.stages import stage
from feedstock_tools.versions import minor_of

_NAME = STAND_IN.origin
#: The file of a channel that says what this machine has for it.
_RECORD = "stand-in.json"
_COMPILER_ROLES = ("binutils", "c_compiler", "cxx_compiler")
_CUDA_ROLES = ("nvcc", "nvcc_activation")
#: Tools that builds start in Python several times each.
_COMPILED = frozenset({"pip"})
#: Packages without files that no build misses: versions, and what the compiler of the machine has of its own.
_NOT_MISSED = re.compile(
    r"_|cuda-version$|python(_abi)?$|tzdata$|(sysroot|kernel-headers|binutils\w*|ld_impl|gcc\w*|gxx\w*|nvcc)_"
    r"|lib(gcc|gomp|stdcxx|sanitizer)|cuda-(nvcc|crt|nvvm)|binutils$"
)


@dataclass(frozen=True)
class StandInChannel:
    """A stand-in channel that is ready for use.

    Attributes:
        pythons: the versions (`3.12`) of Python that can be run. Any other is metadata only.
        empty: the packages that are requested for their files and have none here.
    """

    folder: Path
    pythons: frozenset[str]
    empty: frozenset[str]

    @property
    def url(self) -> str:
        return self.folder.as_uri()

    @property
    def properties(self) -> ChannelProperties:
        return replace(STAND_IN, pythons=self.pythons, empty=self.empty)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where this machine has the contents of packages.

    Attributes:
        path: searched for compilers, Pythons and make instead of PATH.
        zig: the fetched zig; its compilers are used if the path has none.
        toolkits: the folder of fetched CUDA compilers (`fetch_toolkit`); the packages of nvcc use them.
        tools: the folder of fetched wheels (`fetch_tools`); without its wheel, a tool is metadata only.
    """

    path: str | None = None
    zig: compilers.Zig | None = None
    toolkits: Path | None = None
    tools: Path | None = None


def ensure_stand_in_channel(
    root: Path, platform: Platform, pythons: Iterable[str], sources: Sources | None = None
) -> StandInChannel:
    """A stand-in channel for builds on this machine; an existing one is reused if nothing has changed.

    Args:
        root: a folder of this tool's own, such as the user's cache folder, for its channels.
        platform: the target platform; includes `noarch`.
        pythons: the versions (`3.12`) that must be real if this machine has them: the running interpreter's, and
            others that are on PATH as `python3.12`.
        sources: default: nothing that was fetched, and the programs on PATH.

    Raises:
        WorkError: the folder cannot be written.
        InputError: the data on packages is damaged.
    """
    sources = sources or Sources()
    native = platform == Platform.here()
    wanted = sorted({minor_of(version) for version in pythons})
    installations = find_pythons(wanted, path=sources.path)
    identity = stand_in_identity(platform, path=sources.path, toolkits=sources.toolkits if native else None)
    zig = (str(sources.zig.folder),) if sources.zig else ()
    make = shutil.which(MAKE, path=sources.path)
    fetched = found_tools(sources.tools)
    on_demand = recorded_wheels(sources.tools)
    of_tools = [
        str(sources.tools and sources.tools.resolve() / LIBRARIES),  # packages link to the libraries there
        sha256(tools_file().read_bytes()).hexdigest(),
        *sorted(fetched),
        str(make),
        *sorted(map(repr, on_demand)),
    ]
    cuda = {toolkit.version: toolkit for toolkit in found_toolkits(sources.toolkits)} if native else {}
    of_cuda = [str(toolkit.runtime) for toolkit in cuda.values() if toolkit.runtime]
    of_pythons = [installation.identity for installation in installations]
    programs = programs_called(platform, path=sources.path)
    folder = root / digest(identity, *programs, *of_pythons, *zig, *of_tools, *of_cuda)[:16] / _NAME
    record = folder / _RECORD
    if not record.is_file():
        with locked(root):
            if not record.is_file():
                compiler = compilers.find_compiler(path=sources.path, zig=sources.zig)
                cross = None if native else compilers.find_cross_compiler(platform, path=sources.path, zig=sources.zig)
                wheels = tuple(wheel for wheel in read_tools().wheels if wheel.file in fetched)
                wheels += tuple(each.wheel for each in on_demand)
                others = tuple(each.package for each in on_demand if each.package)
                contents = _Contents(installations, compiler, cuda, cross, make, wheels, others, sources.tools)
                _make_whole(folder, platform, contents, root / "pythons")
    try:
        written = json.loads(record.read_bytes())
        return StandInChannel(folder, frozenset(written["pythons"]), frozenset(written["empty"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WorkError(
            "the stand-in channel is damaged", path=folder, hint="Delete this folder; it is created again when needed."
        ) from error


@cache
def _ensured(
    root: Path, platform: Platform, pythons: frozenset[str], sources: Sources, fetched: frozenset[str]
) -> StandInChannel:
    """The channel of a run; `fetched` are the wheels in the folder of tools; another build may need more."""
    return ensure_stand_in_channel(root, platform, pythons, sources)


def stand_in_channel_of(
    machine: Mapping[str, str], platform: Platform, pythons: Iterable[str], fallback: Path
) -> StandInChannel:
    """The stand-in channel of this machine, in its user's cache folder; requested once in a run.

    Args:
        pythons: as for `ensure_stand_in_channel`, with its errors.
        fallback: the cache folder if the user has none.
    """
    cache = user_cache(machine, fallback)
    tools = tools_folder(cache)
    sources = Sources(
        machine.get("PATH"), compilers.find_zig(compilers.zig_folder(cache)), toolkits_folder(machine), tools
    )
    return _ensured(cache / _NAME, platform, frozenset(pythons), sources, found_tools(tools))


@dataclass(frozen=True, slots=True)
class _Contents:
    """What the packages with contents are made of: programs of this machine, and fetched wheels with their folder.

    `packages` are those of wheels that were fetched on demand.
    """

    pythons: Sequence[Installation]
    compiler: compilers.Compiler | None
    cuda: Mapping[str, CudaToolkit]
    cross: compilers.Compiler | None
    make: str | None
    wheels: Sequence[Wheel]
    packages: Sequence[KnownPackage]
    tools: Path | None

    def wheel_of(self, package: KnownPackage) -> tuple[Wheel, Path] | None:
        """The fetched wheel of a package, and its file; None without one."""
        key = package.name, package.version, package.subdir
        for wheel in self.wheels:
            its_python = wheel.python is None or f"py{wheel.python.replace('.', '')}h" in package.build
            if self.tools and its_python and (wheel.package, wheel.version, wheel.subdir) == key:
                return wheel, self.tools / wheel.file
        return None


def _make_whole(folder: Path, platform: Platform, contents: _Contents, kept: Path) -> None:
    """Create the channel in a temporary folder, and rename it when it is complete."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(folder.parent) as temporary:
            channel = temporary / _NAME
            _make(channel, platform, contents, kept)
            if folder.exists():  # an incomplete one, left by a stopped run
                shutil.rmtree(folder)
            channel.rename(folder)
    except OSError as error:
        raise WorkError(f"cannot create the stand-in channel: {error.strerror or error}", path=folder) from error


#: The feature of a Python without contents: a test that takes any Python gets one that runs.
_METADATA_ALONE = "metadata-alone"


def _make(channel: Path, platform: Platform, contents: _Contents, kept: Path) -> None:
    real = {installation.minor: installation for installation in contents.pythons}
    builder = Platform.here()
    entries: dict[str, dict[str, object]] = {"noarch": {}, platform.subdir: {}, builder.subdir: {}}
    with_files: dict[str, bool] = {}
    compiled = cache(byte_code)  # pip has two packages of one wheel
    known = (*read_packages(), *read_tools().packages, *_cross_tools(platform, builder))
    for package in (*known, *contents.packages):
        if package.subdir not in entries:
            continue
        minor = minor_of(package.version)
        if package.role == "python" and package.subdir == builder.subdir and minor in real:
            metadata = replace(_metadata(package, real=True), version=real[minor].version)
            made = python_files(real[minor])
            written, its_hash = _linked(channel, metadata, real[minor].identity, made, kept)
        elif (wheel := contents.wheel_of(package)) is not None:
            points = entry_points(wheel[1]) if package.noarch else ()
            metadata = replace(_metadata(package, real=True), entry_points=points)
            origin = f"{wheel[0].sha256} {wheel[1].parent.resolve() / LIBRARIES}"
            origin += f" {sys.implementation.cache_tag}" if package.name in _COMPILED else ""
            written, its_hash = _linked(channel, metadata, origin, _files_of_wheel(wheel, compiled), kept)
        else:
            files = tuple(_files(package, platform, contents))
            metadata = _metadata(package, real=bool(files) and package.role != "python")
            if real and package.role == "python" and package.subdir == builder.subdir:
                metadata = replace(metadata, track_features=(_METADATA_ALONE,))
            written = write_package(channel, metadata, files)
            its_hash = sha256(written.read_bytes()).hexdigest()
        entries[package.subdir][written.name] = _entry(metadata, written, its_hash)
        has_files = package.role == ALIAS or metadata.extra[_NAME] != _mark(package, real=False)
        with_files[package.name] = has_files or with_files.get(package.name, False)
    for subdir, packages in entries.items():
        _write_repodata(channel, subdir, packages)
    compiler = contents.compiler if platform == builder else contents.cross
    record = {
        "compiler": " ".join(compiler.c) if compiler else None,
        "pythons": {minor: installation.version for minor, installation in real.items()} if platform == builder else {},
        "empty": sorted(
            name for name, has_files in with_files.items() if not has_files and not _is_not_missed(name, contents)
        ),
    }
    (channel / _RECORD).write_text(json.dumps(record, indent=2), encoding="utf-8")


def _files_of_wheel(
    wheel: tuple[Wheel, Path], compiled: Callable[[Wheel, Path], Iterable[PackageFile]]
) -> Iterator[PackageFile]:
    """The files of a wheel; those of a tool that builds start often with its byte code, from `compiled`."""
    yield from wheel_files(*wheel)
    if wheel[0].package in _COMPILED:
        yield from compiled(*wheel)


def _is_not_missed(name: str, contents: _Contents) -> bool:
    """Whether no build misses the files of a package; a fetched CUDA compiler brings the CUDA runtime."""
    return bool(_NOT_MISSED.match(name)) or (bool(contents.cuda) and name.startswith("cuda-cudart"))


def _cross_tools(platform: Platform, builder: Platform) -> Iterable[KnownPackage]:
    """The compiler packages for a platform on this machine: conda-forge has them for each build platform.

    They need each other; their requirements for running on the platform itself are left out.
    """
    ending = f"_{platform.subdir}"
    if platform != builder and platform.subdir.startswith("linux-"):
        for package in read_packages():
            if package.subdir == platform.subdir and package.name.endswith(ending):
                needed = tuple(spec for spec in package.depends if spec.split()[0].endswith(ending))
                yield replace(package, subdir=builder.subdir, depends=needed)


def _files(package: KnownPackage, platform: Platform, contents: _Contents) -> Iterable[PackageFile]:
    version = minor_of(package.version)
    if package.role == "python" and package.subdir.startswith("linux-"):
        yield site_packages(version)
    if package.role in _COMPILER_ROLES:
        crosses = package.name.endswith(f"_{platform.subdir}") and platform != Platform.here()
        its_platform = platform if crosses else Platform.here()
        yield from compilers.compiler_files(
            package.role, package.name, its_platform, contents.cross if crosses else contents.compiler
        )
    if package.role == MAKE and package.subdir == Platform.here().subdir and contents.make is not None:
        yield from make_files(contents.make)
    if package.role in _CUDA_ROLES and contents.compiler is not None:
        yield from cuda_compiler_files(package.role, package.name, version, contents.cuda.get(version))
    yield from cuda_runtime_files(package.name, version, contents.cuda.values())


def _linked(
    channel: Path, metadata: PackageMetadata, origin: str, files: Iterable[PackageFile], kept: Path
) -> tuple[Path, str]:
    """A large package, built once and linked into each channel, and its SHA-256.

    Args:
        origin: changes when the files do.
        files: read only if the package must be built.
    """
    place = kept / digest(str(STAND_IN_FORMAT), origin, json.dumps(metadata.index_json()))[:16]
    package = place / metadata.subdir / metadata.file_name
    if not package.is_file():
        stage(f"making the package {metadata.file_name}")
        write_package(place, metadata, files)
    target = channel / metadata.subdir / metadata.file_name
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(package)
    except OSError:
        shutil.copyfile(package, target)
    return target, _known_sha256(package)


def _known_sha256(package: Path) -> str:
    """The SHA-256 of a kept package, computed once: it is in a file beside the package, with size and time of that."""
    status, beside = package.stat(), package.with_name(f"{package.name}.sha256")
    whose = f"{status.st_size} {status.st_mtime_ns}"
    with suppress(OSError, ValueError):
        known, _, its = beside.read_text(encoding="utf-8").partition(" ")
        if its == whose:
            return known
    computed = sha256_of(package)
    write_whole(beside, f"{computed} {whose}")
    return computed


def _mark(package: KnownPackage, *, real: bool) -> dict[str, str]:
    return {"contents": "of this machine" if real else "metadata only", "source": str(package.source)}


def _metadata(package: KnownPackage, *, real: bool) -> PackageMetadata:
    return PackageMetadata(
        name=package.name,
        version=package.version,
        build=package.build,
        build_number=package.build_number,
        subdir=package.subdir,
        depends=package.depends,
        constrains=package.constrains,
        track_features=package.track_features,
        noarch=package.noarch,
        license=package.license,
        run_exports=RunExports.from_json(package.run_exports),
        timestamp=package.timestamp,
        summary="A stand-in for the real package, made by feedstock-tools.",
        extra={_NAME: _mark(package, real=real)},
    )


def _entry(metadata: PackageMetadata, written: Path, its_sha256: str) -> dict[str, object]:
    entry = metadata.index_json()
    entry |= {"sha256": its_sha256, "size": written.stat().st_size}
    return entry | {"run_exports": metadata.run_exports.to_json()}


def _write_repodata(channel: Path, subdir: str, packages: Mapping[str, object]) -> None:
    document = {"info": {"subdir": subdir}, "packages": {}, "packages.conda": packages, "repodata_version": 1}
    folder = channel / subdir
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "repodata.json").write_text(json.dumps(document, sort_keys=True), encoding="utf-8")
