"""Which builds a GPU runs, and how: a table for this machine's GPUs or a named one, by toolkit or by package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.facts.cuda import CudaFacts, Toolkit, load_cuda
from feedstock_tools.facts.frameworks import WheelRelease, conda_builds, load_wheels
from feedstock_tools.facts.gpus import Gpu, driver_version, find_gpus, load_gpus, reaches
from feedstock_tools.gpu_code.architecture import Architecture, parse_architectures, service_of
from feedstock_tools.pins.channels import FoundBuild, search
from feedstock_tools.pins.driver import Machine, probe
from feedstock_tools.pins.graph.from_facts import code_words, needed_cuda, ptx_version, reported_cuda
from feedstock_tools.pins.graph.kinds import FRAMEWORKS, kind_named
from feedstock_tools.platforms import Platform
from feedstock_tools.versions import parse_version

HOW = {"native": "native", "ptx": "PTX at first start", "no": "not at all", "cpu": "on the CPU", "unknown": "not known"}


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU to judge builds for, and its machine as far as known.

    `driver_cuda` is the newest CUDA version that its driver runs (`12.2`); None if no driver is given; `measured` if
    the driver itself said so, which cuda-compat may have made newer. `gpus` are the GPUs that it may be: one if it was
    named, those of its capability otherwise, none if the facts have none.
    """

    name: str
    capability: str
    driver: str | None = None
    driver_cuda: str | None = None
    windows: bool = False
    gpus: tuple[Gpu, ...] = ()
    measured: bool = False

    @property
    def number(self) -> int:
        """The capability in the form of architectures: 86."""
        return int(self.capability.replace(".", ""))


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a card runs a build: `native`, `ptx`, `no` or `cpu`; the code it runs; and the reasons, in sentences.

    `unknown` where the facts do not say whether the driver knows the GPU; `by` is then the code that it would run.
    """

    how: str
    by: str | None
    reasons: tuple[str, ...]

    @property
    def words(self) -> str:
        """The verdict for tables: `PTX at first start`."""
        return HOW[self.how]


def card_named(facts: CudaFacts, name: str, driver: str | None = None, *, windows: bool = False) -> Card:
    """The card with a name such as `RTX 3080`, in a machine with a driver, if given."""
    gpu = facts.gpu(name)
    return _with_driver(facts, Card(gpu.name, gpu.capability, windows=windows, gpus=(gpu,)), driver)


def card_of_capability(facts: CudaFacts, capability: str, driver: str | None = None, *, windows: bool = False) -> Card:
    """A card of a compute capability: `8.6`, `86`, `sm_86`.

    Raises:
        InputError: it is not a capability, or the driver is not a version.
    """
    number = kind_named("sm").read(capability)
    if not number.isdigit():
        raise InputError(f"'{capability}' is not a compute capability", hint="Write it as 8.6.")
    dotted = f"{int(number) // 10}.{int(number) % 10}"
    gpus = tuple(gpu for gpu in load_gpus().gpus if gpu.capability == dotted)
    name = f"GPU like {gpus[0].name}" if gpus else "GPU"
    return _with_driver(facts, Card(name, dotted, windows=windows, gpus=gpus), driver)


def judge(facts: CudaFacts, card: Card, cuda: str, architectures: Sequence[str] | None = None) -> Verdict:
    """How a card runs a build made with a CUDA toolkit.

    Args:
        architectures: those that the build was compiled for (`sm_80`, `compute_80`, …). None: judge whether this
            nvcc compiles for the card's own architecture, and else which PTX of it the driver would compile.
    """
    verdict = _judge(facts, card, facts.toolkit(cuda), architectures)
    doubt = _driver_in_doubt(card)
    if doubt is None or verdict.how == "no":
        return verdict
    return Verdict("unknown", verdict.by, (doubt,))


def _judge(facts: CudaFacts, card: Card, toolkit: Toolkit, architectures: Sequence[str] | None) -> Verdict:
    """The verdict if the driver knows the GPU wherever that is not known."""
    refused = _not_driven(card) or _beyond_its_system(card, toolkit.version) or _refused_by_driver(card, toolkit)
    if refused:
        return Verdict("no", None, (refused,))
    compiled = [Architecture(int(name)) for name in toolkit.architectures if name.isdigit()]
    if architectures is not None:
        return _of_build(facts, card, toolkit.version, parse_architectures(architectures), compiled)
    own = Architecture(card.number)
    if own in compiled:
        return Verdict("native", str(own), (f"CUDA {toolkit.version} compiles for {own}.",))
    unknown = f"CUDA {toolkit.version} does not know {own}: neither its nvcc nor its own ptxas compiles for this GPU."
    by_others = service_of(compiled, card.number)
    if by_others.how == "native":
        runs = f"A GPU of capability {card.capability} runs machine code for {by_others.by}, where a build has it."
        compiled_later = "PTX, and code generated at run time, is compiled by the driver at first start."
        at_run_time = _cannot_compile(facts, card, toolkit.version) or compiled_later
        return Verdict("native", str(by_others.by), (runs, unknown, at_run_time))
    ptx = [Architecture(code.number, ptx=True) for code in compiled if code.number < card.number]
    if not ptx:
        return Verdict("no", None, (_dropped(facts, card, toolkit.version, compiled),))
    best = max(ptx, key=lambda code: code.number)
    too_old = _cannot_compile(facts, card, toolkit.version)
    if too_old:
        return Verdict("no", None, (f"CUDA {toolkit.version} does not know {own}, so there is PTX only.", too_old))
    compiles = f"The driver compiles the build's PTX ({best}) at first start, and keeps the result in its cache."
    return Verdict("ptx", str(best), (unknown, compiles))


def _of_build(
    facts: CudaFacts, card: Card, cuda: str, built: Sequence[Architecture], compiled: Sequence[Architecture]
) -> Verdict:
    service = service_of(built, card.number)
    own = Architecture(card.number)
    if service.by is None:
        return Verdict("no", None, (f"The build has no code for compute capability {card.capability}.",))
    if service.how == "native":
        note = "" if service.by == own else f", which a GPU of capability {card.capability} runs"
        return Verdict("native", str(service.by), (f"The build contains machine code for {service.by}{note}.",))
    too_old = _cannot_compile(facts, card, cuda)
    if too_old:
        return Verdict("no", None, (f"The build contains only PTX ({service.by}) for this GPU.", too_old))
    reasons = [f"The driver compiles the build's PTX ({service.by}) at first start."]
    if own not in compiled:
        reasons.append(f"CUDA {cuda}'s own ptxas does not know {own}.")
    return Verdict("ptx", str(service.by), tuple(reasons))


def _not_driven(card: Card) -> str | None:
    """Why the driver does not know the GPU at all; None if it does, or if that is not known."""
    driver, windows = card.driver, card.windows
    if driver is None or not card.gpus or any(gpu.drives(driver, windows=windows) is not False for gpu in card.gpus):
        return None
    gpu = card.gpus[0]
    if gpu.tegra:
        return None
    if gpu.dropped_in and parse_version(card.driver) >= parse_version(gpu.dropped_in):
        return (
            f"Driver {card.driver} does not support {gpu.generation}: the last branch that does is {gpu.last_branch}."
        )
    if chips := gpu.chip_words(windows=windows):
        return f"Driver {driver} is older than this GPU: {chips}."
    return (
        f"Driver {card.driver} is older than this GPU: its chip {gpu.chip} needs "
        f"{gpu.least_driver(windows=card.windows)} or later."
    )


def _driver_in_doubt(card: Card) -> str | None:
    """Why it is not known whether the driver knows the GPU; None if it is known."""
    if card.driver is None or not card.gpus:
        return None
    support = [gpu.drives(card.driver, windows=card.windows) for gpu in card.gpus]
    if True in support or None not in support:
        return None
    gpu = card.gpus[support.index(None)]
    if chips := gpu.chip_words(windows=card.windows):
        return f"It depends on the chip whether driver {card.driver} knows this GPU: {chips}."
    return (
        f"It is not known whether driver {card.driver} for Windows supports this GPU: the first driver for its chip "
        f"{gpu.chip} is known for Linux only ({gpu.least_driver(windows=False)})."
    )


def _beyond_its_system(card: Card, cuda: str) -> str | None:
    """Why the system of a Jetson module does not have a toolkit."""
    if not card.gpus or not all(gpu.tegra and not gpu.jetson_has(cuda) for gpu in card.gpus):
        return None
    return f"CUDA {cuda} is not for {card.gpus[0].name}, whose system has {card.gpus[0].jetson_words}."


def _refused_by_driver(card: Card, toolkit: Toolkit) -> str | None:
    """Why the driver does not run a toolkit's machine code: its CUDA is too old, or it comes early in its branch."""
    if card.driver_cuda is None:
        return None
    cuda, needed = toolkit.version, needed_cuda(toolkit.version)
    if parse_version(card.driver_cuda) < parse_version(needed):
        driver = f"driver {card.driver}" if card.driver else "driver"
        return f"The {driver} runs CUDA up to {card.driver_cuda}, but CUDA {cuda} needs one for {needed} or later."
    least = toolkit.least_driver.on(windows=card.windows) if toolkit.least_driver else None
    if card.driver is None or card.measured or least is None or reaches(card.driver, least):
        return None
    system = "Windows" if card.windows else "Linux"
    return f"Driver {card.driver} is too old: CUDA {cuda} needs {least} or later on {system}."


