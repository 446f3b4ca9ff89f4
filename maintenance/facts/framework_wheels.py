"""What the wheels of frameworks hold: for which GPUs, with which CUDA, on which platforms.

Of the last release of each minor version of a framework, one wheel for each platform is read: what its metadata asks
for there, and the GPU code in its libraries, by ranges. The code is the same for every Python, so one is enough; the
others are known by the names of the wheels. tests/facts/recorded/framework_wheels has a table for each framework,
and `variants/wheels.yaml` is written from these tables.
"""

# ruff: noqa: S310 - the index is the maintainer's own choice

from __future__ import annotations

import re
import urllib.error
import urllib.request
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

import yaml
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet

from feedstock_tools.data import data_folder
from feedstock_tools.facts.gpus import load_gpus
from feedstock_tools.facts.packages import known_pythons
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.gpu_code.architecture import Architecture, service_of
from feedstock_tools.gpu_code.code import GpuCode, architecture_names, gpu_code_in_file
from feedstock_tools.versions import minor_of, parse_version
from maintenance.facts import conda_builds, libraries
from maintenance.facts.index import Wheel, archive, by_minor, linux_wheels, wheels_of
from maintenance.facts.records import Entry, Release, read_new, read_table, write_table

TABLES = "framework_wheels"


@dataclass(frozen=True, slots=True)
class Project:
    """A framework's project on the index.

    Attributes:
        name: on the index.
        oldest: the first version that is read; those before are known by the names of their wheels.
        before: the first version that another project has.
        extra: the extra of its metadata that brings CUDA along.
        library: the libraries that hold its GPU code, by a pattern of their names; None: the largest.
        states: a file of it that states the CUDA that it was built with, by a pattern of its path, and a pattern that
            finds this there.
        compiles: it holds no GPU code, since it compiles when it runs: which GPUs for is not known.
        loads_cudnn: its libraries load a cuDNN that its metadata does not name.
    """

    name: str
    oldest: str = "0"
    before: str | None = None
    extra: str | None = None
    library: str | None = None
    states: tuple[str, str] | None = None
    compiles: bool = False
    loads_cudnn: bool = False


