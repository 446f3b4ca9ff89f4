"""The answer of the pin graph, sets of releases or a conflict: text, lines for conda_build_config.yaml, and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from feedstock_tools.channel.specs import admits
from feedstock_tools.errors import WorkError
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.facts.frameworks import conda_builds, library_wheels, load_frameworks, load_wheels
from feedstock_tools.facts.gpus import find_gpu, load_gpus
from feedstock_tools.gpu_code.architecture import Architecture, service_of
from feedstock_tools.pins.graph.from_facts import brought_cuda, ptx_version, services_of, wheels_for
from feedstock_tools.pins.graph.kinds import FRAMEWORKS, WHEELS, kind_named, newest_first
from feedstock_tools.pins.graph.model import PinGraph, Release
from feedstock_tools.versions import minor_of, parse_version
from feedstock_tools.wording import aligned, listed

if TYPE_CHECKING:
    from feedstock_tools.facts.cuda import CudaFacts, PinningRow
    from feedstock_tools.facts.frameworks import Setup, WheelRelease
    from feedstock_tools.pins.graph.answers import Answer
    from feedstock_tools.pins.graph.explain import Conflict
    from feedstock_tools.pins.graph.kinds import Demand

#: Kinds whose releases are pins of a conda_build_config.yaml, by key and number of version parts.
_PINS = (("cudnn", "cudnn", 2), ("nccl", "nccl", 2), ("cutensor", "cutensor", 2), ("python", "python", 2))


def answer_text(answer: Answer) -> str:
    """An answer for people: one set line by line, several as a table, a conflict in sentences.

    Raises:
        Nothing of its own: a conflict is a text too.

    >>> print(answer_text(resolve(["cuda=11.2", "gcc=11"])).splitlines()[0])
    cuda=11.2 and gcc=11 are incompatible:
    """
    remarks = "".join(f"\nnote: {note}" for note in notes(answer))
    if answer.conflict is not None:
        return f"{answer.conflict}{remarks}"
    if answer.most == 1:
        return f"{_set_text(answer.graph, answer.sets[0])}{remarks}"
    more = "\n(and more; raise --limit, or name kinds with --kind)" if answer.more else ""
    return f"{_sets_table(answer.sets)}{more}{remarks}"


def answer_line(answer: Answer) -> str:
    """The releases of the first demand that go with the others: `CUDA 11.1 to 13.2, for sm=86`."""
    if answer.conflict is not None:
        return " ".join(str(answer.conflict).split())
    first, *others = answer.demands
    kind = kind_named(first.kind)
    fitting = {chosen[first.kind] for chosen in answer.sets}
    with_these = " ".join(demand.text for demand in others if demand.spec != "*")
    if kind.least:
        return f"{kind.title} {newest_first(first.kind, fitting)[-1]} or later, for {with_these}"
    runs = groupby(reversed(answer.graph.versions[first.kind]), key=lambda version: version in fitting)
    spans = [(run[0], run[-1]) for fits, each in runs if fits and (run := list(each))]
    words = [oldest if oldest == newest else f"{oldest} to {newest}" for oldest, newest in spans]
    return f"{kind.title} {listed(words)}, for {with_these}"


def answer_config(answer: Answer) -> str:
    """The first set of an answer as lines of a conda_build_config.yaml.

    Raises:
        WorkError: there is a conflict, so there is no set to write.

    >>> print(answer_config(resolve(["cuda=11.2", "platform=linux-64"])).splitlines()[0])
    # platform linux-64
    """
    if answer.conflict is not None:
        raise WorkError(str(answer.conflict))
    return _set_config(answer.sets[0], answer.facts)


def answer_json(answer: Answer) -> str:
    """An answer for programs: an object for one set or a conflict, a list for several sets.

    Raises:
        Nothing of its own: a conflict is an object too.

    >>> import json
    >>> json.loads(answer_json(resolve(["cuda=11.2", "gcc=11"])))["conflict"]
    ['cuda=11.2', 'gcc=11']
    """
    if answer.conflict is not None:
        return json.dumps({**_conflict_document(answer.conflict), "notes": list(notes(answer))}, indent=2)
    sets = [_set_document(answer.graph, chosen) for chosen in answer.sets]
    return json.dumps(sets[0] if answer.most == 1 else sets, indent=2)


def _set_text(graph: PinGraph, chosen: Mapping[str, str]) -> str:
    rows = [
        (kind_named(kind).title, _version(kind, version), _reason(graph, chosen, kind))
        for kind, version in chosen.items()
    ]
    return "\n".join(aligned(rows))


def _sets_table(sets: Sequence[Mapping[str, str]]) -> str:
    kinds = list(dict.fromkeys(kind for chosen in sets for kind in chosen))
    rows = [[kind_named(kind).title for kind in kinds]]
    rows += [[_version(kind, chosen[kind]) if kind in chosen else "-" for kind in kinds] for chosen in sets]
    return "\n".join(aligned(rows))


def _set_document(graph: PinGraph, chosen: Mapping[str, str]) -> dict[str, Any]:
    """One set as a value for JSON: each release with its requirements on the others in the set, and their sources."""
    return {
        kind: {
            "version": version,
            "bounds": [
                {"said": bound.said, "sources": list(bound.sources)}
                for bound in graph.bounds_of(Release(kind, version))
                if bound.kinds & chosen.keys()
            ],
        }
        for kind, version in chosen.items()
    }


def _conflict_document(conflict: Conflict) -> dict[str, Any]:
    return {
        "conflict": [str(demand) for demand in conflict.demands],
        "unknown": conflict.unknown,
        "sentences": list(conflict.sentences),
        "nearest": [[str(demand) for demand in demands] for demands in conflict.nearest],
    }


def _set_config(chosen: Mapping[str, str], facts: CudaFacts) -> str:
    """One set as lines of a conda_build_config.yaml that are self-contained: one value for each key.

    Compiler packages, image and glibc are those of the last row of conda-forge's pinning that had this CUDA version for
    this platform; if it never had, they are left out, and a comment says so.
    """
    lines = [
        f"# {kind_named(kind).title} {_version(kind, version)}" for kind, version in chosen.items() if kind in _MACHINE
    ]
    values = dict(_config(chosen, _row(chosen, facts)))
    row = _row(chosen, facts)
    if row is not None:
        lines.append(f"# Keys outside of the set come from conda-forge's pinning at {row.commit[:10]} ({row.date}).")
    elif "cuda" in chosen:
        platform = chosen.get("platform", "this platform")
        lines.append(f"# conda-forge's pinning never had CUDA {chosen['cuda']} for {platform}: add an image yourself.")
    for key, value in values.items():
        lines += [f"{key}:", f"  - {_quoted(value)}"]
    zipped = [key for key in _ZIPPED if key in values]
    if len(zipped) > 1:
        lines += ["zip_keys:", *(f"  {'- ' if number == 0 else '  '}- {key}" for number, key in enumerate(zipped))]
    return "\n".join(lines)


_MACHINE = ("platform", "driver", "__cuda", "sm")
_ZIPPED = ("cuda_compiler", "cuda_compiler_version", "c_compiler_version", "cxx_compiler_version", "docker_image")


def _row(chosen: Mapping[str, str], facts: CudaFacts) -> PinningRow | None:
    rows = (row for row in facts.rows if row.cuda is not None and row.cuda == chosen.get("cuda"))
    return next((row for row in rows if row.platform.subdir == chosen.get("platform")), None)


def _config(chosen: Mapping[str, str], row: PinningRow | None) -> Iterator[tuple[str, str]]:
    pinned = row.values if row else {}
    if "cuda" in chosen:
        era = "nvcc" if int(chosen["cuda"].split(".")[0]) < 12 else "cuda-nvcc"
        yield "cuda_compiler", pinned.get("cuda_compiler", era)
        yield "cuda_compiler_version", chosen["cuda"]
    for kind, key, parts in _PINS:
        if kind in chosen:
            yield key, ".".join(chosen[kind].split(".")[:parts])
    if "gcc" in chosen:
        for key, compiler in (("c", "gcc"), ("cxx", "gxx")):
            yield f"{key}_compiler", compiler
            yield f"{key}_compiler_version", chosen["gcc"]
    elif "visual-studio" in chosen:
        for key in ("c_compiler", "cxx_compiler"):
            yield key, f"vs{chosen['visual-studio'].replace('17.9', '2022')}"
    for key in ("c_stdlib", "c_stdlib_version", "docker_image", "cdt_name", "arm_variant_type"):
        if key in pinned:
            yield key, pinned[key]


def _version(kind: str, version: str) -> str:
    return f"{version} or later" if kind_named(kind).least else f"sm_{version}" if kind == "sm" else version


def _reason(graph: PinGraph, chosen: Mapping[str, str], kind: str) -> str:
    """Why this version: the bound of another release in the set that allows no better one, or else its own bounds."""
    versions = graph.versions.get(kind, ())
    place = versions.index(chosen[kind])
    better = versions[place + 1 :] if kind_named(kind).least else versions[:place][::-1]
    for other, version in chosen.items():
        for bound in graph.bounds_of(Release(other, version)):
            if kind != other and kind in bound.kinds and better:
                others = {name: value for name, value in chosen.items() if name in bound.kinds and name != kind}
                if not bound.open_to({**others, kind: better[0]}):
                    return f"{Release(other, version)}: {bound.said_of(chosen)}"
    if kind_named(kind).least:
        return ""
    own = graph.bounds_of(Release(kind, chosen[kind]))
    telling = {"platform"} if kind == "cuda" else {"cuda", "platform"}
    return "; ".join(
        bound.said_of(chosen) for bound in own if bound.kinds <= telling and (kind == "cuda" or "cuda" in bound.kinds)
    )


def _quoted(value: str) -> str:
    return f'"{value}"' if value.replace(".", "").isdigit() else value


def notes(answer: Answer) -> Iterator[str]:
    """The notes on an answer, each a sentence or two.

    Sources: NVIDIA, CUDA Compatibility (PTX needs a driver of its own CUDA version; cuda-compat is for data-centre GPUs
    and Jetson); ptxas of 12.8, 12.9 and 13.0 for the name of sm_110; NVIDIA's release notes of drivers.
    """
    yield from _of_another_patch(answer)
    yield from _renamed(answer)
    yield from _older_driver(answer)
    yield from _not_listed_yet(answer)
    yield from _of_several_chips(answer)
    yield from _forward(answer)
    yield from _in_wsl(answer)
    yield from _on_jetson(answer)
    yield from _of_the_family(answer)
    yield from _by_wheels(answer)
    yield from _newer_glibc(answer)
    yield from _on_pypi(answer)
    yield from _elsewhere(answer)


def _demanded(answer: Answer, kind: str) -> list[str]:
    return [demand.spec for demand in answer.demands if demand.kind == kind]


def _of_another_patch(answer: Answer) -> Iterator[str]:
    """The facts have the last release of each minor version; another one may hold other code."""
    for demand in answer.demands:
        named = re.search(r"=\s*(\d+(?:\.\d+){2,})$", demand.text)
        if demand.kind not in FRAMEWORKS or named is None:
            continue
        read = [version for version in answer.graph.versions.get(demand.kind, ()) if demand.admits(version)]
        if read and named[1] not in read:
            yield (
                f"{demand.kind} {named[1]} was not read: this is about {read[0]}, the last of its minor version. "
                "An earlier one may lack code for newer GPUs, and platforms."
            )


def _renamed(answer: Answer) -> Iterator[str]:
    """The architecture of Jetson Thor has one name up to CUDA 12.9, and another from 13.0 on."""
    for number, other, when in (("101", "110", "from CUDA 13.0 on"), ("110", "101", "in CUDA 12.8 and 12.9")):
        if number in _demanded(answer, "sm") and answer.conflict is not None:
            yield f"sm_{number} is called sm_{other} {when}."


def _older_driver(answer: Answer) -> Iterator[str]:
    """A driver of the same major version runs a toolkit's machine code, but not its PTX."""
    if not answer.sets or not _demanded(answer, "driver"):
        return
    chosen = answer.sets[0]
    cuda, runs = chosen.get("cuda"), chosen.get("__cuda")
    newest = load_cuda().newest_ptx(runs) if runs else None
    if cuda and newest and parse_version(newest) < parse_version(cuda):
        yield (
            f"driver {chosen['driver']} runs machine code of CUDA {cuda}, but compiles PTX of CUDA up to {newest} "
            f"only: builds without machine code for the GPU, and code that NVRTC of {cuda} generates, do not load."
        )


