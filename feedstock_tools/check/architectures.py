"""What lists of GPU architectures do to users: code that nvcc cannot make, GPUs without code, code without GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from feedstock_tools.check.findings import Weight
from feedstock_tools.facts.cuda import Toolkit
from feedstock_tools.facts.gpus import Gpu, load_gpus
from feedstock_tools.gpu_code.architecture import TEGRA, Architecture, service_of
from feedstock_tools.versions import parse_version

#: From this CUDA on the systems of Jetson modules use the ordinary packages for ARM (CUDA 13.0's release notes).
UNIFIED_ARM = "13.0"


@dataclass(frozen=True, slots=True)
class Audience:
    """Whom a build serves: the users of a subdir, and whether those of Jetson's own system (None: it does not say)."""

    subdir: str
    is_tegra: bool | None = None

    def serves_jetson(self, toolkit: Toolkit) -> bool | None:
        """Whether Jetson modules run such builds; None if that is not known."""
        if self.subdir != "linux-aarch64":
            return False
        return True if parse_version(toolkit.version) >= parse_version(UNIFIED_ARM) else self.is_tegra


def faults_of(toolkit: Toolkit, listed: Sequence[Architecture], audience: Audience) -> Iterator[tuple[str, Weight]]:
    """Everything that is wrong with a list for a toolkit and an audience, with its weight."""
    yield from ((message, "mistake") for message in refused_by(toolkit, listed))
    yield from jetson_only(toolkit, listed, audience)
    yield from unserved_by(toolkit, listed, audience)


def refused_by(toolkit: Toolkit, listed: Iterable[Architecture]) -> Iterator[str]:
    """The architectures that the toolkit's nvcc does not compile for."""
    oldest = min(int(name) for name in toolkit.architectures if name.isdigit())
    for architecture in listed:
        if not toolkit.accepts(str(architecture)):
            verb = "has dropped" if architecture.number < oldest else "does not know"
            yield f"nvcc of CUDA {toolkit.version} {verb} {architecture}"


def dropped_by(toolkit: Toolkit, listed: Iterable[Architecture]) -> list[str]:
    """The architectures, machine code and PTX alike, that the toolkit's nvcc has dropped."""
    oldest = min(int(name) for name in toolkit.architectures if name.isdigit())
    return [f"sm_{number}" for number in sorted({each.number for each in listed}) if number < oldest]


