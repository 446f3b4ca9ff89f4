"""How often a compile runs that several outputs share, how long a feedstock with one takes, and what kills cost.

    python -m benchmarks.builds.once counts MIRROR PYTHON NAME...
    python -m benchmarks.builds.once wall [--compile 60] [--row 10] [--conda-build PROGRAM]
    python -m benchmarks.builds.once kills [--kills 20] [--image IMAGE]
    python -m benchmarks.builds.once cases PROGRAM [--only NAME] [--engine NAME] [--image IMAGE]

`counts` holds the plan of the linux-64 configurations of feedstocks (`MIRROR/conda-forge+NAME-feedstock/repo`, newest
commit) against conda-build's own rendering, by the Python of an installation of it; a `recipe.yaml` against one
rendering of the whole configuration by rattler-build. `wall` builds a made-up feedstock: a compile that four Pythons
share. `kills` sends SIGKILL while the compile runs, while an heir runs and between them, counts the compiles of the
next run, and compares its packages, file by file, with those of a run that nothing ended. `cases` runs plain
conda-build and the engines on the recipes of `tests/builds/plan/test_shared_builds.py`. With an image
(`maintenance/container-image`) both do so in containers too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.histories import unpack
from feedstock_tools.builds.engines.choice import ENGINES
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.packages.reading import unpack_own
from tests.builds.plan.test_shared_builds import OUTPUTS, TOPS
from tests.support.channels import make_tiny_channel
from tests.support.command import environment
from tests.support.feedstocks import HERE
from tests.support.waiting import processes_below, wait_until

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_EMBEDDED = ["--engine", "rattler-build", "--jobs", "2"]
#: The engines of `cases`, and the feedstock's own scripts in a container.
CASES = (*ENGINES, "scripts")
#: Package → for each build of it, its files with their texts.
Contents = dict[str, list[list[str]]]
#: What conda-build loops over in `build_tree`: the metadata of each top level of a configuration.
RENDERED = """
import json, os, sys
from conda_build import api, render
recipe, *files = sys.argv[1:]
has_script = os.path.isfile(os.path.join(recipe, 'build.sh'))
counts = {}
for file in files:
    config = api.Config(variant_config_files=[file], verbose=False)
    tops = render.render_recipe(recipe, config=config, permit_unsatisfiable_variants=True, bypass_env_check=True)
    counts[file] = sum(
        1
        for top, *_ in tops
        if not top.skip() and top.get_section("outputs") and (top.get_value("build/script") or has_script)
    )
print(json.dumps(counts))
"""
#: A feedstock's own scripts, as conda-smithy's: conda-build in a container, whose result stays in the feedstock.
DOCKER_SCRIPT = """\
#!/bin/sh
set -e
root=$(cd "$(dirname "$0")/.." && pwd)
${DOCKER_EXECUTABLE:-docker} run $CONDA_FORGE_DOCKER_RUN_ARGS -v "$root:/home/conda/feedstock_root:rw" -e CONFIG \\
    "$DOCKER_IMAGE" sh /home/conda/feedstock_root/.scripts/build_steps.sh
"""
BUILD_STEPS = """\
set -e
export PATH={bin}:$PATH HOME=/tmp CONDA_OFFLINE=1 CONDA_PKGS_DIRS=/tmp/packages CONDARC=/tmp/condarc
echo "conda-build: {{pkg_format: '2'}}" > $CONDARC
cd /home/conda/feedstock_root
conda-build recipe -m .ci_support/$CONFIG.yaml --override-channels -c {channel} --output-folder build_artifacts \\
    --croot /tmp/croot
"""
META = """\
package:
  name: made-up-split
  version: 1.0
outputs:
  - name: libmade-up
    files:
      - lib
  - name: made-up
    script: install.sh
    requirements:
      host:
        - python
      run:
        - python
