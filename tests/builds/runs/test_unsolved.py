"""Why an environment has no solution, or a source was not fetched."""

from __future__ import annotations

import json
from pathlib import Path

from feedstock_tools.builds.runs.unsolved import explain_fetch, explain_solve
from tests.support.serving import failing, serving


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


def test_a_failed_download_names_its_address_and_the_cause() -> None:
    log = "Failed to fetch from {}: Failed to download from URL: Request failed after 3 retries".format
    unknown = "https://feedstock-tools.invalid/x.tar.bz2"
    assert explain_fetch(["Starting", log(unknown)]) == (
        f"{unknown} cannot be fetched: its name cannot be looked up; is there a network?"
    )
    with serving(failing(403)) as address:
        why = explain_fetch([log(unknown), log(f"{address}/x.tar.bz2")])
    assert why == f"{address}/x.tar.bz2 cannot be fetched: it answers with HTTP status 403"
    broken = "Failed to fetch from https://example.org/x: Failed to download from URL: error decoding response body"
    assert explain_fetch([broken]) == "https://example.org/x cannot be fetched"
    assert explain_fetch(["Starting"]) is None