def _not_listed_yet(answer: Answer) -> Iterator[str]:
    """A driver may know the chip of a GPU before NVIDIA lists the GPU."""
    drivers = [text.strip("=<>").removesuffix(".*") for text in _demanded(answer, "driver")]
    for name in _demanded(answer, "gpu"):
        gpu = find_gpu(name, load_gpus())
        for driver in drivers:
            if gpu.listed and answer.sets and parse_version(driver) < parse_version(gpu.listed) and "." in driver:
                yield f"NVIDIA lists {gpu.name} from driver {gpu.listed} for Linux on."


def _of_several_chips(answer: Answer) -> Iterator[str]:
    """A driver may know one chip of a name and not another."""
    drivers = [text.strip("=<>").removesuffix(".*") for text in _demanded(answer, "driver")]
    windows = "win-64" in _demanded(answer, "platform")
    for gpu in (find_gpu(name, load_gpus()) for name in _demanded(answer, "gpu")):
        chips = gpu.chip_words(windows=windows)
        if chips and any(gpu.drives(driver, windows=windows) is None for driver in drivers):
            yield f"{gpu.name}: {chips}; ask with the chip in the name, {gpu.name} {gpu.chip}, for one of them."


def _forward(answer: Answer) -> Iterator[str]:
    """On data-centre GPUs a newer CUDA runs with an older driver, by the package cuda-compat; on others it does not."""
    kinds = _in_conflict(answer)
    if "driver" not in kinds or not kinds & {"cuda", *FRAMEWORKS} or "win-64" in _demanded(answer, "platform"):
        return
    for gpu in (find_gpu(name, load_gpus()) for name in _demanded(answer, "gpu")):
        if gpu.data_center:
            yield (
                f"{gpu.name} is a GPU for data centres: on Linux the package cuda-compat of the newer CUDA runs with "
                f"older drivers, of {_compat_branches(answer)} "
                "(https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html)."
            )
        elif gpu.name.startswith(("GeForce", "TITAN")):
            yield f"the package cuda-compat does not help: it is for GPUs of data centres and Jetson, not {gpu.name}."


