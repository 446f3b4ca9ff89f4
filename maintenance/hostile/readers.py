"""A hostile case: what it is made of, and the readers that must succeed or refuse it.

Together they are what commands do with the input of strangers: rerender, outputs, why, status, build --list, rehearse,
cuda check, lint, diff and review (with their pages), import, edit, plan --simulate, collect, cuda binary, test and
publish (a package's metadata), and the messages and files of a fleet.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from maintenance.fuzz_edits import PINNING, edits
from maintenance.hostile import fleets, reading
from maintenance.hostile.archives import conda, hostile_archive, hostile_package, hostile_repodata
from maintenance.hostile.ledgers import hostile_ledger
from maintenance.hostile.templates import meta_yaml, recipe_yaml
from maintenance.hostile.texts import FILES, hosts_text, times_text, yaml_text
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
        **({"spec": partial(reading.spec, folder)} if name == "feedstock.yaml" else {}),
    }


def _archives(folder: Path, chance: random.Random) -> Readers:
    path = hostile_package(folder, folder.parent / "outside", chance)
    channel = folder / "channel"
    _write(channel, {"noarch/repodata.json": hostile_repodata(chance).decode("latin-1")})
    return {
        "metadata": partial(reading.metadata, path),
        "GPU code": partial(reading.gpu_code, path),
        "adding": partial(reading.adding, path, folder / "made"),
        "repodata": partial(reading.repodata, channel),
        "solving": partial(reading.rehearse, _plain(folder / "plain"), channel),
        "diff": partial(reading.diff_packages, path, conda(folder, name="plain-1-0")),
    }


def _other_archives(folder: Path, chance: random.Random) -> Readers:
    return {"cuda binary": partial(reading.contents, hostile_archive(folder, folder.parent / "outside", chance))}


def _fleets(folder: Path, chance: random.Random) -> Readers:
    text, variables = fleets.inventory(chance)
    _write(folder, {"inventory.yml": text})
    (folder / "settings.json").write_bytes(fleets.settings(chance))
    return {
        "bundle": partial(reading.bundle, fleets.bundle(chance)),
        "order": partial(reading.order, fleets.order(chance)),
        "events": partial(reading.events, fleets.events(chance)),
        "settings": partial(reading.settings, folder),
        "jobs": partial(reading.jobs, folder / "inventory.yml"),
        "host": partial(reading.host, variables),
    }


def _plain(folder: Path) -> Path:
    _write(folder, _PLAIN)
    return folder


def _ledgers(folder: Path, chance: random.Random) -> Readers:
    _write(folder, {**_PLAIN, **_V1})
    (folder / "recipe" / "meta.yaml").unlink()
    artifacts = folder / "build_artifacts"
    hostile_ledger(artifacts / "ledger.sqlite", reading.identity(folder), chance)
    _write(artifacts, {"logs/a.log": "a\n", "built/noarch/bomb-1-0.conda": "0123456789"})
    return {
        "status": partial(reading.matrix, folder),
        "build --list": partial(reading.build_list, folder),
        "collect": partial(reading.collect, folder, artifacts, folder / "collected"),
        "page": partial(reading.page, folder),
    }


def _simulation(folder: Path, chance: random.Random) -> Readers:
    _write(folder, {**_PLAIN, "hosts.yaml": _HOSTS, "times.yaml": "'*': 1 h\n", "channel/noarch/repodata.json": "{}"})
    name, text_of = chance.choice((("hosts.yaml", hosts_text), ("times.yaml", times_text)))
    _write(folder, {name: text_of(chance)})
    return {"plan --simulate": partial(reading.simulate, folder)}


#: Kind of case → what makes its files in a folder, and returns its readers.
KINDS: Mapping[str, Callable[[Path, random.Random], Readers]] = {
    "v0 templates": _v0_templates,
    "v1 templates": _v1_templates,
    "YAML": _yaml,
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
    chosen = chance.sample(range(len(every)), 3)
    return {
        "rerender": partial(reading.rerender, folder),
        "rerender --smithy": partial(reading.rerender, folder, release),
        "outputs": partial(reading.outputs, folder),
        "why": partial(reading.why, folder),
        "status": partial(reading.matrix, folder),
        "build --list": partial(reading.build_list, folder),
        "rehearse": partial(reading.rehearse, folder, channel),
        "check": partial(reading.check, folder),
        "lint": partial(reading.lint, folder),
        "diff": partial(reading.diff, _plain(folder / "before"), folder),
        "edit enable-gpu": partial(reading.enable_gpu, folder),
        "edit to-v1": partial(reading.to_v1, folder),
        **{f"edit {' '.join(every[at][1][:3])}": partial(reading.one_edit, folder, at) for at in chosen},
        **({"import": partial(reading.import_recipe_of, folder)} if chance.random() < 0.5 else {}),
        **({"review": partial(reading.review, folder / "before", folder)} if chance.random() < 0.3 else {}),
    }


def prepare() -> None:
    """Import what the readers need, which their forks then share."""
    for name in (
        *("rerender.rerendering", "rerender.outputs", "rerender.why.reasons", "check.against_facts", "generate"),
        *("builds.plan.workspace", "builds.plan.rendering", "builds.matrix.matrix", "builds.publish.collect"),
        *("builds.matrix.listing", "check.rehearsal", "report.matrix.listing", "report.checks.rehearsal"),
        *("report.matrix.text", "report.matrix.page", "channel.folder", "channel.repodata", "gpu_code.packages"),
        *("recipe.v1.recipe", "recipe.v1.branches", "check.differences", "check.linting.lint"),
        *("enable_gpu", "variants.files", "generate.texts", "builds.fleet.simulation.simulate"),
        *("to_v1", "importing", "report.importing", "check.reviewing"),
        *("report.checks.differences_page", "report.checks.rehearsal_page", "report.checks.review"),
        *("report.checks.packages", "channel.comparing", "builds.fleet.results.events", "builds.fleet.orders.order"),
        *("builds.fleet.host.settings", "builds.fleet.cluster.settings", "builds.fleet.provision.settings"),
    ):
        importlib.import_module(f"feedstock_tools.{name}")
    for engine in ("rattler", "rattler.package_streaming", "rattler.index", "rattler_build"):
        importlib.import_module(engine)
