"""Why an environment has no solution."""

from __future__ import annotations

import json
from pathlib import Path

from feedstock_tools.builds.runs.unsolved import explain_solve


def test_a_folder_without_an_index_is_not_the_reason(tmp_path: Path) -> None:
    channel = tmp_path / "channel"
    (channel / "noarch").mkdir(parents=True)
    (channel / "noarch/repodata.json").write_text(json.dumps({"packages": {}, "packages.conda": {}}))
    log = [
        "  Platform: linux-64 [__unix=0=0]",
        "  Channels:",
        f"   - {(tmp_path / 'output').as_uri()}/",
        f"   - {channel.as_uri()}/",
        "  Specs:",
        "   - tester",
    ]
    assert explain_solve(log, "linux-64") == "no channel has 'tester'"
