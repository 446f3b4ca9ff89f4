"""GPUs by name: compute capability, chip, and the drivers that know them.

The facts are data: `variants/gpus.yaml`. `facts.models.GpusFile` is the form of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache, cached_property
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.facts.content import content_of
from feedstock_tools.versions import parse_version

#: Words before a name, as drivers, shops and people use them. They narrow a name down but need not be given.
_LINES = frozenset({"nvidia", "geforce", "tesla", "quadro", "gtx", "rtx", "gt", "gts", "pro", "grid", "jetson", "agx"})
#: Of these, the words that never tell two GPUs apart.
_MAKERS = frozenset({"nvidia", "geforce", "tesla", "grid"})
#: Words that narrow a name down to a generation: `TITAN X (Pascal)`, `RTX 4000 Ada`.
_GENERATIONS = {
    word.split()[0].lower(): word
    for word in (
        "Fermi",
        "Kepler",
        "Maxwell",
        "Pascal",
        "Volta",
        "Turing",
        "Ampere",
        "Ada Lovelace",
        "Hopper",
        "Blackwell",
    )
}
#: Words for how a GPU is mounted, cooled or equipped, which do not change the code that it runs.
_EQUIPMENT = re.compile(
    r"(?:generation|lovelace|laptop|mobile|notebook|embedded|gpu|edition|workstation|server|sff|design|with|max|maxq|q|oem|lhr|pcie|"
    r"sxm\d?|nvl\d*|hbm\d?e?|dgxs|fhhl|developer|kit|\d+gb?|gb)"
)
#: Words for editions that have entries of their own, since most have another chip than the plain name.
_EDITIONS = {
    "laptop": "laptop",
    "mobile": "laptop",
    "notebook": "laptop",
    "maxq": "max-q",
    "max": "max-q",
    "embedded": "embedded",
    "workstation": "workstation",
    "server": "server",
}
#: The profile of a virtual GPU: `A10-24Q`, `A100D-40C`, `H100-1-10CME`.
_PROFILE = re.compile(r"(?<=\w)(?:-\d+)?-\d+[abcq](?:me)?\d?$")
#: Names of other makers' GPUs.
_OTHERS = re.compile(
    r"\b(?:amd|radeon|rx|instinct|mi\d{2,3}\w?|firepro|intel|arc|iris|uhd|apple|m[1-5] (?:pro|max|ultra)|adreno|mali)\b"
)
#: A machine size of Azure with its GPU in it: `Standard_NC24ads_A100_v4`.
_SIZE = re.compile(r"^(?:standard_)?n[cdgv]\w*?_((?:[a-z]+\d+\w*?))_v\d+$")
_SEPARATORS = re.compile(r"[\s\-_()/,]+")
#: `rtx3080ti` is three words, `3080ti` two.
_GLUED = re.compile(r"(?<=[a-z])(?=\d{3,}(?:\D|$))|(?<=\d)(?=(?:ti|super)\b)|(?<=\d{4})(?=d\b)")


@dataclass(frozen=True, slots=True)
class DriverRange:
    """Drivers from `sure` to before `below`, perhaps those before `sure`, none before `least`; None: no such bound."""

    least: str | None
    sure: str | None
    below: str | None

    def has(self, driver: str) -> bool | None:
        """Whether a driver is in the range; None where that is not known."""
        if self.below is not None and parse_version(driver) >= parse_version(self.below):
            return False
        if self.sure is None or reaches(driver, self.sure):
            return True
        return None if self.least is None or reaches(driver, self.least) else False


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as NVIDIA sells it: `GeForce RTX 3080`, of a chip (`GA102`) with a compute capability (`8.6`).

    `first_driver` is the first driver for the chip, by system (`linux`, `windows`), as far as it is known: a version,
    or only its branch. `last_branch` is the last driver branch for the generation and `dropped_in` the next one; None
    while drivers still support it. `listed` is the first driver for Linux that names this GPU, where that is later
    than the chip's: with an earlier one NVIDIA does not promise that it works. `tegra` marks Jetson modules, whose
    driver is part of their system; `jetson_cuda` has the `first` and the `last` toolkit for them, where there is one.
    `sources` are names of sources in the file. `others` are the GPUs of this name and capability with other chips.
    """

    name: str
    capability: str
    generation: str
    chip: str
    first_driver: Mapping[str, str]
    last_branch: str | None
    dropped_in: str | None
    listed: str | None
    tegra: bool
    jetson_cuda: Mapping[str, str]
    sources: tuple[str, ...]
    others: tuple[Gpu, ...] = ()

    @property
    def architecture(self) -> str:
        """nvcc's name for it: `sm_86`."""
        return f"sm_{self.capability.replace('.', '')}"

    @property
    def data_center(self) -> bool:
        """Whether it is sold for data centres, where NVIDIA supports newer CUDA through the package cuda-compat."""
        return not self.tegra and not re.match(r"GeForce|TITAN|Quadro|RTX|NVS|CMP|GTX", self.name)

    @property
    def grace(self) -> bool:
        """Whether its board has an ARM processor of NVIDIA's (Grace), as the name says: GH200, GB200, GB10."""
        return re.match(r"G[HB]\d+", self.name) is not None

    def least_driver(self, *, windows: bool) -> str | None:
        """The first driver of a system that knows the chip; None where that is not known."""
        return self.first_driver.get("windows" if windows else "linux")

    def drivers(self, *, windows: bool) -> DriverRange:
        """The drivers of a system that know this GPU's chip, for certain if they know all chips of the name.

        On Windows, where no source names the first driver, those of later branches than the first on Linux know it.
        """
        ranges = [each._drivers_of_chip(windows=windows) for each in (self, *self.others)]
        least = [each.least for each in ranges if each.least]
        sure = [each.sure for each in ranges if each.sure]
        return DriverRange(
            min(least, key=parse_version) if len(least) == len(ranges) else None,
            max(sure, key=parse_version, default=None),
            self.dropped_in,
        )

    def _drivers_of_chip(self, *, windows: bool) -> DriverRange:
        least, on_linux = self.least_driver(windows=windows), self.first_driver.get("linux")
        sure = least or (str(parse_version(on_linux).major + 1) if on_linux else None)
        return DriverRange(least, sure, self.dropped_in)

    def chip_words(self, *, windows: bool) -> str | None:
        """The chips that are sold under the name, with the first driver of each; None where drivers know all alike."""
        chips = (self, *self.others)
        if len({str(gpu.first_driver) for gpu in chips}) == 1:
            return None
        listed = [f"{gpu.chip} (from {gpu.least_driver(windows=windows) or 'not known'} on)" for gpu in chips]
        return f"it is sold with the chips {', '.join(listed)}"

    def drives(self, driver: str, *, windows: bool = False) -> bool | None:
        """Whether a driver knows this GPU's chip; None where that is not known."""
        return self.drivers(windows=windows).has(driver)

    def jetson_has(self, cuda: str) -> bool:
        """Whether the system of this Jetson module has, or takes, a CUDA toolkit."""
        version = parse_version(cuda)
        first, last = self.jetson_cuda.get("first"), self.jetson_cuda.get("last")
        return (first is None or version >= parse_version(first)) and (last is None or version <= parse_version(last))

    @property
    def jetson_words(self) -> str:
        """The toolkits of its system in words: `CUDA 10.0 to 12.2`."""
        first, last = self.jetson_cuda.get("first"), self.jetson_cuda.get("last")
        return (
            f"CUDA {first} to {last}" if first and last else f"CUDA up to {last}" if last else f"CUDA {first} or later"
        )


