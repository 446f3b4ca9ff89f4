"""The packages requested for an environment with frameworks, and the known ways to install them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from feedstock_tools.channel.specs import admits, read_spec
from feedstock_tools.errors import InputError
from feedstock_tools.facts import CudaFacts
from feedstock_tools.facts.frameworks import Framework, Frameworks, Setup, load_wheels
from feedstock_tools.pins.graph.kinds import newest_first
from feedstock_tools.platforms import Platform

_PACKAGE = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Wish:
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

    wish: Wish
    setup: Setup | None
    specs: tuple[str, ...]
    named: tuple[str, ...]
    pip: tuple[str, ...]
    python: str | None
    variables: Mapping[str, str]
    exact: bool


def wished(package: str, frameworks: Frameworks) -> Wish:
    """Read `tensorflow`, `torch=2.1`, `numpy >=2` or any other match specification.

    Raises:
        InputError: `package` is not a match specification.
    """
    match = _PACKAGE.fullmatch(package.strip())
    if match is None:
        raise InputError(f"'{package}' is not a package", hint="Write tensorflow, or tensorflow=2.6.")
    spec = read_spec(package.strip())
    name = match["name"].lower()
    return Wish(name, frameworks.find(name), spec.version, spec.build, package.strip())


def parts_of(
    wish: Wish, accelerator: str, cuda: str | None, machine: str | None, platform: Platform, facts: CudaFacts
) -> Iterator[Part]:
    """The ways to install a requested package, the best first.

    Args:
        cuda: the requested CUDA version; None for any that works on the machine.
        machine: the newest CUDA version that the machine's driver runs; None for a machine without a GPU.
    """
    if wish.framework is None:
        yield Part(wish, None, (wish.text,), (wish.name,), (), None, {}, True)
        return
    for setup in (single for way in wish.framework.ways for single in _releases(way, platform)):
        if setup.accelerator != accelerator or platform.subdir not in setup.platforms:
            continue
        if wish.version is not None and setup.versions is not None and not overlap(wish.version, setup.versions):
            continue
        chosen = _cuda_of(setup, cuda, machine, facts)
        if accelerator == "gpu" and chosen is None:
            continue
        patterns = [setup.builds]
        if setup.exact is not None and cuda is not None:
            patterns.insert(0, setup.exact)
        for pattern in patterns:
            yield _part(wish, setup, pattern, chosen or "", cuda is None or pattern == setup.exact or not setup.exact)


def _releases(way: Setup, platform: Platform) -> Iterator[Setup]:
    """A way as it is; or one for each release of its wheels that brings CUDA along, the newest first."""
    if way.wheels is None:
        yield way
        return
    for release in reversed(load_wheels()[way.wheels]):
        if release.cuda_spec is not None and platform.subdir in release.platforms:
            yield replace(
                way,
                cuda=release.cuda_spec,
                versions=f"{release.minor}.*",
                python=release.python_spec,
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


def reasons_without(wish: Wish, accelerator: str, platform: Platform, frameworks: Frameworks) -> tuple[str, ...]:
    """The reasons from the facts why a framework is not available for an accelerator on a platform."""
    if accelerator == "gpu" and platform.subdir in frameworks.without_cuda:
        return (frameworks.without_cuda[platform.subdir],)
    framework = wish.framework
    reasons = framework.unavailable if framework else ()
    return tuple(
        f"{absence.reason} [{', '.join(frameworks.sources[name] for name in absence.sources)}]"
        for absence in reasons
        if absence.accelerator == accelerator and platform.subdir in absence.platforms
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


def _part(wish: Wish, setup: Setup, pattern: str | None, cuda: str, exact: bool) -> Part:
    words = {"cuda": cuda, "major": cuda.partition(".")[0], "digits": cuda.replace(".", "")}

    def filled(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(re.sub(r"\{(cuda|major|digits)\}", lambda match: words[match[1]], text) for text in texts)

    specs, named, pip = list(filled(setup.conda)), [text.split(" ")[0] for text in setup.conda], filled(setup.pip)
    if setup.package is not None:
        build = wish.build or (filled((pattern,))[0] if pattern else None)
        limits = [f"version='{wish.version}'"] if wish.version else []
        limits += [f"build='{build}'"] if build else []
        specs.insert(0, f"{setup.package}[{','.join(limits)}]" if limits else setup.package)
        named.insert(0, setup.package)
    elif wish.version is not None:
        comma = "," if re.search(r"[<>=]", pip[0]) else ""
        pip = (f"{pip[0]}{comma}{pip_version(wish.version)}", *pip[1:])
    return Part(wish, setup, tuple(specs), tuple(named), pip, setup.python, dict(setup.variables), exact)