def _compat_branches(answer: Answer) -> str:
    """The driver branches that cuda-compat of the demanded CUDA, or of that of a framework, runs with, in words."""
    chosen = _demanded_releases(answer)
    brought = [wheels for name in {*FRAMEWORKS} & chosen.keys() for wheels in wheels_for(name, chosen[name], None)]
    cudas = {chosen["cuda"]} if "cuda" in chosen else set()
    for wheels in brought:
        cudas |= brought_cuda(wheels, tuple(answer.facts.toolkits))
    known = {toolkit.compat_branches for cuda in cudas if (toolkit := answer.facts.toolkits[cuda]).compat_branches}
    if len(cudas) != 1 or not known:
        return "the branches in NVIDIA's table"
    (branches,) = known
    listed = ", ".join(map(str, branches))
    own = [demand.spec.strip("=<>!").split(".")[0] for demand in answer.demands if demand.kind == "driver"]
    fits = " and ".join(
        f"{'also' if int(branch) in branches else 'but not'} of {branch}" for branch in own if branch.isdigit()
    )
    return f"the branches {listed}{f', {fits}' if fits else ''}"


def _in_conflict(answer: Answer) -> set[str]:
    """The kinds of the demands that are incompatible, but for those that any version meets."""
    return {demand.kind for demand in answer.conflict.demands if demand.spec != "*"} if answer.conflict else set()


