"""What a row asks of Dask's scheduler: the amounts and the properties of a host, as resources.

Which hosts fit a row and which row comes first is decided as on one machine; on which of them it begins is Dask's.
"""

from __future__ import annotations

from collections.abc import Sequence

from feedstock_tools import __version__
from feedstock_tools.builds.fleet.host.settings import LASTS
from feedstock_tools.builds.plan.hosts import Host, fits, other_than, portion_on
from feedstock_tools.builds.plan.row import Row

#: The expected number of preemptions of a row above which it waits for a host that stays.
_TOO_LONG = 2.0


def resources_for(row: Row, hosts: Sequence[Host]) -> dict[str, float]:
    """The resources that a row takes of its host.

    A row that declares neither cores nor memory takes an equal part of its host, which differs between them: Dask
    reserves the least, and the host waits with the row until it has the rest.

    Args:
        hosts: those that are there.
    """
    needs, seconds = row.wanted.needs, row.wanted.expected
    fitting = [host for host in hosts if fits(needs, host, seconds)]
    portions = [portion_on(needs, host) for host in fitting]
    asks = {
        "rows": 1.0,
        "cores": float(min((portion.cores for portion in portions), default=needs.cores or 1)),
        "memory": float(min((portion.memory for portion in portions), default=needs.memory or 0) >> 20),
    }
    if needs.gpu:
        asks["gpus"] = 1.0
    return {**asks, **dict.fromkeys(_properties(row, fitting), 1.0)}


def _properties(row: Row, hosts: Sequence[Host]) -> list[str]:
    """The properties that the host of a row must have."""
    needs, seconds = row.wanted.needs, row.wanted.expected
    has = [f"version {__version__}"]
    has += [f"label {label}" for label in needs.labels if not label.startswith(other_than(""))]
    if needs.platform != "noarch":
        has.append(f"platform {needs.platform}")
    if needs.engine:
        has.append(f"engine {needs.engine}")
    if needs.image is not None:
        listed = any(host.images and needs.image in host.images for host in hosts)
        has.append(f"image {needs.image}" if listed else "any image")
    if needs.shared:
        has.append(f"host {next((host.name for host in hosts), '')}")
    if seconds is not None:
        if any(host.left is not None for host in hosts):
            has += [f"lasts {least:.0f} s" for least in LASTS if least >= seconds][:1]
        stays = any(not host.preempted for host in hosts)
        if stays and any(seconds / 3600 * host.preempted > _TOO_LONG for host in hosts):
            has.append("stays")
    return has
