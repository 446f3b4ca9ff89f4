"""Made-up pages of every kind, with names and messages of people who would like to run scripts in them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from feedstock_tools.builds.fleet.simulation.simulate import SimulatedBuild, Simulation
from feedstock_tools.channel.packages.archive import FileDifference, PackageComparison
from feedstock_tools.check.choices import ChoiceChange, Pick
from feedstock_tools.check.differences import Differences, JobChange, Lines, PackageChange
from feedstock_tools.check.rehearsal import FOLLOWS, Environment, Rehearsal
from feedstock_tools.pins.graph.model import Bound, PinGraph, Release, Way
from feedstock_tools.report.checks.differences import comparison_page, differences_page
from feedstock_tools.report.checks.rehearsal import rehearsal_page
from feedstock_tools.report.matrix_page import page as status_page
from feedstock_tools.report.pins.show import page as pins_page
from feedstock_tools.report.plan import simulation_page
from tests.support.matrices import HOSTILE, made_up_matrix

#: The pages that `made_up_pages` writes.
NAMES = ("status", "pins", "rehearsal", "differences", "packages", "simulation")
_JOBS = tuple(f"linux_64_cuda_compiler_version12.9microarch_level{level}python3.{minor}.____cpython"
              for level in (1, 3) for minor in (11, 12, 13))  # fmt: skip


def made_up_pages(folder: Path) -> dict[str, Path]:
    """Name → file, of each of `NAMES`."""
    files = {name: folder / f"{name}.html" for name in NAMES}
    matrix = made_up_matrix(folder / "artifacts", 15)
    files["status"].write_text(status_page(matrix, folder.resolve()), encoding="utf-8")
    files["pins"].write_text(pins_page(made_up_pins(), ("12.9", "12.4", "11.8", "11.2"), "made up"), encoding="utf-8")
    files["rehearsal"].write_text(rehearsal_page(made_up_rehearsal(), "hello"), encoding="utf-8")
    differences = differences_page(made_up_differences(), "hello", "HEAD~1", "the feedstock as it is")
    files["differences"].write_text(differences, encoding="utf-8")
    files["packages"].write_text(comparison_page(_packages(), "a-1.0-0.conda", "a-1.0-1.conda"), encoding="utf-8")
    builds = tuple(
        SimulatedBuild(f"row {at}", _JOBS[at % 6], f"8c32g-{1 + at % 2}", 600.0 * at, 600.0 * at + 900, 2, at == 3)
        for at in range(8)
    )
    simulation = Simulation(5_100.0, builds, (), {})
    text = "hosts      used  rows  busy\n---------  ----  ----  ----\n2 x 8c32g     2     8  2 h\n" * 2
    at = datetime(2026, 3, 4, 9, 5, tzinfo=UTC)
    files["simulation"].write_text(simulation_page(simulation, text, at), encoding="utf-8")
    return files


def made_up_pins() -> PinGraph:
    """A pin graph of four CUDA versions, small enough to know what goes together."""
    cudas = ("11.2", "11.8", "12.4", "12.9")
    partners = {
        Release("gcc", "10"): cudas,
        Release("gcc", "11"): cudas[1:],
        Release("gcc", "13"): cudas[2:],
        Release("cudnn", "8.9.7.29"): cudas[:3],
        Release("cudnn", "9.1.0.70"): cudas[2:],
        Release("nccl", "2.27.3.1"): cudas,
        Release("sm", "86"): cudas,
        Release("sm", "90"): cudas[1:],
        Release("sm", "120"): cudas[3:],
        Release("platform", "linux-64"): cudas,
        Release("platform", "win-64"): cudas[:3],
    }
    drivers = {"11.2": "450.80.02", "11.8": "450.80.02", "12.4": "525.60.13", "12.9": "525.60.13"}
    bounds = [Bound(release, (Way({"cuda": frozenset(fits)}),), "made up") for release, fits in partners.items()]
    for cuda, least in drivers.items():
        fits = frozenset(each for each in set(drivers.values()) if each >= least)
        on_linux = Way({"driver": fits, "platform": frozenset({"linux-64"})})
        bounds.append(Bound(Release("cuda", cuda), (on_linux, Way({"platform": frozenset({"win-64"})})), ""))
    releases = {
        *partners,
        *(Release("cuda", cuda) for cuda in cudas),
        *(Release("driver", d) for d in drivers.values()),
    }
    return PinGraph(frozenset(releases), tuple(bounds))


def made_up_rehearsal() -> Rehearsal:
    """A rehearsal with environments in every state, and choices that are wrong."""
    environments = [
        Environment(job, f"{job}_0", output, kind, "linux-64", "solved", 40 + at)
        for job in _JOBS
        for at, output in enumerate(("libhello", "hello"))
        for kind in ("build", "host", "run")
    ]
    reason = f"hello 1.0 requires libfoo >=2, but libbar <3 of the host requires libfoo <2\n{HOSTILE} \u202etxt.exe"
    environments += [
        Environment(_JOBS[0], f"{_JOBS[0]}_0", "hello", "test", "linux-64", "failed", 0, reason),
        Environment(_JOBS[1], f"{_JOBS[1]}_0", "hello", "test", "linux-64", "waiting", 0, FOLLOWS),
        Environment(_JOBS[2], f"{_JOBS[2]}_0", "hello", "test", "linux-64", "unknown", 0, "no channel has tester"),
        Environment(_JOBS[3], "r", "hello", "test", "linux-64", "solved", 9, None, "libfoo 2 h1_0 or libfoo 2 h2_0"),
    ]
    picks = [
        Pick("linux-64", None, "hello", "1.0 cpu_0", None),
        Pick(
            "linux-64", "12.4", "hello", "1.0 cuda129_0", "12.9", ("1.0 cpu_0",), f"only time stamps decide {HOSTILE}"
        ),
        Pick("linux-64", "12.9", "hello", "1.0 cuda129_0", "12.9"),
    ]
    return Rehearsal(tuple(environments), tuple(picks), ("https://example.org/channel",), 31)


def made_up_differences() -> Differences:
    """Differences of every kind."""
    parts = (
        Lines("run", ("numpy >=1.19,<3", "scipy"), ("numpy >=1.23,<3", "scipy >=1.9", HOSTILE)),
        Lines("tests", (), ("import hello", "hello --version" * 30)),
        Lines("script", (), ()),
    )
    return Differences(
        jobs_added=(f"win_64_{HOSTILE}",),
        jobs_removed=(_JOBS[5],),
        jobs_replaced=((_JOBS[0], _JOBS[1]),),
        jobs_changed=(JobChange(_JOBS[2], (("libfoo", "1", "2"), ("docker_image", "", "image\u202egnp"))),),
        packages_added=((_JOBS[2], "hello-extra"), (_JOBS[3], "hello-extra")),
        packages_removed=((_JOBS[2], "hello-old"),),
        packages_changed=(PackageChange("hello", _JOBS, parts), PackageChange("libhello", _JOBS[:1], parts[:1])),
        same=12,
        files=("recipe/patches/0001-a.patch",),
        choices=(ChoiceChange("hello", ("linux-64", "win-64"), "driver 12.0 and newer", "CUDA 12.6", "CUDA 12.9"),),
    )


def _packages() -> PackageComparison:
    return PackageComparison(
        ("ab" * 32, "cd" * 32),
        120,
        (
            FileDifference("lib/libhello.so", "bytes", (123_456, 123_460), (), 64),
            FileDifference(f"share/{HOSTILE}", "only in the first", (10, 0)),
            FileDifference(
                "info/about.json", "text", (80, 90), ("--- a", "+++ b", "@@ -1 +1 @@", "-home: x", "+home: y")
            ),
        ),
    )