def _in_wsl(answer: Answer) -> Iterator[str]:
    """Packages for Linux with the driver of Windows (NVIDIA, CUDA on WSL User Guide)."""
    texts = [demand.text.rpartition("=")[2].strip().lower() for demand in answer.demands if demand.kind == "platform"]
    if answer.sets and {"wsl", "wsl2"} & {*texts}:
        toolkit = answer.facts.toolkits.get(answer.sets[0].get("cuda", ""))
        least = [toolkit.least_driver.windows if toolkit and toolkit.least_driver else None]
        least += [find_gpu(name, load_gpus()).least_driver(windows=True) for name in _demanded(answer, "gpu")]
        version = max((driver for driver in least if driver), key=parse_version, default=None)
        needed = f" ({version} or later)" if version else ""
        yield f"WSL 2 runs packages for linux-64 with the driver of Windows{needed}; install no Linux driver in WSL."


def _on_jetson(answer: Answer) -> Iterator[str]:
    """The frameworks of Jetson modules come from NVIDIA, built for a JetPack (NVIDIA, Frameworks for Jetson)."""
    boards = [gpu for name in _demanded(answer, "gpu") if (gpu := find_gpu(name, load_gpus())).tegra]
    if answer.conflict is not None and boards and {*FRAMEWORKS} & {demand.kind for demand in answer.demands}:
        yield (
            f"for {boards[0].name} NVIDIA builds frameworks itself, by the version of JetPack "
            "(https://docs.nvidia.com/deeplearning/frameworks/install-pytorch-jetson-platform/)."
        )


