"""An environment with frameworks, for the GPU or the CPU: solved to the intended build, or the reason why not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.properties import local_folder
from feedstock_tools.channel.repodata import builds_of, why_unreachable
from feedstock_tools.channel.solving import SolveError, solve, virtual_packages
from feedstock_tools.channel.specs import admits, read_spec
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.facts.cuda import CudaFacts
from feedstock_tools.facts.frameworks import Framework, Frameworks, Setup, load_wheels
from feedstock_tools.pins.channels import channel_title, channel_urls, toolkit_of
from feedstock_tools.pins.driver import Machine, probe
from feedstock_tools.pins.graph.kinds import newest_first
from feedstock_tools.platforms import Platform
from feedstock_tools.versions import minor_of

_PACKAGE = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RequestedPackage:
    """One requested PACKAGE: its facts (None: unknown), its version and its build (None: any)."""

    name: str
    framework: Framework | None
    version: str | None
    build: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """One way to install a requested package, with `{cuda}` and the like filled in.

    `specs` are specifications for the solver, `named` the packages among them that the environment names; `exact`
    whether the build was made with the requested CUDA version.
    """

    package: RequestedPackage
    setup: Setup | None
    specs: tuple[str, ...]
    named: tuple[str, ...]
    pip: tuple[str, ...]
    python: str | None
    variables: Mapping[str, str]
    exact: bool


def requested_package(package: str, frameworks: Frameworks) -> RequestedPackage:
    """Read `tensorflow`, `torch=2.1`, `numpy >=2` or any other match specification.

    Raises:
        InputError: `package` is not a match specification.
    """
    match = _PACKAGE.fullmatch(package.strip())
    if match is None:
        raise InputError(f"'{package}' is not a package", hint="Write tensorflow, or tensorflow=2.6.")
    spec = read_spec(package.strip())
    name = match["name"].lower()
    return RequestedPackage(name, frameworks.find(name), spec.version, spec.build, package.strip())


def parts_of(
    package: RequestedPackage, target: Target, machine: str | None, facts: CudaFacts, channels: Sequence[str] = ()
) -> Iterator[Part]:
    """The ways to install a requested package, the best first.

    Args:
        machine: the newest CUDA version that the machine's driver runs; None for a machine without a GPU.
        channels: those that are asked: some have packages of a way of their own.
    """
    if package.framework is None:
        yield Part(package, None, (package.text,), (package.name,), (), None, {}, True)
        return
    cuda = target.cuda
    ways = sorted(package.framework.ways, key=lambda way: way.channel is None)
    for setup in (single for way in ways for single in _releases(way, target.platform, package)):
        if setup.accelerator != target.accelerator or target.platform.subdir not in setup.platforms:
            continue
        if setup.channel is not None and setup.channel not in channels:
            continue
        if package.version is not None and setup.versions is not None and not overlap(package.version, setup.versions):
            continue
        chosen = _cuda_of(setup, cuda, machine, facts)
        if target.accelerator == "gpu" and chosen is None:
            continue
        patterns = [setup.builds]
        if setup.exact is not None and cuda is not None:
            patterns.insert(0, setup.exact)
        for pattern in patterns:
            yield _part(
                package, setup, pattern, chosen or "", cuda is None or pattern == setup.exact or not setup.exact
            )


def _releases(way: Setup, platform: Platform, package: RequestedPackage) -> Iterator[Setup]:
    """A way as it is; or one for each release of its wheels, the newest first.

    Those are the releases whose wheels on PyPI for the platform hold GPU code, or, of a way with an index or an
    accelerator of its own, have wheels for it at all.
    """
    if way.wheels is None:
        yield way
        return
    on_pypi = way.accelerator == "gpu" and not any(text.startswith("--") for text in way.pip)
    for release in reversed(load_wheels()[way.wheels]):
        if platform.subdir not in (release.code if on_pypi else release.platforms):
            continue
        if way.versions is None or admits(way.versions, release.version):
            yield replace(
                way,
                cuda=way.cuda or release.cuda_spec,
                versions=f"{release.minor}.*",
                release=release.version,
                python=way.python or release.python_spec(package.version),
                pip=tuple(text.replace("{minor}", release.minor) for text in way.pip),
            )


def overlap(one: str, other: str) -> bool:
    """Whether some version meets two specifications: tried are the versions that they name, and those just beside.

    >>> overlap("2.15.*", "<2.11"), overlap(">=2.14", "2.15.*"), overlap("2.6", ">=2.6,<2.7")
    (False, True, True)
    """
    named = re.findall(r"\d+(?:\.\d+)*", f"{one} {other}")
    tried = {version for text in named for version in (text, f"{text}.1", _before(text))}
    return any(admits(one, version) and admits(other, version) for version in tried)


def _before(version: str) -> str:
    """A version just before another: `2.10.999` before 2.11."""
    head, _, last = version.rpartition(".")
    return f"{head}.{int(last) - 1}.999" if head and int(last) else f"{max(int(last) - 1, 0)}.999"


def reasons_without(package: RequestedPackage, target: Target, frameworks: Frameworks) -> tuple[str, ...]:
    """The reasons from the facts why a framework is not available for a target."""
    if target.accelerator == "gpu" and target.platform.subdir in frameworks.without_cuda:
        return (frameworks.without_cuda[target.platform.subdir],)
    framework = package.framework
    reasons = framework.unavailable if framework else ()
    return tuple(
        f"{absence.reason} [{', '.join(frameworks.sources[name] for name in absence.sources)}]"
        for absence in reasons
        if absence.accelerator == target.accelerator and target.platform.subdir in absence.platforms
    )


def pip_version(spec: str) -> str:
    """A version specification of conda as pip writes it.

    >>> pip_version("2.6.*"), pip_version(">=2.6,<2.8"), pip_version("2.6.0")
    ('==2.6.*', '>=2.6,<2.8', '==2.6.0')

    Raises:
        InputError: it has alternatives, which pip does not support.
    """
    if "|" in spec:
        raise InputError(f"'{spec}' has alternatives, which pip does not support", hint="Choose one of them.")
    return ",".join(part if part[:1] in "<>=!~" else f"=={part}" for part in spec.split(","))


def _cuda_of(setup: Setup, cuda: str | None, machine: str | None, facts: CudaFacts) -> str | None:
    """The CUDA version of a way: the requested one, else its newest that the machine's driver runs."""
    if cuda is not None:
        return cuda if setup.cuda is None or admits(setup.cuda, cuda) else None
    if machine is None or setup.cuda is None:
        return machine
    reach = [toolkit for toolkit in facts.toolkits if admits(setup.cuda, toolkit) and admits(f"<={machine}", toolkit)]
    return next(iter(newest_first("cuda", reach)), None)


