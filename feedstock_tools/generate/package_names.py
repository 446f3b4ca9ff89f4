"""The packages of conda-forge for projects of PyPI: our table of frequent ones, and a mapping that was fetched.

The mapping is the ecosystem's (parselmouth's, which pixi reads): package of conda-forge → project of PyPI, or null. It
is kept in the user's cache with the day on which it was fetched, and is not part of this program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from feedstock_tools.data import cache_root
from feedstock_tools.errors import InputError
from feedstock_tools.facts.packages import read_tools
from feedstock_tools.reading import read_bytes
from feedstock_tools.versions import normalized

#: Where the newest mapping is.
MAPPING = "https://conda-mapping.prefix.dev/compressed-v0/compressed_mapping.json"
LARGEST_MAPPING = 32 << 20
_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,100}")
#: Projects of PyPI → the packages of conda-forge with their modules, where the names differ.
_FREQUENT = {
    "blosc": "python-blosc",
    "build": "python-build",
    "cupy-cuda11x": "cupy",
    "cupy-cuda12x": "cupy",
    "cupy-cuda13x": "cupy",
    "duckdb": "python-duckdb",
    "faiss-cpu": "faiss",
    "faiss-gpu": "faiss",
    "flatbuffers": "python-flatbuffers",
    "graphviz": "python-graphviz",
    "jax-cuda12-plugin": "jaxlib",
    "jaxlib": "jaxlib",
    "kaleido": "python-kaleido",
    "ml-dtypes": "ml_dtypes",
    "msgpack": "msgpack-python",
    "opencv-python": "py-opencv",
    "opencv-python-headless": "py-opencv",
    "psycopg2-binary": "psycopg2",
    "pyqt5": "pyqt",
    "tables": "pytables",
    "tensorflow": "tensorflow",
    "tensorflow-cpu": "tensorflow",
    "tensorflow-gpu": "tensorflow",
    "torch": "pytorch",
    "tzdata": "python-tzdata",
    "xgboost": "py-xgboost",
    "xxhash": "python-xxhash",
}
#: Modules of CMake → the packages of conda-forge that have what they find, where that is certain.
OF_CMAKE: Mapping[str, tuple[str, ...]] = {
    "BLAS": ("libblas", "libcblas"),
    "BZip2": ("bzip2",),
    "Boost": ("libboost-devel",),
    "CURL": ("libcurl",),
    "Eigen3": ("eigen",),
    "FFTW3": ("fftw",),
    "HDF5": ("hdf5",),
    "JPEG": ("libjpeg-turbo",),
    "LAPACK": ("libblas", "libcblas", "liblapack"),
    "LibLZMA": ("liblzma-devel",),
    "LibXml2": ("libxml2-devel",),
    "OpenSSL": ("openssl",),
    "PNG": ("libpng",),
    "Protobuf": ("libprotobuf",),
    "SQLite3": ("sqlite",),
    "TBB": ("tbb-devel",),
    "TIFF": ("libtiff",),
    "ZLIB": ("zlib",),
    "fmt": ("fmt",),
    "spdlog": ("spdlog",),
    "zstd": ("zstd",),
}
#: Those of them that have a part of their package, or are another build of it: it is not made of their wheels.
_NOT_THE_PACKAGE = re.compile(r"cupy-cuda\d+x|faiss-gpu|jax-cuda12-plugin|opencv-python-headless|tensorflow-[cg]pu")


@dataclass(frozen=True, slots=True)
class PackageNames:
    """Names of packages for names of projects; `date` is the day of the mapping, None without one.

    `projects` are the projects of packages, of which a project can have several.
    """

    mapped: Mapping[str, str] = field(default_factory=dict)
    date: str | None = None
    projects: Mapping[str, str] = field(default_factory=dict)

    def package(self, project: str) -> str:
        """The package for a project; where nothing is known, one of the same name, underscores kept.

        Tools of this program have the names of its facts.

        >>> names = PackageNames()
        >>> names.package("torch"), names.package("OpenCV_Python"), names.package("a_b"), names.package("hatch_vcs")
        ('pytorch', 'py-opencv', 'a_b', 'hatch-vcs')
        """
        normal, written = normalized(project), project.lower()
        of_tools = {wheel.package: None for wheel in read_tools().wheels if wheel.project == normal}
        named = written if written in of_tools else next(iter(of_tools), written)
        return _FREQUENT.get(normal) or self.mapped.get(normal) or named

    def project(self, package: str) -> str | None:
        """The project that a package is known to have the modules of."""
        own = (project for project, name in _FREQUENT.items() if name == package)
        return self.projects.get(package) or next((one for one in own if not _NOT_THE_PACKAGE.fullmatch(one)), None)

    def is_guess(self, project: str) -> bool:
        """Whether there is a mapping, and it does not have the project."""
        normal = normalized(project)
        return self.date is not None and normal not in _FREQUENT and normal not in self.mapped


def read_names(path: Path) -> PackageNames:
    """The names of a mapping in a file, whose date is that of the file.

    Of several packages of a project the one of its name is taken, else the shortest.

    Raises:
        InputError: it cannot be read, or is not such a mapping.
    """
    try:
        document = json.loads(read_bytes(path, LARGEST_MAPPING, within=None))
        pairs = [(str(package), str(project)) for package, project in document.items() if isinstance(project, str)]
    except (ValueError, AttributeError, RecursionError) as error:
        hint = 'It must be JSON: {"pytorch": "torch", …}, a package of conda-forge and its project.'
        raise InputError("is not a mapping of names", path=path, hint=hint) from error
    best: dict[str, str] = {}
    for package, project in sorted(
        pairs, key=lambda pair: (normalized(pair[0]) != normalized(pair[1]), len(pair[0]), pair)
    ):
        if _NAME.fullmatch(package):
            best.setdefault(normalized(project), package)
    date = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    projects = {package: normalized(project) for package, project in pairs if _NAME.fullmatch(package)}
    return PackageNames(best, f"{date:%Y-%m-%d}", projects)


def kept_mapping(environment: Mapping[str, str]) -> Path:
    """The file of the mapping that was fetched last."""
    return cache_root(environment) / "pypi-names.json"


def kept_names(environment: Mapping[str, str]) -> PackageNames:
    """The names of the mapping that was fetched last; without one those of our table."""
    kept = kept_mapping(environment)
    return read_names(kept) if kept.is_file() else PackageNames()
