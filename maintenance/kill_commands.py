"""Kill each command that writes at random moments, run it once more, and compare with a run that nobody disturbed.

    python -m maintenance.kill_commands [COMMAND ...] [--kills 200] [--seed 1] [--minutes 9] [--keep FOLDER]

Each try puts a world in place (a feedstock, a channel, the user's cache and a folder for temporary files, nothing of
which is this machine's own), starts the command, kills it with SIGKILL (alone, or with its whole group) after a random
part of its usual time, runs it again (where all was written before the kill, it may refuse to do so twice), and then
compares all of the world with that of an undisturbed run: the same files, no process, nothing in the folder for
temporary files, every package as the ledger and the index have it. Texts must be equal byte by byte; of packages, logs
and caches, whose bytes hold the time, the names must be equal.
A try that differs is kept. Run it in the root of the repository, with PYTHONPATH=. (Linux).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import requires, version
from pathlib import Path

from packaging.requirements import Requirement

from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from tests.support import command
from tests.support.channels import make_tiny_channel
from tests.support.feedstocks import GPU, copy_of_tiny
from tests.support.library import make_library_folder
from tests.support.light_wheels import light_wheels
from tests.support.paths import EXAMPLES, ROOT
from tests.support.smithy_release import write_package_of_release
from tests.support.waiting import processes_below, wait_until
from tests.support.wheels import write_wheel

#: A command of the tiny feedstock that builds little.
_ONE = f"{GPU}_py3.11"
#: Files whose bytes differ from run to run: only that they exist is compared.
_BY_NAME = re.compile(
    r".*\.conda$|(.*/)?repodata\.json$|(.*/)?[\w.-]+\.sqlite$|.*\.html$|(.*/)?(\.cache|pkg_cache|dossier)/|cache/|config/|scripts/"
)
#: What is not compared at all: the ledger's own files, locks, which stay wherever one was held (for cores: whichever
#: were free), and the folders that rattler unpacks packages into before it moves them to their place in its cache.
_IGNORED = re.compile(
    r".*\.sqlite-(wal|shm|journal)$|.*/\.work/locks/|(.*/)?\.lock$|.*/up-to-date/|home/|.*/__pycache__/"
    r"|.*/pkg_cache/pkgs/\.|.*/feedstock-tools/cores/"
)
#: The time in the name of a log; a killed run leaves a log, too.
_TIME_OF_LOG = re.compile(r"-\d{8}T\d{6,12}(-\d+-\d+)?\.log$")
#: The folder of a world with stand-ins for programs.
_STAND_INS = "stand-ins"
_TEMPORARY = re.compile(r"\.part$|^feedstock-tools-|^\.fetching|^\.?making-|^\.dossier\.")


#: The number of tries, and of those that were killed in their work, and that differ.
Tally = Counter[str]
#: Makes a part of a world, which is a folder.
Step = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A command that writes, and the world that it is run in.

    Attributes:
        world: the steps that make it in an empty folder.
        arguments: of feedstock-tools, separated by spaces; `{world}` stands for the folder.
        folder: where it is run, below the world.
        variables: more of its environment.
        once: after it has done its work, it refuses to do it again.
        ends: its exit status when nobody disturbs it.
    """

    world: tuple[Step, ...]
    arguments: str
    folder: str = "tiny-feedstock"
    variables: tuple[tuple[str, str], ...] = ()
    once: bool = False
    ends: int = 0


def _told(tally: Tally) -> str:
    """What came of the tries of a scenario, or of all."""
    return f"{tally['tries']} tries, {tally['killed']} of them killed in their work, {tally['wrong']} differ"


def _tiny(world: Path) -> None:
    make_tiny_channel(world / "channel")
    copy_of_tiny(world / "tiny-feedstock")


def _spec(world: Path) -> None:
    make_library_folder(world)


def _pinnings(world: Path) -> None:
    files = [
        PackageFile(f"share/conda-forge/migrations/m{number}.yaml", b"python: [3.14]\n" * 2000) for number in range(60)
    ]
    for dated in ("2025.01.02.03.04.05", "2026.01.02.03.04.05"):
        metadata = PackageMetadata("conda-forge-pinning", dated, "hd8ed1ab_0", 0, "noarch", noarch="generic")
        write_package(
            world / "pinnings", metadata, [PackageFile("conda_build_config.yaml", b"python: [3.13]\n"), *files]
        )
    index_channel(world / "pinnings")


