"""Answers about frameworks are what their wheels hold, by rules that the judge does not share."""

from __future__ import annotations

import pytest

from maintenance.facts import wheel_verdicts
from maintenance.facts.wheel_verdicts import GPUS, differences, expected


@pytest.mark.parametrize(
    ("code", "capability", "how"),
    [
        ("sm_70:9 sm_80:9", 75, "native"),
        ("sm_70:9 sm_80:9", 61, "no"),
        ("sm_70:9 compute_70:9", 90, "ptx"),
        ("sm_80:9 sm_90:9", 87, "no"),  # a system on a chip runs its own code alone
        ("sm_100f:9", 103, "native"),
        ("sm_100a:9", 103, "no"),
        ("sm_35:6 sm_37:4 sm_50:10", 37, "native"),  # libraries that are linked in have sm_35 instead
        ("sm_35:6 sm_37:4 sm_50:10", 35, "no"),
        ("sm_80:10 sm_90:2 compute_80:10", 90, "ptx"),
    ],
)
def test_the_rules_of_the_check(code: str, capability: int, how: str) -> None:
    assert expected({"files": {"lib.so": {"code": code}}}, capability) == how


def test_the_newest_torch_is_judged_as_its_wheels_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel_verdicts, "FRAMEWORKS", {"torch": ("torch",)})
    monkeypatch.setattr(wheel_verdicts, "_LAST", 1)
    monkeypatch.setattr(wheel_verdicts, "GPUS", {name: GPUS[name] for name in ("V100", "RTX 4090", "GH200", "B300")})
    found = dict(differences())
    assert len(found) == 24
    assert {question: differs for question, differs in found.items() if differs} == {}
