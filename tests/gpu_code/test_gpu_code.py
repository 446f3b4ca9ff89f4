"""Reading GPU architectures from binaries, and comparing them with a spec."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from click.testing import CliRunner

from feedstock_tools.builds.runs.delivery import check_gpu_code
from feedstock_tools.builds.stand_in.nvcc_from_nvrtc import fatbin
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.cli.cuda import cuda as command
from feedstock_tools.errors import WorkError
from feedstock_tools.gpu_code.architecture import parse_architectures
from feedstock_tools.gpu_code.code import architecture_names, gpu_code, gpu_code_in_bytes, gpu_code_in_file, lacking
from feedstock_tools.report.pins.gpu import gpu_code_text

PTX = b".version 8.0\n.target sm_90\n.address_size 64\n\0"
#: The headers of three entries as nvcc 13.0 writes them for sm_90a, compute_100f (compressed) and LTO of sm_120, with
#: what `cuobjdump` names them.
NVCC_13 = {
    "sm_90a": "02000101 40000000 08000000 00000000 00000000 00000000 08000100 5a000000"
    " 00000000 00000000 11001000 00000000 00000000 00000000 00000000 00000000",
    "compute_100f": "01000101 40000000 08000000 00000000 08000000 00000000 00000900 64000000"
    " 00000000 00000000 11802000 00000000 00000000 00000000 75030000 00000000",
    "lto_120": "08000101 40000000 08000000 00000000 08000000 00000000 41000100 78000000"
    " 00000000 00000000 11800100 00000000 00000000 00000000 680b0000 00000000",
}


def cubin(abi: int, flags: int) -> bytes:
    """The header of a cubin: an ELF file for the machine 190, with its architecture in the flags."""
    header = bytearray(64)
    header[:9] = b"\x7fELF\x02\x01\x01" + bytes((abi, 7 if abi == 51 else 8))
    struct.pack_into("<H", header, 18, 190)
    struct.pack_into("<I", header, 48, flags)
    return bytes(header)


def names(content: bytes) -> list[str]:
    return architecture_names(gpu_code_in_bytes(content))


@pytest.mark.parametrize(("name", "header"), NVCC_13.items())
def test_an_entry_of_nvcc_13_is_known_by_its_header_compressed_or_not(name: str, header: str) -> None:
    body = bytes.fromhex(header) + bytes(8)
    (code,) = gpu_code_in_bytes(bytes.fromhex("50ed55ba01001000") + struct.pack("<Q", len(body)) + body)
    assert architecture_names([code]) == [name]
    assert code.compressed == (name != "sm_90a")


@pytest.mark.parametrize(
    ("abi", "flags", "name"),
    [
        (51, 0x500556, "sm_86"),  # ptxas 11.8
        (51, 0x50055A, "sm_90"),  # ptxas 12.9
        (51, 0x5A0D5A, "sm_90a"),  # ptxas 12.9
        (51, 0x3C0D3C, "sm_60"),  # no GPU before Hopper has special features
        (65, 0x6005004, "sm_80"),  # nvcc 13.0
        (65, 0x6006402, "sm_100"),  # nvcc 13.0
    ],
)
def test_a_bare_cubin_has_its_architecture_in_its_flags(abi: int, flags: int, name: str) -> None:
    assert names(b"program" + cubin(abi, flags) + b"more") == [name]


def test_fat_binaries_are_found_wherever_they_stand_in_a_file(tmp_path: Path) -> None:
    first = fatbin([("sm_80", cubin(51, 0x500550)), ("sm_90", cubin(51, 0x50055A)), ("compute_90", PTX)])
    second = fatbin([("sm_120", cubin(65, 0x6007802))])
    (tmp_path / "library.so").write_bytes(b"\x7fELF" + bytes(1001) + first + bytes(24) + second + b"end")
    found = gpu_code_in_file(tmp_path / "library.so")
    assert architecture_names(found) == ["sm_80", "sm_90", "sm_120", "compute_90"]
    assert len(found) == 4, "what is inside of a fat binary is counted once"


def test_ptx_that_stands_as_text_in_a_file_counts() -> None:
    assert names(b"\0const char *\0//\n.version 7.8\n.target sm_80\n.address_size 64\n") == ["compute_80"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x50\xed\x55\xba",
        bytes.fromhex("50ed55ba01001000") + struct.pack("<Q", 1 << 62),
        bytes.fromhex("50ed55ba01001000") + struct.pack("<Q", 64) + bytes(64),
        fatbin([("sm_80", cubin(51, 0x500550))])[:-8],
        cubin(51, 0)[:40],
        b"the target sm_90 of .version 2",
    ],
    ids=["nothing", "magic alone", "endless", "zeros", "cut off", "half a header", "prose"],
)
def test_bytes_that_look_like_gpu_code_and_are_not_are_left_alone(content: bytes) -> None:
    found = names(content)
    assert found in ([], ["sm_80"]), "a cubin in a cut fat binary is still one"
    assert not found or content.startswith(b"\x50\xed")


def package(folder: Path, *architectures: str) -> Path:
    """A package with GPU code in its library."""
    codes = [(name, PTX if name.startswith("compute") else cubin(51, int(name[3:]))) for name in architectures]
    files = [
        PackageFile("lib/libk.so", b"\x7fELF...." + (fatbin(codes) if codes else b"")),
        PackageFile("info.txt", b""),
    ]
    return write_package(folder, PackageMetadata("k", "1.0", "cuda129_0", 0, "linux-64"), files)


def test_the_architectures_of_each_file_in_a_package(tmp_path: Path) -> None:
    found = gpu_code(package(tmp_path, "sm_80", "sm_90", "compute_90"))
    assert gpu_code_text(found) == "lib/libk.so\n  sm_80 sm_90 compute_90  (3 pieces of GPU code)"
    assert [str(each) for each in lacking(parse_architectures(["sm_80", "sm_86", "compute_90"]), found)] == ["sm_86"]


def test_a_damaged_package_is_named(tmp_path: Path) -> None:
    path = tmp_path / "k-1.0-0.conda"
    path.write_bytes(b"PK no package")
    with pytest.raises(WorkError, match="not a readable conda package"):
        gpu_code(path)


def test_the_command_lists_and_requires(tmp_path: Path) -> None:
    path = str(package(tmp_path, "sm_80", "compute_80"))
    listed = CliRunner().invoke(command, ["binary", path, "--json"], standalone_mode=False)
    assert '"sm_80"' in listed.output
    assert listed.return_value == 0
    required = CliRunner().invoke(command, ["binary", path, "--require", "sm_80,sm_90"], standalone_mode=False)
    assert "Missing: sm_90" in required.output + required.stderr
    assert required.return_value == 1


SPEC = """
name: k
version: "1.0"
pinning: self-contained
platforms: {{linux-64: }}
python: [3.12]
cuda: {{versions: [12.9], architectures: [sm_80, sm_90, compute_90]}}
outputs:
  - {{name: k, kind: library, script: {{commands: ["true"]}}, requirements: {{build: [compiler: cuda]}}{kernels}}}
