"""Our own steps in a container: the commands for docker and podman, and gpuprobe built in a real container.

The real one needs an image, which `maintenance/container-image` makes, named by FEEDSTOCK_TOOLS_TEST_IMAGE. Where the
machine allows containers little (control groups of version 1, no network for them), tell how in
CONDA_FORGE_DOCKER_RUN_ARGS, such as `--runtime runc --network none --ulimit nofile=20000:20000 --ulimit nproc=4096`.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.builds.engines.choice import Engines
from feedstock_tools.builds.engines.container import ELSEWHERE, Container, find_runtime
from feedstock_tools.builds.engines.contract import BuildRequest
from feedstock_tools.builds.engines.embedded.fixed_place import UNIT, place_of
from feedstock_tools.builds.engines.feedstock_script import FeedstockScript
from feedstock_tools.builds.runs.building import write_siblings
from feedstock_tools.channel.packages.reading import read_documents
from feedstock_tools.feedstock.layout import Artifacts
from tests.support.command import environment, run, tool
from tests.support.feedstocks import CPU, HERE, TinyFeedstock, copy_of_example
from tests.support.needs import needs
from tests.support.paths import ROOT
from tests.support.sharing import RECIPE, contents

IMAGE = os.environ.get("FEEDSTOCK_TOOLS_TEST_IMAGE", "")
NEEDS_IMAGE = needs("container", IMAGE, "an image that FEEDSTOCK_TOOLS_TEST_IMAGE names (maintenance/container-image)")
pytestmark = needs("system", HERE.subdir == "linux-64", "the containers tested are those for linux-64")


def _request(tmp_path: Path, **more: Any) -> BuildRequest:
    feedstock = tmp_path / "feedstock"
    folder = feedstock / "build_artifacts" / "private"
    (folder / "output").mkdir(parents=True)
    (feedstock / "recipe").mkdir()
    (tmp_path / "sources").mkdir()
    (folder / "output" / "src_cache").symlink_to(tmp_path / "sources")
    return BuildRequest(
        name="row",
        recipe=feedstock / "recipe" / "recipe.yaml",
        values={"docker_image": "example.org/builder:1"},
        target="linux-64",
        builder="linux-64",
        channels=((tmp_path / "channel").as_uri(), "https://example.org/channel"),
        folder=folder,
        wanted=("any",),
        environment={"CPU_COUNT": "2", "PATH": "/bin", "RATTLER_CACHE_DIR": str(tmp_path / "cache"), "TMPDIR": "/t"},
        feedstock=feedstock,
        **more,
    )


def _engine(tmp_path: Path) -> Container:
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    machine = {"PATH": str(tmp_path)}
    return Container(find_runtime(machine), machine)


def _values(words: list[str], option: str) -> list[str]:
    return [words[at + 1] for at, word in enumerate(words) if word == option]


def test_the_users_files_with_credentials_can_be_read_in_the_container(tmp_path: Path) -> None:
    asked = _request(tmp_path)
    home = tmp_path / "home"
    (home / ".rattler").mkdir(parents=True)
    (home / ".netrc").touch()
    (home / ".rattler" / "credentials.json").touch()
    words = _engine(tmp_path).command(
        replace(asked, environment={**asked.environment, "HOME": str(home)}), "example.org/builder:1"
    )
    stored = home / ".rattler" / "credentials.json"
    assert {f"NETRC={home}/.netrc", f"RATTLER_AUTH_FILE={stored}"} <= set(_values(words, "-e"))
    assert {f"{home}/.netrc:{home}/.netrc:ro", f"{stored}:{stored}:ro"} <= {
        value.removesuffix(",z") for value in _values(words, "-v")
    }


def test_only_what_a_build_writes_is_mounted_for_writing(tmp_path: Path) -> None:
    mounts = _values(_engine(tmp_path).command(_request(tmp_path), "image"), "-v")
    written = {mount.split(":")[0] for mount in mounts if ":rw" in mount}
    read = {mount.split(":")[0] for mount in mounts if ":ro" in mount}
    private = tmp_path / "feedstock" / "build_artifacts" / "private"
    assert written == {str(private), str(tmp_path / "sources"), str(tmp_path / "cache")}
    assert {str(tmp_path / "feedstock"), str(tmp_path / "channel"), str(ROOT)} <= read


def test_what_packages_of_the_stand_in_channel_link_to_is_mounted(tmp_path: Path) -> None:
    channel = tmp_path / "user" / "stand-in" / "0123456789abcdef" / "stand-in"
    request = replace(_request(tmp_path), channels=(channel.as_uri(),))
    mounts = _values(_engine(tmp_path).command(request, "image"), "-v")
    assert f"{tmp_path / 'user'}:{tmp_path / 'user'}:ro" in {mount.removesuffix(",z") for mount in mounts}


def test_fetched_sources_are_found_where_the_caches_of_several_rows_are_shared(tmp_path: Path) -> None:
    """As on a host of a fleet, whose rows have an artifacts folder each with links to caches."""
    request = _request(tmp_path)
    (request.output / "src_cache").unlink()
    caches = Artifacts(tmp_path / "caches")
    write_siblings(request.output, [], caches.apart(tmp_path / "row"))
    linked = (request.output / "src_cache").readlink()
    assert linked == caches.sources
    assert f"{linked}:{linked}:rw" in {
        mount.removesuffix(",z") for mount in _values(_engine(tmp_path).command(request, "image"), "-v")
    }


@pytest.mark.parametrize("only_shared", [True, False], ids=["shared build", "heir"])
def test_what_rows_share_is_at_one_place_and_only_its_own_build_writes_it(tmp_path: Path, only_shared: bool) -> None:
    shared = tmp_path / "feedstock" / "build_artifacts" / ".work" / "shared" / "0"
    request = _request(tmp_path, shared={"compiled": shared}, only_shared=only_shared)
    mounts = [mount.removesuffix(",z") for mount in _values(_engine(tmp_path).command(request, "image"), "-v")]
    assert f"{shared}:{shared}:{'rw' if only_shared else 'ro'}" in mounts
    assert f"{request.folder}:{place_of(request.folder, UNIT)}:rw" in mounts
    assert (f"{request.recipe_of_heir}:{request.recipe}:ro" in mounts) == (not only_shared)


def test_a_meta_yaml_is_converted_for_our_own_steps_but_not_for_the_feedstock_s(tmp_path: Path) -> None:
    (tmp_path / "recipe").mkdir()
    engines = Engines(tmp_path, tmp_path / "recipe" / "recipe.yaml", {}, "container")
    assert engines.need_a_conversion
    (tmp_path / ".scripts").mkdir()
    assert not replace(engines).need_a_conversion


def test_variables_are_passed_by_name_and_those_of_the_machine_are_not(tmp_path: Path) -> None:
    passed = _values(_engine(tmp_path).command(_request(tmp_path), "image"), "-e")
    assert "CPU_COUNT" in passed
    assert "PATH" not in passed


def test_a_share_is_asked_of_the_runtime(tmp_path: Path) -> None:
    words = _engine(tmp_path).command(_request(tmp_path, cores=3, memory=5 << 30), "image")
    assert (_values(words, "--cpus"), _values(words, "--memory")) == (["3"], [str(5 << 30)])


def test_an_image_that_the_machine_names_is_part_of_the_version_but_not_of_a_plan_for_other_machines(
    tmp_path: Path,
) -> None:
    engine = _engine(tmp_path)
    named = {**engine.machine, "DOCKER_IMAGE": "alma9"}
    for one in (engine, FeedstockScript(tmp_path, engine.machine, engine.runtime)):
        assert replace(one, machine=named).version == f"{one.version} in alma9"
        assert replace(one, machine=named, runtime=ELSEWHERE).version == one.version


def test_other_systems_are_not_built_in_it(tmp_path: Path) -> None:
    assert "osx-64" in (_engine(tmp_path).why_not("osx-64", "linux-64") or "")


def _gpuprobe(folder: Path, engine: str) -> dict[str, tuple[Any, Any]]:
    """Name of each package built for CUDA 11.2 and the running Python → its index and the paths in it."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    words = [f"linux_64_cuda11.2_py{version}", "--engine", engine, "--channel", "stand-in", "--retries", "0"]
    ran = run(tool("build", *words), folder, environment(DOCKER_IMAGE=IMAGE))
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr
    found = {}
    for package in (folder / "build_artifacts" / "built-on-stand-in" / "linux-64").glob("*.conda"):
        documents = read_documents(package, ["info/index.json", "info/paths.json"])
        index, paths = (json.loads(documents[name] or b"") for name in ("info/index.json", "info/paths.json"))
        index.pop("timestamp", None)
        index["depends"].sort()  # the engine lists the additions of run exports in no particular order
        found[package.name] = (index, sorted(each["_path"] for each in paths["paths"]))
    return found


