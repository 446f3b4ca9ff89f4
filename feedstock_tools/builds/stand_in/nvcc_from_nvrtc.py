"""An `nvcc` for device code, made of NVRTC and ptxas: `nvcc -fatbin`, `-cubin` and `-ptx`.

A program of its own, which needs nothing but the standard library: the stand-in channel's packages call it by its path.
What it cannot do (whole .cu files: host code, linking) it reports.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

#: The file that CMake names to nvcc, to learn from its messages where the toolkit is.
_CMAKE = "__cmake_determine_cuda"
_FORMS = ("fatbin", "cubin", "ptx")
_PTX, _ELF = 1, 2
_FLAGS = {"": 0x11, "a": 0x100011, "f": 0x200011}  # 0x11: 64 bits, Linux
_CUBIN_VERSION = (7, 1)


class _RefusedError(Exception):
    """The request is impossible; the text says why."""


def main(arguments: Sequence[str]) -> int:
    """Compile as nvcc would; the exit status is 0, or 1 with the reason on stderr.

    Args:
        arguments: the folder of the toolkit, its version, and the words that nvcc was called with.
    """
    folder, version, *words = arguments
    words = [*shlex.split(os.environ.get("NVCC_PREPEND_FLAGS", "")), *words]
    words += shlex.split(os.environ.get("NVCC_APPEND_FLAGS", ""))
    if "--version" in words or "-V" in words:
        release = f"release {version}, V{_full_version(Path(folder)) or version}"
        print(f"nvcc: NVRTC and ptxas in the place of nvcc\nCuda compilation tools, {release}")  # noqa: T201
        return 0
    if _CMAKE in words:
        print(f"#$ TOP={folder}", file=sys.stderr)  # noqa: T201 - as nvcc -v does
        return 1
    try:
        options = _options(words, version)
        options.output.write_bytes(_compiled(options, Path(folder)))
    except (_RefusedError, OSError) as error:
        print(f"nvcc (NVRTC and ptxas, for device code alone): {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _full_version(folder: Path) -> str | None:
    """The version of a toolkit with its last part (`12.9.86`), by the wheel that ptxas came in."""
    try:
        made_of = json.loads((folder / "toolkit.json").read_bytes())["made_of"]
    except (OSError, ValueError, KeyError):
        return None
    return next((name.rpartition("-")[2] for name in made_of if "_nvcc" in name), None)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _RefusedError(message)


def _options(words: Sequence[str], version: str) -> argparse.Namespace:
    parser = _Parser(prog="nvcc", allow_abbrev=False, add_help=False)
    for form in _FORMS:
        parser.add_argument(f"-{form}", f"--{form}", action="store_const", const=form, dest="form")
    parser.add_argument("-gencode", "--generate-code", action="append", default=[], dest="codes")
    parser.add_argument("-arch", "--gpu-architecture", dest="architecture")
    parser.add_argument("-o", "--output-file", type=Path, dest="output")
    parser.add_argument("-std", "--std", default="c++14")
    parser.add_argument("-O", "--optimize", default="3")
    parser.add_argument("-ccbin", "--compiler-bindir", help="ignored: there is no host code")
    for name in ("-D", "-I"):
        parser.add_argument(name, action="append", default=[])
    for name in ("-lineinfo", "-use_fast_math", "--use_fast_math"):
        parser.add_argument(name, action="append_const", const=f"-{name.lstrip('-')}", dest="plain")
    parser.add_argument("source", type=Path, nargs="?")
    options, unknown = parser.parse_known_args(words)
    if options.form is None or options.source is None:
        raise _RefusedError(
            f"of CUDA {version} there is no more here: give -fatbin, -cubin or -ptx and a file"
            " (with CUDA 13 the stand-in channel has the real nvcc)"
        )
    if unknown:
        raise _RefusedError(f"{' '.join(unknown)}: not understood")
    if options.output is None:
        options.output = Path(f"{options.source.stem}.{options.form}")
    return options


def _compiled(options: argparse.Namespace, folder: Path) -> bytes:
    pairs = _pairs(options)
    if options.form != "fatbin" and len(pairs) != 1:
        raise _RefusedError(f"-{options.form} takes one architecture")
    compiler = _Nvrtc(folder)
    texts = {virtual: compiler.ptx(options, virtual) for virtual in dict.fromkeys(virtual for virtual, _ in pairs)}
    if options.form == "ptx":
        return texts[pairs[0][0]]
    entries = []
    for virtual, real in pairs:
        if real.startswith("compute_"):
            entries.append((real, texts[virtual] + b"\0"))
        else:
            entries.append((real, _assembled(texts[virtual], real, folder)))
    return fatbin(entries) if options.form == "fatbin" else entries[0][1]


def _pairs(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Which PTX (`compute_80`) each code (`sm_80`, `compute_80`) is made from, as nvcc reads its options."""
    pairs = []
    for text in options.codes:
        match = re.fullmatch(r"arch=(compute_\w+),code=\[?\"?([\w,]+)\"?\]?", text.replace(" ", ""))
        if match is None:
            raise _RefusedError(f"-gencode {text}: write arch=compute_80,code=sm_80")
        pairs += [(match[1], code) for code in match[2].split(",")]
    if options.architecture:
        name = options.architecture
        virtual = name.replace("sm_", "compute_")
        pairs += [(virtual, name)]
        pairs += [(virtual, virtual)] if name.startswith("sm_") and options.form == "fatbin" else []
    if not pairs:
        raise _RefusedError("name the architectures: -gencode arch=compute_80,code=sm_80")
    return pairs


