"""Migrations with the same time stamp: the feedstock's own are applied before the pinning's."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.source import find_pinning, migrations_of


@pytest.mark.parametrize("own", ["a.yaml", "z.yaml"])
def test_the_feedstock_s_own_come_first(tmp_path: Path, own: str) -> None:
    pinning = tmp_path / "a-pinning"
    shared = pinning / "share/conda-forge/migrations"
    migrations = tmp_path / "z-feedstock/.ci_support/migrations"
    for folder in (shared, migrations):
        folder.mkdir(parents=True)
        (folder / "m.yaml").write_text("migrator_ts: 7\n__migrator: {kind: version}\n")
    (pinning / "conda_build_config.yaml").write_text("")
    (migrations / own).write_text("migrator_ts: 7\n__migrator: {use_local: true}\n")
    found = migrations_of(tmp_path / "z-feedstock", find_pinning(pinning), Rules.newest())
    assert found.applied == (migrations / own, shared / "m.yaml")