_TORCH = r"(lib)?(torch|torch_cuda|torch_cuda_cu|torch_cuda_cpp|caffe2_gpu)\.(so|dll)"
_TENSORFLOW = r"_pywrap_tensorflow_internal\.(so|pyd)|libtensorflow_cc\.so\.\d"
#: CuPy's wheels for one minor version of CUDA.
CUPY = tuple(f"cupy-cuda{cuda}" for cuda in (80, 90, 91, 92, 100, 101, 102, 110, 111, 112, 113, 114, 115, 116, 117))
PROJECTS: Mapping[str, Project] = {
    "torch": Project("torch", "1.0", library=_TORCH, states=(r"torch/version\.py", r"cuda[^=]*=\s*'(\d+\.\d+)")),
    "tensorflow": Project("tensorflow", extra="and-cuda", library=_TENSORFLOW),
    "tensorflow-gpu": Project("tensorflow-gpu", library=_TENSORFLOW, before="2.1"),
    "jax-cuda12": Project("jax-cuda12-plugin", extra="with-cuda"),
    "jax-cuda13": Project("jax-cuda13-plugin", extra="with-cuda"),
    **{name: Project(name) for name in CUPY},
    "cupy-cuda11x": Project("cupy-cuda11x"),
    "cupy-cuda12x": Project("cupy-cuda12x", extra="ctk"),
    "cupy-cuda13x": Project("cupy-cuda13x", extra="ctk"),
    "torchvision": Project("torchvision", states=(r"torchvision/version\.py", r"\+cu(\d+)")),
    "torchaudio": Project("torchaudio", states=(r"torchaudio/version\.py", r"\+cu(\d+)")),
    "vllm": Project(
        "vllm",
        library=r"(_C(_stable_libtorch)?|[a-z]+_ops)\.(abi3|cpython-[^.]*)\.so",
        states=(r"vllm/[a-z]+_ops\.[^/]*\.so", r"libcudart\.so\.(\d+)"),
    ),
    "xformers": Project("xformers", library=r"_C\.(so|pyd)", states=(r"xformers/cpp_lib\.json", r'"cuda": (\d+)')),
    "onnxruntime-gpu": Project(
        "onnxruntime-gpu",
        library=r"(lib)?onnxruntime_providers_cuda\.(so|dll)",
        states=(r"onnxruntime/capi/build_and_package_info\.py", r"cuda_version = '(\d+\.\d+)"),
        loads_cudnn=True,
    ),
    **{
        f"bitsandbytes-cuda{cuda}": Project(
            "bitsandbytes", library=rf"(lib)?bitsandbytes_cuda{cuda}(_nocublaslt)?\.(so|dll)"
        )
        for cuda in ("117", "118", "121", "124", "126", "128", "129", "130", "132")
    },
    "ctranslate2": Project(
        "ctranslate2",
        library=r"(lib)?ctranslate2.*\.(so[.\d]*|dll)",
        states=(r"(ctranslate2\.libs/libctranslate2[^/]*|ctranslate2\.dll)", r"cublas(?:\.so\.|64_)(\d+)"),
        loads_cudnn=True,
    ),
    "faiss-gpu": Project("faiss-gpu"),
    "faiss-gpu-cuda11": Project("faiss-gpu-cu11"),
    "faiss-gpu-cuda12": Project("faiss-gpu-cu12"),
    "triton": Project("triton", compiles=True),
    "numba-cuda": Project("numba-cuda", compiles=True),
}
#: NVIDIA's libraries, of which the releases are listed.
LIBRARIES = [name for name, (library, _) in libraries.PROJECTS.items() if library != "cusparselt"]
#: Tags of platforms in the names of wheels, by conda's subdir, and what markers see there.
PLATFORMS = {
    "linux-64": (re.compile(r"linux.*x86_64"), ("linux", "Linux", "x86_64", "posix")),
    "linux-aarch64": (re.compile(r"linux.*aarch64"), ("linux", "Linux", "aarch64", "posix")),
    "win-64": (re.compile(r"win_amd64"), ("win32", "Windows", "AMD64", "nt")),
    "osx-arm64": (re.compile(r"macosx.*(?:arm64|universal2)"), ("darwin", "Darwin", "arm64", "posix")),
    "osx-64": (re.compile(r"macosx.*(?:x86_64|universal2)"), ("darwin", "Darwin", "x86_64", "posix")),
}
WITH_CUDA = ("linux-64", "linux-aarch64", "win-64")
#: Of several wheels for a platform, the one that is read.
_PYTHONS = ("cp310", "cp311", "cp312", "cp39", "cp38", "cp37", "cp36", "cp313")
_LIBRARY = re.compile(r"\.(?:so(?:\.[0-9]+)*|pyd|dll)$")
#: The machine in the head of a library for Linux.
_MACHINES = {"linux-64": b"\x3e\x00", "linux-aarch64": b"\xb7\x00"}
#: Libraries of CUDA, and of others, that wheels carry with them.
_OF_OTHERS = re.compile(
    r"(?:lib)?(?:cu(?:blas|dnn|da|dart|fft|file|pti|rand|solver|sparse|tensor)|nccl|nv|nccl|caffe2_nvrtc|mkl|gomp|"
    r"iomp|openblas|arrow|torch_cpu|shm|av|gfortran|LLVM|triton)",
    re.IGNORECASE,
)
#: Bytes of a library, as packed in the wheel, below which it is not read unless `Project.library` names it.
_SMALL = 100_000
_MOST_LIBRARIES = 4
#: Bytes of a library that are read first, and fat binaries with the same architectures that are sample enough.
_FIRST_PART, _ENOUGH = 50_000_000, 200
_LIBRARIES = re.compile(r"^nvidia-(?:cuda-(?P<runtime>runtime)|(?P<library>cudnn|nccl))(?:-cu\d+)?$")