@NEEDS_IMAGE
def test_gpuprobe_built_in_a_container_equals_the_embedded_engines(tmp_path: Path) -> None:
    built = []
    for engine in ("rattler-build", "container"):
        folder = copy_of_example("gpuprobe", tmp_path / engine)
        built.append(_gpuprobe(folder, engine))
    assert len(built[0]) == 4
    assert built[0] == built[1]


@NEEDS_IMAGE
def test_what_rows_share_is_built_once_in_containers_as_by_the_embedded_engine(
    feedstock: TinyFeedstock, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (feedstock.folder / "recipe" / "recipe.yaml").write_text(RECIPE.replace("RUNS", str(notes / "runs.txt")))
    (feedstock.folder / "src" / "part.txt").write_text("a part\n")
    arguments = f"{os.environ.get('CONDA_FORGE_DOCKER_RUN_ARGS', '')} -v {notes}:{notes}:rw"
    variables = {"DOCKER_IMAGE": IMAGE, "CONDA_FORGE_DOCKER_RUN_ARGS": arguments}
    made = []
    for engine in ("rattler-build", "container"):
        for python in ("3.11", "3.12"):
            built = feedstock.build(f"{CPU}_py{python}", "--engine", engine, environment=variables)
            assert built.returncode == 0, built.stdout + built.stderr
        assert (notes / "runs.txt").read_text().split() == ["shared", "heir", "heir"]
        (notes / "runs.txt").unlink()
        packages = feedstock.artifacts.glob("[!p]*/*.conda")
        made.append({path.name: contents(path, tmp_path / "contents" / engine / path.stem) for path in packages})
        feedstock.artifacts.rename(tmp_path / engine)
    assert len(made[0]) == 4
    assert made[0] == made[1]


#: What conda-smithy's script of this name does, as far as these tests need it.
DOCKER_SCRIPT = """\
#!/bin/sh
set -e
root=$(cd "$(dirname "$0")/.." && pwd)
${DOCKER_EXECUTABLE:-docker} run $CONDA_FORGE_DOCKER_RUN_ARGS -v "$root:/home/conda/feedstock_root:rw" -e CONFIG \\
    "$DOCKER_IMAGE" python3 /home/conda/feedstock_root/.scripts/build_steps.py
"""
#: Builds as `rattler-build build --recipe recipe -m .ci_support/CONFIG.yaml`.
BUILD_STEPS = """\
import os, sys
sys.path += LIBRARIES
from rattler_build.cli_api import build_recipes
os.chdir("/home/conda/feedstock_root")
variants = [f".ci_support/{os.environ['CONFIG']}.yaml"]
build_recipes(["recipe/recipe.yaml"], variant_config=variants, output_dir="build_artifacts")
"""


#: A second staging output, which fewer rows share.
BOUND = """\
  - staging: {name: bound}
    build: {script: [echo bound >> RUNS, mkdir -p $PREFIX/etc, echo a > $PREFIX/etc/bound.txt]}
    requirements: {host: [python]}
  - package: {name: counted-bound}
    inherit: bound
    build: {files: [etc/**], variant: {use_keys: [python]}}
"""


@NEEDS_IMAGE
@pytest.mark.parametrize(("more", "runs"), [("", []), (BOUND, ["bound", "bound"])], ids=["one staging output", "two"])
def test_one_call_of_a_feedstock_s_script_builds_all_rows_of_a_recipe_that_share_staging_outputs(
    tiny_channel: Path, tmp_path: Path, more: str, runs: list[str]
) -> None:
    feedstock, notes = tmp_path / "counted-feedstock", tmp_path / "notes"
    libraries = sorted({sysconfig.get_path(name) for name in ("purelib", "platlib")})
    texts = {
        "recipe/recipe.yaml": (RECIPE + more).replace("RUNS", str(notes / "runs.txt")),
        "src/part.txt": "a part\n",
        ".ci_support/linux_64_.yaml": f"""\
channel_sources: [{tiny_channel.as_uri()}]
python: [3.11.* *_cpython, 3.12.* *_cpython]
target_platform: [linux-64]
""",
        ".scripts/run_docker_build.sh": DOCKER_SCRIPT,
        ".scripts/build_steps.py": BUILD_STEPS.replace("LIBRARIES", repr(libraries)),
    }
    notes.mkdir()
    for name, text in texts.items():
        (feedstock / name).parent.mkdir(parents=True, exist_ok=True)
        (feedstock / name).write_text(text)
    (feedstock / ".scripts" / "run_docker_build.sh").chmod(0o755)
    mounts = [f"-v {place}:{place}:ro" for place in (*libraries, tiny_channel)]
    arguments = " ".join([os.environ.get("CONDA_FORGE_DOCKER_RUN_ARGS", ""), *mounts, f"-v {notes}:{notes}:rw"])
    variables = environment(DOCKER_IMAGE=IMAGE, CONDA_FORGE_DOCKER_RUN_ARGS=arguments)
    for python in ("3.11", "3.12"):
        built = run(tool("build", f"linux_64_py{python}", "--engine", "container"), feedstock, variables)
        assert built.returncode == 0, built.stdout + built.stderr
    assert sorted((notes / "runs.txt").read_text().split()) == [*runs, "heir", "heir", "shared"]
    assert len([*(feedstock / "build_artifacts").glob("*/*counted*.conda")]) == 4 + len(runs)