def _wheels(world: Path) -> None:
    """Wheels laid out as NVIDIA's, of two megabytes each, for pip to find in a folder."""
    headers = (f"nvidia/cuda_nvcc/include/{n}.h" for n in range(200))
    contents = {
        "nvidia-cuda-runtime-cu12": ("nvidia/cuda_runtime/lib/libcudart.so.12",),
        "nvidia-cuda-nvrtc-cu12": ("nvidia/cuda_nvrtc/lib/libnvrtc.so.12",),
        "nvidia-cuda-nvcc-cu12": ("nvidia/cuda_nvcc/bin/ptxas", *headers),
    }
    for name, files in contents.items():
        each = 2_000_000 // len(files)
        content = {file: random.Random(file).randbytes(each) for file in files}  # noqa: S311
        write_wheel(world / "wheels", name, "12.9.86", content)


def _releases(world: Path) -> None:
    write_package_of_release(world / "releases", "2026.8.5")
    index_channel(world / "releases")


def _cpu_only(world: Path) -> None:
    """A library's sources, its feedstock without CUDA, and a pinning."""
    shutil.copytree(ROOT / "tests" / "support" / "wavekit", world, dirs_exist_ok=True)


def _project(world: Path) -> None:
    shutil.copytree(EXAMPLES / "hello" / "src", world / "src")


def _simulated(world: Path) -> None:
    """A feedstock, and the hosts of a simulated fleet."""
    _tiny(world)
    (world / "hosts.yaml").write_text("hosts: {one: {cores: 4, memory: 8 GiB}}\n")


def _two(world: Path) -> None:
    """Two states of a feedstock."""
    _cpu_only(world)
    shutil.copytree(world / "wavekit-feedstock", world / "before")


def _unsolved(world: Path) -> None:
    """A feedstock, and a channel without packages."""
    _spec(world)
    repodata = world / "channel" / "noarch" / "repodata.json"
    repodata.parent.mkdir(parents=True)
    repodata.write_text('{"packages": {}, "packages.conda": {}}')


def _hosts(world: Path) -> None:
    """An inventory with a host that SSH does not reach, and wheels with nothing in them of all that hosts install."""
    variables = {"fleet_hub": "localhost:8786", "fleet_name": "killed", "ansible_ssh_executable": "/bin/false"}
    inventory = {"all": {"vars": variables, "hosts": {"one": {"ansible_host": "127.0.0.1"}}}}
    (world / "inventory.yml").write_text(json.dumps(inventory))
    needed = (Requirement(text) for text in requires("feedstock-tools") or ())
    named = {each.name for each in needed if each.marker is None or each.marker.evaluate({"extra": "host"})}
    for name in sorted({*named, "pip"}):
        write_wheel(world / "wheels", name, version(name), {})


def _build(world: Path) -> None:
    _succeed(world, "build")


def _add_target(world: Path) -> None:
    (world / "target").mkdir()


def _parts(world: Path) -> None:
    """Two machines' artifacts, and a feedstock with nothing built."""
    artifacts = world / "tiny-feedstock" / "build_artifacts"
    shutil.move(artifacts, world / "parts" / "one")
    _succeed(world, "build")
    shutil.move(artifacts, world / "parts" / "two")
    for part in (world / "parts").iterdir():
        for name in ("pkg_cache", "src_cache", ".cache", ".work"):
            shutil.rmtree(part / name, ignore_errors=True)


def _fetch_wheels(world: Path) -> None:
    light_wheels(world / "cache")


def _make_fleet(world: Path) -> None:
    """As `fleet up --script` does, which takes a third of the time."""
    _succeed(world, "fleet up --script")
    shutil.rmtree(world / "scripts")