@dataclass(frozen=True)
class Gpus:
    """All GPUs of `variants/gpus.yaml`, and machines with their GPU's name.

    GPUs are in the order of their capabilities, oldest first, and among those of one the familiar names come first.
    """

    gpus: tuple[Gpu, ...]
    machines: Mapping[str, str]
    sources: Mapping[str, str]

    @cached_property
    def chips(self) -> frozenset[str]:
        """The names of chips, in small letters, that are not names of GPUs too."""
        words = {word for gpu in self.gpus for word in _SEPARATORS.split(gpu.name.lower())}
        return frozenset(gpu.chip.lower() for gpu in self.gpus) - words

    @cached_property
    def by_core(self) -> Mapping[tuple[str, ...], tuple[Gpu, ...]]:
        """The GPUs whose names have the same words but for those that may be left out."""
        cores: dict[tuple[str, ...], tuple[Gpu, ...]] = {}
        for gpu in self.gpus:
            core = _core(_words(gpu.name))
            cores[core] = (*cores.get(core, ()), gpu)
        # K40 stands for K40c, K40m, …: versions for one kind of board.
        for core, gpus in list(cores.items()):
            board = re.fullmatch(r"([a-z]\d+)[a-z]{1,2}", core[-1]) if core else None
            if board and (*core[:-1], board[1]) not in cores:
                cores[*core[:-1], board[1]] = gpus
        return cores


def driver_version(text: str) -> str:
    """A driver's version as NVIDIA writes it; Windows' device manager shows 552.22 as 31.0.15.5222.

    Raises:
        InputError: it is not a version.

    >>> driver_version("31.0.15.5222"), driver_version("535.129.03")
    ('552.22', '535.129.03')
    """
    parts = text.strip().split(".")
    if is_of_device_manager(text):
        digits = f"{parts[2]}{int(parts[3]):04}"[-5:]
        return f"{digits[:3]}.{digits[3:]}"
    if not re.fullmatch(r"\d+(\.\d+)*", text.strip()):
        raise InputError(f"'{text}' is not a driver version", hint="Write it as 535.129.03.")
    return text.strip()


