"""Answers about frameworks are what their wheels hold, by rules that the judge does not share."""

from __future__ import annotations

import pytest

from maintenance.facts import framework_wheels, wheel_verdicts
from maintenance.facts.records import read_table
from maintenance.facts.wheel_verdicts import GPUS, comparisons, expected, shares


@pytest.mark.parametrize(
    ("code", "capability", "how"),
    [
        ({"sm_70 sm_80": 9}, 75, "native"),
        ({"sm_70 sm_80": 9}, 61, "no"),
        ({"sm_70 compute_70": 9}, 90, "ptx"),
        ({"sm_80 sm_90": 9}, 87, "no"),  # a system on a chip runs its own code alone
        ({"sm_100f": 9}, 103, "native"),
        ({"sm_100a": 9}, 103, "no"),
        ({"sm_35 sm_50": 4, "sm_37 sm_50": 6}, 37, "native"),  # libraries that are linked in have sm_35 instead
        ({"sm_35 sm_50": 4, "sm_37 sm_50": 6}, 35, "no"),
        ({"sm_80 compute_80": 8, "sm_80 sm_90 compute_80": 2}, 90, "ptx"),
        ({"sm_90a": 9, "sm_75 sm_80 sm_90a": 7, "sm_80 sm_90a": 3}, 75, "native"),
    ],
)
def test_the_rules_of_the_check(code: dict[str, int], capability: int, how: str) -> None:
    assert expected({"files": {"lib.so": {"fat_binaries": code}}}, capability) == how


def test_a_gpu_runs_nearly_all_of_a_wheel_or_little() -> None:
    """The two thirds in `framework_wheels.own_code` are no fine line: torch 1.11 on a K40 alone is between 20 and 66 %,
    and vllm for ARM, where it was not built for such GPUs but for Orin and Grace."""
    capabilities = {capability for capability, _ in GPUS.values()}
    between = [
        (table, version, subdir, capability)
        for table in framework_wheels.PROJECTS
        for version, release in read_table(f"{framework_wheels.TABLES}/{table}").items()
        for subdir, entry in release["platforms"].items()
        for capability in capabilities
        if (found := shares(entry, capability)) and 0.2 < found[1] < 0.66
    ]
    on_arm = {each for each in between if each[0] == "vllm" and each[2] == "linux-aarch64" and each[3] in (80, 86, 110)}
    assert {each for each in between if each not in on_arm} <= {("torch", "1.11.0", "linux-64", 35)}


@pytest.mark.parametrize(
    ("framework", "minors", "answers"), [("torch", 1, 24), ("faiss-gpu", 1, 24), ("triton", 1, 24)]
)
def test_the_newest_wheels_are_judged_as_they_are(
    framework: str, minors: int, answers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel_verdicts, "GPUS", {name: GPUS[name] for name in ("V100", "RTX 4090", "GH200", "B300")})
    found = list(comparisons([framework], minors))
    assert len(found) == answers
    assert [each for each in found if each.ours is not None] == []
    assert all(each.why for each in found if each.expected == "unknown")


def test_gpus_that_run_a_wheel_by_machine_code_and_ptx_are_judged_as_such() -> None:
    """vllm for ARM: 29 of 46 fat binaries have machine code that a B300 runs, and 14 of the others PTX."""
    found = list(comparisons(["vllm"], 100, resolves=False))
    assert [each for each in found if each.ours is not None] == []
    told = {each.question: each.expected for each in found}
    assert told["gpu B300: vllm 0.10.2 on linux-aarch64"] == "ptx"
    assert told["gpu Jetson AGX Thor: vllm 0.10.2 on linux-aarch64"] == "no"
