"""What each CUDA toolkit compiles for, and with which host compilers, read from NVIDIA's wheels of nvcc.

The first and the last wheel of each minor version from 11.7 on, for Linux on x86-64, are recorded in
tests/facts/recorded/nvcc_wheels.json, with the wheels and files they come from:

- the architectures that `ptxas` names (the texts `compute_90a` in the program);
- the newest gcc and clang and the range of _MSC_VER that `crt/host_config.h` accepts;
- the version of PTX that `ptxas` reads, if it may run here.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from feedstock_tools.facts.cuda import MSVC, CudaFacts, Toolkit, load_cuda
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.versions import minor_of, parse_version
from maintenance.facts.index import Wheel, by_minor, copy_wheel, first_and_last_of_minors, linux_wheels
from maintenance.facts.records import Entry, Release, read_new, read_table, say, write_table

TABLE = "nvcc_wheels"
#: The projects of nvcc, and the one that has `crt/host_config.h` where that is another.
PROJECTS = (
    ("nvidia-cuda-nvcc-cu11", "nvidia-cuda-nvcc-cu11"),
    ("nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvcc-cu12"),
    ("nvidia-cuda-nvcc", "nvidia-cuda-crt"),
)
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


def releases(index: str, run_ptxas: bool) -> Iterator[Release]:
    """The first and the last release of each minor version, oldest first."""
    for project, of_header in PROJECTS:
        programs, headers = linux_wheels(index, project), linux_wheels(index, of_header)
        for version in first_and_last_of_minors(programs.keys() & headers.keys()):
            yield Release(
                version,
                # The first of several wheels: later ones have the same files.
                read=partial(read_release, programs[version][0], headers[version][0], run_ptxas),
                complete=lambda entry: "ptx" in entry or not run_ptxas,
                shown=_stated,
            )


def read_release(nvcc: Wheel, crt: Wheel, run: bool, before: Entry | None) -> Entry:
    """What the files of a release say: of the wheels with `ptxas` and with `crt/host_config.h`, which may be one.

    Args:
        run: run its ptxas, too.
        before: an earlier entry, whose version of PTX is kept if ptxas is not run.

    Raises:
        OSError: a wheel cannot be loaded, or its program cannot be run.
        ValueError: a file is missing or has another form than expected.
    """
    with temporary_folder() as folder:
        program = folder / "ptxas"
        content = _file_of(nvcc, folder, "/bin/ptxas")
        program.write_bytes(content)
        header = _file_of(crt, folder, "/crt/host_config.h")
        named = sorted({match.decode() for match in _NAMED.findall(content)}, key=_place)
        entry: Entry = {
            "wheels": {wheel.filename: wheel.sha256 for wheel in (nvcc, crt)},
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
    return {**(before or {}), **entry}


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
    return {minor_of(group[0]): (group[0], group[-1]) for group in by_minor(table)}


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
    names = ("ptx", "newest_gcc", "newest_clang", "visual_studio", "newest_msvc")
    architectures = " ".join(sorted(toolkit.architectures, key=_place))
    return {"architectures": architectures, **{name: getattr(toolkit, name) for name in names}}


def _stated(entry: Entry) -> dict[str, Any]:
    """The entry of a release in the terms of the facts: the years of Visual Studio, not only its _MSC_VER."""
    names = ("architectures", "newest_gcc", "newest_clang", "newest_msvc")
    accepted = [
        year for year, (first, last) in MSVC.items() if first <= entry["newest_msvc"] and last >= entry["oldest_msvc"]
    ]
    years = (accepted[0], accepted[-1])
    return {**{name: entry[name] for name in names}, "visual_studio": years, "ptx": entry.get("ptx")}


def changes(table: Mapping[str, Entry]) -> Iterator[str]:
    """A sentence for each value that the first recorded release of a minor version has otherwise than the last."""
    for first, last in minors(table).values():
        for name in table[last].keys() - {"wheels", "files"}:
            if table[first].get(name) != table[last][name]:
                yield f"{first} has {name} {table[first].get(name)}, {last} has {table[last][name]}"


def update(index: str, again: bool, run_ptxas: bool) -> int:
    """Read new wheels and report what differs; return how many wheels and facts are wrong."""
    table = read_table(TABLE)

    def write() -> None:
        write_table(TABLE, {version: table[version] for version in sorted(table, key=parse_version)})

    wrong = read_new(releases(index, run_ptxas), table, again, write)
    sentences = differences(load_cuda(), table)
    say(*changes(table), *sentences, f"{len(table)} releases in the record, {len(sentences)} facts differ")
    return wrong + len(sentences)
