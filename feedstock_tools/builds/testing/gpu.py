"""The GPUs that the driver offers to this process, and their assignment to tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from feedstock_tools.errors import WorkError
from feedstock_tools.pins.driver import probe

#: The variable by which the driver shows a process some of the GPUs.
VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Gpus:
    """The available GPUs: `NVIDIA H200 (9.0)` for each, the driver's version (`575.51.03`), the CUDA that it runs.

    `visible` is the value of `CUDA_VISIBLE_DEVICES` for a process that should see these; None: unchanged.
    """

    names: tuple[str, ...]
    driver: str
    cuda: str
    visible: str | None = None

    def __str__(self) -> str:
        return ", ".join(self.names)


def find_gpus() -> Gpus:
    """Query the driver.

    Raises:
        WorkError: there is no driver or no GPU, with the reason.
    """
    machine = probe()
    if machine.problem is not None or machine.cuda is None:
        raise WorkError(machine.problem or "the driver does not report which CUDA it runs")
    names = tuple(f"{device.name} ({device.capability})" for device in machine.devices)
    return Gpus(names, machine.driver or "", machine.cuda)


def one_by_one(gpus: Gpus, machine: Mapping[str, str]) -> tuple[Gpus, ...]:
    """Each GPU by itself, for a test of its own.

    Args:
        machine: the environment, which may show this process some of the machine's GPUs, by number or name.
    """
    shown = [device.strip() for device in machine.get(VISIBLE, "").split(",") if device.strip()]
    numbers = shown or [str(number) for number in range(len(gpus.names))]
    return tuple(
        replace(gpus, names=(name,), visible=number) for name, number in zip(gpus.names, numbers, strict=False)
    )
