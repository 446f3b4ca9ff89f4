"""Mistakes in the values of a configuration by the facts: compilers, libraries, images, glibc, architectures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from feedstock_tools.channel.specs import admits
from feedstock_tools.check.architecture_lists import ARCHITECTURE_KEYS, form_of, is_native, read_list
from feedstock_tools.check.coverage import NATIVE, Place, faults_of
from feedstock_tools.check.findings import Complaint
from feedstock_tools.check.rows import Row
from feedstock_tools.errors import InputError
from feedstock_tools.pins.graph.kinds import Demand, msvc_of, msvc_words
from feedstock_tools.pins.graph.resolve import is_satisfiable
from feedstock_tools.versions import parse_version

_IMAGE_CUDA = re.compile(r"cuda:?(\d+\.\d+)")
_IMAGE_ARCH = re.compile(r"(?<![a-z0-9])(x86_64|aarch64|ppc64le)(?![a-z0-9])")
_ARCH_SUBDIRS = {"x86_64": "linux-64", "aarch64": "linux-aarch64", "ppc64le": "linux-ppc64le"}
_COMPILERS = (("c_compiler", "c_compiler_version", "gcc"), ("cxx_compiler", "cxx_compiler_version", "gxx"))


def complaints_of_row(row: Row) -> Iterator[Complaint]:
    """The mistakes in the values of one row; unknown values are skipped."""
    for look in _CHECKS:
        yield from look(row)


def _host_compiler(row: Row) -> Iterator[Complaint]:
    """gcc only: clang may compile CUDA itself, and nvcc's limits do not apply to it."""
    limit, packaged = row.toolkit.newest_gcc, row.toolkit.newest_conda_forge_gcc
    if limit is None or not row.subdir.startswith("linux-"):
        return
    for key, of_version, gcc in _COMPILERS:
        if row.values.get(key, (gcc,)) != (gcc,):
            continue
        for version in row.values.get(of_version, ()):
            if not version[:1].isdigit():
                continue
            major = parse_version(version.split(".")[0]).major
            if major > limit:
                message = f"nvcc of CUDA {row.toolkit.version} accepts host gcc up to {limit}, not {version}"
                yield Complaint(of_version, message, row.source("newest_gcc"))
            elif packaged is not None and major > packaged:
                message = f"conda-forge's packages of CUDA {row.toolkit.version} accept gcc up to {packaged}"
                source = row.source("newest_conda_forge_gcc")
                yield Complaint(of_version, f"{message}, not {version}", source)


def _visual_studio(row: Row) -> Iterator[Complaint]:
    if row.toolkit.visual_studio is None or not row.subdir.startswith("win-"):
        return
    for key in ("c_compiler", "cxx_compiler"):
        for compiler in row.values.get(key, ()):
            year = re.fullmatch(r"vs(20\d\d)", compiler)
            if year and not row.toolkit.takes_msvc(msvc_of(year[1])):
                message = f"nvcc of CUDA {row.toolkit.version} accepts {msvc_words(row.toolkit)}, not {year[1]}"
                yield Complaint(key, message, row.source("visual_studio"))


def _libraries(row: Row) -> Iterator[Complaint]:
    if row.subdir not in row.graph.versions["platform"]:
        return
    for name, library in row.facts.libraries.items():
        for version in row.values.get(name, ()):
            if not re.fullmatch(r"\d+(\.\d+)*", version):
                continue
            given = [Demand("cuda", f"=={row.toolkit.version}", ""), Demand("platform", row.subdir, "")]
            wanted = Demand(name, f"{version}.*", "")
            if is_satisfiable(row.graph, given) and not is_satisfiable(row.graph, [*given, wanted]):
                matching = [release.version for release in library.releases if admits(wanted.spec, release.version)]
                never_built = f"{name} {version} was never built for CUDA {row.toolkit.version} on {row.subdir}"
                message = never_built if matching else f"there is no {name} {version} on conda-forge"
                yield Complaint(name, message, library.repository)


def _image(row: Row) -> Iterator[Complaint]:
    for image in row.values.get("docker_image", ()):
        of_cuda = _IMAGE_CUDA.search(image)
        if of_cuda and of_cuda[1] != row.toolkit.version:
            message = f"{image} has CUDA {of_cuda[1]}, but the configuration needs {row.toolkit.version}"
            yield Complaint("docker_image", message)
        elif not of_cuda and row.toolkit.era == "cudatoolkit" and "linux-anvil" in image:
            message = f"nvcc of CUDA {row.toolkit.version} comes with an image, but {image} has none"
            yield Complaint("docker_image", message)
        of_arch = _IMAGE_ARCH.search(image)
        # An image for linux-64 also serves other platforms, which are cross-compiled on it.
        if of_arch and _ARCH_SUBDIRS[of_arch[1]] not in (row.subdir, "linux-64"):
            message = f"{image} is for {_ARCH_SUBDIRS[of_arch[1]]}, but the configuration is for {row.subdir}"
            yield Complaint("docker_image", message)


def _glibc(row: Row) -> Iterator[Complaint]:
    if row.values.get("c_stdlib", ("sysroot",)) != ("sysroot",):
        return
    for pinned in row.facts.rows:
        least = pinned.values.get("c_stdlib_version")
        if pinned.cuda != row.toolkit.version or pinned.platform.subdir != row.subdir or least is None:
            continue
        for version in row.values.get("c_stdlib_version", ()):
            if version[:1].isdigit() and parse_version(version) < parse_version(least):
                message = f"CUDA {row.toolkit.version} needs glibc {least} on {row.subdir}, not {version}"
                source = f"{row.facts.pinning_repository}/tree/{pinned.commit}"
                yield Complaint("c_stdlib_version", message, source)


def _architectures(row: Row) -> Iterator[Complaint]:
    place = Place(row.subdir, row.is_tegra)
    for key in ARCHITECTURE_KEYS:
        for text in row.values.get(key, ()):
            if is_native(text):
                yield Complaint(key, NATIVE)
                continue
            try:
                listed = read_list(text, form_of(key))
            except InputError as error:
                yield Complaint(key, str(error))
                continue
            for message, weight in faults_of(row.toolkit, listed, place):
                yield Complaint(key, message, row.source("architectures"), weight)


_CHECKS: tuple[Callable[[Row], Iterator[Complaint]], ...] = (
    _host_compiler,
    _visual_studio,
    _libraries,
    _image,
    _glibc,
    _architectures,
)