def _of_the_family(answer: Answer) -> Iterator[str]:
    """A GPU runs code that a toolkit compiles for an older one, where the toolkit does not know it."""
    conflict = answer.conflict
    if conflict is None or not {"cuda"} < _in_conflict(answer) <= {"cuda", "gpu", "sm"}:
        return
    spec = next(demand.spec for demand in conflict.demands if demand.kind == "cuda")
    toolkits = [toolkit for version, toolkit in answer.facts.toolkits.items() if admits(spec, version)]
    for name in _demanded(answer, "gpu"):
        gpu = find_gpu(name, load_gpus())
        for toolkit in toolkits[-1:]:
            names = [number for number in toolkit.architectures if number.isdigit()]
            both = [Architecture(int(number), ptx=ptx) for number in names for ptx in (False, True)]
            service = service_of(both, int(gpu.capability.replace(".", "")))
            if service.by is None or gpu.tegra or service.by.number == int(gpu.capability.replace(".", "")):
                continue
            way = "natively" if service.how == "native" else "after the driver has compiled it at first start"
            yield f"{gpu.name} runs what CUDA {toolkit.version} compiles for {service.by}, {way}: {_ASK_GPU}."


def _newer_glibc(answer: Answer) -> Iterator[str]:
    """glibc 2.41 declares functions of C23 that headers of CUDA declare otherwise (NVIDIA/cuda-samples, issue 378)."""
    named = [spec.strip("=<>!").removesuffix(".*") for spec in _demanded(answer, "glibc")]
    cuda = answer.sets[0].get("cuda") if answer.sets else None
    if cuda and parse_version(cuda) < parse_version("13.0"):
        for glibc in (text for text in named if text[:1].isdigit() and parse_version(text) >= parse_version("2.41")):
            yield (
                f"nvcc of CUDA {cuda} does not compile with headers of glibc {glibc}: from 2.41 on they declare "
                "cospi and sinpi otherwise than CUDA's do. Builds run there; compile with an older sysroot."
            )


def _demanded_releases(answer: Answer) -> dict[str, str]:
    """The newest release that each demand of an answer admits, and the architecture of its GPU."""
    graph, chosen = answer.graph, {}
    for demand in answer.demands:
        if demand.spec != "*" and (fit := [v for v in graph.versions.get(demand.kind, ()) if demand.admits(v)]):
            chosen[demand.kind] = fit[0]
        if demand.kind == "gpu":
            chosen["sm"] = find_gpu(demand.spec, load_gpus()).architecture.removeprefix("sm_")
    return chosen


