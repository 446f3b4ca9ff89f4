"""The names of GPUs, and the drivers that know them, read from the lists that come with drivers.

They are `names` and `listed` of each chip in `variants/gpus.yaml`; all else in the file is written by hand. The lists:

- the file of github.com/pciutils/pciids (Debian's package pci.ids);
- a clone of github.com/NVIDIA/open-gpu-kernel-modules, whose tags are driver versions, 515.43.04 and later: the names
  of all GPUs that a driver knows;
- a folder with the lists `*.ids` of Debian's package nvidia-detect: the devices of the branches 304 to 550.

A name that the first open driver already had has no entry in `listed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from feedstock_tools.data import data_folder
from feedstock_tools.versions import parse_version
from maintenance.facts.records import git, say

#: The lists of Debian's nvidia-detect by branch. Two lists of 390: the second has the GPUs of 64-bit systems only.
BRANCH_LISTS = {
    "304": ("nvidia-legacy-304xx",),
    "340": ("nvidia-legacy-340xx",),
    "390": ("nvidia-legacy-390xx", "nvidia-legacy-390xx-amd64"),
    "418": ("nvidia-tesla-418",),
    "440": ("nvidia-tesla-440",),
    "450": ("nvidia-tesla-450",),
    "460": ("nvidia-tesla-460",),
    "470": ("nvidia-tesla-470",),
    "535": ("nvidia-tesla-535",),
    "550": ("nvidia",),
}
HEADER = "src/nvidia/generated/g_nv_name_released.h"
HEADER_OF_FILE = """\
# yaml-language-server: $schema=gpus.schema.json
#
# GPUs: their chips, drivers and names. docs/facts.md explains the keys. `names` and `listed` are written by
# `python -m maintenance.facts gpus`, the rest by hand.
"""
FIRST_OPEN = "515.43.04"
#: Entries of lists that contradict what was sold under the name.
NOT_SOLD = frozenset(
    {
        "GK107 GeForce GT 1030",
        "GK106 GeForce GTX 750 Ti",
        "GP100 DGX Station",
        "TU104 GeForce GTX 2080",
        "GB202 RTX PRO 6000 Blackwell",
    }
)
#: Betas for developers of Vulkan, which run ahead of the branch whose number they carry.
BETA = re.compile(r"515\.49\.|525\.47\.|535\.43\.(?!02)|550\.40\.(?!07)|570\.(?:123|158)|580\.94\.|595\.44\.")
#: The profile of a virtual GPU: `A10-24Q`, `H100-1-10CME`, `RTX6000-6`.
PROFILE = re.compile(r"(?: DC)?-(?:\d+-)?\d+[ABCQ]?(?:ME|GFX)?\d?$")
#: Editions that are entries of their own, by the words that lists have for them: most have another chip.
EDITIONS = {
    r"Max-Q Workstation Edition": "Max-Q Workstation Edition",
    r"Workstation Edition": "Workstation Edition",
    r"Server Edition": "Server Edition",
    r"Embedded GPU": "Embedded GPU",
    r"Mobile|Laptop GPU": "Laptop GPU",
    r"(?:with )?Max-Q": "Max-Q",
}
#: Parts of names that say how a GPU is mounted, cooled or equipped, and nothing of its code.
EQUIPMENT = re.compile(
    r"\s*\b(?:PCI[eE]|PG\d+\w*|SXM\d?(?:-LC)?|SMX\d|NVL\d*|FHHL|LHR|DGXS|OEM|Rev\. ?[A-Z0-9]+|HBM\d?e?|\d+ ?(?:GB|MB)|"
    r"GDDR\d\w*|DDR\d|Lite Hash Rate|Hash Rate|Mac Edition|Engineering Sample|with Max-Q Design|Max-Q|Mobile|"
    r"Laptop GPU|Embedded GPU|Workstation Edition|Server Edition|SFF Edition|SFF|Generation|Refresh|NVSwitch|"
    r"Super-?Chip|BTX|AC|vGPU|USM)\b(?:\s*/\s*)?"
)
FAMILY = re.compile(
    r"^(?:GeForce|Quadro|Tesla|TITAN|RTX|GRID|NVS|CMP|DGX|Jetson|DRIVE|"
    r"(?:A|H|B|L|T|GH|GB|P|V|M|K|MX)\d+[A-Z]{0,2})\b(?! ?-?SKU)"
)


def chips_of(pci_ids: Path) -> dict[str, tuple[str, str]]:
    """For each device id of NVIDIA (lower case) its chip without suffixes (`GA102`) and the name in brackets."""
    found: dict[str, tuple[str, str]] = {}
    inside = False
    for line in pci_ids.read_text(encoding="utf-8", errors="replace").splitlines():
        if re.match(r"[0-9a-f]{4} ", line):
            inside = line.startswith("10de ")
        match = re.match(r"\t([0-9a-f]{4})  (G[A-Z]\d+|AD\d+|TU\d+)([A-Z]*) ?[^\[]*\[(.+)\]$", line) if inside else None
        if match:
            # GB20B and GB10B are chips; GK208B, GA107BM and the like are versions of one.
            chip = match[2] + ("B" if match[3].startswith("B") and match[2] in ("GB20", "GB10", "GP10", "GA10") else "")
            found[match[1]] = (chip, match[4])
    return found


def names_in(text: str) -> Iterator[str]:
    """The names of GPUs in an entry: `GeForce RTX 3080 Mobile / Max-Q 8GB/16GB` is `GeForce RTX 3080 Laptop GPU`."""
    first = ""
    text = re.sub(r"Max-Q / Mobile|Mobile / Max-Q", "Mobile", text.replace("NVIDIA ", ""))
    for part in re.split(r" / |(?<=[0-9A-Za-z])/(?=[A-Z]|\d{3,})", text):
        edition = next((name for words, name in EDITIONS.items() if re.search(rf"\b(?:{words})\b", part)), None)
        name = PROFILE.sub("", re.sub(r"\s+", " ", EQUIPMENT.sub(" ", part)).strip(" /-")).replace("RTX Pro", "RTX PRO")
        name = re.sub(r"^GRID (?=(?:RTX ?)?[ABHLTVM]|RTX)", "", name)
        if " Ada" in text and " Ada" not in name:
            name += " Ada"
        if not FAMILY.match(name) and first and re.match(r"\d{3,4}\w*$|[A-Z]\d+$", name):
            name = f"{first.rsplit(' ', 1)[0]} {name}"
        if FAMILY.match(name) and not re.search(
            r"[()]| $|^Tesla$|x0$|Reserved|INT|FAKE|CS1|PROD|IceCube|GPU$|-[A-Z]\d|- ", name
        ):
            first = name
            yield f"{name} {edition}" if edition else name


def released(clone: Path, tag: str) -> Iterator[tuple[str, str]]:
    """The device ids (lower case) and names that a driver knows."""
    for device, name in re.findall(
        r'\{ 0x([0-9A-F]{4}), 0x\w+, 0x\w+, "([^"]+)" \}', git(clone, "show", f"{tag}:{HEADER}")
    ):
        yield device.lower(), name


def _listed(chips: Mapping[str, tuple[str, str]], clone: Path, folder: Path) -> Iterator[tuple[str, str, str | None]]:
    """The chip, name and driver of each entry of the lists; pci.ids names no driver."""
    for chip, text in chips.values():
        yield chip, text, None
    for branch, files in BRANCH_LISTS.items():
        for file in files:
            for line in (folder / f"{file}.ids").read_text(encoding="ascii").split():
                device = line.removeprefix("10DE").lower()
                if device in chips:
                    yield *chips[device], branch
    for tag in (tag for tag in git(clone, "tag").split() if not BETA.match(tag)):
        for device, name in released(clone, tag):
            if device in chips:
                yield chips[device][0], name, tag


def read_lists(pci_ids: Path, clone: Path, folder: Path) -> tuple[dict[tuple[str, str], set[str]], dict[str, set[str]]]:
    """For each chip and name the drivers that list it, and for each chip the drivers that know any of its devices."""
    chips = chips_of(pci_ids)
    chips_by_name: dict[str, set[str]] = {}
    for chip, text in chips.values():
        for name in names_in(text):
            chips_by_name.setdefault(_alike(_of_any_edition(name)), set()).add(chip)
    spelling: dict[str, str] = {}
    names: dict[tuple[str, str], set[str]] = {}
    drivers: dict[str, set[str]] = {chip: set() for chip, _ in chips.values()}
    for chip, text, driver in _listed(chips, clone, folder):
        own = {driver} if driver else set()
        drivers[chip] |= own
        for name in names_in(text):
            # Drivers have some names on chips that were never sold under them; pci.ids decides.
            if chip in chips_by_name.get(_alike(_of_any_edition(name)), {chip}) and f"{chip} {name}" not in NOT_SOLD:
                names.setdefault((chip, spelling.setdefault(_alike(name), name)), set()).update(own)
    return names, drivers


def _of_any_edition(name: str) -> str:
    """A name without its edition."""
    return next((name.removesuffix(f" {edition}") for edition in EDITIONS.values() if name.endswith(edition)), name)


def _alike(name: str) -> str:
    """A name without what sources spell differently: case and spaces."""
    return re.sub(r"[ -]", "", name.casefold())


def contradiction(chip: str, entry: Mapping[str, Any], drivers: Iterable[str]) -> str | None:
    """Why the first driver that the file names cannot be right: a driver before it knows the chip, or none after it."""
    known = sorted(drivers, key=parse_version)
    if not known:
        return f"{chip}: no list has it"
    first = parse_version(entry["first_driver"]["linux"])
    if parse_version(known[0]) < first and known[0] not in BRANCH_LISTS:
        return f"{chip}: {known[0]} has it, before {entry['first_driver']['linux']}"
    if known[0] in BRANCH_LISTS:
        before = [branch for branch in BRANCH_LISTS if parse_version(branch) < parse_version(known[0])]
        if first.major > int(known[0]) or (before and first.major <= int(before[-1])):
            return f"{chip}: first in the list of {known[0]}, not in that of {before[-1] if before else 'none'}"
    elif first.major < parse_version(known[0]).major:
        return f"{chip}: {known[0]} is the first that has it, not {entry['first_driver']['linux']}"
    return None


def rewritten(
    document: dict[str, Any], names: Mapping[tuple[str, str], set[str]], drivers: Mapping[str, set[str]]
) -> list[str]:
    """Put names and first listings into the document; return the contradictions."""
    problems = []
    for chip, entry in document["chips"].items():
        if entry.get("by_hand"):
            continue
        own = {name: found for (listed, name), found in names.items() if listed == chip}
        # A virtual GPU is named without the family: `V100` beside `Tesla V100`.
        own = {name: found for name, found in own.items() if f"Tesla {name}" not in own}
        entry["names"] = sorted(own)
        first = {name: min(found, key=parse_version) for name, found in own.items() if found}
        later = {name: driver for name, driver in first.items() if parse_version(driver) > parse_version(FIRST_OPEN)}
        later = {name: driver for name, driver in later.items() if driver not in BRANCH_LISTS}
        entry.pop("listed", None)
        if later:
            entry["listed"] = dict(sorted(later.items()))
        problems.append(contradiction(chip, entry, drivers.get(chip, ())))
    # Chips before Fermi (GT200, GT218, …) have no toolkit that is known here.
    absent = sorted(chip for chip in drivers if drivers[chip] and chip not in document["chips"] and chip[1] != "T")
    problems.extend(f"{chip}: not in the file" for chip in absent)
    return [problem for problem in problems if problem]


def dump(document: dict[str, Any]) -> str:
    """The document as text, one section after the other, lists filled to the width of the other files."""
    lines = [HEADER_OF_FILE, _plain(document, "sources"), _plain(document, "generations"), "chips:"]
    for chip, entry in document["chips"].items():
        lines.append(f"  {chip}:")
        for key, value in entry.items():
            text = yaml.dump(value, default_flow_style=True, width=108, sort_keys=False).removesuffix("...\n").strip()
            first, *others = text.splitlines()
            if len(text) + len(key) > 110:
                lines += [f"    {key}:", f"      {first.strip()}", *(f"       {line.strip()}" for line in others)]
            else:
                lines.append(f"    {key}: {text}")
    return "\n".join([*lines, "", _plain(document, "familiar"), _plain(document, "machines")])


def _plain(document: dict[str, Any], section: str) -> str:
    return yaml.dump({section: document[section]}, default_flow_style=None, width=116, sort_keys=False)


def update(pci_ids: Path, clone: Path, branches: Path) -> int:
    """Rewrite the file and report what is new, gone or contradictory; return how many contradictions there are."""
    path = data_folder("variants") / "gpus.yaml"
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    before = {name for entry in document["chips"].values() for name in entry.get("names", ())}
    problems = rewritten(document, *read_lists(pci_ids, clone, branches))
    after = {name for entry in document["chips"].values() for name in entry["names"]}
    path.write_text(dump(document), encoding="utf-8")
    say(*(f"new: {name}" for name in sorted(after - before)), *(f"gone: {name}" for name in sorted(before - after)))
    say(*problems)
    return len(problems)
