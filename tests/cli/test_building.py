"""What `build` does once it has printed its table."""

import io

import pytest

from feedstock_tools.builds.plan import workspace as workspaces
from feedstock_tools.builds.plan.workspace import open_workspace
from feedstock_tools.builds.runs.run import BuildResult, Outcome
from feedstock_tools.cli.running import report
from feedstock_tools.report.observers import Terminal
from tests.support.feedstocks import GPU, TinyFeedstock
from tests.support.rows import made_up_row


class _Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [_Screen(), io.StringIO()], ids=["terminal", "pipe"])
def test_the_next_list_is_prepared_for_a_person_and_not_for_a_script(
    feedstock: TinyFeedstock, monkeypatch: pytest.MonkeyPatch, stream: io.StringIO
) -> None:
    monkeypatch.setattr(workspaces, "_FEW", 0)
    workspace = open_workspace(feedstock.folder, None, ("conda-forge",), {})
    (chosen,) = workspace.chosen([GPU])
    row = made_up_row("tiny", "tiny")
    built = Outcome(row, row.planned.outputs[0], None, new=True)
    report(workspace, BuildResult(workspace.artifacts, (built,)), {}, Terminal(stream), as_json=False)
    rendered = {configuration.name for configuration in workspace.plan.configurations if configuration.rendered}
    assert rendered == ({each.name for each in workspace.plan.configurations} if stream.isatty() else {chosen.name})
