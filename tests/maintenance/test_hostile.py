"""The generator of hostile input: it is repeatable, its readers are reached, and its first case of each kind holds."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from maintenance.hostile.__main__ import one_case
from maintenance.hostile.cases import KINDS
from tests.support.needs import needs

pytestmark = [pytest.mark.slow, needs("system", hasattr(os, "fork"), "one that can fork")]


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "kind",
    [
        "v0 templates",
        "v1 templates",
        "YAML",
        "changed files",
        "edited files",
        "simulation",
        "archives",
        "other archives",
        "fleets",
    ],
)
def test_a_case_can_be_repeated(tmp_path: Path, kind: str) -> None:
    for name in ("one", "other"):
        (tmp_path / name / "inside").mkdir(parents=True)
        KINDS[kind](tmp_path / name / "inside", random.Random("1:3"))  # noqa: S311
    one, other = _files(tmp_path / "one"), _files(tmp_path / "other")
    assert one.keys() == other.keys()
    same = [name for name in one if one[name].replace(b"/one/", b"/other/") == other[name]]
    assert len(same) == len(one) or "archives" in kind


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_case_of_each_kind_holds(tmp_path: Path, kind: str) -> None:
    wrong, results = one_case(0, 1, kind, tmp_path / "work" / "case")
    assert wrong == []
    ends = {each.end for each in results}
    assert ends <= {"succeeds", "refused", "bound"}
    assert {"refused", "bound"} & ends


def _fails() -> None:
    raise KeyError("a mistake of ours")


def _writes(outside: Path) -> None:
    (outside / "x").write_text("")


def _readers(folder: Path, _chance: random.Random) -> dict[str, Callable[[], object]]:
    return {"fails": _fails, "writes": partial(_writes, folder.parent / "outside")}


def test_what_does_not_hold_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "YAML", _readers)
    wrong, results = one_case(1, 1, "YAML", tmp_path / "work" / "case")
    assert [each.end for each in results] == ["fails", "succeeds"]
    assert "KeyError: 'a mistake of ours'" in wrong[0]
    assert wrong[1].startswith("writes: writes outside")
