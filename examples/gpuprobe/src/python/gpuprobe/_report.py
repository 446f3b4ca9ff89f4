"""What the library finds, as Python values."""

import ctypes
from dataclasses import dataclass
from typing import Iterable, Optional, Tuple

from ._library import CDevice, CMatch, CReport, load


@dataclass(frozen=True)
class BuildInfo:
    """What this build was made for: `cuda` is None and `architectures` empty for a CPU build."""

    version: str
    cuda: Optional[str]
    architectures: Tuple[str, ...]


@dataclass(frozen=True)
class Match:
    """How a GPU runs a build: `runs` is "native", "ptx", "no" or "cpu"; with what device code; why not, or what slows it."""

    runs: str
    architecture: Optional[str]
    reason: Optional[str]


@dataclass(frozen=True)
class Device:
    """One GPU. `memory` is in bytes; it and `multiprocessors` are 0, `pci_bus_id` is None, where the driver does not say."""

    index: int
    name: str
    capability: Tuple[int, int]
    memory: int
    multiprocessors: int
    pci_bus_id: Optional[str]
    match: Match

    @property
    def runs(self) -> str:
        """Whether it runs this build: "native", "ptx", "no" or "cpu"."""
        return self.match.runs


@dataclass(frozen=True)
class Driver:
    """The driver: `status` is "found", "no driver", "no device" or "driver error"; `cuda` is the newest CUDA it runs."""

    status: str
    version: Optional[str]
    cuda: Optional[str]
    message: Optional[str]


@dataclass(frozen=True)
class Report:
    """All that was found."""

    build: BuildInfo
    driver: Driver
    devices: Tuple[Device, ...]


def _text(value: bytes) -> str:
    return value.decode("latin-1")


def _match(value: CMatch) -> Match:
    runs = _text(load().gpuprobe_runs_name(value.runs))
    return Match(runs, _text(value.architecture) or None, _text(value.reason) or None)


def _device(index: int, value: CDevice) -> Device:
    return Device(
        index=index,
        name=_text(value.name),
        capability=(value.major, value.minor),
        memory=value.memory,
        multiprocessors=value.multiprocessors,
        pci_bus_id=_text(value.pci_bus_id) or None,
        match=_match(value.match),
    )


def _driver(value: CReport) -> Driver:
    cuda = f"{value.driver_cuda // 1000}.{value.driver_cuda % 1000 // 10}" if value.driver_cuda else None
    status = _text(load().gpuprobe_status_name(value.status))
    return Driver(status, _text(value.driver_version) or None, cuda, _text(value.message) or None)


def _probe() -> CReport:
    found = CReport()
    load().gpuprobe_probe(ctypes.byref(found))
    return found


def build_info() -> BuildInfo:
    """What this build was made for."""
    library = load()
    cuda = _text(library.gpuprobe_cuda_version())
    architectures = tuple(name for name in _text(library.gpuprobe_architectures()).split(",") if name)
    return BuildInfo(_text(library.gpuprobe_version()), None if cuda == "none" else cuda, architectures)


def probe() -> Report:
    """Ask the driver for everything."""
    found = _probe()
    gpus = tuple(_device(index, found.devices[index]) for index in range(found.device_count))
    return Report(build_info(), _driver(found), gpus)


def devices() -> Tuple[Device, ...]:
    """The GPUs of this machine that the driver gives to this process; none where there is no driver."""
    return probe().devices


def driver() -> Driver:
    """The driver of this machine."""
    return probe().driver


def match(
    capability: Tuple[int, int],
    cuda: Optional[str] = None,
    architectures: Optional[Iterable[str]] = None,
    driver_cuda: Optional[str] = None,
) -> Match:
    """Would a GPU of `capability` run a build made with toolkit `cuda` for `architectures` (default: this build)?

    `driver_cuda` is the newest CUDA that the driver runs, such as "12.9"; None stands for any.

    >>> match((8, 6), "11.2", ["sm_75", "compute_75"]).runs
    'ptx'
    """
    this = build_info()
    major, _, minor = (driver_cuda or "0.0").partition(".")
    result = CMatch()
    load().gpuprobe_match_build(
        (cuda or this.cuda or "none").encode(),
        ",".join(this.architectures if architectures is None else architectures).encode(),
        capability[0],
        capability[1],
        int(major) * 1000 + int(minor or 0) * 10,
        ctypes.byref(result),
    )
    return _match(result)


def report_text(json: bool = False) -> str:
    """What the command `gpuprobe` prints."""
    found = _probe()
    size = load().gpuprobe_format(ctypes.byref(found), int(json), None, 0) + 1
    buffer = ctypes.create_string_buffer(size)
    load().gpuprobe_format(ctypes.byref(found), int(json), buffer, size)
    return _text(buffer.value)
