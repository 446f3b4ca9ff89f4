"""Which NVIDIA GPUs this machine has, and whether this build of gpuprobe runs on them.

>>> import gpuprobe
>>> for device in gpuprobe.devices():
...     print(device.name, device.capability, device.runs)
"""

from ._library import GpuprobeError, library_path
from ._report import BuildInfo, Device, Driver, Match, Report, build_info, devices, driver, match, probe, report_text

__all__ = [
    "BuildInfo",
    "Device",
    "Driver",
    "GpuprobeError",
    "Match",
    "Report",
    "build_info",
    "devices",
    "driver",
    "library_path",
    "match",
    "probe",
    "report_text",
]

__version__ = "1.0.0"
