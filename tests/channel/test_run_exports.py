"""Where run exports come from when repodata does not have them."""

from __future__ import annotations

import json
from pathlib import Path

from feedstock_tools.channel.metadata import PackageMetadata, RunExports
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.repodata import repodata_state, run_exports_of


def test_the_channels_list_is_asked_first_and_then_the_package(tmp_path: Path) -> None:
    exports = RunExports(weak=("libzlib >=1.3",))
    written = write_package(tmp_path, PackageMetadata("zlib", "1.3", "h0_0", 0, "linux-64", run_exports=exports), ())
    listed = {
        "packages": {},
        "packages.conda": {"openssl-3.5-h0_0.conda": {"run_exports": {"weak": ["openssl >=3.5"]}}},
    }
    (tmp_path / "linux-64" / "run_exports.json").write_text(json.dumps(listed))

    assert run_exports_of(f"{tmp_path.as_uri()}/linux-64/openssl-3.5-h0_0.conda") == RunExports(weak=("openssl >=3.5",))
    assert run_exports_of(written.as_uri()) == exports


def test_the_state_of_a_channel_changes_with_its_repodata(tmp_path: Path) -> None:
    (tmp_path / "noarch").mkdir()
    repodata = tmp_path / "noarch" / "repodata.json"
    repodata.write_text("{}")
    before = repodata_state(str(tmp_path), ("linux-64", "noarch"))

    assert repodata_state(str(tmp_path), ("linux-64", "noarch")) == before
    repodata.write_text('{"packages": {}}')
    assert repodata_state(str(tmp_path), ("linux-64", "noarch")) != before
