"""A hostile case: what it is made of, and the readers that must succeed or refuse it.

Together they are what commands do with the input of strangers. Most are commands, called in this process; the others
are a rerender, readers of packages and channels, and those of the messages and files of a fleet.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import click
from click.testing import CliRunner

from feedstock_tools.builds.fleet.cluster.settings import read_cluster
from feedstock_tools.builds.fleet.host.settings import SETTINGS, read_settings
from feedstock_tools.builds.fleet.orders.bundle import Bundle
from feedstock_tools.builds.fleet.orders.order import Order
from feedstock_tools.builds.fleet.provision.settings import plan_of
from feedstock_tools.builds.fleet.results.events import Damaged, events_of
from feedstock_tools.builds.plan.workspace import open_workspace
from feedstock_tools.channel.folder import add_packages
from feedstock_tools.channel.packages.reading import read_package
from feedstock_tools.channel.repodata import read_records
from feedstock_tools.cli import program
from feedstock_tools.errors import InputError
from feedstock_tools.gpu_code.code import gpu_code
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.smithy import find_release
from maintenance.hostile import fleets
from maintenance.hostile.archives import conda, hostile_archive, hostile_package, hostile_repodata
from maintenance.hostile.ledgers import hostile_ledger
from maintenance.hostile.templates import meta_yaml, recipe_yaml
from maintenance.hostile.texts import FILES, changed, hosts_text, times_text, yaml_text
from tests.support.paths import ROOT
from tests.support.smithy_release import write_release

for _name in program.COMMANDS:  # so that the forks of readers share the modules
    program._group.get_command(click.Context(program._group), _name)

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
_EDITED = ("recipe/meta.yaml", "recipe/recipe.yaml", "recipe/conda_build_config.yaml", "conda-forge.yml")
#: The share of cases of edits that also call the command with --write, in a process of its own.
_WRITING = 0.05
_MIGRATION = "migrations/cuda130.yaml"
#: A small pinning for edits: its lists, and migrations that add a version.
_PINNING = {
    "conda_build_config.yaml": """\
zip_keys:
  - [cuda_compiler_version, c_compiler_version]
  - [python, numpy]
cuda_compiler_version:
  - None
  - 12.9  # [linux]
c_compiler_version:
  - 14
  - 14  # [linux]
python: [3.12.* *_cpython, 3.13.* *_cp313]
numpy: [2, 2]
c_stdlib_version: [2.17]
""",
    _MIGRATION: """\
migrator_ts: 1
__migrator: {migration_number: 1, operation: key_add, primary_key: cuda_compiler_version}
cuda_compiler_version:  # [aarch64]
  - 13.0  # [aarch64]
c_compiler_version:  # [aarch64]
  - 15  # [aarch64]
""",
    "migrations/python314t.yaml": """\
