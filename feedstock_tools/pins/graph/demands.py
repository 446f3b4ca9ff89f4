"""Demands on a set of releases: `cuda=11.2`, `gcc<=10`, `cudnn`, `platform=linux-64`, `gpu=RTX 3080`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from feedstock_tools.channel.specs import admits
from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.facts.gpus import driver_version
from feedstock_tools.pins.frameworks.wheel_bounds import FRAMEWORKS
from feedstock_tools.pins.graph.kinds import KINDS, kind_named
from feedstock_tools.pins.graph.model import PinGraph

_FORM = re.compile(
    r"^\s*(?P<name>[A-Za-z_][A-Za-z0-9_.-]*?)\s*(?:(?P<operator>==|>=|<=|!=|=|>|<)\s*(?P<version>\S.*?))?\s*$"
)


@dataclass(frozen=True, slots=True)
class Demand:
    """The demand that a set has a release of some kind; `spec` is a version specification of conda.

    For kinds whose versions are names (platform, architecture), `spec` is the name itself. `text` is the original text.
    """

    kind: str
    spec: str
    text: str

    def admits(self, version: str) -> bool:
        """Whether a version of the kind meets the demand."""
        if self.spec == "*":
            return True
        return admits(self.spec, version) if kind_named(self.kind).versioned else self.spec == version

    def __str__(self) -> str:
        return self.text


def parse_demand(text: str) -> Demand:
    """Read one demand.

    `cuda=11.2` means 11.2 and all versions that begin with `11.2.`; `==`, `>=`, `<`, `!=` and several of them with
    commas are as in conda; a name alone demands any version. `gpu=` takes the name of a GPU, which brings its
    architecture and drivers along. A release of CUDA, `cuda=11.2.2`, is one of its minor version.

    Raises:
        InputError: it is not a demand, or its name or version is unknown.

    >>> parse_demand("cudnn=8.1").spec
    '8.1.*'
    """
    match = _FORM.match(text)
    if match is None:
        raise InputError(f"'{text}' is not a demand", hint="Write cuda=11.2, 'gcc<=10', cudnn, or platform=linux-64.")
    name, operator, version = match["name"].lower(), match["operator"], match["version"]
    kind = kind_named(name)
    if operator is None:
        if kind.name == "gpu":
            raise InputError(f"'{text}' names no GPU", hint="Write 'gpu=RTX 3080'.")
        return Demand(kind.name, "*", text.strip())
    if not kind.versioned:
        if operator not in ("=", "=="):
            raise InputError(f"'{text}': a {kind.title} must be demanded with '='", hint=f"Write {name}=….")
        return Demand(kind.name, kind.read(version), text.strip())
    if kind.name in KINDS and not re.match(r"(?:vs?)?\d", version) and version[0] not in "<>=!":
        raise InputError(
            f"'{text}': '{version}' is not a version of {kind.title}", hint=f"Write {name}=… with its number."
        )
    if kind.name == "cuda" and operator in ("=", "==") and re.fullmatch(r"\d+\.\d+\.\d+", version):
        version = version.rpartition(".")[0]
    elif kind.name == "driver" and version[0].isdigit():
        version = driver_version(version)
    elif kind.name == "visual-studio" and operator in ("=", "=="):
        return Demand(kind.name, f"=={kind.read(version)}", text.strip())
    return Demand(kind.name, _spec(operator, version, text), text.strip())


def _spec(operator: str, version: str, text: str) -> str:
    if operator != "=":
        spec = f"{operator}{version}"
    elif any(sign in version for sign in "|,<>=*"):
        spec = version
    else:
        spec = f"{version}.*"
    try:
        admits(spec, "1")
    except InputError as error:
        raise InputError(f"'{text}': {error.mistakes[0].message}") from error
    return spec


def parse_demands(texts: Iterable[str]) -> tuple[Demand, ...]:
    """Read demands, all mistakes in one error.

    Raises:
        InputError: as `parse_demand`.
    """
    demands: list[Demand] = []
    mistakes: list[Mistake] = []
    for text in texts:
        try:
            demands.append(parse_demand(text))
        except InputError as error:
            mistakes.extend(error.mistakes)
    if mistakes:
        raise InputError.of(mistakes)
    return tuple(dict.fromkeys(demands))


def versions_named(demands: Iterable[Demand], graph: PinGraph) -> Mapping[str, frozenset[str]]:
    """Versions in demands that no release has: `driver=535` where the graph has none of that branch; and GPUs.

    A demanded driver counts too where it is known: the facts may name it for another system than the demand means.
    """
    named: dict[str, set[str]] = {}
    for demand in demands:
        if demand.kind == "gpu" or demand.kind in FRAMEWORKS:
            named.setdefault(demand.kind, set()).add(demand.spec)
        admitted = [version for version in graph.versions.get(demand.kind, ()) if demand.admits(version)]
        if admitted:
            if demand.kind == "driver" and demand.spec.removesuffix(".*").replace(".", "").isdigit():
                named.setdefault("driver", set()).update(admitted)  # on whatever system it is
            continue
        version = re.fullmatch(r"(?:==)?([0-9][0-9.]*?)(?:\.\*)?", demand.spec)
        if version:
            named.setdefault(demand.kind, set()).add(version[1])
    return {kind: frozenset(versions) for kind, versions in named.items()}
