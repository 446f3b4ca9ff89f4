"""Builds that only time stamps choose between, found without another solve; compared with solves under other stamps."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.channel.many_solves import ManySolves
from feedstock_tools.channel.solving import Question, virtual_packages
from feedstock_tools.platforms import Platform
from tests.support.timestamps import decided_by_time

LINUX = Platform.parse("linux-64")
ON = virtual_packages(LINUX, cuda="11.8")


def build(name: str, version: str, string: str, number: int = 0, **more: Any) -> dict[str, Any]:
    entry = {"name": name, "version": version, "build": string, "build_number": number, "depends": []}
    return {**entry, "subdir": "linux-64", **more}


TWINS = [build("lib", "1", "a_0"), build("lib", "1", "b_0")]
GUARDED = [
    build("lib", "1", "cuda11_0", depends=["__cuda >=11"]),
    build("lib", "1", "cuda118_0", depends=["__cuda >=11.8"]),
]


def channel(folder: Path, *packages: dict[str, Any]) -> str:
    for subdir in ("linux-64", "noarch"):
        entries = {
            f"{one['name']}-{one['version']}-{one['build']}.conda": one for one in packages if one["subdir"] == subdir
        }
        (folder / subdir).mkdir(parents=True)
        (folder / subdir / "repodata.json").write_text(json.dumps({"packages": {}, "packages.conda": entries}))
    return str(folder)


def told(folder: str, *specs: str) -> tuple[tuple[str, str], ...]:
    async def ask() -> tuple[tuple[str, str], ...]:
        solver = ManySolves({"linux-64": (folder,)}, at_once=1)
        try:
            return (await solver.solve(Question(specs, LINUX, ON))).by_time
        finally:
            solver.close()

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("packages", "specs", "expected"),
    [
        (TWINS, ["lib"], {"lib 1 a_0", "lib 1 b_0"}),
        (TWINS, ["lib 1 a*"], set()),
        ([build("lib", "1", "a_0"), build("lib", "1", "b_1", 1)], ["lib"], set()),
        ([build("lib", "1", "a_0"), build("lib", "1", "b_0", track_features="less")], ["lib"], set()),
        ([TWINS[0], build("lib", "1", "b_0", depends=["nowhere"])], ["lib"], set()),
        ([TWINS[0], build("lib", "1", "b_0", depends=["__cuda >=12"])], ["lib"], set()),
        (GUARDED, ["lib"], {"lib 1 cuda11_0", "lib 1 cuda118_0"}),
        ([*TWINS, build("app", "1", "0", depends=["lib 1 b*"])], ["lib", "app"], set()),
        ([TWINS[0], build("lib", "1", "b_0", constrains=["app <1"]), build("app", "1", "0")], ["lib", "app"], set()),
        ([build("lib", "1", "a_0"), build("lib", "1", "b_0", subdir="noarch")], ["lib"], {"lib 1 a_0", "lib 1 b_0"}),
    ],
    ids=["twins", "named", "number", "feature", "absent", "driver", "guards", "tied", "excluded", "noarch"],
)  # fmt: skip
def test_it_is_reported_exactly_if_other_time_stamps_give_another_build(
    tmp_path: Path, packages: list[dict[str, Any]], specs: list[str], expected: set[str]
) -> None:
    folder = channel(tmp_path / "channel", *packages)

    assert {name for pair in told(folder, *specs) for name in pair} == expected
    assert bool(decided_by_time(specs, [folder], LINUX, virtual=ON)) == bool(expected)