_TINY, _SPEC, _LIBRARY = (_tiny,), (_spec,), (_cpu_only,)
_BUILT = (*_TINY, _build)
_WHEELHOUSE = (_hosts, _fetch_wheels)
_WAVEKIT = "wavekit-feedstock"
_PIP = (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", "{world}/wheels"))
_CHANNEL, _PAGE, _FLEET = "--channel {world}/channel", "--html {world}/page.html", "--fleet {world}/inventory.yml"
_RERENDER = "rerender --pinning {world}/pinning"
SCENARIOS = {
    "generate": Scenario(_SPEC, "generate", "hello"),
    "cuda variants": Scenario(_SPEC, "cuda variants -o {world}/named", "hello"),
    "rerender": Scenario(_SPEC, "rerender --pinning {world}/pinning", "solver-feedstock"),
    "rerender --smithy": Scenario(
        _SPEC, "rerender --pinning {world}/pinning --smithy {world}/smithy", "solver-feedstock"
    ),
    "edit": Scenario(_TINY, "edit build-number 7 provider linux-64 github_actions --write"),
    "edit platform": Scenario(_LIBRARY, "edit platform add linux-aarch64 --write", _WAVEKIT, once=True),
    "edit enable-gpu": Scenario(_LIBRARY, "edit enable-gpu --pinning {world}/pinning --write", _WAVEKIT, once=True),
    "edit to-v1": Scenario(_LIBRARY, "edit to-v1 --write", _WAVEKIT, once=True),
    "import": Scenario(_LIBRARY, "import --pinning {world}/pinning", _WAVEKIT, once=True),
    "init": Scenario((_project,), "init {world}/src --maintainer someone", ".", once=True),
    "fleet new": Scenario((), "fleet new many --hub localhost:8786 --host one", ".", once=True),
    "ci": Scenario(_TINY, "ci"),
    "pinning fetch": Scenario((_pinnings,), "pinning fetch --channel {world}/pinnings", "."),
    "smithy fetch": Scenario((_releases,), "smithy fetch --channel {world}/releases", "."),
    "cuda fetch": Scenario((_wheels,), "cuda fetch 12.9", ".", _PIP),
    "build": Scenario(_TINY, f"build {_ONE} {_CHANNEL}"),
    "build --jobs --build-twice": Scenario(_TINY, f"build {GPU} --jobs 2 --build-twice 2 {_CHANNEL}"),
    "test": Scenario(_BUILT, f"test {_ONE}"),
    "publish": Scenario((*_BUILT, _add_target), f"publish {{world}}/target {_ONE} {_CHANNEL}"),
    "dossier": Scenario(_BUILT, f"dossier {_ONE} {_CHANNEL}"),
    "collect": Scenario((*_BUILT, _parts), "collect {world}/parts/one {world}/parts/two"),
    "status": Scenario(_BUILT, f"status {_PAGE} {_CHANNEL}"),
    "clean": Scenario(_BUILT, "clean --yes"),
    "rehearse": Scenario((_unsolved,), f"rehearse {_PAGE} {_CHANNEL}", "solver-feedstock", ends=1),
    "plan": Scenario((_simulated,), f"plan --simulate {{world}}/hosts.yaml --time 1h {_PAGE} {_CHANNEL}"),
    "diff": Scenario((_two,), f"diff --folders {{world}}/before . {_PAGE}", _WAVEKIT),
    "many index": Scenario((_two,), "many index {world}", "."),
    "cuda show": Scenario((), "cuda show -o {world}/table.txt", "."),
    "fleet wheelhouse": Scenario((_hosts,), "fleet wheelhouse", ".", _PIP),
    "fleet up --script": Scenario(_WHEELHOUSE, f"fleet up {_FLEET} --script {{world}}/scripts", ".", _PIP),
    "fleet up": Scenario(_WHEELHOUSE, f"fleet up {_FLEET}", ".", _PIP, ends=1),
    "fleet down": Scenario((*_WHEELHOUSE, _make_fleet), f"fleet down {_FLEET}", ".", _PIP, ends=1),
}
#: Commands that write as another one does, with the same functions.
ALIKE = {
    **{f"edit {each}": "edit" for each in ("add-cuda", "add-python", "drop-cuda", "drop-python", "maintainer")},
    **{f"edit {each}": "edit" for each in ("migration", "provider", "requirement", "version", "pinning", "setting")},
    **{f"edit {each}": "edit" for each in ("license-file", "noarch", "python-min", "stdlib")},
    **{f"fleet {each}": "fleet new" for each in ("invite", "join", "remove")},
    **{f"cuda {each}": "cuda show" for each in ("env", "facts", "graph")},
    "pinning update": "pinning fetch",
}
#: Commands that serve until they are ended, or write into many repositories, with the tests that kill them.
SERVING = {
    "many migrate": "test_a_run_that_is_killed_again_and_again_leaves_each_branch_whole_or_none",
    "fleet hub": "test_a_scheduler_that_is_killed_and_restarted_costs_no_build",
    "fleet worker": "test_a_killed_worker_leaves_no_process",
    "fleet try": "test_a_killed_host_leaves_no_process_and_its_rows_begin_elsewhere",
    "fleet cluster up": "test_a_job_that_is_cancelled_and_a_node_that_dies_cost_no_package",
    "fleet cluster down": "test_a_job_that_is_cancelled_and_a_node_that_dies_cost_no_package",
}
#: Commands that write no file, apart from what any command may put into the user's cache.
ONLY_READING = frozenset(
    {
        *(f"cuda {each}" for each in ("archs", "audit", "binary", "check", "explain", "gpu", "resolve", "search")),
        *(f"fleet {each}" for each in ("logs", "status", "stop", "test")),
        *("lint", "outputs", "pinning", "pinning list", "pinning show", "review"),
        *("many impact", "many list", "smithy", "smithy list", "why"),
    }
)


class Worlds:
    """A place in a folder for one world after the other; each is made once, and copied from then on.

    Args:
        folder: an empty one.
        quick: whether commands that are not killed have stand-ins for pip, hatchling and Ansible.
    """

    def __init__(self, folder: Path, *, quick: bool = False) -> None:
        self.place = folder / "world"
        self._folder, self._quick = folder, quick
        self._kept: dict[tuple[Step, ...], Path] = {}

    def lay(self, steps: tuple[Step, ...]) -> None:
        """Put the world in place that these steps make."""
        if steps in self._kept:
            shutil.rmtree(self.place)
            shutil.copytree(self._kept[steps], self.place, symlinks=True)
            return
        if steps:
            self.lay(steps[:-1])
            steps[-1](self.place)
        elif self._quick:
            self.place.mkdir()
            (self.place / _STAND_INS).symlink_to(ROOT / "tests" / "support" / "quick")
        self.keep(steps)

    def keep(self, steps: tuple[Step, ...]) -> None:
        """Keep what is in place, apart from what a command said, as the world that these steps make."""
        if steps in self._kept:
            return
        for part in ("cache", "config", "home"):
            (self.place / part).mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.place / "tmp", ignore_errors=True)
        (self.place / "tmp").mkdir()
        (self.place / "said.txt").unlink(missing_ok=True)
        self._kept[steps] = self._folder / f"kept-{len(self._kept)}"
        shutil.copytree(self.place, self._kept[steps], symlinks=True)


