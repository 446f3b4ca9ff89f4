"""Identities are stable byte for byte, so that builds by an earlier version still count as done.

`identities_of_tiny.json` was recorded with version 0.1.0 at commit e375eab: for each output of the tiny feedstock the
digests of what goes in, its identity in a plan, and its identity in a ledger for builds on conda-forge.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.builds.channels import ChannelIdentities, ChannelsIdentity, channels_named
from feedstock_tools.builds.ledger import BuildRecord, Ledger, PackageRecord, now
from feedstock_tools.builds.matrix.matrix import read_matrix
from feedstock_tools.builds.plan.agenda import agenda
from feedstock_tools.builds.plan.hosts import Capacity
from feedstock_tools.builds.plan.identity import (
    FORM,
    candidates_of,
    identity_on,
    inputs_on,
)
from feedstock_tools.builds.plan.rendering import render_outputs
from feedstock_tools.builds.plan.workspace import Workspace, open_workspace
from feedstock_tools.channel.properties import Channels
from feedstock_tools.digests import digest_of_values, sha256_of
from feedstock_tools.feedstock.configurations import outline
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput, PlannedRow
from feedstock_tools.report.run import again_notes
from tests.support.feedstocks import HERE, TinyFeedstock
from tests.support.needs import needs
from tests.support.paths import EXAMPLES

RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("identities_of_tiny.json").read_text())
ENGINE = "rattler-build 0.73.0"
#: What is rendered depends on the platform that builds.
pytestmark = needs("system", HERE.subdir == "linux-64", "the identities recorded are those on linux-64")


def recorded(row: str, output: str) -> dict[str, Any]:
    """The record of an output of a row."""
    return next(each for each in RECORDED if (each["row"], each["output"]) == (row, output))


def outputs(configurations: tuple[PlannedConfiguration, ...]) -> list[tuple[PlannedRow, PlannedOutput]]:
    """Each output with its row."""
    return [(row, output) for each in configurations for row in each.rows for output in row.outputs]


def record(
    workspace: Workspace,
    chosen: tuple[PlannedConfiguration, ...],
    identity: Callable[[PlannedRow, PlannedOutput], str],
    base: ChannelsIdentity | None = None,
) -> None:
    """Record each output as done under an identity, with a package, and its inputs if its channels are given."""
    with Ledger(workspace.artifacts.ledger) as ledger:
        for row, output in outputs(chosen):
            path = workspace.artifacts.root / output.subdir / output.file_name
            path.parent.mkdir(exist_ok=True)
            path.write_text(output.stem)
            state = path.stat()
            file = f"{output.subdir}/{output.file_name}"
            package = PackageRecord(".", file, state.st_size, sha256_of(path), state.st_mtime_ns)
            name, channels = "linux_64_cuda_compiler_versionNone", ("conda-forge",)
            begun = BuildRecord(
                identity(row, output), name, row.name, output.name, "running", now(), "logs/a", ENGINE, channels
            )
            begun = replace(begun, inputs=inputs_on(base, output) if base else {})
            ledger.finish(replace(ledger.begin(begun), result="done", ended=now(), packages=(package,)))


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: f"{each['row']} {each['output']}")
def test_an_identity_is_the_hash_of_its_parts(recorded: dict[str, Any]) -> None:
    assert digest_of_values(recorded["inputs"]) == recorded["identity"]
    output = PlannedOutput("tiny", "1", "0", 0, "linux-64", recorded["identity"], inputs=recorded["inputs"])
    base = ChannelIdentities({}).of(Channels(("conda-forge",)), "linux-64")
    assert identity_on(base, output) == recorded["on conda-forge"]
    assert inputs_on(base, output) == {**recorded["inputs"], "channels": base.contents, "form": FORM}


def test_a_feedstock_is_rendered_to_the_identities_that_it_had(feedstock: TinyFeedstock) -> None:
    configurations = tuple(each for each in outline(feedstock.folder) if each.platform == "linux-64")
    recipe = feedstock.folder / "recipe" / "recipe.yaml"
    rendered, _ = render_outputs(configurations, recipe, {"linux-64": ENGINE})
    found = outputs(rendered)
    assert len(found) == len(RECORDED)
    for row, output in found:
        before = recorded(row.name, output.name)
        assert (output.inputs, output.identity) == (before["inputs"], before["identity"])


def test_what_an_earlier_version_has_built_is_done(feedstock: TinyFeedstock) -> None:
    workspace = open_workspace(feedstock.folder, None, ("conda-forge",), {})
    chosen = workspace.chosen(["linux_64_cpu"])
    record(workspace, chosen, lambda row, output: recorded(row.name, output.name)["on conda-forge"])
    (configuration,) = read_matrix(workspace, chosen).configurations
    assert {each.state for each in configuration.outputs} == {"done"}
    (stand_in, *_) = read_matrix(replace(workspace, channels=("stand-in",)), chosen).configurations
    assert "done" not in {each.state for each in stand_in.outputs}


@pytest.mark.parametrize("with_compiler", [False, True], ids=["no compiler", "gcc"])
def test_builds_on_the_stand_in_channel_are_done(with_compiler: bool, feedstock: TinyFeedstock, tmp_path: Path) -> None:
    if with_compiler:
        (tmp_path / "gcc").write_text("#!/bin/sh\n")
        (tmp_path / "gcc").chmod(0o755)
    workspace = open_workspace(feedstock.folder, None, ("stand-in",), {"PATH": str(tmp_path)})
    chosen = workspace.chosen(["linux_64_cpu"])
    base = ChannelIdentities(workspace.machine).of(channels_named(["stand-in"]), "linux-64")
    record(workspace, chosen, lambda _row, output: identity_on(base, output), base)
    (configuration,) = read_matrix(workspace, chosen).configurations
    assert {each.state for each in configuration.outputs} == {"done"}
    planned = agenda(workspace, chosen, Capacity.of_machine())
    assert not planned.todo
    assert {name for row in planned.done for name in row.wanted.identities.values()} == {
        identity_on(base, output) for _, output in outputs(chosen)
    }


def test_an_output_that_no_engine_renders_has_no_candidates() -> None:
    row = PlannedRow("row", {}, None, None, (PlannedOutput("a", "1", "0", 0, "linux-64", ""),))
    assert candidates_of([PlannedConfiguration("a", "linux-64", (row,))], (), {}) == {}


def test_tools_of_the_stand_in_channel_count_where_a_build_needs_them() -> None:
    plain = PlannedOutput("tiny", "1", "0", 0, "linux-64", "identity")
    built = replace(plain, tools={"cmake": "1"})
    stand_in, real = (ChannelsIdentity(text, text) for text in ("stand-in abc", "conda-forge"))

    assert identity_on(stand_in, plain) == sha256(b"identity\nstand-in abc").hexdigest()
    assert inputs_on(stand_in, plain) == {"channels": "stand-in abc", "form": FORM}
    assert identity_on(stand_in, built) not in (
        identity_on(stand_in, plain),
        identity_on(stand_in, replace(plain, tools={"cmake": "2"})),
    )
    assert inputs_on(stand_in, built).keys() == {"channels", "form"}, "the reason to build again is the channels"
    assert identity_on(real, built) == identity_on(real, plain)


@pytest.mark.parametrize("example", ["gpuprobe", "gpukernel"])
def test_the_examples_need_no_tools_so_that_their_builds_stay_done(example: str) -> None:
    chosen = [each for each in outline(EXAMPLES / example) if each.platform == "linux-64"][:1]
    rendered, _ = render_outputs(chosen, EXAMPLES / example / "recipe" / "recipe.yaml", {"linux-64": ENGINE})
    assert [output.tools for _, output in outputs(rendered)] == [{} for _ in outputs(rendered)]


def test_a_run_says_what_has_changed_since_a_row_was_built(feedstock: TinyFeedstock) -> None:
    workspace = open_workspace(feedstock.folder, None, ("stand-in",), {"PATH": ""})
    chosen = workspace.chosen(["linux_64_cpu"])
    base = ChannelIdentities(workspace.machine).of(channels_named(["stand-in"]), "linux-64")
    record(workspace, chosen, lambda _row, output: identity_on(base, output), base)
    assert list(again_notes(agenda(workspace, chosen, Capacity.of_machine()))) == []

    other = replace(workspace, channels=(str(feedstock.channel),))
    (note,) = again_notes(agenda(other, chosen, Capacity.of_machine()))

    assert note.startswith(f"Building again: {chosen[0].rows[0].short_name}")
    assert note.endswith("; changed since the last build: the channels")