def _cannot_compile(facts: CudaFacts, card: Card, cuda: str) -> str | None:
    """A driver compiles PTX up to the version of its own CUDA, which toolkits such as 12.5 and 12.6 share."""
    if card.driver_cuda is None or parse_version(facts.newest_ptx(card.driver_cuda)) >= parse_version(cuda):
        return None
    return f"A driver for CUDA {card.driver_cuda} does not compile PTX of CUDA {cuda}."


def _dropped(facts: CudaFacts, card: Card, cuda: str, compiled: Sequence[Architecture]) -> str:
    oldest = min(compiled, key=lambda code: code.number)
    last = [toolkit.version for toolkit in facts.toolkits.values() if str(card.number) in toolkit.architectures]
    when = f" The last toolkit that supports it is {last[-1]}." if last else ""
    return f"CUDA {cuda} compiles for {oldest} and later only, and this GPU is older (sm_{card.number}).{when}"


def _with_driver(facts: CudaFacts, card: Card, driver: str | None) -> Card:
    if driver is None:
        return card
    driver = driver_version(driver)
    cuda = reported_cuda(facts, driver, windows=card.windows)
    if cuda is None:
        raise InputError(f"driver {driver} is older than all known ones")
    return replace(card, driver=driver, driver_cuda=cuda)


