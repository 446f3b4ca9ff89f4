"""Which CUDA, cuDNN and Python each release of a framework is for, read from an index of wheels.

For the last release of each minor version of a framework, `variants/wheels.yaml` has the versions of Python and the
platforms of its wheels, and the CUDA and cuDNN that its metadata asks for. Only the metadata of a wheel is read: beside
it (PEP 658), or out of it by ranges, never the whole wheel.
"""

# ruff: noqa: S310 - the index is the maintainer's own choice

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import yaml

from feedstock_tools.data import data_folder
from feedstock_tools.versions import parse_version
from maintenance.facts.index import LINUX, Wheel, archive, by_minor, wheels_of
from maintenance.facts.records import Entry, Release, read_new

#: The projects of each framework on the index, the extra that brings CUDA along, and the first version that is read.
PROJECTS: Mapping[str, tuple[str, str | None, str]] = {
    "torch": ("torch", None, "1.13"),
    "tensorflow": ("tensorflow", "and-cuda", "2.10"),
    "jax-cuda12": ("jax-cuda12-plugin", "with-cuda", "0.4.26"),
    "jax-cuda13": ("jax-cuda13-plugin", "with-cuda", "0"),
    "cupy-cuda11x": ("cupy-cuda11x", None, "11"),
    "cupy-cuda12x": ("cupy-cuda12x", "ctk", "11.5"),
    "cupy-cuda13x": ("cupy-cuda13x", "ctk", "13"),
}
PLATFORMS = (
    (LINUX, "linux-64"),
    (re.compile(r"manylinux.*aarch64"), "linux-aarch64"),
    (re.compile(r"win_amd64"), "win-64"),
    (re.compile(r"macosx.*(?:arm64|universal2)"), "osx-arm64"),
    (re.compile(r"macosx.*x86_64"), "osx-64"),
)
REQUIRED = re.compile(
    r"^Requires-Dist: (?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]+\])? ?\(?(?P<spec>[^;)]*)\)?\s*(?:;\s*(?P<marker>.*))?$"
)


def metadata_of(url: str) -> str:
    """The METADATA of a wheel: from the file beside it, or out of its archive."""
    try:
        with urllib.request.urlopen(f"{url}.metadata", timeout=60) as answer:
            text: bytes = answer.read(1 << 20)
        return text.decode()
    except urllib.error.HTTPError:
        with archive(url) as opened:
            name = next(name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
            return opened.read(name).decode()


def read_release(version: str, files: list[Wheel], extra: str | None, _before: Entry | None = None) -> Entry:
    """One release: the Pythons and platforms of its wheels, and what its metadata asks for."""
    tags = {file.python for file in files}
    pythons = sorted({f"{tag[2]}.{tag[3:]}" for tag in tags if re.fullmatch(r"cp3\d+", tag)}, key=parse_version)
    subdirs = [subdir for pattern, subdir in PLATFORMS if any(pattern.search(file.platform) for file in files)]
    chosen = next((file for file in files if LINUX.search(file.platform)), files[-1])
    entry: Entry = {"version": version, "python": pythons, "platforms": subdirs}
    for name, spec, marker in requirements(metadata_of(chosen.url)):
        if "extra ==" in marker and (extra is None or f'"{extra}"' not in marker.replace("'", '"')):
            continue
        library = re.fullmatch(r"nvidia-(?P<what>cuda-runtime|cudnn)(?:-cu\d+)?", name)
        if library:
            entry["cuda" if library["what"] == "cuda-runtime" else "cudnn"] = spec.replace(" ", "")
        elif name == "cuda-toolkit":
            entry["cuda"] = spec.replace(" ", "")
        elif name == "numpy" and "extra" not in marker and spec:
            entry["numpy"] = spec.replace(" ", "")
    return entry


def requirements(metadata: str) -> Iterable[tuple[str, str, str]]:
    """Name, version specification and marker of each requirement in the metadata of a wheel."""
    for line in metadata.partition("\n\n")[0].splitlines():
        match = REQUIRED.match(line)
        if match:
            yield match["name"].lower().replace("_", "-"), match["spec"].strip(), match["marker"] or ""


def update(index: str, again: bool) -> int:
    """Rewrite the file with what is new on the index; return how many releases differ or could not be read."""
    path = data_folder("variants") / "wheels.yaml"
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    wrong = 0
    table: dict[str, list[Entry]] = {}
    for framework, (project, extra, oldest) in PROJECTS.items():
        files = wheels_of(index, project)
        since = [version for version in files if parse_version(version) >= parse_version(oldest)]
        last = {f"{framework} {group[-1]}": group[-1] for group in by_minor(since)}
        known = {f"{framework} {entry['version']}": entry for entry in document["wheels"].get(framework, ())}
        new = (Release(key, partial(read_release, version, files[version], extra)) for key, version in last.items())
        wrong += read_new(new, known, again, lambda: None)
        table[framework] = [known[key] for key in last if key in known]
    path.write_text(dump(document["tested"], table), encoding="utf-8")
    return wrong


def dump(tested: Mapping[str, Any], table: Mapping[str, list[dict[str, Any]]]) -> str:
    """The file as text: one release a line."""
    lines = [
        "# yaml-language-server: $schema=wheels.schema.json",
        "#",
        "# The last release of each minor version of frameworks: the Pythons and platforms of its wheels, and the",
        "# CUDA, cuDNN and NumPy that its metadata asks for. All but `tested` is written by",
        "# `python -m maintenance.facts frameworks`.",
        "",
        "# Releases whose metadata names no CUDA: what their makers tested them with.",
        yaml.dump({"tested": tested}, sort_keys=False, default_flow_style=None, width=116),
        "wheels:",
    ]
    for framework, entries in table.items():
        lines.append(f"  {framework}:")
        lines += [
            f"    - {yaml.dump(entry, default_flow_style=True, width=10_000, sort_keys=False).strip()}"
            for entry in entries
        ]
    return "\n".join(lines) + "\n"