about: {{homepage: "https://example.org", license: MIT, summary: A kernel}}
maintainers: [me]
"""


@pytest.mark.parametrize(
    ("kernels", "has", "reason"),
    [
        ("", ("sm_80", "sm_90", "compute_90"), None),
        ("", ("sm_80", "sm_90"), "compute_90"),
        ("", (), None),
        (", kernels: true", ("sm_80", "compute_90"), "sm_90"),
        (", kernels: true", (), "no GPU code at all"),
        (", kernels: false", ("sm_80",), None),
    ],
)
def test_a_build_without_a_promised_architecture_fails(
    tmp_path: Path, kernels: str, has: tuple[str, ...], reason: str | None
) -> None:
    (tmp_path / "feedstock.yaml").write_text(SPEC.format(kernels=kernels))
    made = package(tmp_path / "channel", *has)
    if reason is None:
        check_gpu_code(made, tmp_path, "k", "12.9")
    else:
        with pytest.raises(WorkError, match=reason):
            check_gpu_code(made, tmp_path, "k", "12.9")


def test_cpu_builds_and_feedstocks_without_a_spec_promise_nothing(tmp_path: Path) -> None:
    made = package(tmp_path / "channel", "sm_80")
    check_gpu_code(made, tmp_path, "k", "12.9")
    (tmp_path / "feedstock.yaml").write_text(SPEC.format(kernels=", kernels: true"))
    check_gpu_code(made, tmp_path, "k", None)
