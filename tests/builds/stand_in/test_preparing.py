"""What the stand-in channel of a machine cannot build, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.builds.stand_in import preparing
from feedstock_tools.builds.stand_in.on_demand import Ties
from feedstock_tools.builds.stand_in.preparing import foresee, lacking_compiler, provide_compiler, why_no_packages
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
    for name in ("rust_linux-aarch64", "libcusolver-dev", "libpng"):
        assert foresee([_demand(name)], {"HOME": str(tmp_path)})["linux_aarch64_"].endswith(f"has no {name}")


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
