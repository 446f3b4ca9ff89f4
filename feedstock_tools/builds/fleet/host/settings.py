"""The settings of a host's worker: where its hub is, where it works, and what of the machine it gives to builds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feedstock_tools import __version__
from feedstock_tools.builds.engines.choice import ENGINES
from feedstock_tools.builds.engines.embedded.engine import RattlerBuild
from feedstock_tools.builds.plan.hosts import Capacity, Host
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import KNOWN_SUBDIRS, Platform
from feedstock_tools.reading import read_text

SETTINGS = "host.json"
#: The engine of a host whose settings name none.
EMBEDDED = "rattler-build"
#: Tags of hosts that stay for so long, in seconds: powers of two from a minute to a month.
LASTS = tuple(60.0 * 2**power for power in range(16))
#: More of a resource than all rows together ask for: it says what a host has, and not how much.
PLENTY = 1e6
#: No host has more bytes of memory, or more of anything else.
_MOST = 1 << 60


@dataclass(frozen=True, slots=True)
class HostSettings:
    """The settings of a worker.

    Attributes:
        host: what it is for `decide`.
        hub: `host:port`; `root` is the folder for all that it does.
        idle: it ends when nothing has been built for so long, in seconds; None to stay.
        temporary: the folder for all that it does is removed at its end.
        after_build: each build is followed by the package's hello-world and benchmark.
    """

    host: Host
    hub: str
    root: Path
    idle: float | None = None
    temporary: bool = False
    after_build: bool = False

    def resources(self, left: float | None) -> dict[str, float]:
        """The host as Dask's scheduler sees it: amounts of rows, cores, MiB and GPUs, and plenty of what it has.

        Args:
            left: the seconds until its allocation ends; None for a host without an end.
        """
        host = self.host
        has = [
            f"version {__version__}",
            f"host {host.name}",
            *(f"platform {subdir}" for subdir in host.platforms or ()),
            *(f"engine {engine}" for engine in host.engines or ()),
            *(f"image {image}" for image in host.images or ()),
            *(["any image"] if host.images is None else []),
            *(f"label {label}" for label in host.labels),
            *(["stays"] if not host.preempted else []),
            *(f"lasts {seconds:.0f} s" for seconds in LASTS if left is None or seconds <= left),
        ]
        return {
            "rows": host.jobs,
            "cores": len(host.capacity.cores),
            "memory": host.capacity.memory >> 20,
            "gpus": host.gpus or 0,
            **dict.fromkeys(has, PLENTY),
        }

    @property
    def report(self) -> dict[str, Any]:
        """The part of a report that does not change."""
        host = self.host
        return {
            "builder": Platform.here().subdir,
            "cores": list(host.capacity.cores),
            "memory": host.capacity.memory,
            "jobs": host.jobs,
            "platforms": sorted(host.platforms or ()),
            "gpus": host.gpus,
            "labels": sorted(host.labels),
            "preempted": host.preempted,
            "price": host.price,
            "engines": sorted(host.engines or ()),
            "images": None if host.images is None else sorted(host.images),
        }


def read_settings(folder: Path) -> HostSettings:
    """The settings in the folder of a host.

    Raises:
        InputError: they are missing or invalid.
    """
    path = folder / SETTINGS
    try:
        content = json.loads(read_text(path, within=folder))
        capacity = Capacity.of_machine(content.get("cores"), content.get("memory"))
        host = Host(
            name=str(content["name"]),
            capacity=capacity,
            jobs=int(content.get("jobs") or 1),
            platforms=subdirs_of_builds(),
            gpus=int(content.get("gpus") or 0),
            engines=_engines(content.get("engines")),
            images=_images(content.get("images", ())),
            labels=frozenset(map(str, content.get("labels") or ())),
            preempted=float(content.get("preempted") or 0),
            price=float(content.get("price") or 0),
            left=_seconds(content.get("allocation")),
        )
        return HostSettings(
            host=host,
            hub=str(content["hub"]),
            root=Path(content["root"]),
            idle=_seconds(content.get("idle")),
            temporary=bool(content.get("temporary")),
            after_build=bool(content.get("after_build")),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        hint = "It is a JSON object with name, hub and root."
        raise InputError(f"the settings of the host are invalid: {error!r}", path=path, hint=hint) from error


def host_of(name: str, report: Mapping[str, Any]) -> Host:
    """What a host is for `decide`, by its report.

    Raises:
        ValueError, KeyError, TypeError: the report is not one.
    """
    cores = tuple(int(core) for core in report["cores"])
    memory, jobs, gpus = (int(report[name]) for name in ("memory", "jobs", "gpus"))
    if min(memory, jobs, gpus, *cores) < 0 or max(memory, jobs, gpus, *cores) > _MOST:
        raise ValueError("a number is negative, or larger than any host's")
    return Host(
        name=name,
        capacity=Capacity(cores, memory),
        jobs=jobs,
        platforms=frozenset(map(str, report["platforms"])),
        gpus=gpus,
        engines=frozenset(map(str, report.get("engines", (EMBEDDED,)))),
        images=_images(report.get("images", ())),
        labels=frozenset(map(str, report["labels"])),
        preempted=float(report["preempted"]),
        price=float(report["price"]),
        left=None if report.get("left") is None else float(report["left"]),
        keeps=frozenset(map(str, report.get("keeps", ()))),
    )


def report_of(name: str, content: Any) -> Mapping[str, Any]:
    """A report of a host, which its client can read from then on; empty for a host that has sent none.

    Of a host of another version, and of one whose report is damaged, it says only that, as `unfit`, too.
    """
    if content == {}:
        return {}
    try:
        if "damaged" in content:
            raise ValueError(content["damaged"])
        if (version := str(content["version"])[:40]) != __version__:
            return {"version": version, "unfit": f"it has feedstock-tools {version}, and this is {__version__}"}
        host_of(name, content)
        builds = {
            str(key): {
                "row": str(build["row"]),
                "cores": int(build["cores"]),
                "memory": int(build["memory"]),
                "seconds": float(build["seconds"]),
            }
            for key, build in content["builds"].items()
        }
        unfit = None if content["unfit"] is None else str(content["unfit"])
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        reason = f"its report is damaged: {error!r}"[:1000]
        return {"version": __version__, "damaged": reason, "unfit": reason}
    return {**content, "builds": builds, "unfit": unfit}


def _engines(content: Any) -> frozenset[str]:
    """The engines of a host: the embedded one, unless its settings say otherwise.

    Raises:
        ValueError: there is no such engine.
    """
    engines = frozenset(map(str, content or (EMBEDDED,)))
    if unknown := engines.difference(ENGINES):
        raise ValueError(f"there is no engine {', '.join(sorted(unknown))}: there are {', '.join(ENGINES)}")
    return engines


def _images(content: Any) -> frozenset[str] | None:
    """The container images of a host: none unless listed; None for any, from settings that say `any`."""
    return None if content in (None, "any") else frozenset(map(str, content))


def _seconds(content: Any) -> float | None:
    return None if content is None else float(content)


def subdirs_of_builds() -> frozenset[str]:
    """The subdirs for which the embedded engine builds on this machine."""
    engine, builder = RattlerBuild(), Platform.here().subdir
    return frozenset(subdir for subdir in KNOWN_SUBDIRS if engine.why_not(subdir, builder) is None)


#: Bytes of a disk that must be free for a build.
LEAST_DISK = 256 << 20


def why_unfit(root: Path) -> str | None:
    """Why a host cannot build anything now, which is no failure of a row; None if it can.

    Args:
        root: the folder of its builds.
    """
    try:
        free = shutil.disk_usage(root).free
    except OSError as error:
        return f"its folder {root} cannot be used: {error.strerror or error}"
    return f"its disk is full: {free >> 20} MiB are free in {root}" if free < LEAST_DISK else None
