"""The C library, found in the environment that this file is installed in and described to ctypes as gpuprobe.h has it."""

import ctypes
import sys
from functools import lru_cache
from pathlib import Path
from typing import Iterator

ABI = 1
MAX_DEVICES = 64

if sys.platform == "win32":
    _NAME = Path("Library", "bin", "gpuprobe.dll")
elif sys.platform == "darwin":
    _NAME = Path("lib", "libgpuprobe.1.dylib")
else:
    _NAME = Path("lib", "libgpuprobe.so.1")


class GpuprobeError(RuntimeError):
    """The library is not there, or is not the one that this package was made for."""


class CMatch(ctypes.Structure):
    """`gpuprobe_match`."""

    _fields_ = [
        ("runs", ctypes.c_int32),
        ("architecture", ctypes.c_char * 32),
        ("reason", ctypes.c_char * 192),
    ]


class CDevice(ctypes.Structure):
    """`gpuprobe_device`."""

    _fields_ = [
        ("memory", ctypes.c_uint64),
        ("major", ctypes.c_int32),
        ("minor", ctypes.c_int32),
        ("multiprocessors", ctypes.c_int32),
        ("match", CMatch),
        ("name", ctypes.c_char * 256),
        ("pci_bus_id", ctypes.c_char * 32),
    ]


class CReport(ctypes.Structure):
    """`gpuprobe_report`."""

    _fields_ = [
        ("status", ctypes.c_int32),
        ("driver_cuda", ctypes.c_int32),
        ("device_count", ctypes.c_int32),
        ("driver_version", ctypes.c_char * 96),
        ("message", ctypes.c_char * 256),
        ("devices", CDevice * MAX_DEVICES),
    ]


def _prefixes() -> Iterator[Path]:
    """Where the library may be: the environment around this file (also when it is used from a venv on top), then this one's."""
    yield from Path(__file__).resolve().parents
    yield Path(sys.prefix)
    yield Path(sys.base_prefix)


def library_path() -> Path:
    """The file of the C library.

    Raises:
        GpuprobeError: the environment has none.
    """
    for prefix in _prefixes():
        if (prefix / _NAME).is_file():
            return prefix / _NAME
    raise GpuprobeError(f"{_NAME} is not in the environment {sys.prefix}: install libgpuprobe there")


@lru_cache(maxsize=None)
def load() -> ctypes.CDLL:
    """The loaded library with its functions described."""
    path = library_path()
    library = ctypes.CDLL(str(path))
    library.gpuprobe_abi.restype = ctypes.c_int
    if library.gpuprobe_abi() != ABI:
        raise GpuprobeError(f"{path} has binary interface {library.gpuprobe_abi()}, and this package needs {ABI}")
    for name in ("gpuprobe_version", "gpuprobe_cuda_version", "gpuprobe_architectures"):
        getattr(library, name).restype = ctypes.c_char_p
    for name in ("gpuprobe_runs_name", "gpuprobe_status_name"):
        getattr(library, name).restype = ctypes.c_char_p
        getattr(library, name).argtypes = [ctypes.c_int]
    library.gpuprobe_probe.argtypes = [ctypes.POINTER(CReport)]
    library.gpuprobe_match_build.argtypes = [
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.POINTER(CMatch),
    ]
    library.gpuprobe_format.restype = ctypes.c_size_t
    library.gpuprobe_format.argtypes = [ctypes.POINTER(CReport), ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
    return library