def jetson_only(toolkit: Toolkit, listed: Sequence[Architecture], audience: Audience) -> Iterator[tuple[str, Weight]]:
    """Machine code for Jetson modules where none of them runs the package.

    A mistake where desktop GPUs of that generation have no code, since theirs was meant; else a waste of space.
    """
    if audience.serves_jetson(toolkit) is not False:
        return
    numbers = sorted({each.number for each in listed if not each.ptx and each.number in TEGRA})
    if not numbers:
        return
    names = _listing([f"sm_{number}" for number in numbers])
    generations = {number // 10 for number in numbers}
    left = {
        capability: gpus
        for capability, gpus in _capabilities(toolkit, audience).items()
        if capability // 10 in generations and service_of(listed, capability).how == "no"
    }
    jetson = (
        f"{names} {'is' if len(numbers) == 1 else 'are'} for Jetson modules alone, which do not run {audience.subdir}"
    )
    if left:
        yield f"{jetson}; the desktop GPUs of these generations have no code: {_words(left)}", "mistake"
    else:
        yield f"{jetson}: it only makes the package larger", "remark"


def unserved_by(toolkit: Toolkit, listed: Sequence[Architecture], audience: Audience) -> Iterator[tuple[str, Weight]]:
    """The GPUs that the list leaves without code that they run: newer ones, those in between, all but one family.

    That a list begins later than its toolkit is a choice, and no mistake.
    """
    if not listed:
        return
    capabilities = _capabilities(toolkit, audience)
    left = {capability: gpus for capability, gpus in capabilities.items() if service_of(listed, capability).how == "no"}
    forward = [each.number for each in listed if each.ptx and not each.suffix]
    machine = [each.number for each in listed if not each.ptx]
    oldest, newest = min(each.number for each in listed), max(each.number for each in listed)
    if not forward:
        newer = {capability: gpus for capability, gpus in left.items() if capability > newest}
        names = f" ({_words(newer)})" if newer else ""
        yield f"there is no PTX, so newer GPUs{names} cannot run it: add the newest as compute_{newest}", "mistake"
    elif machine and max(forward) < max(machine):
        message = f"the newest PTX is compute_{max(forward)}, older than the machine code for sm_{max(machine)}"
        yield message, "mistake"
    # `jetson_only` reports the GPUs that a number of Jetson's leaves out.
    mentioned = {each.number // 10 for each in listed if each.number in TEGRA and not audience.serves_jetson(toolkit)}
    between = {
        capability: gpus
        for capability, gpus in left.items()
        if oldest < capability < newest and capability // 10 not in mentioned and _compiles(toolkit, capability)
    }
    yield from _in_between(between, audience)
    alone = oldest == newest and oldest not in TEGRA and not any(each.suffix for each in listed)
    older = {cap: gpus for cap, gpus in left.items() if cap < oldest and str(cap) in toolkit.architectures}
    if alone and older and audience.serves_jetson(toolkit) is False:
        supported = f"{_words(older)}, which CUDA {toolkit.version} supports,"
        yield f"sm_{oldest} is the only architecture: {supported} get no code", "mistake"


def behind(
    toolkit: Toolkit, lists: Iterable[Sequence[Architecture]], other: Sequence[Architecture], audience: Audience
) -> str:
    """The GPUs that other code serves and the toolkit compiles for, but that all of some lists leave out, in words."""
    readings = list(lists)
    left = {
        capability: gpus
        for capability, gpus in _capabilities(toolkit, audience).items()
        if readings and all(service_of(listed, capability).how == "no" for listed in readings)
        if service_of(other, capability).how != "no" and _compiles(toolkit, capability)
    }
    return _words(left) if left else ""


def _in_between(holes: Mapping[int, tuple[Gpu, ...]], audience: Audience) -> Iterator[tuple[str, Weight]]:
    """GPUs without code that are neither older nor newer than a list; for Jetson modules a remark, since few builds
    serve them, unless the build is for them alone."""
    desktop = {capability: gpus for capability, gpus in holes.items() if capability not in TEGRA}
    jetson = {capability: gpus for capability, gpus in holes.items() if capability in TEGRA}
    if desktop:
        yield f"there is code for older and for newer GPUs, but none for {_words(desktop)}", "mistake"
    if jetson:
        weight: Weight = "mistake" if audience.is_tegra else "remark"
        yield f"there is no code for {_words(jetson)}, which {audience.subdir} also serves", weight


def _compiles(toolkit: Toolkit, capability: int) -> bool:
    return any(Architecture(int(name)).runs_on(capability) for name in toolkit.architectures if name.isdigit())


def _capabilities(toolkit: Toolkit, audience: Audience) -> dict[int, tuple[Gpu, ...]]:
    """The capabilities of the GPUs that an audience may have, oldest first, with these GPUs."""
    jetson = audience.serves_jetson(toolkit) is True
    only_jetson = jetson and audience.is_tegra is True and parse_version(toolkit.version) < parse_version(UNIFIED_ARM)
    found: dict[int, tuple[Gpu, ...]] = {}
    for gpu in load_gpus().gpus:
        if (jetson and gpu.jetson_has(toolkit.version)) if gpu.tegra else not only_jetson:
            capability = int(gpu.capability.replace(".", ""))
            found[capability] = (*found.get(capability, ()), gpu)
    return found


def _words(capabilities: Mapping[int, Sequence[Gpu]]) -> str:
    """GPUs with their capabilities: `Tesla V100 (7.0)`; of many, the first and the last."""
    words = [f"{gpus[0].name} ({gpus[0].capability})" for gpus in capabilities.values()]
    return f"{words[0]} to {words[-1]}" if len(words) > 5 else _listing(words)


def _listing(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
