"""The GPUs of this machine, from the driver's own library and the standard library alone."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable
from ctypes import byref, c_char_p, c_int, c_size_t, create_string_buffer
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CUDA = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1")
_NVML = ("nvml.dll",) if sys.platform == "win32" else ("libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1")
_MODULE = Path("/proc/driver/nvidia/version")
_TEXT = 256
# From cuda.h.
_NO_DEVICE = 100
_MAJOR, _MINOR = 75, 76


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU with the driver's name for it, with its compute capability (`8.6`) and memory in bytes."""

    name: str
    capability: str
    memory: int


@dataclass(frozen=True, slots=True)
class Machine:
    """The driver's answer: its version (`535.129.03`), the newest CUDA that it runs (`12.2`), and the GPUs.

    `problem` is the reason for an empty answer: no driver, no GPU, or a driver that does not work.
    """

    driver: str | None = None
    cuda: str | None = None
    devices: tuple[Device, ...] = ()
    problem: str | None = None


class _DriverError(Exception):
    """The driver answered with an error."""


def probe(load: Callable[[str], Any] = ctypes.CDLL) -> Machine:
    """Query the driver of this machine. A missing driver is reported in the answer and raises nothing.

    Args:
        load: opens a library by name, as `ctypes.CDLL` does.
    """
    library = _opened(_CUDA, load)
    if library is None:
        return Machine(problem="this machine has no NVIDIA driver")
    driver = _driver_version(load)
    try:
        number = c_int()
        _call(library, "cuDriverGetVersion", byref(number))
        cuda = f"{number.value // 1000}.{number.value % 1000 // 10}"
        status = library.cuInit(0)
        if status == _NO_DEVICE:
            return Machine(driver, cuda, problem="the driver finds no GPU")
        _check(library, status, "cuInit")
        count = c_int()
        _call(library, "cuDeviceGetCount", byref(count))
        devices = tuple(_device(library, ordinal) for ordinal in range(count.value))
    except (_DriverError, AttributeError) as error:
        return Machine(driver, problem=f"the driver does not work: {error}")
    return Machine(driver, cuda, devices, None if devices else "the driver finds no GPU")


def _opened(names: tuple[str, ...], load: Callable[[str], Any]) -> Any:
    for name in names:
        try:
            return load(name)
        except OSError:
            continue
    return None


def _device(library: Any, ordinal: int) -> Device:
    handle, major, minor = c_int(), c_int(), c_int()
    memory = c_size_t()
    name = create_string_buffer(_TEXT)
    _call(library, "cuDeviceGet", byref(handle), ordinal)
    _call(library, "cuDeviceGetName", name, _TEXT, handle)
    _call(library, "cuDeviceGetAttribute", byref(major), _MAJOR, handle)
    _call(library, "cuDeviceGetAttribute", byref(minor), _MINOR, handle)
    _call(library, "cuDeviceTotalMem_v2", byref(memory), handle)
    return Device(name.value.decode("utf-8", "replace"), f"{major.value}.{minor.value}", memory.value)


def _call(library: Any, function: str, *arguments: Any) -> None:
    _check(library, getattr(library, function)(*arguments), function)


def _check(library: Any, status: int, function: str) -> None:
    if status == 0:
        return
    text = c_char_p()
    named = getattr(library, "cuGetErrorString", None)
    if named is not None and named(status, byref(text)) == 0 and text.value:
        raise _DriverError(f"{function}: {text.value.decode('utf-8', 'replace')}")
    raise _DriverError(f"{function} returned {status}")


def _driver_version(load: Callable[[str], Any]) -> str | None:
    """The driver's own version, from its management library or, on Linux, from its kernel module; None for neither."""
    library = _opened(_NVML, load)
    if library is not None and library.nvmlInit_v2() == 0:
        try:
            text = create_string_buffer(_TEXT)
            if library.nvmlSystemGetDriverVersion(text, _TEXT) == 0:
                return text.value.decode("ascii", "replace")
        finally:
            library.nvmlShutdown()
    try:
        match = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", _MODULE.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return match[1] if match else None
