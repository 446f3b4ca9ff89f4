"""A hostile case: what it is made of, and the readers that must succeed or refuse it."""

from __future__ import annotations

import importlib
import os
import random
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from maintenance.hostile.archives import hostile_package, hostile_repodata
from maintenance.hostile.ledgers import hostile_ledger
from maintenance.hostile.templates import meta_yaml, recipe_yaml
from maintenance.hostile.texts import FILES, hosts_text, times_text, yaml_text
from tests.support.smithy_release import write_release

if TYPE_CHECKING:
    from feedstock_tools.builds.plan.workspace import Workspace

__all__ = ["KINDS", "make_case", "prepare"]

#: A reader is a call without arguments whose result does not matter.
Readers = Mapping[str, Callable[[], object]]

_PLAIN = {
    "conda-forge.yml": "{}\n",
    "recipe/meta.yaml": "package:\n  name: p\n  version: 1\nrequirements:\n  host:\n    - python\n",
    "recipe/part": "{% set a = 1 %}part\n",
    ".ci_support/linux_64_.yaml": "python: ['3.12']\ntarget_platform: [linux-64]\n",
}
_V1 = {
    "conda-forge.yml": "conda_build_tool: rattler-build\n",
    "recipe/recipe.yaml": "package: {name: p, version: '1'}\nrequirements: {host: [python]}\n",
}
_HOSTS = "hosts: {a: {cores: 4, memory: 4 GiB}}\n"
_SPEC = "name: p\nversion: '1'\n"


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))


def _v0_templates(folder: Path, chance: random.Random) -> Readers:
    _write(folder, {**_PLAIN, "recipe/meta.yaml": meta_yaml(chance)})
    return _of_feedstock(folder)


def _v1_templates(folder: Path, chance: random.Random) -> Readers:
    _write(folder, {**_PLAIN, **_V1, "recipe/recipe.yaml": recipe_yaml(chance)})
    (folder / "recipe" / "meta.yaml").unlink()
    return _of_feedstock(folder)


def _yaml(folder: Path, chance: random.Random) -> Readers:
    name = chance.choice([*FILES])
    v1 = name in ("recipe/recipe.yaml", "recipe/variants.yaml") or chance.random() < 0.3
    _write(folder, {**_PLAIN, **(_V1 if v1 else {})})
    if v1:
        (folder / "recipe" / "meta.yaml").unlink()
    _write(folder, {name: yaml_text(FILES[name], chance)})
    return {**_of_feedstock(folder), **({"spec": partial(_spec, folder)} if name == "feedstock.yaml" else {})}


def _archives(folder: Path, chance: random.Random) -> Readers:
    path = hostile_package(folder, folder.parent / "outside", chance)
    channel = folder / "channel"
    _write(channel, {"noarch/repodata.json": hostile_repodata(chance).decode("latin-1")})
    return {
        "metadata": partial(_metadata, path),
        "GPU code": partial(_gpu_code, path),
        "adding": partial(_adding, path, folder / "made"),
        "repodata": partial(_repodata, channel),
        "solving": partial(_rehearse, _plain(folder / "plain"), channel),
    }


def _plain(folder: Path) -> Path:
    _write(folder, _PLAIN)
    return folder


def _ledgers(folder: Path, chance: random.Random) -> Readers:
    _write(folder, {**_PLAIN, **_V1})
    (folder / "recipe" / "meta.yaml").unlink()
    artifacts = folder / "build_artifacts"
    hostile_ledger(artifacts / "ledger.sqlite", _identity(folder), chance)
    _write(artifacts, {"logs/a.log": "a\n", "built/noarch/bomb-1-0.conda": "0123456789"})
    return {
        "status": partial(_matrix, folder),
        "build --list": partial(_list, folder),
        "collect": partial(_collect, folder, artifacts, folder / "collected"),
        "page": partial(_page, folder),
    }