def reaches(driver: str, least: str) -> bool:
    """Whether a driver is one from `least` on: of a branch alone (`535`), any release may be meant.

    >>> reaches("535.183", "535.54.03"), reaches("535", "535.54.03"), reaches("535.43", "535.54.03")
    (True, True, False)
    """
    return f"{least}.".startswith(f"{driver}.") or parse_version(driver) >= parse_version(least)


def is_of_device_manager(text: str) -> bool:
    """Whether a driver's version is written as Windows' device manager does: four numbers."""
    return re.fullmatch(r"\d+\.\d+\.\d+\.\d+", text.strip()) is not None


@cache
def load_gpus() -> Gpus:
    document = content_of("gpus.yaml")
    generations, familiar = document["generations"], document["familiar"]
    gpus = [
        _gpu(chip, name, entry, generations[entry["generation"]])
        for chip, entry in document["chips"].items()
        for name in entry["names"]
    ]
    alike: dict[tuple[str, str], list[Gpu]] = {}
    for gpu in gpus:
        alike.setdefault((gpu.name, gpu.capability), []).append(gpu)
    for found in alike.values():
        found.sort(key=lambda gpu: parse_version(gpu.first_driver.get("linux", "0")))
    last = len(familiar)
    rank = {name: at for at, name in enumerate(familiar)}
    gpus = [
        replace(gpu, others=tuple(other for other in alike[gpu.name, gpu.capability] if other is not gpu))
        for gpu in gpus
    ]
    return Gpus(
        tuple(sorted(gpus, key=lambda gpu: (parse_version(gpu.capability), rank.get(gpu.name, last), gpu.name))),
        document["machines"],
        {name: entry["title"] for name, entry in document["sources"].items()},
    )


def _gpu(chip: str, name: str, entry: Mapping[str, Any], generation: Mapping[str, Any]) -> Gpu:
    return Gpu(
        name=name,
        capability=entry["capability"],
        generation=entry["generation"],
        chip=chip,
        first_driver=entry.get("first_driver", {}),
        last_branch=generation.get("last_branch"),
        dropped_in=generation.get("dropped_in"),
        listed=entry.get("listed", {}).get(name),
        tegra=entry.get("by_hand", False),
        jetson_cuda=entry.get("cuda", {}),
        sources=generation["sources"],
    )


def find_gpu(name: str, gpus: Gpus) -> Gpu:
    """The GPU that a driver, a shop, a cloud or a person means by a name; as `find_gpus`, where there is one.

    Raises:
        InputError: there is no such GPU, with the nearest names; or several of different capabilities have the name.

    >>> find_gpu("GRID A100D-40C", load_gpus()).name
    'A100D'
    """
    found = find_gpus(name, gpus)
    if len(found) == 1:
        return found[0]
    listed = ", ".join(sorted({f"{gpu.name} ({gpu.generation}, {gpu.capability})" for gpu in found}))
    raise InputError(
        f"'{name}' is the name of several GPUs: {listed}", hint="Add the generation, or use the capability."
    )


def find_gpus(name: str, gpus: Gpus) -> tuple[Gpu, ...]:
    """The GPUs that a driver, a shop, a cloud or a person means by a name: one of each capability that has it.

    Case, hyphens and the words NVIDIA, GeForce and Tesla do not matter, nor do words for how a GPU is mounted, cooled
    or equipped; Quadro, RTX, GTX and the generation may be left out where the rest is unambiguous. Laptop, Max-Q,
    embedded, workstation and server editions are GPUs of their own where drivers list them; a chip in the name
    (`GTX 1650 (TU117)`) chooses among several. Virtual GPUs (`GRID A100D-40C`) and machine types of clouds
    (`g5.xlarge`) are known by the GPU below.

    Raises:
        InputError: there is no such GPU, with the nearest names.

    >>> [gpu.architecture for gpu in find_gpus("NVIDIA A100-SXM4-80GB", load_gpus())]
    ['sm_80']
    >>> [gpu.capability for gpu in find_gpus("GT 730", load_gpus())]
    ['2.1', '3.0', '3.5']
    """
    chips = gpus.chips.intersection(_SEPARATORS.split(name.lower()))
    name = " ".join(word for word in _SEPARATORS.split(name) if word.lower() not in chips) if chips else name
    words = _words(name)
    written = _SIZE.sub(r"\1", name.strip().lower().removeprefix("ml."))
    words = _words(written) if written != name.strip().lower() else words
    machine = next((m for m in gpus.machines if written == m or written.startswith((f"{m}.", f"{m}-"))), None)
    if machine is not None:
        words = _words(gpus.machines[machine])
    core = _core(words)
    for length in range(len(core), 0, -1):
        candidates = _narrowed(words, gpus.by_core.get(core[:length], ()))
        if chips:
            candidates = [
                replace(gpu, name=f"{gpu.name} ({gpu.chip})", others=())
                for gpu in candidates
                if gpu.chip.lower() in chips
            ]
        if candidates:
            return _meant(words, _of_edition(_edition(words), candidates))
    names = _nearest(core, gpus.gpus)
    capability = re.fullmatch(r"(?:sm_?|compute_?)?(\d{1,2})\.?(\d)[af]?", written)
    if capability is not None:
        hint = (
            f"To ask for a compute capability, give --capability {capability[1]}.{capability[2]} (or sm= as a demand)."
        )
    elif _OTHERS.search(written):
        hint = "CUDA is for NVIDIA's GPUs; this is the name of another maker's."
    else:
        hint = (
            f"The nearest are: {', '.join(names)}."
            if names
            else "Write it as RTX 3080, or give its compute capability."
        )
    raise InputError(f"unknown GPU '{name}'", hint=hint)


