"""The GPUs of this machine, as the driver gives them to this process."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass

from feedstock_tools.errors import WorkError

__all__ = ["Gpus", "find_gpus"]

_LIBRARIES = {
    "linux": (("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"), ("libnvidia-ml.so.1",)),
    "win32": (("nvcuda.dll",), ("nvml.dll",)),
}
#: CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and …_MINOR of cuda.h.
_MAJOR, _MINOR = 75, 76


@dataclass(frozen=True, slots=True)
class Gpus:
    """What there is: `NVIDIA H200 (9.0)` for each GPU, the driver's version (`575.51.03`), the CUDA that it runs."""

    names: tuple[str, ...]
    driver: str
    cuda: str

    def __str__(self) -> str:
        return ", ".join(self.names)


def find_gpus() -> Gpus:
    """Ask the driver.

    Raises:
        WorkError: there is no driver or no GPU, with the reason.
    """
    drivers, managers = _LIBRARIES.get(sys.platform, ((), ()))
    cuda = _open(drivers)
    if cuda is None:
        raise WorkError("this machine has no GPU driver" + (f": {drivers[0]} was not found" if drivers else ""))
    status = cuda.cuInit(0)
    if status:
        raise WorkError(f"this machine has a GPU driver, which gives no GPU to this process: {_said(cuda, status)}")
    version, count = ctypes.c_int(), ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    cuda.cuDeviceGetCount(ctypes.byref(count))
    names = tuple(_name(cuda, number) for number in range(count.value))
    if not names:
        raise WorkError("this machine has a GPU driver, which gives no GPU to this process")
    return Gpus(names, _driver_version(_open(managers)), f"{version.value // 1000}.{version.value % 1000 // 10}")


def _open(names: tuple[str, ...]) -> ctypes.CDLL | None:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _said(cuda: ctypes.CDLL, status: int) -> str:
    text = ctypes.c_char_p()
    cuda.cuGetErrorString(status, ctypes.byref(text))
    return f"{(text.value or b'unknown error').decode(errors='replace')} ({status})"


def _name(cuda: ctypes.CDLL, number: int) -> str:
    name, major, minor = ctypes.create_string_buffer(256), ctypes.c_int(), ctypes.c_int()
    cuda.cuDeviceGetName(name, len(name), number)
    cuda.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, number)
    cuda.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, number)
    return f"{name.value.decode(errors='replace')} ({major.value}.{minor.value})"


def _driver_version(manager: ctypes.CDLL | None) -> str:
    text = ctypes.create_string_buffer(80)
    if manager is None or manager.nvmlInit_v2() or manager.nvmlSystemGetDriverVersion(text, len(text)):
        return ""
    manager.nvmlShutdown()
    return text.value.decode(errors="replace")