class _Nvrtc:
    """NVRTC's library of a toolkit."""

    def __init__(self, folder: Path) -> None:
        libraries = sorted((folder / "lib").glob("libnvrtc*.so*"), key=lambda path: "builtins" not in path.name)
        if len(libraries) < 2:
            raise _RefusedError(f"NVRTC is missing in {folder}")
        # The second loads the first by its name, which the loader finds when it is there already.
        self._library = [ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL) for path in libraries][-1]

    def ptx(self, options: argparse.Namespace, virtual: str) -> bytes:
        words = [f"--gpu-architecture={virtual}", f"--std={options.std}", *(options.plain or ())]
        words += [f"-D{name}" for name in options.D] + [f"-I{name}" for name in options.I]
        program = ctypes.c_void_p()
        text, name = options.source.read_bytes(), str(options.source).encode()
        self._call("nvrtcCreateProgram", ctypes.byref(program), text, name, 0, None, None)
        c_options = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        failed = self._library.nvrtcCompileProgram(program, len(words), c_options)
        log = self._text(program, "ProgramLog").rstrip(b"\0").decode(errors="replace").strip()
        if log:
            print(log, file=sys.stderr)  # noqa: T201
        if failed:
            raise _RefusedError(f"{options.source} does not compile for {virtual}")
        return self._text(program, "PTX").rstrip(b"\0")

    def _text(self, program: ctypes.c_void_p, kind: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{kind}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{kind}", program, buffer)
        return buffer.raw

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise _RefusedError(f"{name} fails with status {status}")


def _assembled(ptx: bytes, real: str, folder: Path) -> bytes:
    with tempfile.TemporaryDirectory() as temporary:
        source, target = Path(temporary, "code.ptx"), Path(temporary, "code.cubin")
        source.write_bytes(ptx)
        command = [str(folder / "bin" / "ptxas"), f"--gpu-name={real}", f"--output-file={target}", str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise _RefusedError(f"ptxas refuses {real}: {done.stderr.strip() or done.stdout.strip()}")
        return target.read_bytes()


def fatbin(entries: Sequence[tuple[str, bytes]]) -> bytes:
    """A fat binary, as NVIDIA's `fatbinary` makes them without compression.

    Args:
        entries: architecture (`sm_80`: a cubin; `compute_80`: PTX, ending in a zero byte) and code.
    """
    body = b"".join(_entry(name, code) for name, code in entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def _entry(name: str, code: bytes) -> bytes:
    match = re.fullmatch(r"(sm|compute)_(\d+)([af]?)", name)
    if match is None:
        raise _RefusedError(f"'{name}' is not an architecture")
    kind, (minor, major) = (_ELF, _CUBIN_VERSION) if match[1] == "sm" else (_PTX, _ptx_version(code))
    padded = code + bytes(-len(code) % 8)
    number, flags = int(match[2]), _FLAGS[match[3]]
    # PTX has a place for the options of the driver's compiler: where their text is, and here an empty one.
    options = struct.pack("<IIQ", 72, 0, 0) if kind == _PTX else b""
    place, length = (64, 80) if options else (0, 64)
    numbers = (len(padded), 0, place, minor, major, number, 0, 0, flags, 0, 0)
    return struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, length, *numbers) + options + padded


def _ptx_version(code: bytes) -> tuple[int, int]:
    match = re.search(rb"^\.version (\d+)\.(\d+)", code, re.MULTILINE)
    if match is None:
        raise _RefusedError("NVRTC gave no PTX")
    return int(match[2]), int(match[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
