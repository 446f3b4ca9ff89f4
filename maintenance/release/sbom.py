"""The bill of materials of a release (CycloneDX 1.6), from the metadata of the packages in an environment.

It names every package that an installation with all extras for users brings: version, license, package URL, what
requires it, and whether the program needs it (`required`) or an extra does (`optional`). The same environment gives the
same bytes.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from feedstock_tools.errors import WorkError

PROGRAM = "feedstock-tools"
#: The extras that a user installs to run the program.
EXTRAS = ("fleet", "s3")


@dataclass(frozen=True, slots=True)
class _Node:
    """A package with the extras of it that something asks for."""

    name: str
    extras: frozenset[str]


def installed_in(site_packages: Path) -> dict[str, Distribution]:
    """The packages of an environment by normalized name."""
    found = distributions(path=[str(site_packages)])
    return {canonicalize_name(each.metadata["Name"]): each for each in found}


def bill_of_materials(installed: Mapping[str, Distribution], epoch: int) -> dict[str, Any]:
    """The bill of materials as values for `json`.

    Args:
        installed: the packages of an environment, the program among them.
        epoch: the time that it states, in seconds: that of the commit.

    Raises:
        WorkError: something that the program or an extra requires is not installed.
    """
    needed = _closure(installed, ())
    everything = _closure(installed, EXTRAS)
    own = _component(installed[PROGRAM], "application")
    others = [
        _component(installed[name], "library") | {"scope": "required" if name in needed else "optional"}
        for name in sorted(everything)
        if name != PROGRAM
    ]
    links = [
        {"ref": _purl(installed[name]), "dependsOn": sorted(_purl(installed[each]) for each in everything[name])}
        for name in sorted(everything)
    ]
    seed = "\n".join(component["purl"] for component in (own, *others))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"{epoch}\n{seed}").urn,
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "lifecycles": [{"phase": "build"}],
            "component": own,
        },
        "components": others,
        "dependencies": links,
    }


def refuse_invalid(materials: Mapping[str, Any]) -> None:
    """Check a bill of materials against CycloneDX's own JSON Schema, unknown keys included.

    Raises:
        WorkError: it is not valid.
    """
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(materials))
    if error is not None:
        raise WorkError(f"the bill of materials is not valid: {str(error.data)[:500]}")


def _closure(installed: Mapping[str, Distribution], extras: Iterable[str]) -> dict[str, set[str]]:
    """The packages that the program requires with some extras, each with those that it requires itself."""
    found: dict[str, set[str]] = {}
    seen: set[_Node] = set()
    pending = [_Node(PROGRAM, frozenset(extras))]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.name not in installed:
            raise WorkError(f"{node.name} is required, but not installed", hint="Install the lock: requirements.lock.")
        for need in _needs(installed[node.name], node.extras):
            name = canonicalize_name(need.name)
            found.setdefault(node.name, set()).update({name} - {node.name})
            pending.append(_Node(name, frozenset(need.extras)))
        found.setdefault(node.name, set())
    return found


def _needs(distribution: Distribution, extras: Iterable[str]) -> Iterable[Requirement]:
    """The requirements of a package that hold here, with some extras."""
    for line in distribution.requires or ():
        need = Requirement(line)
        if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield need


def _component(distribution: Distribution, kind: str) -> dict[str, Any]:
    metadata = distribution.metadata
    component: dict[str, Any] = {
        "type": kind,
        "bom-ref": _purl(distribution),
        "name": metadata["Name"],
        "version": distribution.version,
        "purl": _purl(distribution),
    }
    said = {key: metadata.get_all(key) or [""] for key in ("Summary", "License", "License-Expression")}
    summary = said["Summary"][0]
    licenses = _licenses(said["License-Expression"][0], metadata.get_all("Classifier") or (), said["License"][0])
    return component | ({"description": summary} if summary else {}) | ({"licenses": licenses} if licenses else {})


def _licenses(expression: str, classifiers: Iterable[str], text: str) -> list[dict[str, Any]]:
    """The license expression of a package; of older metadata the names of its classifiers, or a text of one line."""
    if expression:
        return [{"expression": expression}]
    names = {each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License :: OSI Approved :: ")}
    return [{"license": {"name": name}} for name in sorted(names or ({text} if text and "\n" not in text else set()))]


def _purl(distribution: Distribution) -> str:
    """The package URL (purl-spec, type pypi): a normalized name and a version."""
    return f"pkg:pypi/{canonicalize_name(distribution.metadata['Name'])}@{distribution.version}"