def kill_at_random(
    name: str, tries: int, chance: random.Random, worlds: Worlds, keep: Path | None = None
) -> Counter[str]:
    """Kill a command this many times, each time in a fresh copy of its world.

    Args:
        keep: where tries that differ are kept.

    Raises:
        RuntimeError: the undisturbed run fails.
    """
    scenario, world = SCENARIOS[name], worlds.place
    worlds.lay(scenario.world)
    began = time.monotonic()
    _succeed(world, name)
    usual = time.monotonic() - began
    wanted = _snapshot(world)
    if name == "build":
        worlds.keep(_BUILT)
    tally: Tally = Counter()
    for number in range(tries):
        worlds.lay(scenario.world)
        killed = _killed(world, scenario, chance.uniform(0.02, 1.0) * usual, whole=chance.random() < 0.5)
        may_refuse = scenario.once and not _differences(wanted, _snapshot(world))
        status = _run(world, scenario)
        differences = [*_differences(wanted, _snapshot(world)), *_unsound(world)]
        if status != scenario.ends and not may_refuse:
            differences.insert(0, f"the run after it exits with {status}: {_said(world)[-2000:]}")
        tally.update(tries=1, killed=int(killed), wrong=int(bool(differences)))
        usual *= 1.1 if killed else 0.8  # on a busy machine the first run may have taken long
        if differences:
            print(f"{name}, try {number}:", *differences[:12], sep="\n  ", flush=True)
            if keep is not None:
                shutil.copytree(world, keep / f"{name.replace(' ', '')}-{number}", symlinks=True, dirs_exist_ok=True)
    return tally


def _succeed(world: Path, name: str) -> None:
    if _run(world, SCENARIOS[name]) != SCENARIOS[name].ends:
        raise RuntimeError(f"{name} fails undisturbed: {_said(world)}")


def _start(world: Path, scenario: Scenario, *first: Path) -> subprocess.Popen[bytes]:
    """Start a command in a group of its own, with modules of some folders first; what it says goes to a file."""
    arguments = [each.replace("{world}", str(world)) for each in scenario.arguments.split()]
    own = {name: value.replace("{world}", str(world)) for name, value in scenario.variables}
    places = {"XDG_CACHE_HOME": "cache", "XDG_CONFIG_HOME": "config", "HOME": "home", "TMPDIR": "tmp"}
    own |= {name: str(world / place) for name, place in places.items()}
    variables = command.environment(**own, PYTHONPATH=os.pathsep.join(map(str, [*first, ROOT])))
    with (world / "said.txt").open("wb") as said:
        return subprocess.Popen(
            command.tool(*arguments),
            cwd=world / scenario.folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            process_group=0,
        )


