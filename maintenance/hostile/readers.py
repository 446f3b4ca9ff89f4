"""A hostile case: what it is made of, and the readers that must succeed or refuse it.

Together they are what commands do with the input of strangers: rerender, outputs, why, status, build --list, rehearse,
cuda check, lint, diff and review (with their pages), import, edit, plan --simulate, collect, cuda binary, test and
publish (a package's metadata), and the messages and files of a fleet.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from feedstock_tools.builds.fleet.cluster.settings import read_slurm
from feedstock_tools.builds.fleet.host.settings import SETTINGS, read_settings
from feedstock_tools.builds.fleet.orders.bundle import Bundle
from feedstock_tools.builds.fleet.orders.order import Order
from feedstock_tools.builds.fleet.provision.settings import plan_of
from feedstock_tools.builds.fleet.results.events import Damaged, events_of
from feedstock_tools.builds.fleet.simulation.hosts import read_hosts
from feedstock_tools.builds.fleet.simulation.simulate import simulate
from feedstock_tools.builds.fleet.simulation.times import read_times, with_times
from feedstock_tools.builds.matrix.listing import listing
from feedstock_tools.builds.matrix.matrix import read_matrix
from feedstock_tools.builds.plan.agenda import agenda
from feedstock_tools.builds.plan.hosts import Capacity, local_host
from feedstock_tools.builds.plan.workspace import Workspace, open_workspace
from feedstock_tools.builds.publish.collect import collect
from feedstock_tools.channel.archive import compare_packages, read_package
from feedstock_tools.channel.folder import add_packages
from feedstock_tools.channel.repodata import read_records
from feedstock_tools.check.against_facts import check_feedstock
from feedstock_tools.check.differences import compare_feedstocks
from feedstock_tools.check.linting.lint import lint_feedstock
from feedstock_tools.check.rehearsal import rehearse_configurations
from feedstock_tools.check.reviewing import review_feedstock
from feedstock_tools.edit.draft import open_draft
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.planned import rows_by_short_name
from feedstock_tools.generate.spec.reading import read_spec
from feedstock_tools.generate.texts.rendering import render
from feedstock_tools.gpu_code.code import contents, gpu_code
from feedstock_tools.importing import import_recipe
from feedstock_tools.report.checks.differences import (
    comparison_page,
    comparison_text,
    differences_page,
    differences_text,
)
from feedstock_tools.report.checks.rehearsal import rehearsal_page, rehearsal_text
from feedstock_tools.report.checks.review import review_markdown
from feedstock_tools.report.gpu_code import gpu_code_text
from feedstock_tools.report.importing import imported_text
from feedstock_tools.report.matrix.page import page
from feedstock_tools.report.matrix.text import list_text, matrix_text
from feedstock_tools.report.simulation import simulation_text
from feedstock_tools.rerender.configuration import read_configurations
from feedstock_tools.rerender.outputs import output_files
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.smithy import find_release
from feedstock_tools.rerender.why.reasons import explain
from maintenance.hostile import fleets
from maintenance.hostile.archives import conda, hostile_archive, hostile_package, hostile_repodata
from maintenance.hostile.changed import changed
from maintenance.hostile.edits import MIGRATION, PINNING, edits
from maintenance.hostile.ledgers import hostile_ledger
from maintenance.hostile.templates import meta_yaml, recipe_yaml
from maintenance.hostile.texts import FILES, hosts_text, times_text, yaml_text
from tests.support.paths import ROOT
from tests.support.smithy_release import write_release

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
#: Feedstocks that get changes, and the files of them that are read.
_SOURCES = (
    *sorted((ROOT / "tests" / "rerender" / "recorded").iterdir()),
    ROOT / "tests" / "rerender" / "solver-feedstock",
    ROOT / "tests" / "support" / "tiny-feedstock",
    ROOT / "examples" / "gpuprobe",
    ROOT / "examples" / "tensorflow",
)
_READ = (
    *("recipe/meta.yaml", "recipe/recipe.yaml", "recipe/conda_build_config.yaml", "recipe/variants.yaml"),
    *("recipe/build.sh", "conda-forge.yml", "feedstock.yaml", ".ci_support/*.yaml", ".ci_support/migrations/*.yaml"),
    *(".azure-pipelines/*.yml", ".github/workflows/conda-build.yml"),
)
#: The share of cases of edits that also call the command.
_COMMANDS = 0.05
_EDITED = ("recipe/meta.yaml", "recipe/recipe.yaml", "recipe/conda_build_config.yaml", "conda-forge.yml")


def opened(folder: Path, channel: str = "conda-forge") -> Workspace:
    """The workspace of a case."""
    return open_workspace(folder, None, (channel,), {"PATH": os.environ["PATH"]})


def _simulate(folder: Path) -> None:
    workspace = opened(folder, (folder / "channel").as_uri())
    planned = agenda(workspace, workspace.chosen(), Capacity.of_machine(1))
    hosts = read_hosts(str(folder / "hosts.yaml"), local_host(planned.capacity, planned.jobs))
    rows = with_times(planned.todo, read_times(folder / "times.yaml"), 60.0)
    simulation_text(simulate(rows, hosts, 1), hosts, planned.refused)


def _lint(folder: Path) -> None:
    list(lint_feedstock(folder))


def _diff(before: Path, folder: Path) -> None:
    found = compare_feedstocks(before, folder)
    differences_text(found)
    differences_page(found, folder.name, "before", "after")


def _diff_packages(first: Path, second: Path) -> None:
    found = compare_packages(first, second)
    comparison_text(found)
    comparison_page(found, first.name, second.name)


def _review(before: Path, folder: Path) -> None:
    review_markdown(review_feedstock(before, folder), "before")


def _import(folder: Path) -> None:
    imported_text(import_recipe(folder))


def _edit(folder: Path, number: int) -> None:
    """One of the edits, by its number: a function of theirs may not travel to another process."""
    edit = edits(folder / "pinning")[number][0]
    list(edit(open_draft(folder)).changes().diff())


def _edit_command(folder: Path, number: int) -> None:
    """The command of an edit with --write: status 0, or 2 with one message and no file changed."""
    words = edits(folder / "pinning")[number][1]
    before = _contents(folder)
    command = [sys.executable, "-m", "feedstock_tools", "edit", *words, "--feedstock", str(folder), "--write"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [line for line in ended.stderr.splitlines() if line.startswith("error:")]
    refused = ended.returncode == 2 and len(errors) == 1 and "Traceback" not in ended.stderr
    if ended.returncode and not (refused and before == _contents(folder)):
        raise RuntimeError(f"{words} ends with {ended.returncode}: {ended.stderr}")


def _contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _rerender(folder: Path, release: Path | None = None) -> None:
    list(rerender(folder, smithy=find_release(release) if release else None).changes().diff())


def _rehearse(folder: Path, channel: Path) -> None:
    found = rehearse_configurations(folder, read_configurations(folder), [channel.as_uri()])
    rehearsal_text(found)
    rehearsal_page(found, folder.name)


def _list(folder: Path) -> None:
    workspace = opened(folder)
    chosen = workspace.chosen()
    list_text(listing(workspace, chosen), rows_by_short_name(chosen))


def _outputs(folder: Path) -> None:
    output_files(folder, read_configurations(folder))


def _check(folder: Path) -> None:
    check_feedstock(folder, read_configurations(folder))


def _spec(folder: Path) -> None:
    spec = read_spec(folder)
    for recipe_format in ("v0", "v1"):
        render(spec, recipe_format)


def _status(folder: Path) -> None:
    workspace = opened(folder)
    matrix_text(read_matrix(workspace, workspace.chosen()))


def _page(folder: Path) -> None:
    workspace = opened(folder)
    page(read_matrix(workspace, workspace.chosen()), folder)


def _collect(folder: Path, artifacts: Path, target: Path) -> None:
    collect([artifacts], Artifacts(target), opened(folder).feedstock)


def _binary(path: Path) -> None:
    gpu_code_text(contents(path))


def _bundle(document: bytes) -> None:
    with suppress(ValueError, RecursionError):  # as a host's store does
        Bundle.from_document(document)


def _order(document: bytes) -> None:
    with suppress(KeyError, TypeError, ValueError, AttributeError, RecursionError):  # as a host does
        Order.from_json(json.loads(document))


def _events(lines: bytes) -> None:
    with suppress(Damaged):
        list(events_of(lines))


def _settings(folder: Path) -> None:
    (folder / "settings.json").rename(folder / SETTINGS)
    read_settings(folder)


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))


def _v0_templates(folder: Path, chance: random.Random) -> Readers:
    _write(folder, {**_PLAIN, "recipe/meta.yaml": meta_yaml(chance)})
    return _of_feedstock(folder, chance)


def _v1_templates(folder: Path, chance: random.Random) -> Readers:
    _write(folder, {**_PLAIN, **_V1, "recipe/recipe.yaml": recipe_yaml(chance)})
    (folder / "recipe" / "meta.yaml").unlink()
    return _of_feedstock(folder, chance)


def _yaml(folder: Path, chance: random.Random) -> Readers:
    name = chance.choice([*FILES])
    v1 = name in ("recipe/recipe.yaml", "recipe/variants.yaml") or chance.random() < 0.3
    _write(folder, {**_PLAIN, **(_V1 if v1 else {})})
    if v1:
        (folder / "recipe" / "meta.yaml").unlink()
    _write(folder, {name: yaml_text(FILES[name], chance)})
    return {
        **_of_feedstock(folder, chance),
        **({"spec": partial(_spec, folder)} if name == "feedstock.yaml" else {}),
    }


def _archives(folder: Path, chance: random.Random) -> Readers:
    path = hostile_package(folder, folder.parent / "outside", chance)
    channel = folder / "channel"
    _write(channel, {"noarch/repodata.json": hostile_repodata(chance).decode("latin-1")})
    return {
        "metadata": partial(read_package, path),
        "GPU code": partial(gpu_code, path),
        "adding": partial(add_packages, folder / "made", [path]),
        "repodata": partial(read_records, str(channel), ["noarch"]),
        "solving": partial(_rehearse, _plain(folder / "plain"), channel),
        "diff": partial(_diff_packages, path, conda(folder, name="plain-1-0")),
    }


def _other_archives(folder: Path, chance: random.Random) -> Readers:
    return {"cuda binary": partial(_binary, hostile_archive(folder, folder.parent / "outside", chance))}


def _fleets(folder: Path, chance: random.Random) -> Readers:
    text, variables = fleets.inventory(chance)
    _write(folder, {"inventory.yml": text})
    (folder / "settings.json").write_bytes(fleets.settings(chance))
    return {
        "bundle": partial(_bundle, fleets.bundle(chance)),
        "order": partial(_order, fleets.order(chance)),
        "events": partial(_events, fleets.events(chance)),
        "settings": partial(_settings, folder),
        "jobs": partial(read_slurm, folder / "inventory.yml"),
        "host": partial(plan_of, "h", variables),
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
        "status": partial(_status, folder),
        "build --list": partial(_list, folder),
        "collect": partial(_collect, folder, artifacts, folder / "collected"),
        "page": partial(_page, folder),
    }


def _simulation(folder: Path, chance: random.Random) -> Readers:
    _write(folder, {**_PLAIN, "hosts.yaml": _HOSTS, "times.yaml": "'*': 1 h\n", "channel/noarch/repodata.json": "{}"})
    name, text_of = chance.choice((("hosts.yaml", hosts_text), ("times.yaml", times_text)))
    _write(folder, {name: text_of(chance)})
    return {"plan --simulate": partial(_simulate, folder)}


def _identity(folder: Path) -> str:
    chosen = opened(folder).chosen()
    return next(output.identity for one in chosen for row in one.rows for output in row.outputs)


def _changed_files(folder: Path, chance: random.Random) -> Readers:
    """A copy of a feedstock with random changes in one file."""
    source = chance.choice(_SOURCES)
    files = [path for pattern in _READ for path in sorted(source.glob(pattern))[:2]]
    for path in files:
        target = folder / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    chosen, other = chance.choice(files), chance.choice(files)
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in (chosen, other)]
    text = changed(texts[0], texts[1], chance)
    _write(folder, {chosen.relative_to(source).as_posix(): text})
    readers = _of_feedstock(folder, chance)
    if (source / "pinning").is_dir():
        rules = Rules.parse(chance.choice(("2026.8.5", "3.14.1")))
        own = partial(rerender, folder, pinning=source / "pinning", rules=rules)
        readers = {**readers, "rerender with its pinning": own}
    return {**readers, "spec": partial(_spec, folder)} if (folder / "feedstock.yaml").exists() else readers


def _edited_files(folder: Path, chance: random.Random) -> Readers:
    """A feedstock of which a file that edits read is cut or changed, a migration that may be changed, and all edits."""
    sources = [source for source in _SOURCES if any((source / name).is_file() for name in _EDITED[:2])]
    source = chance.choice(sources)
    texts = {name: (source / name).read_text("utf-8", "replace") for name in _EDITED if (source / name).is_file()}
    name = chance.choice([*texts, next(iter(texts))])
    cut = texts[name][: chance.randrange(len(texts[name]) + 1)]
    _write(folder, {**texts, name: chance.choice((cut, cut, changed(texts[name], texts[name], chance)))})
    pinning = dict(PINNING)
    if chance.random() < 1 / 3:
        pinning[MIGRATION] = changed(pinning[MIGRATION], pinning[MIGRATION], chance)
    _write(folder / "pinning", pinning)
    every = edits(folder / "pinning")
    readers: dict[str, Callable[[], object]] = {
        f"edit {at}: {' '.join(words[:3])}": partial(_edit, folder, at) for at, (_, words) in enumerate(every)
    }
    if chance.random() < _COMMANDS:
        readers["the command"] = partial(_edit_command, folder, chance.randrange(len(every)))
    return readers


#: Kind of case → what makes its files in a folder, and returns its readers.
KINDS: Mapping[str, Callable[[Path, random.Random], Readers]] = {
    "v0 templates": _v0_templates,
    "v1 templates": _v1_templates,
    "YAML": _yaml,
    "changed files": _changed_files,
    "edited files": _edited_files,
    "simulation": _simulation,
    "archives": _archives,
    "other archives": _other_archives,
    "fleets": _fleets,
    "ledgers": _ledgers,
}


def make_case(kind: str, folder: Path, chance: random.Random) -> Readers:
    """Write the files of a case into an empty folder, and return the readers to try on it."""
    return KINDS[kind](folder, chance)


def _of_feedstock(folder: Path, chance: random.Random) -> Readers:
    channel, release = folder / "channel", folder / "release"
    _write(channel, {"noarch/repodata.json": "{}"})
    write_release(release)
    _write(folder / "pinning", PINNING)
    every = edits(folder / "pinning")
    always = [at for at, (_, words) in enumerate(every) if words[0] in ("enable-gpu", "to-v1")]
    chosen = {*always, *chance.sample(range(len(every)), 3)}
    return {
        "rerender": partial(_rerender, folder),
        "rerender --smithy": partial(_rerender, folder, release),
        "outputs": partial(_outputs, folder),
        "why": partial(explain, folder, "python"),
        "status": partial(_status, folder),
        "build --list": partial(_list, folder),
        "rehearse": partial(_rehearse, folder, channel),
        "check": partial(_check, folder),
        "lint": partial(_lint, folder),
        "diff": partial(_diff, _plain(folder / "before"), folder),
        **{f"edit {' '.join(every[at][1][:3])}": partial(_edit, folder, at) for at in chosen},
        **({"import": partial(_import, folder)} if chance.random() < 0.5 else {}),
        **({"review": partial(_review, folder / "before", folder)} if chance.random() < 0.3 else {}),
    }
