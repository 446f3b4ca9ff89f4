"""The builds that users would get: which build a solver chooses for an output's name, by the driver of the machine.

Each question is asked twice, with the builds of the feedstock in one order and in the reverse order: if the answers
differ, only time stamps decide, and the build that is uploaded last wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from feedstock_tools.channel.many_solves import ManySolves
from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.solving import Question, virtual_packages
from feedstock_tools.check.demands import Promised
from feedstock_tools.check.rehearsal.model import Pick
from feedstock_tools.platforms import Platform
from feedstock_tools.versions import parse_version

_FLAVOURS = ("-cpu", "-gpu")


@dataclass(frozen=True, slots=True)
class Offer:
    """A package that users can install, and the CUDA version that it is for (None: CPU)."""

    platform: Platform
    cuda: str | None
    package: Promised


@dataclass(frozen=True)
class _Shelf:
    """The packages for a platform: the records, and the CUDA version of each build."""

    platform: Platform
    records: tuple[Record, ...]
    cudas: dict[str, set[str | None]]

    def of(self, name: str) -> set[str | None]:
        """The CUDA versions that an output is built for."""
        return {cuda for record in self.records if record.name == name for cuda in self.cudas[record.distribution]}


async def picks_of(
    offers: Sequence[Offer], outputs: frozenset[str], drivers: Sequence[str], solver: ManySolves
) -> tuple[Pick, ...]:
    """The build that a solver chooses for each platform, machine and name.

    The names are `<name>`, `<name>-cpu` and `<name>-gpu` if outputs come in such flavours; else those that are
    built for several CUDA versions; else all of them.

    Args:
        offers: the packages that can be installed.
        outputs: the names of all outputs of the feedstock.
        drivers: CUDA versions of drivers.

    Raises:
        WorkError: a channel cannot be read.
    """
    picks = []
    for platform in sorted({offer.platform for offer in offers}):
        shelf = _shelf(platform, [offer for offer in offers if offer.platform == platform])
        has_gpu = any(cuda for cudas in shelf.cudas.values() for cuda in cudas)
        for name in _names(shelf, outputs):
            for driver in (None, *(drivers if has_gpu else ())):
                picks.append(await _pick(shelf, name, driver, solver))
    return tuple(picks)


def _shelf(platform: Platform, offers: Sequence[Offer]) -> _Shelf:
    cudas: dict[str, set[str | None]] = {}
    records: dict[str, Record] = {}
    for offer in offers:
        record = offer.package.record
        records[record.distribution] = record
        cudas.setdefault(record.distribution, set()).add(offer.cuda)
    return _Shelf(platform, tuple(records[name] for name in sorted(records)), cudas)


def _names(shelf: _Shelf, outputs: frozenset[str]) -> list[str]:
    """The names to test, among those that can be installed."""
    installable = sorted({record.name for record in shelf.records})
    bases = {name.removesuffix(end) for name in outputs for end in _FLAVOURS if name.endswith(end)}
    family = bases | {f"{base}{end}" for base in bases for end in _FLAVOURS}
    if bases:
        return [name for name in installable if name in family]
    return [name for name in installable if len(shelf.of(name)) > 1] or installable


async def _pick(shelf: _Shelf, name: str, driver: str | None, solver: ManySolves) -> Pick:
    """Solve for a name on a machine, in both build orders."""
    versions = sorted({record.version for record in shelf.records if record.name == name})
    spec = f"{name} =={versions[0]}" if len(versions) == 1 else name
    question = Question((spec,), shelf.platform, virtual_packages(shelf.platform, cuda=driver))
    picked: list[str | None] = []
    reason = None
    for step in (1, -1):
        count = len(shelf.records)
        stamped = [
            replace(record, timestamp=(count + step * place) * 1000) for place, record in enumerate(shelf.records)
        ]
        answer = await solver.solve(question, stamped)
        reason = answer.reason
        package = answer.packages.get(name)
        picked.append(f"{package.version} {package.build}" if package else None)
    build, other = picked
    cudas = shelf.cudas.get(f"{name}-{build.replace(' ', '-')}", set()) if build else set()
    cuda = max((version for version in cudas if version), key=parse_version, default=None)
    if build is not None and build != other:
        mistake: str | None = "only time stamps decide which build users get"
    else:
        mistake = _mistake(shelf, name, driver, build, cudas, reason)
        other = None
    return Pick(shelf.platform.subdir, driver, name, build, cuda, other, mistake)


def _mistake(
    shelf: _Shelf, name: str, driver: str | None, build: str | None, cudas: set[str | None], reason: str | None
) -> str | None:
    """The mistake in a choice; None for the intended build.

    The intended build is that of the newest CUDA version that the driver has; a newer minor version is accepted, since
    drivers run all versions of their own major version. Without a driver it is the CPU build.
    """
    versions = shelf.of(name)
    least = max(
        (version for version in versions if version and driver and parse_version(version) <= parse_version(driver)),
        key=parse_version,
        default=None,
    )
    runs = {
        version
        for version in versions
        if version and driver and parse_version(version).major <= parse_version(driver).major
    }
    wanted: set[str | None] = {
        version for version in runs if least is None or parse_version(version or "0") >= parse_version(least)
    }
    if least is None and None in versions:
        wanted.add(None)
    if build is None:
        return f"nothing can be installed: {reason}" if least or (None in versions) else None
    if cudas & wanted:
        return None
    built_for = " or ".join(sorted(f"CUDA {version}" if version else "CPU" for version in cudas))
    if not wanted:
        return f"it is for {built_for}, which this machine does not run"
    expected = f"CUDA {least}" if least else "CPU"
    return f"it is for {built_for} instead of {expected}"
