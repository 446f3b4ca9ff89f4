"""The readers of hostile input: what commands do with it, without writing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from maintenance.fuzz_edits import edits

if TYPE_CHECKING:
    from feedstock_tools.builds.plan.workspace import Workspace
    from feedstock_tools.edit.draft import Draft


def simulate(folder: Path) -> None:
    from feedstock_tools.builds.fleet.simulation.hosts import read_hosts
    from feedstock_tools.builds.fleet.simulation.simulate import simulate
    from feedstock_tools.builds.fleet.simulation.times import read_times, with_times
    from feedstock_tools.builds.plan.agenda import agenda
    from feedstock_tools.builds.plan.hosts import Capacity, local_host
    from feedstock_tools.report.simulation import simulation_text as shown

    workspace = opened(folder, (folder / "channel").as_uri())
    planned = agenda(workspace, workspace.chosen(), Capacity.of_machine(1))
    hosts = read_hosts(str(folder / "hosts.yaml"), local_host(planned.capacity, planned.jobs))
    rows = with_times(planned.todo, read_times(folder / "times.yaml"), 60.0)
    shown(simulate(rows, hosts, 1), hosts, planned.refused)


def lint(folder: Path) -> None:
    from feedstock_tools.check.linting.lint import lint_feedstock

    list(lint_feedstock(folder))


def diff(before: Path, folder: Path) -> None:
    from feedstock_tools.check.differences import compare_feedstocks
    from feedstock_tools.report.checks.differences import differences_page, differences_text

    found = compare_feedstocks(before, folder)
    differences_text(found)
    differences_page(found, folder.name, "before", "after")


def diff_packages(first: Path, second: Path) -> None:
    from feedstock_tools.channel.comparing import compare_packages
    from feedstock_tools.report.checks.differences import comparison_page, comparison_text

    found = compare_packages(first, second)
    comparison_text(found)
    comparison_page(found, first.name, second.name)


def review(before: Path, folder: Path) -> None:
    from feedstock_tools.check.reviewing import review_feedstock
    from feedstock_tools.report.checks.review import review_markdown

    review_markdown(review_feedstock(before, folder), "before")


def import_recipe_of(folder: Path) -> None:
    from feedstock_tools.importing import import_recipe
    from feedstock_tools.report.importing import imported_text

    imported_text(import_recipe(folder))


def edit(folder: Path, edit: Callable[[Draft], Draft]) -> None:
    from feedstock_tools.edit.draft import open_draft

    list(edit(open_draft(folder)).changes().diff())


def one_edit(folder: Path, number: int) -> None:
    """One of the edits, by its number: a function of theirs may not travel to another process."""
    edit(folder, edits(folder / "pinning")[number][0])


def to_v1(folder: Path) -> None:
    from feedstock_tools.to_v1 import to_v1

    edit(folder, to_v1)


def enable_gpu(folder: Path) -> None:
    from feedstock_tools.enable_gpu import GpuWishes, enable_gpu

    edit(folder, lambda draft: enable_gpu(draft, GpuWishes(libraries=("cublas",))))


def rerender(folder: Path, release: Path | None = None) -> None:
    from feedstock_tools.rerender.rerendering import rerender
    from feedstock_tools.rerender.smithy import find_release

    list(rerender(folder, smithy=find_release(release) if release else None).changes().diff())


def rehearse(folder: Path, channel: Path) -> None:
    from feedstock_tools.check.rehearsal import rehearse_configurations
    from feedstock_tools.report.checks.rehearsal import rehearsal_page, rehearsal_text
    from feedstock_tools.rerender.configurations.configuration import read_configurations

    found = rehearse_configurations(folder, read_configurations(folder), [channel.as_uri()])
    rehearsal_text(found)
    rehearsal_page(found, folder.name)


def build_list(folder: Path) -> None:
    from feedstock_tools.builds.matrix.listing import listing
    from feedstock_tools.feedstock.names import rows_by_short_name
    from feedstock_tools.report.matrix.text import list_text

    workspace = opened(folder)
    chosen = workspace.chosen()
    list_text(listing(workspace, chosen), rows_by_short_name(chosen))


def outputs(folder: Path) -> None:
    from feedstock_tools.rerender.configurations.configuration import read_configurations
    from feedstock_tools.rerender.outputs import output_files

    output_files(folder, read_configurations(folder))


def why(folder: Path) -> None:
    from feedstock_tools.rerender.why.reasons import explain

    explain(folder, "python")


def check(folder: Path) -> None:
    from feedstock_tools.check.against_facts import check_feedstock
    from feedstock_tools.rerender.configurations.configuration import read_configurations

    check_feedstock(folder, read_configurations(folder))


def spec(folder: Path) -> None:
    from feedstock_tools.generate import read_spec, render

    render(read_spec(folder), "v1")


def opened(folder: Path, channel: str = "conda-forge") -> Workspace:
    from feedstock_tools.builds.plan.workspace import open_workspace

    return open_workspace(folder, None, (channel,), {"PATH": os.environ["PATH"]})


def matrix(folder: Path) -> None:
    from feedstock_tools.builds.matrix.matrix import read_matrix
    from feedstock_tools.report.matrix.text import matrix_text

    workspace = opened(folder)
    matrix_text(read_matrix(workspace, workspace.chosen()))


def page(folder: Path) -> None:
    from feedstock_tools.builds.matrix.matrix import read_matrix
    from feedstock_tools.report.matrix.page import page

    workspace = opened(folder)
    page(read_matrix(workspace, workspace.chosen()), folder)


def identity(folder: Path) -> str:
    chosen = opened(folder).chosen()
    return next(output.identity for one in chosen for row in one.rows for output in row.outputs)


def collect(folder: Path, artifacts: Path, target: Path) -> None:
    from feedstock_tools.builds.publish.collect import collect
    from feedstock_tools.feedstock.layout import Artifacts

    collect([artifacts], Artifacts(target), opened(folder).feedstock)


def metadata(path: Path) -> None:
    from feedstock_tools.channel.archive import read_package

    read_package(path)


def gpu_code(path: Path) -> None:
    from feedstock_tools.gpu_code.code import gpu_code

    gpu_code(path)


def contents(path: Path) -> None:
    from feedstock_tools.gpu_code.code import contents
    from feedstock_tools.report.gpu_code import gpu_code_text

    gpu_code_text(contents(path))


def bundle(document: bytes) -> None:
    from feedstock_tools.builds.fleet.orders.bundle import Bundle

    with suppress(ValueError, RecursionError):  # as a host's store does
        Bundle.from_document(document)


def order(document: bytes) -> None:
    from feedstock_tools.builds.fleet.orders.order import Order

    with suppress(KeyError, TypeError, ValueError, AttributeError, RecursionError):  # as a host does
        Order.from_json(json.loads(document))


def events(lines: bytes) -> None:
    from feedstock_tools.builds.fleet.results.events import Damaged, events_of

    with suppress(Damaged):
        list(events_of(lines))


def settings(folder: Path) -> None:
    from feedstock_tools.builds.fleet.host.settings import SETTINGS, read_settings

    (folder / "settings.json").rename(folder / SETTINGS)
    read_settings(folder)


def jobs(path: Path) -> None:
    from feedstock_tools.builds.fleet.cluster.settings import read_slurm

    read_slurm(path)


def host(variables: Mapping[str, object]) -> None:
    from feedstock_tools.builds.fleet.provision.settings import plan_of

    plan_of("h", variables)


def adding(path: Path, channel: Path) -> None:
    from feedstock_tools.channel.folder import add_packages

    add_packages(channel, [path])


def repodata(channel: Path) -> None:
    from feedstock_tools.channel.repodata import read_records

    read_records(str(channel), ["noarch"])