migrator_ts: 2
__migrator: {migration_number: 1, operation: key_add, primary_key: python}
python: [3.14.* *_cp314t]
numpy: [2.3]
""",
}
_SHA256 = ("--sha256", "a" * 64)
_OF_OUTPUT = ("--section", "run", "--of", "libdemo", "--if", "not win")
_GIVEN = ("--with=c_compiler_version=13", "--with=cudnn=9")
_WISHES = (
    *("--library", "cublas", "--platform", "linux-64", "--prefer", "cpu", "--by", "both", "--guard", "minor"),
    *("--metapackages", "--configure=-DGPU=ON"),
)
_PINNED = ("--pinning", "{pinning}")
#: Every edit of recipes, as words of the command.
_EDITS: tuple[tuple[str, ...], ...] = (
    ("version", "99.1", *_SHA256),
    ("version", "99.1", "--of", "libdemo", "--set", "name=other", *_SHA256 * 3),
    ("build-number", "7"),
    ("build-number", "+1"),
    ("maintainer", "add", "zz-zz"),
    ("maintainer", "drop", "h-vetinari"),
    ("requirement", "add", "zz >=1", "--section", "run", "--if", "linux"),
    ("requirement", "add", "zz", *_OF_OUTPUT),
    ("requirement", "drop", "python"),
    ("requirement", "drop", "python", *_OF_OUTPUT),
    ("requirement", "pin", "pip >=9"),
    ("requirement", "pin", "python", *_OF_OUTPUT),
    ("requirement", "limit", "python", "--if", "linux"),
    ("requirement", "limit", "numpy", *_OF_OUTPUT),
    ("add-cuda", "12.9", *_PINNED),
    ("add-cuda", "12.9", *_GIVEN),
    ("add-cuda", "13.0", *_PINNED),
    ("add-cuda", "13.0", "--migration", "{pinning}/" + _MIGRATION, *_GIVEN, *_PINNED),
    ("drop-cuda", "12.9"),
    ("drop-cuda", "12.9", *_PINNED),
    ("add-python", "3.13"),
    ("add-python", "3.14t", *_PINNED),
    ("add-python", "3.13", "--with=numpy=2"),
    ("drop-python", "3.10"),
    ("drop-python", "3.13t", *_PINNED),
    ("noarch", "generic"),
    ("license-file", "LICENSE"),
    ("stdlib",),
    ("python-min", *_PINNED),
    ("setting", "set", "azure.settings.x=true"),
    ("setting", "drop", "provider"),
    ("platform", "add", "linux-aarch64"),
    ("platform", "add", "osx-arm64", "--native"),
    ("provider", "win-64", "azure"),
    ("enable-gpu", *_PINNED),
    ("enable-gpu", *_WISHES, *_PINNED),
    ("to-v1",),
)


def _command(folder: Path, *words: str) -> None:
    """A command in this process, with a cache in a folder.

    Raises:
        FeedstockError: it refuses its input.
    """
    ended = CliRunner(env={"XDG_CACHE_HOME": str(folder / ".cache")}).invoke(
        program._group, words, standalone_mode=False
    )
    if isinstance(ended.exception, click.ClickException):
        raise InputError(ended.exception.format_message())
    if ended.exception and not isinstance(ended.exception, SystemExit):
        raise ended.exception


def _commands(folder: Path, table: Mapping[str, tuple[str, ...]]) -> Readers:
    """Commands with the rest of their words, and with the pages that some write instead of a text."""
    page = str(folder / "page.html")
    pages = {f"{name} --html": (page, *table[name]) for name in table if name in ("diff", "rehearse", "status")}
    return {name: partial(_command, folder, *name.split(), *words) for name, words in {**table, **pages}.items()}


def _edit(folder: Path, words: tuple[str, ...], *more: str) -> tuple[str, ...]:
    filled = (word.replace("{pinning}", str(folder / "pinning")) for word in words)
    return ("edit", *filled, "--feedstock", str(folder), *more)


def _edit_writing(folder: Path, words: tuple[str, ...]) -> None:
    """An edit with --write, in a process of its own: status 0, or 2 with one message and no file changed."""
    before = _contents(folder)
    command = [sys.executable, "-m", "feedstock_tools", *_edit(folder, words, "--write")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [line for line in ended.stderr.splitlines() if line.startswith("error:")]
    refused = ended.returncode == 2 and len(errors) == 1 and "Traceback" not in ended.stderr
    if ended.returncode and not (refused and before == _contents(folder)):
        raise RuntimeError(f"{words} ends with {ended.returncode}: {ended.stderr}")


def _contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _rerender(folder: Path, release: Path | None = None) -> None:
    list(rerender(folder, smithy=find_release(release) if release else None).changes().diff())


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


def _write(folder: Path, *files: Mapping[str, str]) -> Path:
    """Write files into a folder; a feedstock with a `recipe.yaml` has no `meta.yaml`."""
    for name, text in {name: text for each in files for name, text in each.items()}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
    if _V1 in files:
        (folder / "recipe" / "meta.yaml").unlink()
    return folder


def _v0_templates(folder: Path, chance: random.Random) -> Readers:
    return _of_feedstock(_write(folder, _PLAIN, {"recipe/meta.yaml": meta_yaml(chance)}), chance)


def _v1_templates(folder: Path, chance: random.Random) -> Readers:
    return _of_feedstock(_write(folder, _PLAIN, _V1, {"recipe/recipe.yaml": recipe_yaml(chance)}), chance)


def _yaml(folder: Path, chance: random.Random) -> Readers:
    name = chance.choice([*FILES])
    v1 = name in ("recipe/recipe.yaml", "recipe/variants.yaml") or chance.random() < 0.3
    _write(folder, _PLAIN, *([_V1] if v1 else []))
    return _of_feedstock(_write(folder, {name: yaml_text(FILES[name], chance)}), chance)


def _archives(folder: Path, chance: random.Random) -> Readers:
    path = hostile_package(folder, folder.parent / "outside", chance)
    channel = folder / "channel"
    _write(channel, {"noarch/repodata.json": hostile_repodata(chance).decode("latin-1")})
    plain = str(_write(folder / "plain", _PLAIN))
    return {
        "metadata": partial(read_package, path),
        "GPU code": partial(gpu_code, path),
        "adding": partial(add_packages, folder / "made", [path]),
        "repodata": partial(read_records, str(channel), ["noarch"]),
        **_commands(
            folder,
            {
                "rehearse": ("--feedstock", plain, "--channel", channel.as_uri()),
                "diff": (str(path), str(conda(folder, name="plain-1-0"))),
            },
        ),
    }


def _other_archives(folder: Path, chance: random.Random) -> Readers:
    path = hostile_archive(folder, folder.parent / "outside", chance)
    return _commands(folder, {"cuda binary": (str(path),)})


def _fleets(folder: Path, chance: random.Random) -> Readers:
    text, variables = fleets.inventory(chance)
    _write(folder, {"inventory.yml": text})
    (folder / "settings.json").write_bytes(fleets.settings(chance))
    return {
        "bundle": partial(_bundle, fleets.bundle(chance)),
        "order": partial(_order, fleets.order(chance)),
        "events": partial(_events, fleets.events(chance)),
        "settings": partial(_settings, folder),
        "jobs": partial(read_cluster, folder / "inventory.yml"),
        "host": partial(plan_of, "h", variables),
    }


def _ledgers(folder: Path, chance: random.Random) -> Readers:
    _write(folder, _PLAIN, _V1)
    artifacts = folder / "build_artifacts"
    hostile_ledger(artifacts / "ledger.sqlite", _identity(folder), chance)
    _write(artifacts, {"logs/a.log": "a\n", "built/noarch/bomb-1-0.conda": "0123456789"})
    here = ("--feedstock", str(folder))
    collected = (str(artifacts), "--output-dir", str(folder / "collected"), *here)
    listed = dict.fromkeys(("status", "build --list"), (*here, *_NO_CHANNEL))
    return _commands(folder, {**listed, "collect": collected})


#: A name alone: nothing of the channel is read.
_NO_CHANNEL = ("--channel", "conda-forge")


def _simulation(folder: Path, chance: random.Random) -> Readers:
    _write(folder, _PLAIN, {"hosts.yaml": _HOSTS, "times.yaml": "'*': 1 h\n", "channel/noarch/repodata.json": "{}"})
    name, text_of = chance.choice((("hosts.yaml", hosts_text), ("times.yaml", times_text)))
    _write(folder, {name: text_of(chance)})
    words = ("--feedstock", str(folder), "--channel", (folder / "channel").as_uri(), "--jobs", "1", "--time", "60 s")
    files = ("--simulate", str(folder / "hosts.yaml"), "--times", str(folder / "times.yaml"))
    return _commands(folder, {"plan": (*words, *files)})


def _identity(folder: Path) -> str:
    chosen = open_workspace(folder, None, ("conda-forge",), {"PATH": os.environ["PATH"]}).chosen()
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
    _write(folder, {chosen.relative_to(source).as_posix(): changed(texts[0], texts[1], chance)})
    readers = _of_feedstock(folder, chance)
    if (source / "pinning").is_dir():
        rules = Rules.parse(chance.choice(("2026.8.5", "3.14.1")))
        own = partial(rerender, folder, pinning=source / "pinning", rules=rules)
        readers = {**readers, "rerender with its pinning": own}
    return readers


def _edited_files(folder: Path, chance: random.Random) -> Readers:
    """A feedstock of which a file that edits read is cut or changed, a migration that may be changed, and all edits."""
    sources = [source for source in _SOURCES if any((source / name).is_file() for name in _EDITED[:2])]
    source = chance.choice(sources)
    texts = {name: (source / name).read_text("utf-8", "replace") for name in _EDITED if (source / name).is_file()}
    name = chance.choice([*texts, next(iter(texts))])
    cut = texts[name][: chance.randrange(len(texts[name]) + 1)]
    _write(folder, texts, {name: chance.choice((cut, cut, changed(texts[name], texts[name], chance)))})
    pinning = dict(_PINNING)
    if chance.random() < 1 / 3:
        pinning[_MIGRATION] = changed(pinning[_MIGRATION], pinning[_MIGRATION], chance)
    _write(folder / "pinning", pinning)
    readers: dict[str, Callable[[], object]] = _edits(folder, range(len(_EDITS)))
    if chance.random() < _WRITING:
        readers["edit --write"] = partial(_edit_writing, folder, chance.choice(_EDITS))
    return readers


def _edits(folder: Path, chosen: Iterable[int]) -> dict[str, Callable[[], object]]:
    return {
        f"edit {at}: {' '.join(_EDITS[at][:3])}": partial(_command, folder, *_edit(folder, _EDITS[at])) for at in chosen
    }


#: Kind of case → what makes its files in a folder, and returns its readers.
KINDS: dict[str, Callable[[Path, random.Random], Readers]] = {
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


def _of_feedstock(folder: Path, chance: random.Random) -> Readers:
    release = folder / "release"
    _write(folder, {"channel/noarch/repodata.json": "{}"})
    write_release(release)
    _write(folder / "pinning", _PINNING)
    before = str(_write(folder / "before", _PLAIN))
    here = ("--feedstock", str(folder))
    commands = {
        **dict.fromkeys(("outputs", "cuda check"), here),
        **dict.fromkeys(("status", "build --list"), (*here, *_NO_CHANNEL)),
        "why": ("python", *here),
        "rehearse": (*here, "--channel", (folder / "channel").as_uri()),
        "lint": (str(folder),),
        "diff": (before, str(folder)),
        **({"import": (str(folder), "--dry-run")} if chance.random() < 0.5 else {}),
        **({"review": (before, *here, "--no-rehearse")} if chance.random() < 0.3 else {}),
        **({"generate": (str(folder), "--check", "--diff")} if (folder / "feedstock.yaml").exists() else {}),
    }
    always = [at for at, words in enumerate(_EDITS) if words[0] in ("enable-gpu", "to-v1")]
    return {
        "rerender": partial(_rerender, folder),
        "rerender --smithy": partial(_rerender, folder, release),
        **_commands(folder, commands),
        **_edits(folder, {*always, *chance.sample(range(len(_EDITS)), 3)}),
    }