def _by_wheels(answer: Answer) -> Iterator[str]:
    """How a GPU runs the wheels of a framework, where it is not by machine code of all their kernels."""
    if answer.conflict is not None and "driver" not in _in_conflict(answer):
        return
    chosen = answer.sets[0] if answer.sets else _demanded_releases(answer)
    number = chosen.get("sm", "")
    for name in {*FRAMEWORKS} & chosen.keys():
        for wheels in wheels_for(name, chosen[name], chosen.get("cuda")):
            subdir = chosen.get("platform", next(iter(wheels.code), ""))
            code, some = wheels.code.get(subdir, ""), wheels.some.get(subdir, "")
            if not number or number not in services_of(code, [number])["ptx"]:
                continue
            ptx = next(text for text in reversed(code.split()) if text.startswith("compute_"))
            least = ptx_version(answer.facts, wheels, code)
            few = f" ({some} is in some of them)" if some and number in services_of(some, [number])["native"] else ""
            yield (
                f"the wheel of {name} {wheels.version} has no machine code for sm_{number} in most kernels{few}: the "
                f"driver compiles its PTX ({ptx}) at first start, and must be for CUDA {least} or later."
            )


_ASK_GPU = "`feedstock-tools cuda gpu` says more"


def _on_pypi(answer: Answer) -> Iterator[str]:
    """A cuDNN, NCCL or cuTENSOR that conda-forge has not, or not for a CUDA, may be a wheel on PyPI."""
    demands = {demand.kind: demand.spec for demand in answer.conflict.demands} if answer.conflict else {}
    if not demands.keys() <= {*_LIBRARIES, "cuda", "sm", "gpu", "platform"}:
        return
    for kind in demands.keys() & {*_LIBRARIES}:
        for project, versions in library_wheels().items():
            library, _, major = project.removeprefix("nvidia-").rpartition("-cu")
            fit = [version for version in versions if admits(demands[kind], version)]
            runs = [cuda for cuda in answer.facts.toolkits if cuda.startswith(f"{major}.")]
            if library == kind and fit and any(admits(demands.get("cuda", "*"), cuda) for cuda in runs):
                yield f"PyPI has it as {project}=={fit[-1]}, for CUDA {major}{_users(library, major, fit[-1])}."


_LIBRARIES = ("cudnn", "nccl", "cutensor")


def _users(library: str, major: str, version: str) -> str:
    """The frameworks whose wheels bring a release of a library along, in words."""
    names = [
        f"{framework} {wheels.minor}"
        for framework in ("torch", "tensorflow")
        for wheels in load_wheels()[framework]
        if getattr(wheels, library, None) == f"=={version}"
        and (wheels.cuda or "").lstrip("=<>").startswith(f"{major}.")
    ]
    return f", which the wheels of {', '.join(names)} bring along" if names else ""


#: conda-forge's packages by the frameworks that have another name on PyPI.
_ON_CONDA_FORGE = {"torch": "pytorch", "jax": "jaxlib", "faiss-gpu": "faiss", "onnxruntime-gpu": "onnxruntime"}


def _elsewhere(answer: Answer) -> Iterator[str]:
    """Builds of a framework that PyPI does not have: on PyTorch's own indexes, and on conda-forge.

    Where the answer is a set, that is worth a word if PyTorch's have a newer torch for the driver.
    """
    of_wheels = [name for name in FRAMEWORKS if answer.graph.origins.get(name) == WHEELS]
    about = _in_conflict(answer) or {demand.kind for demand in answer.demands}
    if not about & ({"driver"} if answer.sets else {"cuda", "gpu", "sm", "platform", "driver"}):
        return
    among = answer.conflict.demands if answer.conflict is not None else answer.demands
    for framework in (demand for demand in among if demand.kind in of_wheels):
        yield from _elsewhere_of(answer, _Asked(answer, framework))


