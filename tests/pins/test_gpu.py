"""How GPUs run builds, and the calls to a driver; the driver here is a stand-in."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.cli.cuda import gpu as command
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import CudaFacts, load_cuda
from feedstock_tools.facts.frameworks import load_wheels
from feedstock_tools.pins.driver import Device, Machine, probe
from feedstock_tools.pins.judge import card_named, card_of_capability, judge, judge_wheel


def output(*arguments: str) -> str:
    result = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    if result.exception:
        raise result.exception
    return result.output


def test_a_toolkit_older_than_the_gpu() -> None:
    text = output("--model", "RTX 3080", "--cuda", "11.0")
    assert "CUDA 11.0: native (sm_80)" in text
    assert "its own ptxas" in text
    assert "CUDA 11.2: PTX at first start (compute_86)" in output("--model", "H100", "--cuda", "11.2")


def test_a_toolkit_that_knows_the_gpu() -> None:
    assert "CUDA 11.1: native (sm_86)" in output("--model", "RTX 3080", "--cuda", "11.1")


def test_a_toolkit_that_has_dropped_the_gpu() -> None:
    text = output("--model", "V100", "--cuda", "13.0")
    assert "CUDA 13.0: not at all" in text
    assert "The last toolkit that supports it is 12.9" in text


@pytest.mark.parametrize(
    ("capability", "driver", "cuda", "architectures", "how"),
    [
        ("8.6", None, "11.2", None, "native"),
        ("6.1", None, "12.9", None, "native"),
        ("6.1", None, "13.0", None, "no"),
        ("3.0", None, "10.2", None, "native"),
        ("3.0", None, "11.0", None, "no"),
        ("9.0", None, "11.2", None, "ptx"),
        ("9.0", "525.60.13", "12.4", None, "native"),  # minor-version compatibility
        ("12.0", "525.60.13", "12.4", None, "no"),  # PTX of a newer CUDA than the driver's
        ("9.0", "555.42.02", "12.6", ["compute_90"], "ptx"),  # 12.5 and 12.6 have the same version of PTX
        ("9.0", "550.54.14", "12.5", ["compute_90"], "no"),
        ("12.0", "570.26", "12.4", None, "ptx"),
        ("8.6", "470.57.02", "12.4", None, "no"),
        ("8.6", None, "11.0", ["sm_80", "compute_80"], "native"),
        ("8.6", None, "11.0", ["sm_75", "compute_75"], "ptx"),
        ("8.6", "450.80.02", "11.2", ["sm_75", "compute_75"], "no"),
        ("8.6", None, "11.0", ["sm_75"], "no"),
    ],
)
def test_verdicts(
    facts: CudaFacts, capability: str, driver: str | None, cuda: str, architectures: list[str] | None, how: str
) -> None:
    verdict = judge(facts, card_of_capability(facts, capability, driver), cuda, architectures)
    assert verdict.how == how
    assert verdict.reasons


@pytest.mark.parametrize(
    ("model", "driver", "cuda", "how", "reason"),
    [
        (
            "H100",
            "516.01",
            "11.7",
            "unknown",
            "the first driver for its chip GH100 is known for Linux only (520.56.06)",
        ),
        ("H100", "516.01", "12.9", "no", "needs one for 12.0 or later"),
        ("GTX 1080", "591.44", "12.9", "no", "the last branch that does is 580"),
        ("RTX 4090", "516.94", "11.8", "no", "its chip AD102 needs 522.25 or later"),
        ("H100", "528.33", "12.0", "native", "compiles for sm_90"),
    ],
)
def test_a_driver_for_windows_whose_gpus_are_not_known_is_told_as_such(
    model: str, driver: str, cuda: str, how: str, reason: str
) -> None:
    arguments = ("--model", model, "--driver", driver, "--cuda", cuda, "--platform", "win-64")
    (found,) = json.loads(output(*arguments, "--json"))["gpus"][0]["builds"]
    assert found["runs"] == how
    assert reason in " ".join(found["reasons"])
    assert ("not known" in output(*arguments)) is (how == "unknown")


def test_every_toolkit_is_judged_by_default_in_ranges_that_a_gpu_runs_alike(facts: CudaFacts) -> None:
    lines = output("RTX 4090", "--platform", "linux-64").splitlines()
    assert lines[0] == "GeForce RTX 4090, compute capability 8.9"
    assert [line.split("  ")[1] for line in lines[1:5]] == [
        "CUDA 8.0 to 10.2",
        "CUDA 11.0",
        "CUDA 11.1 to 11.7",
        f"CUDA 11.8 to {list(facts.toolkits)[-1]}",
    ]
    (found,) = json.loads(output("RTX 4090", "--json"))["gpus"]
    assert [item["what"] for item in found["builds"]] == [f"CUDA {version}" for version in facts.toolkits]


def test_wheels_are_judged_by_the_code_in_them() -> None:
    (found,) = json.loads(output("GTX 1080 Ti", "--platform", "linux-64", "--json"))["gpus"]
    runs = {item["what"]: item["runs"] for item in found["wheels"]}
    assert (runs["torch 2.7"], runs["torch 2.8"]) == ("native", "no")
    (found,) = json.loads(output("RTX 4090", "--platform", "win-64", "--json"))["gpus"]
    runs = {item["what"]: item["runs"] for item in found["wheels"]}
    assert (runs["torch 2.8"], runs["cupy-cuda12x 14.2"]) == ("cpu", "native")


def test_builds_of_conda_forge_are_judged_by_the_lists_in_their_recipes() -> None:
    (found,) = json.loads(output("GTX 1080 Ti", "--platform", "linux-64", "--json"))["gpus"]
    runs = {(item["what"], item["cuda"]): item["runs"] for item in found["conda"]}
    assert (runs["pytorch 2.13", "12.9"], runs["pytorch 2.13", "13.0"]) == ("native", "no")
    lines = output("GTX 1080 Ti", "--platform", "linux-64").split("conda-forge's builds for linux-64")[1].splitlines()
    assert lines[2].split()[:5] == ["pytorch", "2.7", "to", "2.13", "native"]  # one line for all CUDA


def test_a_wheel_with_ptx_alone_needs_a_driver_that_compiles_it() -> None:
    for driver, runs in (("535.54.03", "no"), ("570.26", "ptx")):
        (found,) = json.loads(output("H100", "--driver", driver, "--platform", "linux-64", "--json"))["gpus"]
        assert {item["what"]: item["runs"] for item in found["wheels"]}["tensorflow 2.21"] == runs


def test_a_name_of_several_gpus_is_answered_for_each() -> None:
    text = output("GT 730", "--cuda", "11.4")
    assert text.count("GeForce GT 730, compute capability") == 3
    assert "CUDA 11.4: native (sm_35)" in text


def test_builds_of_a_package(tmp_path: Path) -> None:
    for build, depends in (
        ("cpu_h0_0", ()),
        ("cuda110h0_0", ("__cuda >=11.0",)),
        ("cuda124h0_0", ("__cuda >=12.4",)),
        ("cuda130h0_0", ("__cuda >=13.0",)),
    ):
        write_package(tmp_path, PackageMetadata("probe", "1.0", build, 0, "linux-64", depends=depends))
    index_channel(tmp_path)
    arguments = [
        "probe",
        "--model",
        "V100",
        "--driver",
        "550.54.14",
        "--channel",
        str(tmp_path),
        "--platform",
        "linux-64",
    ]
    (found,) = json.loads(output(*arguments, "--json"))["gpus"]
    assert [(build["what"], build["runs"]) for build in found["builds"]] == [
        ("probe-1.0-cpu_h0_0", "cpu"),
        ("probe-1.0-cuda110h0_0", "native"),
        ("probe-1.0-cuda124h0_0", "native"),
        ("probe-1.0-cuda130h0_0", "no"),
    ]
    assert "__cuda >=13.0" in found["builds"][-1]["reasons"][0]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--model", "RTX 9999"],
        ["--capability", "eight"],
        ["--model", "V100", "--capability", "7.0"],
        ["--driver", "535"],
        ["--model", "V100", "--cuda", "12.7"],
        ["--model", "V100", "--driver", "5x"],
        ["--model", "V100", "--driver", "100"],
    ],
)
def test_bad_input(arguments: list[str]) -> None:
    with pytest.raises(InputError):
        output(*arguments)


# --- this machine ----------------------------------------------------------------------------------------------------


class FakeCuda:
    """libcuda.so.1 of a machine with one RTX 3080."""

    def __init__(self, init: int = 0, count: int = 1) -> None:
        self._init, self._count = init, count

    def cuInit(self, flags: int) -> int:  # noqa: N802 - the names of the driver's functions
        return self._init

    def cuDriverGetVersion(self, number: Any) -> int:  # noqa: N802
        number._obj.value = 12020
        return 0

    def cuDeviceGetCount(self, number: Any) -> int:  # noqa: N802
        number._obj.value = self._count
        return 0

    def cuDeviceGet(self, handle: Any, ordinal: int) -> int:  # noqa: N802
        handle._obj.value = ordinal
        return 0

    def cuDeviceGetName(self, name: Any, size: int, handle: Any) -> int:  # noqa: N802
        name.value = b"NVIDIA GeForce RTX 3080"
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, handle: Any) -> int:  # noqa: N802
        value._obj.value = {75: 8, 76: 6}[attribute]
        return 0

    def cuDeviceTotalMem_v2(self, size: Any, handle: Any) -> int:  # noqa: N802
        size._obj.value = 10 * 2**30
        return 0

    def cuGetErrorString(self, status: int, text: Any) -> int:  # noqa: N802
        text._obj.value = b"out of order"
        return 0


class FakeNvml:
    def nvmlInit_v2(self) -> int:  # noqa: N802
        return 0

    def nvmlSystemGetDriverVersion(self, text: Any, size: int) -> int:  # noqa: N802
        text.value = b"535.129.03"
        return 0

    def nvmlShutdown(self) -> int:  # noqa: N802
        return 0


def driver(cuda: FakeCuda) -> Callable[[str], Any]:
    def load(name: str) -> FakeCuda | FakeNvml:
        return cuda if "cuda" in name else FakeNvml()

    return load


def test_what_the_driver_says() -> None:
    card = Device("NVIDIA GeForce RTX 3080", "8.6", 10 * 2**30)
    assert probe(driver(FakeCuda())) == Machine("535.129.03", "12.2", (card,))


def test_no_driver() -> None:
    def load(name: str) -> ctypes.CDLL:
        raise OSError(name)

    assert probe(load) == Machine(problem="this machine has no NVIDIA driver")


@pytest.mark.parametrize(
    ("cuda", "problem"),
    [
        (FakeCuda(init=100), "the driver finds no GPU"),
        (FakeCuda(count=0), "the driver finds no GPU"),
        (FakeCuda(init=999), "the driver does not work: cuInit: out of order"),
    ],
)
def test_a_driver_without_a_gpu_or_out_of_order(cuda: FakeCuda, problem: str) -> None:
    machine = probe(driver(cuda))
    assert (machine.devices, machine.problem) == ((), problem)


def test_a_report_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feedstock_tools.pins.judge.probe", lambda: probe(driver(FakeCuda())))
    text = output("--cuda", "12.4")
    assert text.startswith("Driver 535.129.03, which runs CUDA up to 12.2.\nNVIDIA GeForce RTX 3080, compute")
    assert "CUDA 12.4: native (sm_86)" in text


def test_a_gpu_that_is_unknown_is_not_taken_for_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "feedstock_tools.pins.judge.probe", lambda: Machine(problem="this machine has no NVIDIA driver")
    )
    with pytest.raises(InputError, match="unknown GPU 'RTX 5092'"):
        output("RTX 5092")


def test_a_report_on_a_machine_without_a_driver_mentions_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "feedstock_tools.pins.judge.probe", lambda: Machine(problem="this machine has no NVIDIA driver")
    )
    assert output().startswith("This machine has no NVIDIA driver.")
    assert json.loads(output("--json")) == {
        "driver": None,
        "driver_cuda": None,
        "problem": "this machine has no NVIDIA driver",
        "gpus": [],
    }


def test_the_driver_is_asked_with_the_standard_library_alone() -> None:
    source = Path(sys.modules[probe.__module__].__file__ or "")
    code = f"import runpy; runpy.run_path({str(source)!r})['probe']()"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)


def test_a_driver_of_a_named_gpu(facts: CudaFacts) -> None:
    card = card_named(facts, "v100", "470.57.02")
    assert (card.name, card.capability, card.driver, card.driver_cuda) == ("Tesla V100", "7.0", "470.57.02", "11.4")


# --- what a real GPU does --------------------------------------------------------------------------------------------

#: A kernel assembled by the ptxas of five toolkits, and as their PTX, on an H100 with driver 580.159.04 (CUDA 13.0):
#: the result of cuModuleLoadData. 209: no kernel image; 218: the PTX does not compile; 222: unsupported PTX version.
MEASURED = [
    (cuda, code, status)
    for cuda in ("11.8", "12.4", "12.9", "13.0", "13.5")
    for code, status in (
        ("sm_75", 209),
        ("sm_80", 209),
        ("sm_86", 209),
        ("sm_90", 0),
        ("compute_75", 222 if cuda == "13.5" else 0),
        ("compute_80", 222 if cuda == "13.5" else 0),
        ("compute_86", 222 if cuda == "13.5" else 0),
        ("compute_90", 222 if cuda == "13.5" else 0),
        *((("sm_100", 209), ("compute_100", 222 if cuda == "13.5" else 218)) if cuda >= "12.9" else ()),
    )
]


@pytest.mark.parametrize(("cuda", "code", "status"), MEASURED)
def test_a_verdict_is_what_an_h100_did(facts: CudaFacts, cuda: str, code: str, status: int) -> None:
    verdict = judge(facts, card_named(facts, "H100", "580.159.04"), cuda, [code])
    assert (verdict.how != "no") is (status == 0)
    if status == 0:
        assert verdict.how == ("native" if code.startswith("sm_") else "ptx")


def test_a_driver_that_knows_some_of_the_chips_of_a_name_leaves_the_answer_open() -> None:
    facts = load_cuda()
    torch = load_wheels()["torch"][-1]

    def runs(name: str, driver: str) -> tuple[str, str]:
        card = card_named(facts, name, driver)
        of_toolkit = judge(facts, card, "10.0")
        return of_toolkit.how, of_toolkit.reasons[0]

    how, reason = runs("GTX 1650", "415.18")
    assert how == "unknown"
    assert "TU106 (from 410.57 on), TU116 (from 418.30 on), TU117 (from 418.56 on)" in reason
    assert runs("GTX 1650 TU106", "415.18")[0] == "native"
    assert runs("GTX 1650 TU117", "415.18")[0] == "no"
    assert runs("GTX 1650", "390.157")[0] == "no"
    assert runs("GTX 1650", "418.56")[0] == "native"
    assert judge_wheel(facts, card_named(facts, "GTX 1650", "580.65.06"), torch, "linux-64").how == "native"