"""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    counts = commands.add_parser("counts")
    counts.add_argument("mirror", type=Path)
    counts.add_argument("python")
    counts.add_argument("names", nargs="+")
    wall = commands.add_parser("wall")
    wall.add_argument("--compile", type=float, default=60)
    wall.add_argument("--row", type=float, default=10)
    wall.add_argument("--conda-build")
    kills = commands.add_parser("kills")
    kills.add_argument("--kills", type=int, default=20)
    kills.add_argument("--image")
    cases = commands.add_parser("cases")
    cases.add_argument("conda_build")
    cases.add_argument("--only", default="")
    cases.add_argument("--engine", action="append", choices=CASES)
    cases.add_argument("--image")
    given = parser.parse_args(arguments)
    if given.command == "counts":
        return _counts(given.mirror, given.python, given.names)
    if given.command == "wall":
        return _wall(given.compile, given.row, given.conda_build)
    if given.command == "cases":
        return _cases(given.conda_build, given.only, given.engine or CASES, given.image)
    return _kills(given.kills, given.image)


def _counts(mirror: Path, python: str, names: Sequence[str]) -> int:
    wrong = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            feedstock = Path(folder) / f"{name}-feedstock"
            try:
                unpack(mirror / f"conda-forge+{name}-feedstock" / "repo", "HEAD", feedstock)
                ours, theirs = _planned(feedstock), _expected(feedstock, python)
            except Exception as error:  # the others are still counted
                print(f"{name}: unknown: {str(error).strip().splitlines()[-1]}")
                continue
        made, expected = sum(ours.values()), sum(theirs.values())
        factor = made / expected if expected else 1.0 + made
        different = [name for name in theirs if ours.get(name) != theirs[name]]
        wrong += bool(different)
        text = f"{name}: {len(theirs)} configurations, {made} shared builds, expected {expected}, factor {factor:.2f}"
        print(" ".join([text, *different]), flush=True)
    return 1 if wrong else 0


def _linux_files(feedstock: Path) -> list[Path]:
    return sorted((feedstock / ".ci_support").glob("linux_64_*.yaml"))


def _planned(feedstock: Path) -> dict[str, int]:
    """The shared builds of each configuration, by plan."""
    from feedstock_tools.builds.plan.rendering import render_outputs
    from feedstock_tools.feedstock.configurations import outline

    wanted = [each for each in outline(feedstock) if each.name in {file.stem for file in _linux_files(feedstock)}]
    rendered, _ = render_outputs(wanted, feedstock / "recipe" / "recipe.yaml", {"linux-64": "conda-build 1"})
    for each in rendered:
        if each.refusal:
            raise ValueError(each.refusal)
    return {each.name: len({build.identity for row in each.rows for build in row.shared}) for each in rendered}


def _expected(feedstock: Path, python: str) -> dict[str, int]:
    files = _linux_files(feedstock)
    if (feedstock / "recipe" / "recipe.yaml").is_file():
        return {file.stem: _staged(feedstock, file) for file in files}
    asked = [python, "-c", RENDERED, str(feedstock / "recipe"), *map(str, files)]
    variables = {"PATH": os.environ["PATH"], "CONDA_SUBDIR": "linux-64", "CONDA_OFFLINE": "1", "HOME": str(feedstock)}
    answer = subprocess.run(asked, capture_output=True, text=True, env=variables, check=False)
    if answer.returncode:
        raise ValueError(answer.stderr or "conda-build cannot render it")
    return {Path(file).stem: count for file, count in json.loads(answer.stdout.splitlines()[-1]).items()}


def _staged(feedstock: Path, file: Path) -> int:
    """The staging outputs that rattler-build would run in one call for a configuration: by content."""
    from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

    recipe = Stage0Recipe.from_file(str(feedstock / "recipe" / "recipe.yaml"))
    platform = PlatformConfig(target_platform="linux-64", build_platform="linux-64", host_platform="linux-64")
    variants = VariantConfig.from_file(str(file))
    contents = {
        json.dumps(cache, sort_keys=True, default=str)
        for rendered in recipe.render(variants, RenderConfig(platform=platform))
        for cache in rendered.recipe.to_dict().get("staging_caches") or ()
    }
    return len(contents)


def _feedstock(folder: Path, versions: Sequence[str], flavours: str = "") -> tuple[Path, Path]:
    """A channel with some Pythons, and a feedstock for these that has no recipe yet."""
    channel, feedstock = folder / "channel", folder / "made-up-feedstock"
    make_tiny_channel(channel, versions)
    write_package(channel, PackageMetadata("pip", "1.0", "0", 0, "noarch", noarch="generic"))
    index_channel(channel)
    (feedstock / "recipe").mkdir(parents=True)
    (feedstock / ".ci_support").mkdir()
    pythons = "".join(f"- {python}.* *_cpython\n" for python in versions)
    text = f"{flavours}python:\n{pythons}target_platform:\n- {HERE.subdir}\n"
    (feedstock / ".ci_support" / f"{HERE.name}_.yaml").write_text(text)
    return channel, feedstock


@contextmanager
def _made_up(seconds: float, row: float, versions: Sequence[str] = PYTHONS) -> Iterator[tuple[Path, Path, Path]]:
    """A folder with a feedstock whose scripts note when they begin and end, and its channel."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        channel, feedstock = _feedstock(folder, versions)
        _write_recipe(folder, feedstock / "recipe", seconds, row)
        yield folder, feedstock, channel