def _elsewhere_of(answer: Answer, asked: _Asked) -> Iterator[str]:
    framework = asked.framework
    parts = [*_on_indexes(answer, asked)]
    if answer.conflict is not None and load_frameworks().find(framework.kind):
        package = _ON_CONDA_FORGE.get(framework.kind, framework.kind)
        fit = asked.builds(package) or asked.of_any_version.builds(package)
        lines = [f"`feedstock-tools cuda env {package}={build.minor} --cuda {build.built}`" for build in fit[-2:]]
        parts += [f"conda-forge has builds that run: {listed(lines)}"] if lines else []
    if parts:
        yield f"this is about the wheels of {framework.kind} on PyPI; {'; '.join(parts)}."


def _on_indexes(answer: Answer, asked: _Asked) -> Iterator[str]:
    """What PyTorch's own indexes have of torch for an answer's demands, in words; newer ones than in a set."""
    if asked.framework.kind not in ("torch", "pytorch"):
        return
    facts = load_frameworks()
    chosen = parse_version(answer.sets[0][asked.framework.kind]) if answer.sets else None
    ways = [way for way in facts.frameworks["pytorch"].ways if way.code]
    found = [(version, way) for way in ways if (version := asked.newest(way))]
    source = f"by {facts.sources['pytorch-index']} of November 2026 its own indexes, not read by us,"
    if not found and answer.conflict is not None:
        others = [(version, way) for way in ways if (version := asked.of_any_version.newest(way))]
        found = sorted(others, key=lambda other: parse_version(other[0]))[-1:]
    lines = [
        f"`torch=={minor_of(version)}.* {way.pip[-1].format(digits=_cuda_of(way).replace('.', ''))}`"
        for version, way in found
        if chosen is None or parse_version(version) > chosen
    ]
    if lines:
        yield f"{source} have {listed(lines[-3:])}"


def _cuda_of(way: Setup) -> str:
    """The CUDA of one of PyTorch's indexes: `12.6`."""
    return (way.cuda or "").removesuffix(".*")


@dataclass(frozen=True, slots=True)
class _Asked:
    """What an answer demands of a build of a framework from elsewhere."""

    answer: Answer
    framework: Demand

    @property
    def of_any_version(self) -> _Asked:
        """The same of any version of the framework."""
        return replace(self, framework=replace(self.framework, spec="*"))

    def builds(self, package: str) -> list[WheelRelease]:
        """conda-forge's builds of a package that meet the demands, oldest first."""
        found = conda_builds().get(package, ())
        return [build for build in found if build.built and self.takes(build.version, build.built, build.code)]

    def newest(self, way: Setup) -> str | None:
        """The newest torch of one of PyTorch's indexes that meets the demands."""
        versions = self.answer.graph.versions[self.framework.kind]
        has = (version for version in versions if admits(way.versions or "*", version))
        return next((version for version in has if self.takes(version, _cuda_of(way), way.code)), None)

    def takes(self, version: str, cuda: str, code: Mapping[str, str]) -> bool:
        """Whether a build with GPU code by platform, made with a CUDA version, meets the demands."""
        answer = self.answer
        gpus = [find_gpu(name, load_gpus()) for name in _demanded(answer, "gpu")]
        on_arm = any(gpu.tegra or gpu.grace for gpu in gpus)
        platforms = _demanded(answer, "platform") or (["linux-aarch64"] if on_arm else ["linux-64"])
        numbers = {*_demanded(answer, "sm"), *(gpu.architecture.removeprefix("sm_") for gpu in gpus)}
        runs = answer.graph.partners(Release("cuda", cuda), "driver")
        drivers = [demand for demand in answer.demands if demand.kind == "driver"]
        return (
            self.framework.admits(version)
            and all(admits(spec, cuda) for spec in _demanded(answer, "cuda"))
            and all(any(demand.admits(each) for each in runs) for demand in drivers)
            and not any(gpu.tegra for gpu in gpus)
            and all(
                platform in code and numbers <= services_of(code[platform], numbers)["native"] for platform in platforms
            )
        )