def _simulation(folder: Path, chance: random.Random) -> Readers:
    _write(folder, {**_PLAIN, "hosts.yaml": _HOSTS, "times.yaml": "'*': 1 h\n", "channel/noarch/repodata.json": "{}"})
    name, text_of = chance.choice((("hosts.yaml", hosts_text), ("times.yaml", times_text)))
    _write(folder, {name: text_of(chance)})
    return {"plan --simulate": partial(_simulate, folder)}


#: Kind of case → what makes its files in a folder, and returns its readers.
KINDS: Mapping[str, Callable[[Path, random.Random], Readers]] = {
    "v0 templates": _v0_templates,
    "v1 templates": _v1_templates,
    "YAML": _yaml,
    "simulation": _simulation,
    "archives": _archives,
    "ledgers": _ledgers,
}


def make_case(kind: str, folder: Path, chance: random.Random) -> Readers:
    """Write the files of a case into an empty folder, and return the readers to try on it."""
    return KINDS[kind](folder, chance)


def _of_feedstock(folder: Path) -> Readers:
    channel, release = folder / "channel", folder / "release"
    _write(channel, {"noarch/repodata.json": "{}"})
    write_release(release)
    return {
        "rerender": partial(_rerender, folder),
        "rerender --smithy": partial(_rerender, folder, release),
        "outputs": partial(_outputs, folder),
        "why": partial(_why, folder),
        "status": partial(_matrix, folder),
        "build --list": partial(_list, folder),
        "rehearse": partial(_rehearse, folder, channel),
        "check": partial(_check, folder),
        "lint": partial(_lint, folder),
        "diff": partial(_diff, _plain(folder / "before"), folder),
        "edit enable-gpu": partial(_enable_gpu, folder),
    }


def _simulate(folder: Path) -> None:
    from feedstock_tools.builds.fleet.simulation.hosts import read_hosts
    from feedstock_tools.builds.fleet.simulation.simulate import simulate
    from feedstock_tools.builds.fleet.simulation.times import read_times, with_times
    from feedstock_tools.builds.plan.agenda import agenda
    from feedstock_tools.builds.plan.capacity import Capacity
    from feedstock_tools.builds.plan.hosts import local_host
    from feedstock_tools.report.simulation import simulation_text as shown

    workspace = _workspace(folder, (folder / "channel").as_uri())
    planned = agenda(workspace, workspace.chosen(), Capacity.of_machine(1))
    hosts = read_hosts(str(folder / "hosts.yaml"), local_host(planned.capacity, planned.jobs))
    works = with_times(planned.todo, read_times(folder / "times.yaml"), 60.0)
    shown(simulate(works, hosts, 1, {}), hosts, planned.refused)


def _lint(folder: Path) -> None:
    from feedstock_tools.check.linting.lint import lint_feedstock

    list(lint_feedstock(folder))


def _diff(before: Path, folder: Path) -> None:
    from feedstock_tools.check.comparison.differences import compare_feedstocks
    from feedstock_tools.report.checks.differences import differences_text

    differences_text(compare_feedstocks(before, folder))


def _enable_gpu(folder: Path) -> None:
    from feedstock_tools.edit.draft import open_draft
    from feedstock_tools.edit.enable_gpu.enabling import enable_gpu
    from feedstock_tools.edit.enable_gpu.wishes import GpuWishes

    list(enable_gpu(open_draft(folder), GpuWishes(libraries=("cublas",))).changes().diff())


def _rerender(folder: Path, release: Path | None = None) -> None:
    from feedstock_tools.rerender.rerendering import rerender
    from feedstock_tools.rerender.smithy.releases.release import find_release

    list(rerender(folder, smithy=find_release(release) if release else None).changes().diff())


def _rehearse(folder: Path, channel: Path) -> None:
    from feedstock_tools.check.rehearsal.of_feedstock import rehearse_configurations
    from feedstock_tools.report.checks.rehearsal import rehearsal_text
    from feedstock_tools.rerender.configurations.configuration import read_configurations

    rehearsal_text(rehearse_configurations(folder, read_configurations(folder), [channel.as_uri()]))