def _run(world: Path, scenario: Scenario) -> int:
    """Run a command to its end, with stand-ins where the world has them; its exit status."""
    return _start(world, scenario, world / _STAND_INS).wait()


def _said(world: Path) -> str:
    return (world / "said.txt").read_text(errors="replace")


def _killed(world: Path, scenario: Scenario, seconds: float, *, whole: bool) -> bool:
    """Start a command and kill it after some seconds; whether it was still at work."""
    run = _start(world, scenario)
    time.sleep(seconds)
    with suppress(ProcessLookupError):  # it has ended
        os.killpg(run.pid, signal.SIGKILL) if whole else os.kill(run.pid, signal.SIGKILL)
    at_work = run.wait() == -signal.SIGKILL
    wait_until(lambda: not processes_below(world), 60)
    return at_work


def _snapshot(world: Path) -> dict[str, str]:
    """Every file and link → a digest of its contents, as far as it is the same in each run."""
    found = {}
    for place, folders, files in os.walk(world):
        for name in [*files, *(each for each in folders if Path(place, each).is_symlink())]:
            path = Path(place, name)
            relative = path.relative_to(world).as_posix()
            if relative == "said.txt" or _IGNORED.match(relative):
                continue
            shown = _TIME_OF_LOG.sub(".log", relative)
            found[shown] = "" if shown != relative or _BY_NAME.match(relative) else _contents(path)
    return found


def _contents(path: Path) -> str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    return f"{path.stat().st_mode & 0o777:o} {sha256(path.read_bytes()).hexdigest()}"


def _differences(wanted: dict[str, str], found: dict[str, str]) -> list[str]:
    missing = [f"missing: {name}" for name in sorted(wanted.keys() - found.keys())]
    more = [f"left behind: {name}" for name in sorted(found.keys() - wanted.keys())]
    other = [f"differs: {name}" for name in sorted(wanted.keys() & found.keys()) if wanted[name] != found[name]]
    return [*missing, *more, *other]


def _unsound(world: Path) -> list[str]:
    """What must hold in every world after a command."""
    with suppress(AssertionError):
        wait_until(lambda: not processes_below(world), 10)
    wrong = [f"a process still runs: {line}" for line in processes_below(world).values()]
    wrong += [f"in the folder for temporary files: {path.name}" for path in (world / "tmp").iterdir()]
    wrong += [f"a temporary file: {path}" for path in world.rglob("*") if _TEMPORARY.search(path.name)]
    for index in world.rglob("repodata.json"):
        if "pkg_cache" not in index.parts and "cache" not in index.relative_to(world).parts:
            wrong += _unindexed(index)
    for ledger in world.rglob("ledger.sqlite"):
        wrong += _unrecorded(ledger)
    return wrong


def _unindexed(index: Path) -> list[str]:
    content = json.loads(index.read_text())
    listed = {**content["packages"], **content["packages.conda"]}
    there = {path.name: path for path in index.parent.glob("*.conda")}
    wrong = [f"{index}: lists other packages than there are" for _ in [0] if listed.keys() != there.keys()]
    wrong += [
        f"{index}: another hash of {name}"
        for name, path in there.items()
        if name in listed and listed[name]["sha256"] != sha256(path.read_bytes()).hexdigest()
    ]
    return wrong


def _unrecorded(path: Path) -> list[str]:
    """Two builds of one identity that are both done, and packages that differ from their records."""
    with Ledger(path) as ledger:
        done = [record for record in ledger.builds() if record.result == "done" and record.packages]
        identities = [record.identity for record in done]
        wrong = [f"{path}: built twice" for _ in [0] if len(identities) != len(set(identities))]
        return wrong + [f"{path}: {each.output} is not what was built" for each in done if not ledger.holds(each)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, compare, print; the exit status is 1 if a try differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help=f"of {', '.join(SCENARIOS)}")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args(arguments)
    names = options.commands or list(SCENARIOS)
    each, ending = -(-options.kills // len(names)), time.monotonic() + options.minutes * 60
    total: Tally = Counter()
    for name in names:
        if time.monotonic() > ending:
            print(f"{name}: no time left")
            continue
        with tempfile.TemporaryDirectory() as folder:
            chance = random.Random(f"{options.seed} {name}")  # noqa: S311
            tally = kill_at_random(name, each, chance, Worlds(Path(folder)), options.keep)
        print(f"{name}: {_told(tally)}", flush=True)
        total.update(tally)
    print(f"all: {_told(total)}")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