def _write_recipe(folder: Path, recipe: Path, seconds: float, row: float) -> None:
    (recipe / "meta.yaml").write_text(META)
    words = ("compile", "compiled", "row", "end")
    begun, compiled, row_begun, ended = (f"echo {word} >> {_notes_file(folder)}\n" for word in words)
    library = "mkdir -p $PREFIX/lib\necho done | tee made > $PREFIX/lib/made-up\n"
    (recipe / "build.sh").write_text(f"{begun}sleep {seconds}\n{library}{compiled}")
    package = "mkdir -p $PREFIX/share\ncp made $PREFIX/share/made-up\n"
    (recipe / "install.sh").write_text(f"{row_begun}sleep {row}\n{package}{ended}")


def _notes_file(folder: Path) -> Path:
    """In a folder of its own, which containers may write to."""
    (folder / "notes").mkdir(exist_ok=True)
    return folder / "notes" / "made"


def _notes(folder: Path) -> list[str]:
    file = _notes_file(folder)
    return file.read_text().split() if file.exists() else []


def _in_image(folder: Path, image: str | None) -> dict[str, str]:
    """The variables for builds in containers; none without an image."""
    notes = _notes_file(folder).parent
    arguments = f"{os.environ.get('CONDA_FORGE_DOCKER_RUN_ARGS', '')} -v {notes}:{notes}:rw"
    return {"DOCKER_IMAGE": image, "CONDA_FORGE_DOCKER_RUN_ARGS": arguments} if image else {}


def _ours(feedstock: Path, channel: Path | None, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "feedstock_tools", "build", "--all", "--feedstock", str(feedstock)),
        *(("--channel", channel.as_uri()) if channel else ()),
        *more,
    ]


def _plain(conda_build: str, feedstock: Path, channel: Path, output: Path) -> list[str]:
    return [
        *(conda_build, str(feedstock / "recipe"), "-m", str(next((feedstock / ".ci_support").iterdir()))),
        *("--override-channels", "-c", channel.as_uri(), "--output-folder", str(output)),
        *("--croot", str(channel.parent / "croot")),
    ]


def _wall(seconds: float, row: float, conda_build: str | None) -> int:
    cases = {"rattler-build": _EMBEDDED}
    if conda_build:
        cases["conda-build"] = ["--engine", "conda-build", "--jobs", "2"]
    for name, more in cases.items():
        with _made_up(seconds, row) as (folder, feedstock, channel):
            print(f"{name}, two jobs: {_timed(_ours(feedstock, channel, *more), folder, conda_build)}", flush=True)
    if conda_build:
        with _made_up(seconds, row) as (folder, feedstock, channel):
            words = _plain(conda_build, feedstock, channel, folder / "output")
            print(f"plain conda-build: {_timed(words, folder, conda_build)}")
    return 0


