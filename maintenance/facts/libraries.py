"""Which GPUs NVIDIA's libraries hold code for, read from their wheels.

The first and the last release of each minor version of cuDNN, NCCL, cuSPARSELt and cuTENSOR for Linux on x86-64 are
recorded in tests/facts/recorded/library_wheels.json: the architectures in each shared library, with the number of
pieces of code for each. Of a wheel, the directory of the archive and the shared libraries are loaded, one of these at a
time into a temporary file; the disk needs room for the largest, 600 MB. Libraries that are too large for a run are
named as `unread`, and a run with a higher limit reads those of them that fit. The small libraries of cuDNN 9 (ops and
cnn) have the same oldest GPU as the large one (adv); libcudnn_engines_precompiled goes back further than all others.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from feedstock_tools.channel.specs import admits
from feedstock_tools.facts.cuda import CudaFacts, load_cuda
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.gpu_code.code import GpuCode, architecture_names, gpu_code_in_file
from feedstock_tools.versions import parse_version
from maintenance.facts.index import Wheel, archive, copy, first_and_last_of_minors, linux_wheels
from maintenance.facts.records import Entry, Release, read_new, read_table, say, write_table

TABLE = "library_wheels"
#: The projects on the index: the library in `variants/cuda.yaml`, and the major version of CUDA.
PROJECTS: Mapping[str, tuple[str, str]] = {
    **{f"nvidia-nccl-cu{major}": ("nccl", major) for major in ("11", "12", "13")},
    **{f"nvidia-cusparselt-cu{major}": ("cusparselt", major) for major in ("12", "13")},
    **{f"nvidia-cudnn-cu{major}": ("cudnn", major) for major in ("11", "12", "13")},
    **{f"cutensor-cu{major}": ("cutensor", major) for major in ("11", "12", "13")},
}
#: An architecture counts from this part of the pieces of the most frequent on: cuSPARSELt has one piece for 5.2.
_STRAY = 50
_SHARED_LIBRARY = re.compile(r"\.so(?:\.[0-9]+)*$")


def read_wheel(wheel: Wheel, largest: float, again: bool, before: Entry | None) -> Entry:
    """The code in each shared library of a wheel, unpacked one after the other.

    Args:
        largest: the bytes of the largest library in the wheel that is read.
        again: read the files that an earlier entry has, too.

    Raises:
        OSError: the wheel cannot be loaded.
    """
    files = {**before["files"]} if before and not again else {}
    unread = []
    with archive(wheel.url) as opened, temporary_folder() as folder:
        for member in opened.infolist():
            name = PurePosixPath(member.filename).name
            known = before is not None and not again and name not in before["unread"]
            if known or not _SHARED_LIBRARY.search(member.filename):
                continue
            if member.compress_size > largest:
                unread.append(name)
                continue
            path = folder / "library"
            try:
                with opened.open(member) as stream:
                    digest = copy(stream, path)
            except zipfile.BadZipFile as error:
                raise OSError(f"{member.filename} is damaged or cut off") from error
            if pieces := counted_names(gpu_code_in_file(path)):
                files[name] = {"sha256": digest, "code": pieces}
    entry = {"wheel": wheel.filename, "sha256": wheel.sha256, "files": dict(sorted(files.items()))}
    return {**entry, "unread": unread} if unread else entry


def counted_names(codes: tuple[GpuCode, ...]) -> str:
    """The architectures of pieces of code, machine code first, with the number of pieces: `sm_75:62 compute_75:1`."""
    counts = Counter(name for code in codes for name in architecture_names([code]))
    return " ".join(f"{name}:{counts[name]}" for name in architecture_names(codes))


def oldest_capability(entry: Mapping[str, Any]) -> int:
    """The oldest GPU (`75`) for which every library of a wheel that has GPU code has some, as machine code or PTX."""
    return max(_oldest_of_file(file["code"]) for file in entry["files"].values())


def _oldest_of_file(code: str) -> int:
    """The oldest architecture of a library, without those of a few stray pieces: nvcc's default, 5.2 up to CUDA 12."""
    counts = [(int(number), int(count)) for number, count in re.findall(r"\b(?:sm|compute)_(\d+)[af]?:(\d+)", code)]
    most = max(count for _, count in counts)
    return min(number for number, count in counts if count * _STRAY >= most)


def contradictions(facts: CudaFacts, table: Mapping[str, Entry]) -> list[str]:
    """A sentence for each recorded wheel of a library whose oldest GPU is not what the facts say.

    Without a fact, a library has code for every GPU that its CUDA compiles for.
    """
    found = []
    for key, entry in table.items():
        project, version = key.split(" ")
        library, major = PROJECTS[project]
        if library not in facts.libraries or not entry["files"]:
            continue
        of_major = [toolkit for toolkit in facts.toolkits.values() if toolkit.version.split(".")[0] == major]
        oldest = min(int(name.rstrip("af")) for toolkit in of_major for name in toolkit.architectures)
        stated = [
            int(code.capability.replace(".", ""))
            for code in facts.libraries[library].gpu_code
            if admits(code.versions, version) and admits(code.cuda, of_major[-1].version)
        ]
        if max(oldest, oldest_capability(entry)) != max(oldest, *stated, 0):
            found.append(
                f"{key} has code for GPUs from {oldest_capability(entry)} on; the facts say {max(oldest, *stated, 0)}"
            )
    return found


def releases(index: str, projects: Sequence[str], largest: float, again: bool) -> Iterator[Release]:
    """The wheels to read of each project: for Linux on x86-64, the last build of a release."""
    for project in projects:
        found = linux_wheels(index, project)
        for version in first_and_last_of_minors(found):
            wheel = max(found[version], key=lambda wheel: wheel.build)
            yield Release(
                f"{project} {version}",
                read=partial(read_wheel, wheel, largest, again),
                complete=lambda entry: "unread" not in entry,
                shown=lambda entry: "".join(f"\n  {name}: {file['code']}" for name, file in entry["files"].items()),
            )


def update(index: str, again: bool, largest: float, projects: Sequence[str]) -> int:
    """Read new wheels and report contradictions; return how many wheels and facts are wrong."""
    table = read_table(TABLE)
    order = list(PROJECTS)

    def place(key: str) -> tuple[int, Any]:
        project, version = key.split(" ")
        return order.index(project), parse_version(version)

    def write() -> None:
        write_table(TABLE, {key: table[key] for key in sorted(table, key=place)})

    wrong = read_new(releases(index, projects or order, largest * 1_000_000, again), table, again, write)
    sentences = contradictions(load_cuda(), table)
    say(*sentences, f"{len(table)} wheels in the record, {len(sentences)} contradict the facts")
    return wrong + len(sentences)
