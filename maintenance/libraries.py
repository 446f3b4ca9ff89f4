"""Read from the wheels of NVIDIA's libraries which GPUs they hold code for.

    python -m maintenance.libraries [--index URL] [--largest MB] [PROJECT …]

reads the first and the last release of each minor version of cuDNN, NCCL, cuSPARSELt and cuTENSOR for Linux on x86-64,
one at a time, and records in tests/facts/recorded/library_wheels.json the architectures in each shared library, with
the number of pieces of code for each. A wheel that the record has is not read again, so that a rerun reads what is
new; `--again` reads it again and reports what differs. At the end it reports every release whose code contradicts
`gpu_code` of the library in `variants/cuda.yaml` (exit code 1).

Of a wheel it loads the directory of the archive and the shared libraries, unpacks one of these at a time into a
temporary file, and reads that with feedstock_tools.gpu_code. It holds a megabyte of a wheel in memory; the disk needs
room for the largest library, 600 MB. With `--largest` it leaves out the libraries that take more in the wheel, and
names them as `unread`; a run with a higher limit reads those of them that fit. The small libraries of cuDNN 9 (ops and
cnn) have the same oldest GPU as the large one (adv); libcudnn_engines_precompiled goes back further than all others.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from feedstock_tools.channel.specs import admits
from feedstock_tools.facts import CudaFacts, load_cuda
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.gpu_code.code import GpuCode, architecture_names, gpu_code_in_file
from feedstock_tools.versions import parse_version
from maintenance.recorded_facts import RECORDED, read_table
from maintenance.wheel_index import Wheel, add_index_option, archive, copy_member, first_and_last_of_minors, wheels_of

TABLE = "library_wheels"
#: The projects on the index: the library in `variants/cuda.yaml`, and the major version of CUDA.
PROJECTS: Mapping[str, tuple[str, str]] = {
    **{f"nvidia-nccl-cu{major}": ("nccl", major) for major in ("11", "12", "13")},
    **{f"nvidia-cusparselt-cu{major}": ("cusparselt", major) for major in ("12", "13")},
    **{f"nvidia-cudnn-cu{major}": ("cudnn", major) for major in ("11", "12", "13")},
    **{f"cutensor-cu{major}": ("cutensor", major) for major in ("11", "12", "13")},
}
_LINUX = re.compile(r"manylinux.*x86_64")
#: An architecture counts from this part of the pieces of the most frequent on: cuSPARSELt has one piece for 5.2.
_STRAY = 50
_SHARED_LIBRARY = re.compile(r"\.so(?:\.[0-9]+)*$")

Entry = Mapping[str, Any]


def read_wheel(wheel: Wheel, folder: Path, largest: float, before: Entry | None = None) -> Entry:
    """The code in each shared library of a wheel, unpacked one after the other into a folder.

    Args:
        largest: the bytes of the largest library in the wheel that is read.
        before: an earlier record, whose files are kept and not read again.

    Raises:
        OSError: the wheel cannot be loaded.
    """
    files = {**before["files"]} if before else {}
    unread = []
    with archive(wheel.url) as opened:
        members = [member for member in opened.infolist() if _SHARED_LIBRARY.search(member.filename)]
    for member in members:
        name = PurePosixPath(member.filename).name
        if before and name not in before["unread"]:
            continue
        if member.compress_size > largest:
            unread.append(name)
            continue
        path = folder / "library"
        digest = copy_member(wheel.url, member, path)
        pieces = counted_names(gpu_code_in_file(path))
        path.unlink()
        if pieces:
            files[name] = {"sha256": digest, "code": pieces}
    entry = {"wheel": wheel.filename, "sha256": wheel.sha256, "files": dict(sorted(files.items()))}
    return {**entry, "unread": unread} if unread else entry


def counted_names(codes: tuple[GpuCode, ...]) -> str:
    """The architectures of pieces of code, machine code first, with the number of pieces: `sm_75:62 compute_75:1`."""
    counts = Counter(name for code in codes for name in architecture_names([code]))
    return " ".join(f"{name}:{counts[name]}" for name in architecture_names(codes))


def oldest_capability(entry: Entry) -> int:
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


def chosen_wheels(index: str, projects: list[str]) -> Iterator[Wheel]:
    """The wheels to read of each project: for Linux on x86-64, the last build of a release."""
    for project in projects:
        found = wheels_of(index, project)
        wheels = {
            version: max(fitting, key=lambda wheel: wheel.build)
            for version in found
            if (fitting := [wheel for wheel in found[version] if _LINUX.search(wheel.platform)])
        }
        for version in first_and_last_of_minors(wheels):
            yield wheels[version]


def main(arguments: list[str]) -> int:
    """The exit code: 0; 1 if a fact contradicts the record, a wheel differs from it, or a wheel could not be read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_index_option(parser)
    parser.add_argument("--again", action="store_true", help="Read every wheel again, and report what differs.")
    parser.add_argument("--largest", type=float, metavar="MB", default=math.inf, help="Leave out larger libraries.")
    parser.add_argument("projects", nargs="*", metavar="PROJECT", help="Default: all.")
    given = parser.parse_args(arguments)
    table: dict[str, Entry] = dict(read_table(TABLE))
    wrong = 0
    for wheel in chosen_wheels(given.index, given.projects or list(PROJECTS)):
        key = f"{wheel.project} {wheel.version}"
        before = table.get(key)
        if before and not given.again and "unread" not in before:
            continue
        kept = None if given.again else before
        try:
            with temporary_folder() as folder:
                entry = read_wheel(wheel, folder, given.largest * 1_000_000, kept)
        except OSError as error:
            wrong += 1
            sys.stdout.write(f"{key}: not read: {error}\n")
            continue
        if entry == before:
            continue
        differs = given.again and before is not None and before != entry
        wrong += differs
        sys.stdout.write(f"{key}: {'differs' if differs else 'read'}\n")
        sys.stdout.writelines(f"  {name}: {file['code']}\n" for name, file in entry["files"].items())
        sys.stdout.flush()
        table[key] = entry
        write_record(table)
    sentences = contradictions(load_cuda(), table)
    sys.stdout.writelines(f"{sentence}\n" for sentence in sentences)
    sys.stdout.write(f"{len(table)} wheels in the record, {len(sentences)} contradict the facts\n")
    return 1 if wrong or sentences else 0


def write_record(table: Mapping[str, Entry]) -> None:
    """Write the record, in the order of the projects and their releases."""
    order = list(PROJECTS)

    def place(key: str) -> tuple[int, Any]:
        project, version = key.split(" ")
        return order.index(project), parse_version(version)

    ordered = {key: table[key] for key in sorted(table, key=place)}
    text = json.dumps(ordered, indent=1, ensure_ascii=False)
    (RECORDED / f"{TABLE}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
