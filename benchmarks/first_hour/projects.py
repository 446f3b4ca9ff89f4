"""What `init` sees in projects of PyPI, and how far their first specs get without a hand on them.

    python -m benchmarks.first_hour.projects [--count 60] [--seed 36] [--only NAME...] [--no-build] [--work DIR]

Draws projects by a seed from those of `PROJECTS`, which has the languages that each is known to compile. Each goes
through `init --self-contained`, `generate`, `rerender`, `lint` and, unless it is refused, a build for the CPU with one
Python on the stand-in channel. The table says what `init` saw (right, wrong, not seen) and the end: built, refused
before the build began, or failed after; `--work` keeps the feedstocks and logs.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

#: The languages that projects compile, and what they are compiled with → their names.
PROJECTS = {
    "c": """markupsafe psutil wrapt simplejson regex xxhash bitarray zstandard cffi multidict coverage pybase64 ciso8601
        cytoolz crc32c lz4 pycryptodome netifaces setproctitle pyrsistent ephem hiredis backports.zstd""",
    "c cython": "frozenlist yarl propcache cymem hdbscan pyfftw bottleneck asyncpg uvloop httptools pysam zfpy",
    "c meson": "pywavelets",
    "cxx": """ujson greenlet python-rapidjson editdistance annoy fastcluster numexpr mmh3 fasttext sentencepiece
        contourpy kiwisolver hnswlib pyclipper levenshtein rapidfuzz awkward-cpp boost-histogram iminuit ml-dtypes
        finufft ducc0 spglib murmurhash preshed pyopencl symengine manifold3d pikepdf
        scikit-learn""",
    "cuda": """torch-scatter torch-sparse torch-cluster torch-spline-conv flash-attn causal-conv1d mamba-ssm gsplat
        llama-cpp-python""",
    "rust": """orjson pydantic-core rpds-py safetensors tokenizers jiter watchfiles jellyfish blake3 cramjam bcrypt
        tiktoken cryptography css-inline minify-html py-rattler pycrdt nh3 rtoml ormsgpack hf-xet primp pyxirr""",
    "fortran": "pyshtools slycot dftd4 f90wrap",
    "c cxx fortran": "scipy",
    "": "packaging setuptools-rust pybind11 nanobind cython iniconfig",
}
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
    parser.add_argument("--count", type=int, default=60, help="projects to draw (default: 60)")
    parser.add_argument("--seed", type=int, default=36, help="of the draw (default: 36)")
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="these projects instead of a draw")
    parser.add_argument("--no-build", action="store_true", help="end after lint")
    parser.add_argument("--python", default="3.12", help="the Python to build with (default: 3.12)")
    parser.add_argument("--work", type=Path, help="keep the feedstocks and logs in this folder")
    options = parser.parse_args()
    languages = {name: kind for kind, names in PROJECTS.items() for name in names.split()}
    names = options.only or _drawn(sorted(languages), options.count, options.seed)
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        for name in names:
            folder = (options.work or Path(temporary)) / name
            python = None if options.no_build else options.python
            results.append(_tried(name, _expected(languages.get(name, "")), folder, python))
            print(_row(results[-1]), flush=True)
    for title, values in (("seen", (each.sight for each in results)), ("ended", (each.end for each in results))):
        print(f"{title}: " + ", ".join(f"{count} {value}" for value, count in Counter(values).most_common()))


def _drawn(names: Sequence[str], count: int, seed: int) -> list[str]:
    """Some of the names, in the order of a digest of each with the seed."""
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


def _tried(name: str, expected: frozenset[str], folder: Path, python: str | None) -> Result:
    """A project from its name to packages, as far as it goes."""
    began = time.monotonic()
    seen: frozenset[str] = frozenset()
    for end, arguments in _steps(name, folder, python):
        if arguments and arguments[0] == "build":
            arguments = (*arguments, *_cpu_row(folder, python))
        code, text = _run(arguments, folder, f"{end.replace(' ', '-')}-{arguments[0]}")
        if arguments[0] == "init" and code == 0:
            spec = (folder / "feedstock.yaml").read_text(encoding="utf-8")
            seen = frozenset(re.findall(r"compiler: (\w+)", spec)) & set(_LANGUAGES)
        if code != 0:
            ended = "refused before" if "cannot be built here" in text else end
            return Result(name, expected, seen, ended, time.monotonic() - began, _why(text))
    end = "built" if python else "not tried"
    return Result(name, expected, seen, end, time.monotonic() - began)


def _steps(name: str, folder: Path, python: str | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The commands, each with what to call a project at whose command it ends."""
    place = str(folder)
    yield "no recipe", ("init", name, "--self-contained", "--maintainer", "someone", "--output", place)
    yield "no recipe", ("generate", place)
    yield "no recipe", ("rerender", place)
    yield "no recipe", ("lint", place, "--ignore", "macos-variants")
    if python:
        yield "failed after", ("build", "--channel", "stand-in", "--feedstock", place)


def _cpu_row(folder: Path, python: str | None) -> tuple[str, ...]:
    """The configuration without CUDA of this Python, or the only one."""
    names = sorted(path.stem for path in (folder / ".ci_support").glob("*.yaml"))
    without = [name for name in names if "cuda_compiler_version1" not in name] or names
    return tuple([name for name in without if f"python{python}." in name][:1] or without[:1])


def _run(arguments: tuple[str, ...], folder: Path, title: str) -> tuple[int, str]:
    """Exit code and output of a command, which is kept beside the feedstock."""
    command = [sys.executable, "-m", "feedstock_tools", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), "COLUMNS": "500"}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, check=False
    )
    folder.with_name(f"{folder.name}.{title}.txt").parent.mkdir(parents=True, exist_ok=True)
    folder.with_name(f"{folder.name}.{title}.txt").write_text(done.stdout, encoding="utf-8")
    return done.returncode, done.stdout


def _why(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if re.search(r"error|cannot|failed|lacks|has no|no package", line, re.IGNORECASE)]
    return (told or lines or [""])[-1][:160].replace("|", "/")


if __name__ == "__main__":
    main()