def _part(package: RequestedPackage, setup: Setup, pattern: str | None, cuda: str, exact: bool) -> Part:
    words = {"cuda": cuda, "major": cuda.partition(".")[0], "digits": cuda.replace(".", "")}

    def filled(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(re.sub(r"\{(cuda|major|digits)\}", lambda match: words[match[1]], text) for text in texts)

    specs, named, pip = list(filled(setup.conda)), [text.split(" ")[0] for text in setup.conda], filled(setup.pip)
    if setup.package is not None:
        build = package.build or (filled((pattern,))[0] if pattern else None)
        limits = [f"version='{package.version}'"] if package.version else []
        limits += [f"build='{build}'"] if build else []
        specs.insert(0, f"{setup.package}[{','.join(limits)}]" if limits else setup.package)
        named.insert(0, setup.package)
    elif package.version is not None and not (setup.release and _is_met(package.version, setup.release)):
        pip = (_limited(pip[0], pip_version(package.version)), *pip[1:])
    return Part(package, setup, tuple(specs), tuple(named), pip, setup.python, dict(setup.variables), exact)


def _is_met(version: str, release: str) -> bool:
    """Whether the newest release of a minor version meets a requested version that names no release itself."""
    return re.fullmatch(r"=*\d+(\.\d+){2,}(\.\*)?", version) is None and admits(version, release)


def _limited(requirement: str, version: str) -> str:
    """A requirement of pip with a requested version, each limit once; an exact version stands for all limits.

    >>> _limited("torch==2.8.*", "==2.8.*"), _limited("torch==2.8.*", "==2.8.1"), _limited("jax", ">=0.5")
    ('torch==2.8.*', 'torch==2.8.1', 'jax>=0.5')
    """
    name, limits = re.fullmatch(r"([A-Za-z0-9._-]+(?:\[[^\]]*\])?)(.*)", requirement).groups()  # type: ignore[union-attr]
    if re.fullmatch(r"==\d+(\.\d+){2,}(\.\*)?", version):
        return f"{name}{version}"
    return f"{name}{','.join(dict.fromkeys(part for part in (*limits.split(','), *version.split(',')) if part))}"


_TOOLKITS = ("cudatoolkit", "cuda-version")
#: The limit on combinations of ways for several packages.
_MOST = 200


@dataclass(frozen=True, slots=True)
class Target:
    """The machine that an environment is for, and what the builds in it must use.

    `accelerator` is `gpu` or `cpu`; `cuda` the CUDA version of the builds (None: the newest that the
    machine runs); `machine` the newest one that the machine's driver runs.
    """

    accelerator: str
    platform: Platform
    cuda: str | None = None
    machine: str | None = None

    def __str__(self) -> str:
        return f"{f'the {self.accelerator.upper()}' if self.cuda is None else f'CUDA {self.cuda}'} on {self.platform}"


@dataclass(frozen=True, slots=True)
class Request:
    """A requested environment.

    `virtual` are further virtual packages of the machine, as `name=version`, that override the usual ones. With
    `solved` false the channels are not queried.
    """

    packages: tuple[str, ...]
    target: Target
    channels: tuple[str, ...] = ("conda-forge",)
    python: str | None = None
    virtual: tuple[str, ...] = ()
    solved: bool = True

    @property
    def machine_has(self) -> tuple[str, ...]:
        gpu = (self.target.machine or self.target.cuda) if self.target.accelerator == "gpu" else None
        usual = {text.partition("=")[0]: text for text in virtual_packages(self.target.platform, cuda=gpu)}
        return tuple((usual | {text.partition("=")[0]: text for text in self.virtual}).values())

    @property
    def driver_cuda(self) -> str | None:
        """The CUDA version of the machine's `__cuda`; None if it has none."""
        virtual = dict(text.partition("=")[::2] for text in self.machine_has)
        return virtual.get("__cuda", "").partition("=")[0] or None


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment: the way to each package, the solved packages (none if not requested), and notes."""

    request: Request
    parts: tuple[Part, ...]
    records: tuple[Record, ...]
    notes: tuple[str, ...]


def target_of(
    gpu: bool | None, cuda: str | None, platform: str | None, facts: CudaFacts, *, probed: Callable[[], Machine] = probe
) -> Target:
    """The target of an environment, completed with the properties of this machine.

    If neither GPU nor CPU is requested, a CUDA version means the GPU, and so does a GPU in this machine, if
    this machine's platform is requested. The machine is assumed to run the requested CUDA version; without one, the
    version that its own driver runs, or, for another machine or without a driver, the newest known one.

    Args:
        gpu: true for the GPU, false for the CPU, None to decide.
        cuda: the CUDA version of the builds; None for the newest that the machine runs, a major version alone (`12`)
            for the newest that a machine with the newest CUDA of it runs.
        platform: a platform's name; None for that of this machine.

    Raises:
        InputError: the platform is invalid, or the CPU build is requested with a CUDA version.
    """
    where = Platform.parse(platform) if platform else Platform.here()
    if gpu is False and cuda is not None:
        raise InputError("--cpu and --cuda are incompatible")
    if cuda is not None and (newest := newest_first("cuda", (v for v in facts.toolkits if v.startswith(f"{cuda}.")))):
        return Target("gpu", where, machine=newest[0])
    this_machine = probed() if cuda is None and gpu is not False and where == Platform.here() else Machine()
    wanted = gpu if gpu is not None else cuda is not None or bool(this_machine.devices)
    machine = (cuda or this_machine.cuda or tuple(facts.toolkits)[-1]) if wanted else None
    return Target("gpu" if wanted else "cpu", where, minor_of(cuda) if cuda else None, machine)


def environment(request: Request, facts: CudaFacts, frameworks: Frameworks) -> Environment:
    """The requested environment, by the best ways that solve.

    Raises:
        InputError: a package, version or channel is invalid.
        WorkError: a channel cannot be reached, or no way works: each reason.
    """
    wanted = [requested_package(package, frameworks) for package in request.packages]
    if request.target.cuda is not None:
        facts.toolkit(request.target.cuda)
    ways = [_ways(package, request, facts, frameworks) for package in wanted]
    combined = (parts for parts in islice(product(*ways), _MOST) if _pip_agrees(parts))
    if not request.solved:
        # Which builds there are is not known without a channel: the build for a CUDA version is left to the solver.
        parts = next(parts for parts in combined if not any(_names_a_cuda(part, request) for part in parts))
        return Environment(request, parts, (), tuple(_notes(parts, (), request, frameworks)))
    _refuse_unreachable(request.channels)
    reasons: dict[str, None] = {}
    for parts in combined:
        try:
            chosen, records = _newest_toolkit(parts, _solved(parts, request), request)
        except SolveError as error:
            reasons[f"{_described(parts)}: {error}"] = None
            continue
        return Environment(request, chosen, records, tuple(_notes(chosen, records, request, frameworks)))
    for package in wanted:
        reasons |= dict.fromkeys(reasons_without(package, request.target, frameworks))
    raise WorkError(f"there is no such environment for {request.target}", hint="\n".join(reasons) or None)


def specs_of(parts: Sequence[Part], request: Request) -> tuple[str, ...]:
    """The specifications for conda's part of an environment."""
    specs = dict.fromkeys(spec for part in parts for spec in part.specs)
    python = ",".join(dict.fromkeys(part.python for part in parts if part.python))
    if request.python:
        python = ",".join(
            filter(None, (f"{request.python}.*" if request.python.count(".") else request.python, python))
        )
    if python or any(part.pip for part in parts):
        specs[f"python {python}".strip()] = None
    if any(part.pip for part in parts):
        specs["pip"] = None
    return tuple(specs)


def _ways(package: RequestedPackage, request: Request, facts: CudaFacts, frameworks: Frameworks) -> list[Part]:
    parts = list(parts_of(package, request.target, request.driver_cuda, facts, request.channels))
    if request.python:
        parts = [part for part in parts if part.python is None or overlap(f"{request.python}.*", part.python)]
    if not parts:
        reasons = reasons_without(package, request.target, frameworks)
        unknown = f"there is no known way to install {package.name} for {request.target}"
        raise WorkError(f"there is no {package.name} for {request.target}", hint="\n".join(reasons) or unknown)
    return parts


def _pip_agrees(parts: Sequence[Part]) -> bool:
    """Whether no part adds a pip index of its own beside another part that pip installs."""
    lists = [part.pip for part in parts if part.pip]
    return len(lists) < 2 or not any(text.startswith("--") for texts in lists for text in texts)


def _names_a_cuda(part: Part, request: Request) -> bool:
    return request.target.cuda is not None and part.exact and part.setup is not None and part.setup.exact is not None


def _refuse_unreachable(channels: Sequence[str]) -> None:
    for channel in channels:
        for url in channel_urls(channel):
            reason = why_unreachable(url)
            if reason is not None:
                where = str(local_folder(url) or channel_title(channel))
                hint = "Name another with --channel, or write the file with --unsolved and let conda solve it."
                raise WorkError(f"cannot reach the channel {where}: {reason}", hint=hint)


def _solved(parts: Sequence[Part], request: Request) -> tuple[Record, ...]:
    channels = [url for channel in request.channels for url in channel_urls(channel)]
    pinned = () if request.target.cuda is None else tuple(f"{name} {request.target.cuda}.*" for name in _TOOLKITS)
    specs = specs_of(parts, request)
    return solve(specs, channels, request.target.platform, virtual=request.machine_has, constraints=pinned)


def _newest_toolkit(
    parts: tuple[Part, ...], records: tuple[Record, ...], request: Request
) -> tuple[tuple[Part, ...], tuple[Record, ...]]:
    """The build with the newest toolkit, of the builds of a version that a driver runs; metadata may not decide this.

    Builds for several CUDA versions often do not differ for a solver, and then their time stamps decide.
    """
    chosen = list(parts)
    for number, part in enumerate(parts):
        if (
            request.target.cuda is not None
            or part.setup is None
            or part.setup.exact is None
            or part.setup.package is None
        ):
            continue
        now = next(record for record in records if record.name == part.setup.package)
        for pattern in _newer_builds(now, part, request):
            limited = f"{now.name}[version='{now.version}',build='{pattern}']"
            trial = replace(part, specs=(limited, *part.specs[1:]))
            try:
                records = _solved([*chosen[:number], trial, *chosen[number + 1 :]], request)
            except SolveError:
                continue
            chosen[number] = trial
            break
    return tuple(chosen), records


def _newer_builds(now: Record, part: Part, request: Request) -> Iterator[str]:
    """The patterns of builds of the same version that were made with newer toolkits, the newest first."""
    own = toolkit_of(now)
    if own is None or part.setup is None or part.setup.exact is None:
        return
    subdirs = (request.target.platform.subdir, "noarch")
    builds = [
        build
        for channel in request.channels
        for url in channel_urls(channel)
        for build in builds_of(now.name, url, subdirs)
    ]
    toolkits = {toolkit for build in builds if build.version == now.version and (toolkit := toolkit_of(build))}
    for toolkit in newest_first("cuda", toolkits):
        if admits(f">{own}", toolkit):
            yield part.setup.exact.replace("{digits}", toolkit.replace(".", ""))


def _described(parts: Sequence[Part]) -> str:
    return ", ".join(
        " ".join(part.specs if not part.pip else [*part.specs, "with pip's", part.pip[0]]) for part in parts
    )


def _notes(parts: Sequence[Part], records: Sequence[Record], request: Request, frameworks: Frameworks) -> Iterator[str]:
    for part in parts:
        name = part.package.name
        if part.setup is None:
            yield f"{name} is not a known framework: it is requested under this name."
            continue
        solved = next((record for record in records if record.name == part.setup.package), None)
        if solved is not None:
            toolkit = toolkit_of(solved)
            origin = f", built with CUDA {toolkit}" if toolkit and request.target.accelerator == "gpu" else ""
            yield f"{solved.name} {solved.version} {solved.build}{origin}."
            if not part.exact and toolkit != request.target.cuda:
                yield f"There is no build of it for CUDA {request.target.cuda}; this one runs with it."
        elif part.pip:
            yield f"pip installs {name}, which is not solved here: {part.pip[0]}."
            yield from reasons_without(part.package, request.target, frameworks)