def environment_of(subdir: str, python: str, extra: str | None) -> dict[str, str]:
    """What markers of requirements see on a platform."""
    system, platform_system, machine, name = PLATFORMS[subdir][1]
    return {
        "os_name": name,
        "sys_platform": system,
        "platform_system": platform_system,
        "platform_machine": machine,
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": extra or "",
    }


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


def requirements(metadata: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The specification of each requirement that applies in an environment."""
    found = {}
    for line in metadata.partition("\n\n")[0].splitlines():
        if not line.startswith("Requires-Dist: "):
            continue
        try:
            required = Requirement(line.partition(": ")[2])
        except InvalidRequirement:
            continue
        if required.marker is None or required.marker.evaluate(dict(environment)):
            spec = ",".join(sorted(str(required.specifier).split(","), reverse=True))
            found[required.name.lower().replace("_", "-")] = spec
    return found


def chosen_wheel(files: Sequence[Wheel]) -> Wheel:
    """The wheel that is read, of those of a release for a platform."""

    def rank(wheel: Wheel) -> tuple[int, int, str]:
        place = _PYTHONS.index(wheel.python) if wheel.python in _PYTHONS else len(_PYTHONS)
        return place, -wheel.build, wheel.filename

    return min(files, key=rank)


def pythons_of(files: Sequence[Wheel]) -> set[str]:
    """The Pythons that wheels are for, by their names; none where they are for any."""
    tags = (tag for file in files for tag in file.python.split("."))
    return {f"{tag[2]}.{tag[3:]}" for tag in tags if re.fullmatch(r"cp3\d+", tag)}


def named(files: Sequence[Wheel], releases: Sequence[Sequence[Wheel]]) -> Entry:
    """The Pythons of a release by the names of its wheels, and those that all releases of the minor version have.

    Those for linux-64 count where there are some: other platforms may have wheels for more (torch 1.10 for 3.10).
    """
    pythons, *others = (pythons_of(wheels_for(each, "linux-64") or each) for each in (files, *releases))
    of_all = set.intersection(*others)
    fewer = {"python_of_all": sorted(of_all, key=parse_version)} if of_all and of_all < pythons else {}
    return {"python": sorted(pythons, key=parse_version), **fewer}


def read_release(project: Project, files: Sequence[Wheel], again: bool, before: Entry | None) -> Entry:
    """One release: of each platform what its wheel asks for and holds.

    Raises:
        OSError: a wheel cannot be read.
    """
    pythons = sorted(pythons_of(files), key=parse_version)
    entry: Entry = {"platforms": {}}
    for subdir in PLATFORMS:
        fitting = wheels_for(files, subdir)
        if not fitting:
            continue
        wheel = chosen_wheel(fitting)
        known = before["platforms"].get(subdir) if before and not again else None
        if known and known.get("sha256") == wheel.sha256:
            entry["platforms"][subdir] = with_statement(project, wheel, known)
            continue
        entry["platforms"][subdir] = read_wheel(project, wheel, subdir, pythons)
    return entry


def unread_platforms(files: Sequence[Wheel]) -> Entry:
    """The platforms of a release that is not read, by the names of its wheels."""
    return {
        subdir: {"unread": "it is older than those that are read"} if subdir in WITH_CUDA else {}
        for subdir in PLATFORMS
        if wheels_for(files, subdir)
    }


def wheels_for(files: Sequence[Wheel], subdir: str) -> list[Wheel]:
    """Those of a release's wheels that are for a platform."""
    return [file for file in files if PLATFORMS[subdir][0].search(file.platform) or file.platform == "any"]


def read_wheel(project: Project, wheel: Wheel, subdir: str, pythons: Sequence[str]) -> Entry:
    """The requirements of a wheel on a platform, and the GPU code in its libraries."""
    metadata = metadata_of(wheel.url)
    tag = re.fullmatch(r"cp(3)(\d+)", wheel.python)
    python = f"{tag[1]}.{tag[2]}" if tag else pythons[-1] if pythons else "3.12"
    entry: Entry = {"wheel": wheel.filename, "sha256": wheel.sha256}
    if needed := re.search(r"^Requires-Python: (.*)$", metadata.partition("\n\n")[0], re.MULTILINE):
        entry["requires_python"] = needed[1].strip()
    for name, spec in requirements(metadata, environment_of(subdir, python, project.extra)).items():
        if name == "numpy" and spec:
            entry["numpy"] = spec
        elif name == "cuda-toolkit":
            entry["cuda"] = spec
        elif library := _LIBRARIES.match(name):
            entry[library["library"] or "cuda"] = spec
        elif name == "torch" and spec.startswith("=="):
            entry["torch"] = spec
    if subdir in WITH_CUDA and project.compiles:
        entry["unread"] = "it holds no GPU code, and compiles when it runs"
    elif subdir in WITH_CUDA:
        entry["files"] = dict(gpu_code_of(project, wheel, subdir))
    return with_statement(project, wheel, entry)


def lacks_statement(project: Project, entry: Mapping[str, Any]) -> bool:
    """Whether the CUDA that a wheel states is still to be read.

    It is where the wheel holds GPU code, and its metadata names neither CUDA nor a torch whose CUDA is known.
    """
    is_named = "cuda" in entry or "built" in entry or cuda_of_torch(entry.get("torch", "")) is not None
    return bool(project.states and entry.get("files") and not is_named)


def with_statement(project: Project, wheel: Wheel, entry: Entry) -> Entry:
    """The entry of a wheel with the CUDA that it states it was built with, and the cuDNN that it loads.

    Each is None if nothing in the wheel says it.
    """
    if project.states is not None and lacks_statement(project, entry):
        path, pattern = project.states
        with archive(wheel.url) as opened:
            names = [name for name in opened.namelist() if re.fullmatch(rf"(.*/)?{path}", name)]
            found = re.search(pattern, opened.read(names[0]).decode(errors="replace")) if names else None
        entry = {**entry, "built": dotted(found[1]) if found else None}
    if lacks_cudnn(project, entry):
        entry = {**entry, "cudnn": loaded_cudnn(project, wheel)}
    return entry


def lacks_cudnn(project: Project, entry: Mapping[str, Any]) -> bool:
    """Whether the cuDNN that a wheel loads is still to be read: it is where the wheel holds GPU code."""
    return project.loads_cudnn and bool(entry.get("files")) and "cudnn" not in entry


def loaded_cudnn(project: Project, wheel: Wheel) -> str | None:
    """The cuDNN that a wheel brings beside its libraries (`9.1.0`), or that these name (`9`)."""
    with archive(wheel.url) as opened:
        for name in opened.namelist():
            if brought := re.search(r"libcudnn-[0-9a-f]+\.so\.(\d+(?:\.\d+)*)$", name):
                return brought[1]
        for member in to_read(project, opened.infolist()):
            before = b""
            with opened.open(member) as stream:
                while piece := stream.read(1 << 20):
                    if named := re.search(rb"libcudnn\.so\.(\d+)|cudnn64_(\d+)\.dll", before + piece):
                        return (named[1] or named[2]).decode()
                    before = piece[-32:]
    return None


def dotted(cuda: str) -> str:
    """A version of CUDA as wheels state it: `12.4`, `124`, `1204`, or its major number alone."""
    match = re.fullmatch(r"(\d\d)0?(\d)", cuda)
    return f"{match[1]}.{match[2]}" if match else cuda


def gpu_code_of(project: Project, wheel: Wheel, subdir: str) -> Iterator[tuple[str, Entry]]:
    """The code in the libraries for a platform that hold it; a wheel for any platform may have some for others."""
    with archive(wheel.url) as opened, temporary_folder() as folder:
        members = [
            member
            for member in opened.infolist()
            if _LIBRARY.search(member.filename)
            and (wheel.platform != "any" or opened.open(member).read(20)[18:] == _MACHINES.get(subdir))
        ]
        for member in to_read(project, members):
            try:
                with opened.open(member) as stream:
                    lists, read = code_of_start(stream, member.file_size, folder / "library")
            except zipfile.BadZipFile as error:
                raise OSError(f"{member.filename} is damaged or cut off") from error
            if lists:
                part = {} if read == member.file_size else {"read": round(read / member.file_size, 2)}
                yield PurePosixPath(member.filename).name, {"fat_binaries": lists, **part}


def code_of_start(stream: IO[bytes], size: int, path: Path) -> tuple[dict[str, int], int]:
    """The fat binaries in as much of a library as it takes to see their architectures, and the bytes read.

    A packed library cannot be read from the middle. The first part is a sample of all: enough if it has as many fat
    binaries with the same architectures as `_ENOUGH`, more than there are of other libraries that may be linked in
    (about 150 of NCCL).
    """
    path.write_bytes(b"")
    read, target = 0, max(_FIRST_PART, size // 8)
    while True:
        with path.open("ab") as file:
            while read < target and (piece := stream.read(min(1 << 20, target - read))):
                file.write(piece)
                read += len(piece)
        lists = fat_binaries(gpu_code_in_file(path))
        if read >= size or max(lists.values(), default=0) >= _ENOUGH:
            return lists, read
        if read < target:
            raise zipfile.BadZipFile("the library ends too early")
        target *= 2


def fat_binaries(codes: Sequence[GpuCode]) -> dict[str, int]:
    """How many fat binaries have the same architectures, the most frequent first: `{"sm_75 sm_80": 9, "sm_90a": 2}`."""
    pieces: dict[int, list[GpuCode]] = {}
    for code in codes:
        pieces.setdefault(code.offset if code.binary is None else code.binary, []).append(code)
    return dict(Counter(" ".join(architecture_names(of_one)) for of_one in pieces.values()).most_common())


def to_read(project: Project, members: Sequence[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    """The libraries that may hold a framework's own GPU code, the largest first."""
    largest = sorted(members, key=lambda member: -member.compress_size)
    if project.library is not None:
        pattern = re.compile(project.library)
        return [member for member in largest if pattern.fullmatch(PurePosixPath(member.filename).name)]
    own = [
        member
        for member in largest
        if member.compress_size >= _SMALL and not _OF_OTHERS.match(PurePosixPath(member.filename).name)
    ]
    return own[:_MOST_LIBRARIES]


def is_complete(project: Project, entry: Entry) -> bool:
    """Whether an entry has all that reading its wheels again would find."""
    return all(
        "wheel" in found and not lacks_statement(project, found) and not lacks_cudnn(project, found)
        for found in entry["platforms"].values()
    )


def beside(version: str, files: Mapping[str, Sequence[Wheel]]) -> list[Sequence[Wheel]]:
    """The wheels of the releases of the same minor version."""
    minor = minor_of(version)
    return [wheels for other, wheels in files.items() if minor_of(other) == minor]


def update_framework(index: str, framework: str, again: bool) -> int:
    """Read the new releases of a framework into its table; return how many differ or could not be read."""
    project = PROJECTS[framework]
    table = read_table(f"{TABLES}/{framework}")
    files = {
        version: wheels
        for version, wheels in wheels_of(index, project.name).items()
        if project.before is None or parse_version(version) < parse_version(project.before)
    }
    last = [group[-1] for group in by_minor(files)]
    since = [version for version in last if parse_version(version) >= parse_version(project.oldest)]
    for version in last:
        if version not in since:
            table.setdefault(version, {"platforms": unread_platforms(files[version])})

    def write() -> None:
        with_names = {
            version: {**named(files[version], beside(version, files)), "platforms": table[version]["platforms"]}
            for version in last
            if version in table
        }
        write_table(f"{TABLES}/{framework}", with_names)

    def shown(entry: Entry) -> str:
        return "".join(
            f"\n  {subdir}: cuda {found.get('cuda')} {own_code(found)}" for subdir, found in entry["platforms"].items()
        )

    new = (
        Release(
            version,
            read=partial(read_release, project, files[version], again),
            complete=partial(is_complete, project),
            shown=shown,
        )
        for version in reversed(since)
    )
    wrong = read_new(new, table, again, write)
    write()
    return wrong


def own_code(entry: Mapping[str, Any]) -> Entry | None:
    """What a wheel for a platform runs on, by the library with the most fat binaries; None if it has none at all.

    bitsandbytes had two libraries until 0.42: the one without cuBLASLt is for all GPUs, the other from 7.5 on.

    Each fat binary holds some kernels for several GPUs, and a GPU without code in it cannot run these. The general ones
    count, for at least half as many generations of GPUs as any: others are for certain GPUs, and chosen there.
    `code` are the architectures whose GPUs run two thirds of them, with the number in `part` where that is not all;
    `some` are the other architectures, and `mixed` the GPUs that run as many, some by machine code and others by PTX.
    Nothing that was read is near that line but torch 1.11 on a K40, with 59 %: code
    of libraries that are linked in (`test_a_gpu_runs_nearly_all_of_a_wheel_or_little`).
    """
    files = entry.get("files", {})
    for_all = {name: file for name, file in files.items() if "_nocublaslt" in name}
    found = [file["fat_binaries"] for file in (for_all or files).values()]
    lists = {
        tuple(Architecture.parse(name) for name in names.split() if not name.startswith("lto_")): count
        for names, count in max(found, key=lambda lists: sum(lists.values()), default={}).items()
    }
    if not lists:
        return None
    least = max(map(generations, lists)) / 2
    general = {built: count for built, count in lists.items() if generations(built) >= least}
    every = sum(general.values())
    names = sorted({each for built in lists for each in built}, key=lambda each: (each.ptx, each.number, each.suffix))
    runs = {name: sum(count for built, count in general.items() if serves(built, name)) for name in names}
    own: list[Architecture] = []
    for name in names:
        held = sum(count for built, count in general.items() if name in built)
        others = max((runs[other] for other in own if serves([other], name)), default=0)
        if runs[name] * 3 >= every * 2 and (held * 2 > every or runs[name] > others):
            own.append(name)
    part = {str(name): f"{runs[name]}/{every}" for name in own if runs[name] < every}
    some = " ".join(str(name) for name in names if name not in own)
    code = " ".join(map(str, own))
    mixed: dict[str, str] = {}
    for number in sorted({int(gpu.architecture.removeprefix("sm_")) for gpu in load_gpus().gpus}) if code else ():
        run = sum(count for built, count in general.items() if service_of(built, number).by)
        if run * 3 >= every * 2 and service_of(own, number).by is None:
            mixed[str(number)] = f"{run}/{every}"
    more: Entry = {"some": some if code else "", "part": part, "mixed": mixed}
    return {"code": code or some, **{name: value for name, value in more.items() if value}}


def generations(built: Sequence[Architecture]) -> int:
    """For how many generations of GPUs, by major capability, a fat binary holds code."""
    return len({each.number // 10 for each in built})


def serves(built: Sequence[Architecture], name: Architecture) -> bool:
    """Whether a fat binary has what an architecture in a list of a build promises: code for it, or older code."""
    return any(
        each == name or (each.ptx == name.ptx and not each.suffix and each.runs_on(name.number)) for each in built
    )


def entry_of(version: str, read: Entry) -> Entry:
    """What `variants/wheels.yaml` has of a release: what its wheels ask for where CUDA is, and what they hold."""
    platforms = read["platforms"]
    needed = next((found["requires_python"] for found in platforms.values() if "requires_python" in found), "")
    admitted = [python for python in known_pythons() if needed and python in SpecifierSet(needed)]
    entry: Entry = {"version": version, "python": read["python"] or admitted, "platforms": list(platforms)}
    entry |= {name: read[name] for name in ("python_of_all",) if name in read}
    code = {subdir: own for subdir, found in platforms.items() if (own := own_code(found)) is not None}
    with_cuda = [platforms[subdir] for subdir in code] or list(platforms.values())
    for name in ("numpy", "cuda", "built", "cudnn", "nccl"):
        if name != "cudnn" or code:
            entry[name] = with_cuda[0].get(name) if with_cuda else None
    if code and not entry["cuda"] and not entry["built"] and (cuda := cuda_of_torch(with_cuda[0].get("torch", ""))):
        entry["built" if cuda[0].isdigit() else "cuda"] = cuda
    entry["code"] = {subdir: own["code"] for subdir, own in code.items()}
    entry |= {
        name: {subdir: own[name] for subdir, own in code.items() if name in own} for name in ("some", "part", "mixed")
    }
    entry["unread"] = {subdir: found["unread"] for subdir, found in platforms.items() if "unread" in found}
    return {name: value for name, value in entry.items() if value or name == "python"}


def cuda_of_torch(spec: str) -> str | None:
    """The CUDA of the torch that a wheel asks for, `==2.13.0`: an extension of it is built with the same.

    It is what its metadata asks for, or the version that it states.
    """
    minor = minor_of(spec.removeprefix("=="))
    found = (entry for version, entry in read_table(f"{TABLES}/torch").items() if minor_of(version) == minor)
    platforms: Mapping[str, Entry] = next(found, {"platforms": {}})["platforms"]
    stated = (entry.get("cuda") or entry.get("built") for entry in platforms.values())
    return next((cuda for cuda in stated if cuda), None)


def update(index: str, again: bool, frameworks: Sequence[str]) -> int:
    """Read what is new on the index and rewrite `variants/wheels.yaml`; return how much differs or was not read."""
    with ThreadPoolExecutor(3) as pool:
        wrong = sum(pool.map(lambda framework: update_framework(index, framework, again), frameworks or PROJECTS))
    found = {name: sorted(linux_wheels(index, name), key=parse_version) for name in LIBRARIES}
    write_table(f"{TABLES}/libraries", {name: {"versions": versions} for name, versions in found.items()})
    write()
    return wrong


def write() -> None:
    """Write `variants/wheels.yaml` from the tables: what stands above `wheels` there stays as it is."""
    path = data_folder("variants") / "wheels.yaml"
    by_hand = path.read_text(encoding="utf-8").partition("\nwheels:\n")[0]

    def in_lines(entries: Sequence[Entry]) -> list[str]:
        return [
            f"    - {yaml.dump(entry, default_flow_style=True, width=10_000, sort_keys=False).strip()}"
            for entry in entries
        ]

    lines = [by_hand, "wheels:"]
    for framework in PROJECTS:
        entries = [entry_of(version, read) for version, read in read_table(f"{TABLES}/{framework}").items()]
        if framework.startswith(
            "bitsandbytes"
        ):  # its wheels have libraries for several CUDA versions, not all for each
            entries = [each for each in entries if "code" in each or ("unread" in each and framework.endswith("118"))]
        lines += [f"  {framework}:", *in_lines(entries)] if entries else []
    lines += ["", "# conda-forge's builds, by the lists of architectures in their recipes and scripts.", "conda:"]
    for framework in conda_builds.FEEDSTOCKS:
        builds = [*conda_builds.builds_of(framework)]
        lines += [f"  {framework}:", *in_lines(builds)] if builds else []
    listed = {name: entry["versions"] for name, entry in read_table(f"{TABLES}/libraries").items()}
    if listed:
        lines += ["", yaml.dump({"libraries": listed}, default_flow_style=None, width=116, sort_keys=False).rstrip()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
