"""What the stand-in channel of a machine cannot build, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.builds.stand_in import note_on_script, preparing
from feedstock_tools.builds.stand_in.compilers import ZIG_VERSION
from feedstock_tools.builds.stand_in.on_demand import Ties
from feedstock_tools.builds.stand_in.preparing import (
    compiler_notes,
    foresee,
    lacking_compiler,
    provide_compiler,
    why_no_packages,
)
from feedstock_tools.builds.stand_in.toolkits import CudaToolkit
from feedstock_tools.channel.properties import STAND_IN, ChannelDemand, Channels
from feedstock_tools.errors import WorkError
from feedstock_tools.generate.package_names import PackageNames
from feedstock_tools.platforms import Platform

ARM = Platform.parse("linux-aarch64")
TIES = Ties(PackageNames({"tqdm": "tqdm"}, "2026-11-28", {"tqdm": "tqdm"}))


def _demand(*needs: str, runs: tuple[str, ...] = (), python: str | None = "3.12") -> ChannelDemand:
    return ChannelDemand(Channels(("stand-in",), STAND_IN), "linux_aarch64_", "linux-aarch64", needs, runs, python, ())


@pytest.mark.parametrize(
    ("demand", "reason"),
    [
        pytest.param(_demand("gcc_linux-aarch64", "python 3.12.*"), None, id="it has all"),
        pytest.param(_demand("__glibc"), None, id="a property of the machine"),
        pytest.param(
            _demand("python", "rust_linux-aarch64", "libpng >=1.6"),
            "the stand-in channel has no libpng >=1.6 and no rust_linux-aarch64",
            id="a library and a compiler that it lacks",
        ),
        pytest.param(_demand("python", runs=("libpng",)), "the stand-in channel has no libpng", id="to run with"),
        pytest.param(_demand("python", "tqdm >=4", "cmake <4", "pytorch"), None, id="tied to projects of PyPI"),
    ],
)
def test_a_row_is_refused_for_what_its_environments_need(demand: ChannelDemand, reason: str | None) -> None:
    assert why_no_packages(demand, TIES) == reason


def test_without_a_mapping_the_reason_says_how_to_fetch_one(tmp_path: Path) -> None:
    reason = foresee([_demand("tqdm")], {"HOME": str(tmp_path)})["linux_aarch64_"]
    assert reason.startswith("the stand-in channel has no tqdm (`feedstock-tools init --names newest` fetches")
    for name in ("rust_linux-aarch64", "libcufft-dev", "libpng", "zlib"):
        assert foresee([_demand(name)], {"HOME": str(tmp_path)})["linux_aarch64_"].endswith(f"has no {name}")


def test_many_names_are_counted(tmp_path: Path) -> None:
    reason = foresee([_demand(*(f"libnone{at}" for at in range(9)))], {"HOME": str(tmp_path)})["linux_aarch64_"]
    assert reason.startswith("the stand-in channel lacks 9 packages: libnone0, libnone1, ")
    assert "libnone5 and 3 more" in reason


def test_a_python_that_pip_must_run_with_is_missed_before_wheels_are_chosen(tmp_path: Path) -> None:
    here = Platform.here()
    needs = ("pytorch",)
    demands = [
        ChannelDemand(Channels(("stand-in",), STAND_IN), f"row {python}", here.subdir, needs, (), python, ("pip",))
        for python in ("3.100", "3.99")
    ]
    machine = {"HOME": str(tmp_path), "PATH": str(tmp_path)}
    reasons = preparing.prepare(demands, tmp_path, machine, lambda _step: pytest.fail("it fetches"))
    assert set(reasons.values()) == {
        "the build runs pip with Python 3.99 and 3.100, which the stand-in channel lacks: there is no python3.99 and "
        "no python3.100 on PATH that runs; install them, or name the rows of another Python"
    }
    assert reasons == foresee(demands, machine)
    assert "there is no python3.99 on PATH that runs; install it," in foresee(demands[1:], machine)["row 3.99"]


def test_the_reason_names_what_to_install(tmp_path: Path) -> None:
    other = ARM if Platform.here() != ARM else Platform.parse("linux-64")
    package = "gcc-aarch64-linux-gnu" if other == ARM else "gcc-x86-64-linux-gnu"
    assert lacking_compiler(other, path=str(tmp_path)) == (
        f"there is no C compiler for {other} on PATH (Debian: {package})"
    )
    s390x = lacking_compiler(Platform.parse("linux-s390x"), path=str(tmp_path))
    assert s390x == "there is no C compiler for linux-s390x on PATH"


def test_zig_is_fetched_only_where_path_has_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "fetch_zig", None)
    gcc = tmp_path / "gcc"
    gcc.write_text("#!/bin/sh\n")
    gcc.chmod(0o755)
    assert provide_compiler(Platform.here(), tmp_path, {"PATH": str(tmp_path)}) is None


def test_where_zig_cannot_be_fetched_both_reasons_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object) -> None:
        raise WorkError("pip cannot fetch zig: the package index cannot be reached")

    monkeypatch.setattr(preparing, "fetch_zig", unreachable)
    here = Platform.here()
    assert provide_compiler(here, tmp_path, {"PATH": str(tmp_path)}) == (
        f"there is no C compiler for {here} on PATH (Debian: gcc), and pip cannot fetch zig: "
        "the package index cannot be reached"
    )


def test_zig_is_not_fetched_for_what_it_does_not_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "fetch_zig", None)
    reason = provide_compiler(Platform.parse("linux-s390x"), tmp_path, {"PATH": str(tmp_path)})
    assert reason == "there is no C compiler for linux-s390x on PATH"


def _program(folder: Path, status: int) -> Path:
    folder.mkdir()
    gcc = folder / "gcc"
    gcc.write_text(f"#!/bin/sh\nexit {status}\n")
    gcc.chmod(0o755)
    return gcc


def test_the_first_lines_name_the_compiler_and_why_that_on_path_is_not_taken(tmp_path: Path) -> None:
    here = Platform.here()
    demand = ChannelDemand(Channels(("stand-in",), STAND_IN), "row", here.subdir, (f"gcc_{here} 14.*",), (), None, ())
    works, refused = _program(tmp_path / "works", 0), _program(tmp_path / "refused", 1)

    def notes(path: Path) -> list[str]:
        return compiler_notes([demand], {"HOME": str(tmp_path), "PATH": str(path)})

    assert notes(works.parent) == [f"Its compiler is {works}."]
    assert notes(refused.parent) == [f"Its compiler is zig {ZIG_VERSION}: {refused} links no program."]
    assert notes(tmp_path) == [
        f"Its compiler is zig {ZIG_VERSION}: there is no C compiler for {here} on PATH (Debian: gcc)."
    ]
    assert compiler_notes([_demand("python")], {"HOME": str(tmp_path), "PATH": str(tmp_path)}) == []


def test_a_plan_says_what_a_build_fetches(tmp_path: Path) -> None:
    demands = [_demand("python", "cmake <4", "gxx_linux-64 14.*"), _demand("pytorch", "python")]
    notes = compiler_notes(demands, {"HOME": str(tmp_path), "PATH": str(tmp_path)})
    fetched = [note.partition(" of PyPI for ")[2] for note in notes if note.startswith("A build fetches wheels")]
    assert fetched == ["cmake <4, and says their size first.", "pytorch, and says their size first."]


def test_what_a_fetched_nvcc_cannot_do_is_known_before_and_after_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, machine = Platform.here(), {"HOME": str(tmp_path), "PATH": str(tmp_path)}
    device, whole = CudaToolkit("12.9", (), tmp_path / "12.9"), CudaToolkit("13.0", (), tmp_path / "13.0")
    (whole.folder / "bin").mkdir(parents=True)
    (whole.folder / "bin" / "nvcc").touch()
    for module in ("preparing", "toolkits"):
        monkeypatch.setattr(f"feedstock_tools.builds.stand_in.{module}.found_toolkits", lambda _: (device, whole))

    def notes(*needs: str) -> list[str]:
        channels = Channels(("stand-in",), STAND_IN)
        return compiler_notes([ChannelDemand(channels, "row", here.subdir, needs, (), None, ())], machine)

    assert notes("cuda-nvcc_linux-64 12.9.*") == [f"Note: {device.limit}."]
    assert "device code only" in device.limit
    assert notes("cuda-nvcc_linux-64 13.0.*") == notes("cuda-version 12.6.*") == []
    (_, note) = notes(f"gxx_{here} 14.*", "cuda-nvcc_linux-64 13.0.*")
    assert note == f"Note: {whole.limit}."
    assert "not zig" in whole.limit

    nvcc = {"cuda-nvcc_linux-64"}
    unknown, refused = (
        ["-- The CUDA compiler identification is unknown"],
        ["use -allow-unsupported-compiler to override"],
    )
    assert note_on_script(unknown, nvcc, "12.9", machine) == device.limit
    assert note_on_script(refused, nvcc, "13.0", machine) == whole.limit
    assert note_on_script(unknown, nvcc, "13.0", machine) is None
    assert "cuda fetch 12.6" in str(note_on_script(unknown, nvcc, "12.6", machine))


def test_an_nvcc_that_was_not_fetched_is_named_with_the_command_and_the_size_before_a_build(tmp_path: Path) -> None:
    needs = (("cuda-nvcc_linux-64 12.9.*",), ("cuda-nvcc_linux-64 13.0.*", "gcc"), ("nvcc_linux-64 11.2.*",))
    demands = [
        ChannelDemand(Channels(("stand-in",), STAND_IN), f"row {at}", Platform.here().subdir, each, (), None, ())
        for at, each in enumerate(needs)
    ]
    none, some = compiler_notes(demands, {"HOME": str(tmp_path), "PATH": str(tmp_path)})
    assert none.startswith("Note: there is no nvcc of CUDA 11.2 here, nor in a wheel")
    assert some == (
        "Note: no nvcc of CUDA 12.9 and 13.0 was fetched, so a script that calls it fails; `feedstock-tools cuda fetch "
        "12.9 13.0` fetches one (44 to 134 MB, before CUDA 13 for device code only)."
    )