def is_gpu(name: str) -> bool:
    """Whether a name is one of a GPU."""
    try:
        return bool(find_gpus(name, load_gpus()))
    except InputError:
        return False


def _words(name: str) -> tuple[str, ...]:
    lower = _PROFILE.sub("", name.strip().lower())
    words = [word for part in _SEPARATORS.split(lower) for word in _GLUED.split(part)]
    return tuple(word for word in words if word)


def _core(words: Iterable[str]) -> tuple[str, ...]:
    """The words of a name that no other word can stand in for: `3080`, `ti`."""
    return tuple(word for word in words if word not in _LINES | _GENERATIONS.keys() and not _EQUIPMENT.fullmatch(word))


def _narrowed(words: tuple[str, ...], candidates: Iterable[Gpu]) -> list[Gpu]:
    """The candidates that have all requested words of the line (RTX, Quadro) and are of the requested generation."""
    lines = {word for word in words if word in _LINES} - _MAKERS
    generations = {_GENERATIONS[word] for word in words if word in _GENERATIONS}
    return [
        gpu
        for gpu in candidates
        if lines <= set(_words(gpu.name)) and (not generations or gpu.generation in generations)
    ]


def _edition(words: Iterable[str]) -> frozenset[str]:
    return frozenset(_EDITIONS[word] for word in words if word in _EDITIONS)


def _of_edition(edition: frozenset[str], candidates: Iterable[Gpu]) -> list[Gpu]:
    """Of each capability the candidates of an edition, else of the nearest; those alone that have it, where some do."""

    def distance(gpu: Gpu) -> tuple[bool, ...]:
        own = _edition(_words(gpu.name))
        mobile = "max-q" in edition and "laptop" in own
        return own != edition, not own & edition, not mobile, bool(own - {"workstation", "server"}), bool(own)

    nearest: dict[str, list[Gpu]] = {}
    for gpu in sorted(candidates, key=distance):
        alike = nearest.setdefault(gpu.capability, [])
        if not alike or distance(alike[0]) == distance(gpu):
            alike.append(gpu)
    found = [gpu for alike in nearest.values() for gpu in alike]
    exact = [gpu for gpu in found if not distance(gpu)[0]]
    return exact if edition and exact else found


def _meant(words: tuple[str, ...], candidates: list[Gpu]) -> tuple[Gpu, ...]:
    """One GPU of each capability among candidates; where capabilities differ, of those with exactly this name."""
    same = [gpu for gpu in candidates if _distinct(_words(gpu.name)) == _distinct(words)]
    group = same if len({gpu.capability for gpu in same}) == 1 else candidates
    if len({gpu.capability for gpu in group}) > 1:
        group = same or candidates
    by_capability: dict[str, list[Gpu]] = {}
    for gpu in group:
        by_capability.setdefault(gpu.capability, []).append(gpu)
    # Of one name on several chips, the one that the oldest driver knows.
    return tuple(
        min(
            alike,
            key=lambda gpu: (
                len(_words(gpu.name)),
                parse_version(gpu.first_driver.get("linux", "0")),
                parse_version(gpu.listed or "0"),
            ),
        )
        for alike in by_capability.values()
    )


def _distinct(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word for word in words if word not in _MAKERS and not _EQUIPMENT.fullmatch(word))


def _nearest(core: tuple[str, ...], gpus: tuple[Gpu, ...]) -> list[str]:
    """Names that contain all requested words, else names with a similar spelling."""
    holding = [gpu.name for gpu in gpus if core and set(core) <= set(_core(_words(gpu.name)))]
    texts = {" ".join(_core(_words(gpu.name))): gpu.name for gpu in gpus}
    alike = get_close_matches(" ".join(core), texts, n=3, cutoff=0.6)
    return list(dict.fromkeys(holding))[:5] or [texts[text] for text in alike]
