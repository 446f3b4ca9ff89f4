"""Read from NVIDIA's wheels of nvcc what each CUDA toolkit compiles for, and with which host compilers.

    python -m maintenance.toolkits [--index URL] [--run-ptxas]

reads the first and the last wheel of each minor version from 11.7 on, for Linux on x86-64, one at a time, and records
in tests/facts/recorded/nvcc_wheels.json, with the wheels and files they come from:

- the architectures that `ptxas` names (the texts `compute_90a` in the program);
- the newest gcc and clang and the range of _MSC_VER that `crt/host_config.h` accepts;
- with `--run-ptxas`, the version of PTX that it reads. This option runs NVIDIA's program on this machine (Linux on
  x86-64), after the wheel's SHA-256 is compared with the index, and checks the architectures with `ptxas --help`.

A wheel that the record has is not read again, so that a rerun reads what is new; `--again` reads it again and reports
what differs. At the end it compares the last wheel of each minor version with `variants/cuda.yaml` and reports each
fact that differs, each minor version that the file lacks, and what the first wheel has otherwise. The exit code is 1 if
a fact differs or a wheel cannot be read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feedstock_tools.facts import CudaFacts, load_cuda
from feedstock_tools.facts.cuda import MSVC, Toolkit
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.versions import parse_version
from maintenance.recorded_facts import RECORDED, read_table
from maintenance.wheel_index import Wheel, add_index_option, copy_wheel, first_and_last_of_minors, wheels_of

TABLE = "nvcc_wheels"
#: The projects of nvcc, and the one that has `crt/host_config.h` where that is another.
PROJECTS = (
    ("nvidia-cuda-nvcc-cu11", "nvidia-cuda-nvcc-cu11"),
    ("nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvcc-cu12"),
    ("nvidia-cuda-nvcc", "nvidia-cuda-crt"),
)
_LINUX = re.compile(r"manylinux.*x86_64")
_NAMED = re.compile(rb"compute_(\d+[af]?)\0")
_HELPED = re.compile(r"'sm_(\d+[af]?)'")
_PTX = re.compile(r"current version is '([\d.]+)'")
#: PTX of a version that no ptxas reads.
_TOO_NEW = ".version 99.9\n.target sm_80\n.address_size 64\n"
_GCC = re.compile(r"^#if __GNUC__ > (\d+)", re.MULTILINE)
_CLANG = re.compile(
    r"^#if defined\(__clang__\) && !defined\(__ibmxl_vrm__\).*\s+#if \(__clang_major__ >= (\d+)\)", re.MULTILINE
)
_MSVC = re.compile(r"^#if _MSC_VER < (\d+) \|\| _MSC_VER >= (\d+)", re.MULTILINE)

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Release:
    """A release of nvcc: the wheels with `ptxas` and with `crt/host_config.h`, which may be one."""

    version: str
    nvcc: Wheel
    crt: Wheel


def releases(index: str) -> Iterator[Release]:
    """The first and the last release of each minor version, oldest first."""
    for nvcc, crt in PROJECTS:
        programs, headers = _of_linux(index, nvcc), _of_linux(index, crt)
        for version in first_and_last_of_minors(programs.keys() & headers.keys()):
            yield Release(version, programs[version], headers[version])


def _of_linux(index: str, project: str) -> dict[str, Wheel]:
    """The first wheel for Linux on x86-64 of each release: later ones have the same files."""
    found = wheels_of(index, project)
    fitting = {version: [wheel for wheel in found[version] if _LINUX.search(wheel.platform)] for version in found}
    return {version: wheels[0] for version, wheels in fitting.items() if wheels}


def read_release(release: Release, folder: Path, run: bool) -> Entry:
    """What the files of a release say; with `run`, what its ptxas says too.

    Raises:
        OSError: a wheel cannot be loaded, or its program cannot be run.
        ValueError: a file is missing or has another form than expected.
    """
    program = folder / "ptxas"
    program.write_bytes(_file_of(release.nvcc, folder, "/bin/ptxas"))
    header = _file_of(release.crt, folder, "/crt/host_config.h")
    content = program.read_bytes()
    named = sorted({match.decode() for match in _NAMED.findall(content)}, key=_place)
    entry: dict[str, Any] = {
        "wheels": {wheel.filename: wheel.sha256 for wheel in (release.nvcc, release.crt)},
        "files": {
            "bin/ptxas": hashlib.sha256(content).hexdigest(),
            "crt/host_config.h": hashlib.sha256(header).hexdigest(),
        },
        "architectures": " ".join(named),
        **host_compilers(header.decode(errors="replace")),
    }
    if run:
        helped, entry["ptx"] = run_ptxas(program)
        if set(helped) != set(named):
            raise ValueError(f"ptxas --help lists other architectures than the program names: {' '.join(helped)}")
    return entry


def _file_of(wheel: Wheel, folder: Path, ending: str) -> bytes:
    """The content of the one file of a wheel whose path ends so."""
    path = folder / wheel.filename
    copy_wheel(wheel, path)
    with zipfile.ZipFile(path) as opened:
        names = [name for name in opened.namelist() if name.endswith(ending)]
        if len(names) != 1:
            raise ValueError(f"{wheel.filename} has {len(names)} files *{ending}; expected one")
        content = opened.read(names[0])
    path.unlink()
    return content


def host_compilers(header: str) -> dict[str, Any]:
    """The host compilers that a `crt/host_config.h` accepts: major versions, and the range of _MSC_VER.

    Raises:
        ValueError: the header has another form.
    """
    gcc, clang, msvc = _GCC.search(header), _CLANG.search(header), _MSVC.search(header)
    if gcc is None or clang is None or msvc is None:
        raise ValueError("crt/host_config.h has another form than expected")
    return {
        "newest_gcc": int(gcc[1]),
        "newest_clang": int(clang[1]) - 1,
        "oldest_msvc": int(msvc[1]),
        "newest_msvc": int(msvc[2]) - 1,
    }


def run_ptxas(program: Path) -> tuple[list[str], str]:
    """The architectures that `ptxas --help` lists, and the version of PTX that it reads."""
    program.chmod(0o700)
    text = subprocess.run([str(program), "--help"], capture_output=True, text=True, check=True, timeout=60).stdout
    source = program.with_name("too_new.ptx")
    source.write_text(_TOO_NEW, encoding="utf-8")
    command = [str(program), "-arch", "sm_80", str(source), "-o", str(program.with_name("nothing"))]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stderr
    version = _PTX.search(refused)
    if version is None:
        raise ValueError(f"ptxas names no version of PTX: {refused.strip()}")
    return sorted(set(_HELPED.findall(text)), key=_place), version[1]


def _place(name: str) -> tuple[int, str]:
    return int(name.rstrip("af")), name


def minors(table: Mapping[str, Entry]) -> dict[str, tuple[str, str]]:
    """The first and the last recorded release of each minor version."""
    found: dict[str, list[str]] = {}
    for version in first_and_last_of_minors(table):
        found.setdefault(".".join(version.split(".")[:2]), []).append(version)
    return {minor: (group[0], group[-1]) for minor, group in found.items()}


def differences(facts: CudaFacts, table: Mapping[str, Entry]) -> list[str]:
    """A sentence for each fact that is not what the last recorded release of its minor version has."""
    found = []
    for minor, (_, last) in minors(table).items():
        toolkit = facts.toolkits.get(minor)
        if toolkit is None:
            found.append(f"CUDA {minor} has no facts; {last} has {_stated(table[last])}")
            continue
        stated, read = _facts(toolkit), _stated(table[last])
        found += [
            f"CUDA {minor}: {name} is {stated[name]} in the facts, {read[name]} in {last}"
            for name in stated
            if stated[name] != read[name] and (name != "ptx" or read[name])
        ]
    return found


def _facts(toolkit: Toolkit) -> dict[str, Any]:
    years = toolkit.visual_studio
    return {
        "architectures": " ".join(sorted(toolkit.architectures, key=_place)),
        "ptx": toolkit.ptx,
        "newest_gcc": toolkit.newest_gcc,
        "newest_clang": toolkit.newest_clang,
        "visual_studio": years,
        "newest_msvc": toolkit.newest_msvc,
    }


def _stated(entry: Entry) -> dict[str, Any]:
    """The entry of a release in the terms of the facts: the years of Visual Studio, not only its _MSC_VER."""
    names = ("architectures", "newest_gcc", "newest_clang", "newest_msvc")
    accepted = [
        year for year, (first, last) in MSVC.items() if first <= entry["newest_msvc"] and last >= entry["oldest_msvc"]
    ]
    return {
        **{name: entry[name] for name in names},
        "visual_studio": (accepted[0], accepted[-1]),
        "ptx": entry.get("ptx"),
    }


def changes(table: Mapping[str, Entry]) -> Iterator[str]:
    """A sentence for each value that the first recorded release of a minor version has otherwise than the last."""
    for first, last in minors(table).values():
        for name in table[last].keys() - {"wheels", "files"}:
            if table[first].get(name) != table[last][name]:
                yield f"{first} has {name} {table[first].get(name)}, {last} has {table[last][name]}"


def main(arguments: list[str]) -> int:
    """The exit code: see the docstring of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_index_option(parser)
    parser.add_argument("--again", action="store_true", help="Read every wheel again, and report what differs.")
    parser.add_argument("--run-ptxas", action="store_true", help="Run NVIDIA's ptxas on this machine.")
    given = parser.parse_args(arguments)
    table: dict[str, Entry] = dict(read_table(TABLE))
    wrong = 0
    for release in releases(given.index):
        before = table.get(release.version)
        if before and not given.again and ("ptx" in before or not given.run_ptxas):
            continue
        try:
            with temporary_folder() as folder:
                entry = read_release(release, folder, given.run_ptxas)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            wrong += 1
            say([f"{release.version}: not read: {error}"])
            continue
        differs = before is not None and {**before, **entry} != before and {**entry, **before} != entry
        wrong += differs
        say([f"{release.version}: {'differs' if differs else 'read'} {_stated(entry)}"])
        table[release.version] = {**(before or {}), **entry}
        write_record(table)
    sentences = differences(load_cuda(), table)
    say([*changes(table), *sentences, f"{len(table)} releases in the record, {len(sentences)} facts differ"])
    return 1 if wrong or sentences else 0


def say(lines: Iterable[str]) -> None:
    """Print lines at once, so that a long run shows where it is."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def write_record(table: Mapping[str, Entry]) -> None:
    """Write the record, in the order of the versions."""
    ordered = {version: table[version] for version in sorted(table, key=parse_version)}
    text = json.dumps(ordered, indent=1, ensure_ascii=False)
    (RECORDED / f"{TABLE}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
