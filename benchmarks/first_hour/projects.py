"""What `init` sees in projects of PyPI, and how far their first specs get without a hand on them.

    python -m benchmarks.first_hour.projects [--count 60] [--seed 36] [--only NAME...] [--no-build] [--work DIR]

Draws projects by a seed from those of `PROJECTS`, which has the languages that each is known to compile; with another
seed than the first, from those of `MORE` too, without those of the first draw, which `init` was written with, and
without pure ones. Each goes through `init --self-contained`, `generate`, `rerender` and `lint`. Then those whose needs
this machine and PyPI have are listed: `plan` refuses none of their packages, and `LIBRARIES` has no library that they
link without a word in their metadata. Only then each is built for the CPU with one Python on the stand-in channel. The
table says what `init` saw (right, wrong, not seen) and the end: built, refused before the build began, or failed after;
`--work` keeps the feedstocks and logs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

#: The languages that projects compile, and what they are compiled with → their names.
PROJECTS = {
    "c": """markupsafe psutil wrapt simplejson regex xxhash bitarray zstandard cffi multidict coverage pybase64 ciso8601
        cytoolz crc32c lz4 pycryptodome netifaces setproctitle pyrsistent ephem hiredis backports.zstd mmh3""",
    "c cython": "frozenlist yarl propcache hdbscan pyfftw bottleneck asyncpg uvloop httptools pysam zfpy",
    "c meson": "pywavelets",
    "cxx": """ujson greenlet python-rapidjson editdistance annoy fastcluster numexpr fasttext sentencepiece
        contourpy kiwisolver hnswlib pyclipper levenshtein rapidfuzz awkward-cpp boost-histogram iminuit ml-dtypes
        finufft ducc0 spglib murmurhash preshed cymem pyopencl symengine manifold3d pikepdf
        scikit-learn""",
    "cuda": """torch-scatter torch-sparse torch-cluster torch-spline-conv flash-attn causal-conv1d mamba-ssm gsplat
        llama-cpp-python""",
    "rust": """orjson pydantic-core rpds-py safetensors tokenizers jiter watchfiles jellyfish blake3 cramjam bcrypt
        tiktoken cryptography css-inline minify-html py-rattler pycrdt nh3 rtoml ormsgpack hf-xet primp pyxirr""",
    "fortran": "pyshtools slycot dftd4 f90wrap",
    "c cxx fortran": "scipy",
    "": "packaging setuptools-rust pybind11 nanobind cython iniconfig",
}
#: Further ones, for draws that nothing was written with.
MORE = {
    "c": """immutables rjsmin rcssmin psycopg2 mysqlclient pycurl pyerfa noise pygame webrtcvad parasail pyahocorasick
        lmdb gmpy2 cvxopt tree-sitter tree-sitter-python pycosat dukpy quickjs pillow cbor2 brotli pyfastx ecos
        pyinstaller""",
    "c cython": """aiohttp msgpack lxml pyzmq pyyaml gevent cftime shapely pyproj netcdf4 h5py numcodecs blosc2
        fastavro blis statsmodels astropy pesq mappy datrie mpi4py selectolax line-profiler hidapi""",
    "c meson": "scs",
    "c cxx": "pandas scikit-image srsly numba",
    "cxx": """pyodbc thinc spacy healpy lightgbm xgboost faiss-cpu onnx pyarrow pybullet soxr edlib marisa-trie plyvel
        dm-tree pyamg osqp qdldl python-sat memray llvmlite box2d-py pycuda""",
    "cuda": """cupy xformers vllm torch-points-kernels natten nerfacc auto-gptq exllamav2 implicit minkowskiengine
        warp-rnnt torchsort highspy""",
    "rust": """polars ruff uv maturin fastuuid deltalake connectorx tantivy python-calamine granian robyn pendulum
        rustworkx qiskit dulwich sourmash outlines-core rignore ast-grep-py adblock y-py zizmor clarabel""",
}
#: Projects that link libraries which no wheel has, and their metadata do not name.
LIBRARIES = {
    "cffi": "libffi",
    "dm-tree": "Abseil, whose sources it fetches",
    "lxml": "libxml2, libxslt",
    "mamba-ssm": "PyTorch",
    "manifold3d": "TBB",
    "parasail": "parasail, whose sources it fetches",
    "pikepdf": "qpdf",
    "psycopg2": "libpq",
    "pycurl": "libcurl",
    "pyfftw": "fftw",
    "pyodbc": "unixODBC",
    "pyopencl": "OpenCL",
    "pysam": "bzip2, xz",
    "scs": "BLAS",
    "shapely": "GEOS",
    "slycot": "BLAS",
    "symengine": "SymEngine",
    "zfpy": "zfp",
}
_FIRST_SEED, _FIRST_COUNT = 36, 60
_LANGUAGES = ("c", "cxx", "cuda", "fortran", "rust")


@dataclass(frozen=True)
class Result:
    """What came of a project: the languages that were seen, how far it went, and the last words of what stopped it."""

    name: str
    expected: frozenset[str]
    seen: frozenset[str]
    end: str
    seconds: float
    why: str = ""

    @property
    def sight(self) -> str:
        """Right; not seen, where a language is missing; wrong, where there is one too many."""
        return "not seen" if self.expected - self.seen else "wrong" if _beyond(self.seen, self.expected) else "right"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--count", type=int, default=_FIRST_COUNT, help="projects to draw (default: 60)")
    parser.add_argument("--seed", type=int, default=_FIRST_SEED, help="of the draw (default: 36)")
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="these projects instead of a draw")
    parser.add_argument("--no-build", action="store_true", help="end after lint")
    parser.add_argument("--limit", type=float, default=300, help="seconds of each build (default: 300)")
    parser.add_argument("--python", default="3.12", help="the Python to build with (default: 3.12)")
    parser.add_argument("--work", type=Path, help="keep the feedstocks and logs in this folder")
    options = parser.parse_args()
    languages = {name: kind for table in (PROJECTS, MORE) for kind, names in table.items() for name in names.split()}
    names = options.only or _drawn(options.count, options.seed)
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        folders = {name: (options.work or Path(temporary)) / name for name in names}
        tried = [_described(name, _expected(languages.get(name, "")), folders[name]) for name in names]
        if not options.no_build:
            possible = [
                each.name for each in tried if not each.end and _is_possible(folders[each.name], options.python)
            ]
            print(f"needs that this machine and PyPI have: {len(possible)}: {' '.join(possible)}", flush=True)
        for each in tried:
            if not each.end and options.no_build:
                each = replace(each, end="not tried")
            elif not each.end:
                each = _built(each, folders[each.name], options.python, options.limit)
            results.append(each)
            print(_row(each), flush=True)
    for title, values in (("seen", (each.sight for each in results)), ("ended", (each.end for each in results))):
        print(f"{title}: " + ", ".join(f"{count} {value}" for value, count in Counter(values).most_common()))


def _drawn(count: int, seed: int) -> list[str]:
    """Some of the names, in the order of a digest of each with the seed."""
    names = {name for listed in PROJECTS.values() for name in listed.split()}
    if seed != _FIRST_SEED:
        names |= {name for listed in MORE.values() for name in listed.split()}
        names -= {*PROJECTS[""].split(), *_drawn(_FIRST_COUNT, _FIRST_SEED)}
    return sorted(names, key=lambda name: sha256(f"{seed} {name}".encode()).digest())[:count]


def _expected(kind: str) -> frozenset[str]:
    words = set(kind.split()) & set(_LANGUAGES)
    return frozenset(words | ({"cxx"} if "cuda" in words else set()))


def _beyond(seen: frozenset[str], expected: frozenset[str]) -> frozenset[str]:
    """The languages that are not expected; C comes with any other, as setuptools links with the C compiler."""
    return seen - expected - ({"c"} if expected else set())


def _row(result: Result) -> str:
    seen = " ".join(language for language in _LANGUAGES if language in result.seen) or "pure"
    return f"| {result.name} | {seen} | {result.sight} | {result.end} | {result.seconds:.0f} s | {result.why} |"


def _described(name: str, expected: frozenset[str], folder: Path) -> Result:
    """A project from its name to a linted feedstock; without an end if it gets that far."""
    began = time.monotonic()
    seen: frozenset[str] = frozenset()
    place = str(folder)
    for arguments in (
        ("init", name, "--self-contained", "--maintainer", "someone", "--output", place),
        ("generate", place),
        ("rerender", place),
        ("lint", place, "--ignore", "macos-variants"),
    ):
        code, text = _run(arguments, folder)
        if arguments[0] == "init" and code == 0:
            spec = (folder / "feedstock.yaml").read_text(encoding="utf-8")
            seen = frozenset(re.findall(r"compiler: (\w+)", spec)) & set(_LANGUAGES)
        if code != 0:
            return Result(name, expected, seen, "no recipe", time.monotonic() - began, _why(text))
    return Result(name, expected, seen, "", time.monotonic() - began)


def _is_possible(folder: Path, python: str) -> bool:
    """Whether no need of a project is known to be missing, without fetching anything."""
    rows = _cpu_row(folder, python)
    code, text = _run(("plan", "--channel", "stand-in", "--json", "--feedstock", str(folder), *rows), folder)
    return code == 0 and folder.name not in LIBRARIES and not json.loads(text[text.index("{") :])["refused"]


def _built(described: Result, folder: Path, python: str, limit: float) -> Result:
    began = time.monotonic()
    rows = _cpu_row(folder, python)
    code, text = _run(("build", "--channel", "stand-in", "--feedstock", str(folder), *rows), folder, limit)
    end = "built" if code == 0 else "refused before" if "cannot be built here" in text else "failed after"
    seconds = described.seconds + time.monotonic() - began
    return replace(described, end=end, seconds=seconds, why="" if code == 0 else _why(text))


def _cpu_row(folder: Path, python: str) -> tuple[str, ...]:
    """The configuration without CUDA of this Python, or the only one."""
    names = sorted(path.stem for path in (folder / ".ci_support").glob("*.yaml"))
    without = [name for name in names if "cuda_compiler_version1" not in name] or names
    return tuple([name for name in without if f"python{python}." in name][:1] or without[:1])


def _run(arguments: tuple[str, ...], folder: Path, limit: float | None = None) -> tuple[int, str]:
    """Exit code and output of a command, which is kept beside the feedstock; past the limit it is interrupted."""
    command = [sys.executable, "-m", "feedstock_tools", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), "COLUMNS": "500"}
    kept = folder.with_name(f"{folder.name}.{arguments[0]}.txt")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.open("w+", encoding="utf-8") as log:
        with subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment) as process:
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                code = process.wait() or 1
                log.write(f"\nerror: it took more than {limit:.0f} s\n")
        log.seek(0)
        return code, log.read()


def _why(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if re.search(r"error|cannot|failed|lacks|has no|no package", line, re.IGNORECASE)]
    return (told or lines or [""])[-1][:160].replace("|", "/")


if __name__ == "__main__":
    main()