def _timed(words: Sequence[str], folder: Path, conda_build: str | None) -> str:
    path = f"{Path(conda_build).parent}:{os.environ['PATH']}" if conda_build else os.environ["PATH"]
    began = time.monotonic()
    ended = subprocess.run(
        words, capture_output=True, text=True, env=environment(PATH=path, CONDA_OFFLINE="1"), check=False
    )
    seconds = time.monotonic() - began
    if ended.returncode:
        return f"failed\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}"
    notes = _notes(folder)
    return f"{seconds:.0f} s, {notes.count('compile')} compiles, {notes.count('row')} rows"


def _kills(number: int, image: str | None) -> int:
    chance, wrong = random.Random(), 0  # noqa: S311
    engine = ["--engine", "container", "--jobs", "2"] if image else _EMBEDDED
    with _made_up(0, 0, PYTHONS[:2]) as (folder, feedstock, channel):
        words, variables = _ours(feedstock, channel, *engine), environment(**_in_image(folder, image))
        subprocess.run(words, capture_output=True, env=variables, check=True)
        expected = _contents(feedstock / "build_artifacts", folder)
    for moment, allowed in (("compile", 2), ("compiled", 1), ("row", 1)):
        compiles = []
        for _ in range(number):
            with _made_up(0.5, 0.5, PYTHONS[:2]) as (folder, feedstock, channel):
                words, variables = _ours(feedstock, channel, *engine), environment(**_in_image(folder, image))
                compiles.append(_killed(folder, feedstock, words, variables, moment, chance, expected))
                wrong += not 1 <= compiles[-1] <= allowed
            counted = {each: compiles.count(each) for each in sorted(set(compiles))}
            print(f"killed after '{moment}' {len(compiles)} times: compiles and how often: {counted}", flush=True)
    return 1 if wrong else 0


def _killed(
    folder: Path,
    feedstock: Path,
    words: Sequence[str],
    variables: Mapping[str, str],
    moment: str,
    chance: random.Random,
    expected: Contents,
) -> int:
    """Kill a build after a note, and run it again; the number of compiles, 0 if a package is missing or different."""
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=variables) as run:
        wait_until(lambda: moment in _notes(folder) or run.poll() is not None)
        if moment == "compiled":
            artifacts = feedstock / "build_artifacts"
            wait_until(lambda: [*artifacts.glob(".work/shared/*/sealed.json")] != [] or run.poll() is not None)
        time.sleep(chance.uniform(0, 0.4))
        run.send_signal(signal.SIGKILL)
    wait_until(lambda: not processes_below(feedstock))
    again = subprocess.run(words, capture_output=True, text=True, env=variables, check=False)
    if again.returncode:
        print(again.stdout[-2000:], again.stderr[-2000:])
        return 0
    return _notes(folder).count("compile") if _contents(feedstock / "build_artifacts", folder) == expected else 0


def _contents(output: Path, folder: Path) -> Contents:
    """The files of each package of a channel folder, with their texts, by its name without a build string.

    Args:
        folder: for the unpacked packages.
    """
    found: Contents = {}
    for package in sorted(path for subdir in (HERE.subdir, "noarch") for path in output.glob(f"{subdir}/*.conda")):
        unpacked = folder / "unpacked" / package.stem
        unpack_own(package, unpacked)
        own = [path for path in unpacked.rglob("*") if path.is_file() and path.relative_to(unpacked).parts[0] != "info"]
        texts = sorted(f"{path.relative_to(unpacked)} {path.read_text()}" for path in own)
        found.setdefault(package.stem.rsplit("-", 2)[0], []).append(texts)
    return found