def _list(folder: Path) -> None:
    from feedstock_tools.builds.matrix.listing import listing
    from feedstock_tools.feedstock.names import rows_by_short_name
    from feedstock_tools.report.matrix.listing import list_text

    workspace = _workspace(folder)
    chosen = workspace.chosen()
    list_text(listing(workspace, chosen), rows_by_short_name(chosen))


def _outputs(folder: Path) -> None:
    from feedstock_tools.rerender.configurations.configuration import read_configurations
    from feedstock_tools.rerender.outputs import output_files

    output_files(folder, read_configurations(folder))


def _why(folder: Path) -> None:
    from feedstock_tools.rerender.why.reasons import explain

    explain(folder, "python")


def _check(folder: Path) -> None:
    from feedstock_tools.check.against_facts import check_feedstock
    from feedstock_tools.rerender.configurations.configuration import read_configurations

    check_feedstock(folder, read_configurations(folder))


def _spec(folder: Path) -> None:
    from feedstock_tools.generate import read_spec, render

    render(read_spec(folder), "v1")


def _workspace(folder: Path, channel: str = "conda-forge") -> Workspace:
    from feedstock_tools.builds.plan.workspace import open_workspace

    return open_workspace(folder, None, (channel,), {"PATH": os.environ["PATH"]})


def _matrix(folder: Path) -> None:
    from feedstock_tools.builds.matrix.matrix import read_matrix
    from feedstock_tools.report.matrix.text import matrix_text

    workspace = _workspace(folder)
    matrix_text(read_matrix(workspace, workspace.chosen()))


def _page(folder: Path) -> None:
    from feedstock_tools.builds.matrix.matrix import read_matrix
    from feedstock_tools.report.matrix.page import page

    workspace = _workspace(folder)
    page(read_matrix(workspace, workspace.chosen()), folder)


def _identity(folder: Path) -> str:
    chosen = _workspace(folder).chosen()
    return next(output.identity for one in chosen for row in one.rows for output in row.outputs)


def _collect(folder: Path, artifacts: Path, target: Path) -> None:
    from feedstock_tools.builds.publish.collect import collect
    from feedstock_tools.feedstock.layout import Artifacts

    collect([artifacts], Artifacts(target), _workspace(folder).feedstock)


def _metadata(path: Path) -> None:
    from feedstock_tools.channel.archive import read_package

    read_package(path)


def _gpu_code(path: Path) -> None:
    from feedstock_tools.gpu_code.packages import gpu_code

    gpu_code(path)


def _adding(path: Path, channel: Path) -> None:
    from feedstock_tools.channel.folder import add_packages

    add_packages(channel, [path])


def _repodata(channel: Path) -> None:
    from feedstock_tools.channel.repodata import read_records

    read_records(str(channel), ["noarch"])


def prepare() -> None:
    """Import what the readers need, which their forks then share."""
    for name in (
        *("rerender.rerendering", "rerender.outputs", "rerender.why.reasons", "check.against_facts", "generate"),
        *("builds.plan.workspace", "builds.plan.rendering", "builds.matrix.matrix", "builds.publish.collect"),
        *("builds.matrix.listing", "check.rehearsal.of_feedstock", "report.matrix.listing", "report.checks.rehearsal"),
        *("report.matrix.text", "report.matrix.page", "channel.folder", "channel.repodata", "gpu_code.packages"),
        *("recipe.v1.recipe", "recipe.v1.branches", "check.comparison.differences", "check.linting.lint"),
        *("edit.enable_gpu.enabling", "variants.conditional", "generate.texts", "builds.fleet.simulation.simulate"),
    ):
        importlib.import_module(f"feedstock_tools.{name}")
    for engine in ("rattler", "rattler.package_streaming", "rattler.index", "rattler_build"):
        importlib.import_module(engine)