@dataclass(frozen=True, slots=True)
class BuildVerdict:
    """A verdict on the named item: `CUDA 11.2`, or a build of a package."""

    what: str
    cuda: str | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Report:
    """The verdicts for each card; `machine` if this machine was queried.

    `wheels` are those on wheels of frameworks on PyPI for a `platform`, by capability, and `conda` on builds of
    conda-forge; none where toolkits or builds were named.
    """

    machine: Machine | None
    cards: tuple[tuple[Card, tuple[BuildVerdict, ...]], ...]
    platform: str = ""
    wheels: Mapping[str, tuple[BuildVerdict, ...]] = field(default_factory=dict)
    conda: Mapping[str, tuple[BuildVerdict, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Question:
    """A GPU, and what to judge for it: toolkits, or builds of packages.

    Attributes:
        name, capability: the GPU; with neither, those of this machine.
        driver: the driver of the named GPU's machine.
        cuda: only this toolkit, or builds of it.
        preset: judge builds by this list of architectures; default: all those of their toolkit.
        packages: match specifications; their builds are looked up in `channels` for `platform` (default: this one).
    """

    name: str | None = None
    capability: str | None = None
    driver: str | None = None
    cuda: str | None = None
    preset: str | None = None
    packages: Sequence[str] = ()
    channels: Sequence[str] = ("conda-forge",)
    platform: Platform | None = None


def report(question: Question) -> Report:
    """Judge toolkits, or builds of packages, for a GPU."""
    facts = load_cuda()
    machine, cards = _cards(question, facts)
    builds: list[FoundBuild] | None = None
    if question.packages and cards:
        builds = [build for spec in question.packages for build in _builds(spec, question)]
    judged = [(card, tuple(_judged(facts, card, question, builds))) for card in cards]
    if question.packages or question.cuda or question.preset:
        return Report(machine, tuple(judged))
    subdirs = {card.capability: _subdir_of(card, question.platform) for card in cards}
    wheels = {card.capability: tuple(_all_wheels(facts, card, subdirs[card.capability])) for card in cards}
    conda = {card.capability: tuple(_conda_builds(facts, card, subdirs[card.capability])) for card in cards}
    return Report(machine, tuple(judged), " and ".join(dict.fromkeys(subdirs.values())), wheels, conda)


def _cards(question: Question, facts: CudaFacts) -> tuple[Machine | None, list[Card]]:
    name, capability, driver = question.name, question.capability, question.driver
    if name and capability:
        raise InputError("name the GPU by --model or by --capability, not by both")
    windows = question.platform is not None and question.platform.os == "win"
    if name:
        cards = [Card(gpu.name, gpu.capability, windows=windows, gpus=(gpu,)) for gpu in find_gpus(name, load_gpus())]
        return None, [_with_driver(facts, card, driver) for card in cards]
    if capability:
        return None, [card_of_capability(facts, capability, driver, windows=windows)]
    if driver:
        raise InputError("--driver requires a named GPU", hint="Add --model or --capability.")
    machine = probe()
    cards = [
        Card(device.name, device.capability, machine.driver, machine.cuda, measured=True) for device in machine.devices
    ]
    return machine, cards


def _subdir_of(card: Card, platform: Platform | None) -> str:
    """The platform whose wheels a card's machine takes: of NVIDIA's own ARM boards linux-aarch64."""
    if card.gpus and all(gpu.tegra or gpu.grace for gpu in card.gpus):
        return "linux-aarch64"
    return (platform or Platform.here()).subdir


def _all_wheels(facts: CudaFacts, card: Card, subdir: str) -> Iterable[BuildVerdict]:
    for name in dict.fromkeys(FRAMEWORKS):
        keys = [key for key in FRAMEWORKS[name] if name != "pytorch"]
        for key in keys:
            for wheels in load_wheels().get(key, ()):
                yield BuildVerdict(f"{key} {wheels.minor}", wheels.cuda_spec, judge_wheel(facts, card, wheels, subdir))


def _conda_builds(facts: CudaFacts, card: Card, subdir: str) -> Iterable[BuildVerdict]:
    for name, builds in conda_builds().items():
        for build in builds:
            if subdir in build.platforms:
                yield BuildVerdict(f"{name} {build.minor}", build.built, judge_wheel(facts, card, build, subdir))


def judge_wheel(facts: CudaFacts, card: Card, wheels: WheelRelease, subdir: str) -> Verdict:
    """How a card runs the wheel of a framework, or conda-forge's build, by the GPU code in it and the card's driver."""
    verdict = _of_wheel(facts, card, wheels, subdir)
    doubt = _driver_in_doubt(card)
    return Verdict("unknown", verdict.by, (doubt,)) if doubt and verdict.how in ("native", "ptx") else verdict


def _of_wheel(facts: CudaFacts, card: Card, wheels: WheelRelease, subdir: str) -> Verdict:
    """The verdict if the driver knows the GPU wherever that is not known."""
    if subdir in wheels.unread:
        reason = f"Not known of its {'build' if wheels.commit else 'wheel'}: {wheels.unread[subdir]}."
        return Verdict("unknown", None, (reason,))
    if subdir not in wheels.code:
        reason = "is for the CPU" if subdir in wheels.platforms else "does not exist"
        return Verdict("cpu" if subdir in wheels.platforms else "no", None, (f"Its wheel for {subdir} {reason}.",))
    code = wheels.code[subdir]
    built = parse_architectures(code.split())
    service = service_of(built, card.number)
    toolkit = ptx_version(facts, wheels, code)
    refused = _not_driven(card) or (_refused_by_driver(card, facts.toolkit(toolkit)) if toolkit else None)
    mixed = wheels.mixed.get(subdir, {}).get(str(card.number))
    if mixed and not refused:
        too_old = _cannot_compile(facts, card, toolkit) if toolkit else None
        how = f"Of its fat binaries {mixed.replace('/', ' of ')} run on it, some by machine code and others by PTX."
        return Verdict("no", None, (how, too_old)) if too_old else Verdict("ptx", None, (how,))
    if refused or service.by is None:
        return Verdict("no", None, (refused or f"It holds {code_words(code)}.",))
    share = wheels.part.get(subdir, {}).get(str(service.by))
    lacks = (
        (f"Of its fat binaries {share.replace('/', ' of ')} hold code for it; the others do not run.",) if share else ()
    )
    if service.how == "native":
        return Verdict("native", str(service.by), (f"It holds machine code for {service.by}.", *lacks))
    too_old = _cannot_compile(facts, card, toolkit) if toolkit else None
    if failing := wheels.reported.get(str(card.number)):
        return Verdict("unknown", str(service.by), (f"It holds {code_words(code)}, and {failing}.",))
    reason = f"It holds {code_words(code)}, which drivers for CUDA {toolkit or 'of its toolkit'} or later compile."
    return Verdict("no", None, (reason, too_old)) if too_old else Verdict("ptx", str(service.by), (reason, *lacks))


def _builds(spec: str, question: Question) -> Iterable[FoundBuild]:
    cuda = question.cuda
    builds = search(spec, question.channels, question.platform or Platform.here())
    kept = [
        build for build in builds if cuda is None or build.toolkit is None or f"{build.toolkit}.".startswith(f"{cuda}.")
    ]
    if not kept:
        raise WorkError(f"there is no build of '{spec}' for CUDA {cuda}")
    return kept


def _judged(
    facts: CudaFacts, card: Card, question: Question, builds: Sequence[FoundBuild] | None
) -> Iterable[BuildVerdict]:
    cuda, preset = question.cuda, question.preset
    if builds is None:
        for version in (facts.toolkit(cuda).version,) if cuda else tuple(facts.toolkits):
            architectures = _architectures(facts, preset, version)
            yield BuildVerdict(f"CUDA {version}", version, judge(facts, card, version, architectures))
        return
    for build in builds:
        yield BuildVerdict(build.record.distribution, build.toolkit, _verdict(facts, card, build, preset))


def _verdict(facts: CudaFacts, card: Card, build: FoundBuild, preset: str | None) -> Verdict:
    """The verdict on a build of a channel, by its guard on the driver and by its toolkit."""
    if build.toolkit is None:
        return Verdict("cpu", None, ("It uses no CUDA toolkit.",))
    guard = next((spec for spec in build.record.depends if spec.startswith("__cuda ")), None)
    if guard and card.driver_cuda is not None:
        from feedstock_tools.channel.specs import admits

        if not admits(guard.split(" ")[1], card.driver_cuda):
            return Verdict("no", None, (f"It requires {guard}, but the driver runs CUDA up to {card.driver_cuda}.",))
    # Metadata such as `cuda-version >=12` names only the major version; its first toolkit supports the least.
    version = build.toolkit if "." in build.toolkit else f"{build.toolkit}.0"
    if version not in facts.toolkits:
        return Verdict("no", None, (f"CUDA {version} is unknown.",))
    return judge(facts, card, version, _architectures(facts, preset, version))


def _architectures(facts: CudaFacts, preset: str | None, version: str) -> tuple[str, ...] | None:
    return facts.preset(preset, version) if preset else None