def _cases(conda_build: str, only: str, engines: Sequence[str], image: str | None) -> int:
    """Each case of the plan's tests by plain conda-build and the engines: runs of the top level, files of packages."""
    wrong = 0
    for name, (top, script, *_) in TOPS.items():
        if only not in name:
            continue
        results = {}
        for engine in ("plain", *engines):
            if engine in ("container", "scripts") and image is None:
                continue
            with tempfile.TemporaryDirectory() as made:
                results[engine] = _case(Path(made), top, script, engine, conda_build, image)
        counts = {engine: result[0] for engine, result in results.items()}
        equal = {engine: result[1] == results["plain"][1] for engine, result in results.items()}
        wrong += not all(equal.values()) or any(each > counts["plain"] for each in counts.values())
        print(f"{name}: runs {counts}, the same files {equal}", flush=True)
        if not all(equal.values()):
            print(json.dumps({engine: result[1] for engine, result in results.items()}, indent=1), flush=True)
    return 1 if wrong else 0


def _add_scripts(feedstock: Path, channel: Path, conda_build: str) -> str:
    """Give a feedstock scripts of its own; returns the arguments of docker that they need."""
    folder, steps = Path(conda_build).parent, feedstock / ".scripts" / "build_steps.sh"
    steps.parent.mkdir()
    steps.write_text(BUILD_STEPS.format(bin=folder, channel=channel.as_uri()))
    script = steps.with_name("run_docker_build.sh")
    script.write_text(DOCKER_SCRIPT)
    script.chmod(0o755)
    with next((feedstock / ".ci_support").iterdir()).open("a") as configuration:
        configuration.write(f"channel_sources:\n- {channel.as_uri()}\n")
    places = {folder.parent, (folder / "python").resolve().parents[1], channel}
    return " ".join(f"-v {place}:{place}:ro" for place in places)


def _case(
    folder: Path, top: str, script: str | None, engine: str, conda_build: str, image: str | None
) -> tuple[int, dict[str, list[str]]]:
    """How often the top level runs, and the files of each package by its name and build number of Python."""
    flavours = "flavour:\n- mild\n- ripe\n" if "flavour" in top else ""
    channel, feedstock = _feedstock(folder, PYTHONS[:2], flavours)
    recipe = feedstock / "recipe"
    library = f"echo run >> {_notes_file(folder)}; mkdir -p $PREFIX/lib; echo a | tee a > $PREFIX/lib/a"
    (recipe / "meta.yaml").write_text(f"{top}\n{OUTPUTS}".replace("script: make", f"script: {library}"))
    install = "cp a $PREFIX/a-of-work" if "build:\n  script" in top or script else "echo a > $PREFIX/a-of-work"
    (recipe / "install.sh").write_text(f"{install}\n")
    if script is not None:
        (recipe / "build.sh").write_text(f"{library}\n{script.replace('make', 'true')}\n")
    output = feedstock / "build_artifacts"
    words = _ours(feedstock, channel, "--engine", engine, "--jobs", "2")
    if engine == "plain":
        words = _plain(conda_build, feedstock, channel, output)
    path = f"{Path(conda_build).parent}:{os.environ['PATH']}"
    contained = _in_image(folder, image)
    if engine == "scripts":
        words = _ours(feedstock, None, "--engine", "container", "--jobs", "2")
        contained["CONDA_FORGE_DOCKER_RUN_ARGS"] += f" {_add_scripts(feedstock, channel, conda_build)}"
    variables = environment(PATH=path, CONDA_OFFLINE="1", CONDARC=str(folder / "condarc"), **contained)
    (folder / "condarc").write_text("conda-build: {pkg_format: '2'}\n")
    ended = subprocess.run(words, capture_output=True, text=True, env=variables, check=False)
    if ended.returncode:
        print(engine, ended.stdout[-1500:], ended.stderr[-1500:])
    made = _contents(output, folder)
    return _notes(folder).count("run"), {
        name: sorted({text for texts in each for text in texts}) for name, each in made.items()
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
