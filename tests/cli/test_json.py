"""All output for readers is available as JSON too: one document on stdout."""

import json
import shutil
from pathlib import Path

import pytest

from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from maintenance.drawn import COMMANDS, taken
from tests.support.feedstocks import GPU, HERE, TinyFeedstock, copy_of_example
from tests.support.smithy_release import write_package_of_release

#: A call of each command in the folder of the tiny feedstock with a row built; `CHANNEL` stands for its channel.
CALLS: dict[str, list[str]] = {
    "generate": ["generate", "../gpukernel", "--check"],
    "rerender": ["rerender", "../gpukernel", "--check"],
    "cuda variants": ["cuda", "variants", "linux_64_*"],
    "pinning": ["pinning"],
    "pinning fetch": ["pinning", "fetch", "-c", "PINNING"],
    "pinning list": ["pinning", "list"],
    "pinning show": ["pinning", "show"],
    "pinning update": ["pinning", "update", "-c", "PINNING"],
    "smithy": ["smithy"],
    "smithy fetch": ["smithy", "fetch", "-c", "SMITHY"],
    "smithy list": ["smithy", "list"],
    "outputs": ["outputs", "../gpukernel", "linux_64_cuda11.8"],
    "why": ["why", "cuda_compiler", "../gpukernel", "linux_64_cuda11.8"],
    "cuda archs": ["cuda", "archs", "cuda=12.9"],
    "cuda audit": ["cuda", "audit", "-c", "CHANNEL"],
    "cuda binary": ["cuda", "binary", "recipe"],
    "cuda check": ["cuda", "check", "../gpukernel", "linux_64_cuda11.8"],
    "cuda explain": ["cuda", "explain", "CUDA out of memory"],
    "cuda facts": ["cuda", "facts"],
    "cuda fetch": ["cuda", "fetch"],
    "cuda graph": ["cuda", "graph"],
    "cuda resolve": ["cuda", "resolve", "cuda=11.2"],
    "cuda show": ["cuda", "show", "12.9"],
    "cuda gpu": ["cuda", "gpu", "--model", "V100"],
    "cuda search": ["cuda", "search", "python", "-c", "CHANNEL", "--platform", HERE.subdir],
    "cuda env": ["cuda", "env", "pytorch", "--unsolved", "--platform", "linux-64", "--cuda", "12.9"],
    "diff": ["diff", "--folders", ".", "."],
    "import": ["import", "../gpukernel", "--dry-run"],
    "lint": ["lint", "."],
    "review": ["review", "--folder", ".", "--no-rehearse"],
    "rehearse": ["rehearse", f"{GPU}_py3.11", "-c", "CHANNEL"],
    "plan": ["plan", "-c", "CHANNEL"],
    "build": ["build", "--list", "-c", "CHANNEL"],
    "test": ["test", f"{GPU}_py3.11", "-c", "CHANNEL"],
    "status": ["status", "-c", "CHANNEL"],
    "publish": ["publish", "./published", f"{GPU}_py3.11", "-c", "CHANNEL"],
    "dossier": ["dossier", f"{GPU}_py3.11", "-c", "CHANNEL"],
    "ci": ["ci", "--matrix", "github"],
    "collect": ["collect", "../other"],
    "clean": ["clean", "--dry-run"],
}
#: Commands that start processes of their own.
STARTING = {"test"}
#: Lists that are empty for this feedstock.
MAY_BE_EMPTY = {
    "pinning list",
    "smithy list",
    "cuda facts",
    "cuda fetch",
    "cuda audit",
    "cuda binary",
    "cuda check",
    "lint",
}
#: Commands that need more than a feedstock: tests/builds/fleet and tests/many have their tests.
ELSEWHERE = {
    "fleet status",
    "fleet test",
    *(f"many {each}" for each in ("impact", "index", "list", "migrate")),
}
#: Commands that have nothing to read: they write files and name them, or show a diff.
WITHOUT = {"init", *(name for name in COMMANDS if name.startswith(("edit ", "fleet ")))} - ELSEWHERE


def test_every_command_prints_json() -> None:
    assert {each.command for each in taken() if each.name == "--json"} == set(CALLS) | ELSEWHERE
    assert set(COMMANDS) == set(CALLS) | WITHOUT | ELSEWHERE


@pytest.fixture(scope="module")
def pinning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A channel with one pinning."""
    folder = tmp_path_factory.mktemp("pinning")
    files = [PackageFile("conda_build_config.yaml", b"python: [3.13]\n")]
    package = PackageMetadata("conda-forge-pinning", "2026.01.02.03.04.05", "0", 0, "noarch", noarch="generic")
    write_package(folder, package, files)
    index_channel(folder)
    return folder


@pytest.fixture(scope="module")
def smithy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A channel with one release of conda-smithy."""
    folder = tmp_path_factory.mktemp("smithy")
    write_package_of_release(folder, "2026.8.5")
    index_channel(folder)
    return folder


@pytest.mark.parametrize("name", CALLS)
def test_what_is_printed_is_one_document(name: str, gpu_feedstock: TinyFeedstock, pinning: Path, smithy: Path) -> None:
    if "../gpukernel" in CALLS.get(name, ()):
        copy_of_example("gpukernel", gpu_feedstock.folder.parent)
    (gpu_feedstock.folder / "conda-forge.yml").write_text("conda_build_tool: rattler-build\n")
    if name == "collect":
        gpu_feedstock.artifacts.rename(gpu_feedstock.folder.parent / "other")
    if name in ("pinning", "pinning show"):
        gpu_feedstock.ask("pinning", "fetch", "-c", str(pinning))
    if name == "smithy":
        gpu_feedstock.ask("smithy", "fetch", "-c", str(smithy))
    channels = {"CHANNEL": str(gpu_feedstock.channel), "PINNING": str(pinning), "SMITHY": str(smithy)}
    words = [channels.get(word, word) for word in CALLS[name]]
    asked = gpu_feedstock.run if name in STARTING else gpu_feedstock.ask
    run = asked(*words, "--json")
    assert run.returncode in (0, 1), run.stderr
    assert "error" not in run.stderr
    assert json.loads(run.stdout) or name in MAY_BE_EMPTY


#: A call of each command that judges, where something is unknown: `EMPTY` stands for a channel without packages.
UNKNOWN: dict[str, list[str]] = {
    "cuda audit": ["cuda", "audit", "-c", "EMPTY"],
    "cuda check": ["cuda", "check", "--feedstock", "jobs", "linux_64_cpu"],
    "diff": ["diff", "--folders", "recipe-only", "recipe-only"],
    "lint": ["lint", "demo"],
    "plan": ["plan", "--simulate", "1x1c1g", "--time", "1 h", "-c", "CHANNEL"],
    "rehearse": ["rehearse", "--feedstock", "demo", "linux_64_cuda11.8", "-c", "stand-in"],
    "review": ["review", "--feedstock", "demo", "--folder", "demo", "--no-rehearse"],
}


def test_every_command_that_judges_fails_on_what_is_unknown_if_asked_to() -> None:
    judging = {each.command for each in taken() if each.name == "--strict"}
    edits = {name for name in COMMANDS if name.startswith("edit ")}  # of these, tests/edit has tests
    assert judging - edits == set(UNKNOWN) | {name for name in ELSEWHERE if name.startswith("many ")}


@pytest.mark.parametrize("name", UNKNOWN)
def test_of_three_verdicts_each_is_in_the_document(name: str, gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    folder, empty = gpu_feedstock.folder, tmp_path / "empty"
    copy_of_example("gpukernel", folder).rename(folder / "demo")
    (folder / "demo/feedstock.yaml").unlink()
    recipe = folder / "demo/recipe/recipe.yaml"
    recipe.write_text(recipe.read_text().replace("  host:\n", "  host:\n    - what-the-stand-in-lacks\n"))
    shutil.copytree(folder / "demo", folder / "recipe-only", ignore=shutil.ignore_patterns(".ci_support"))
    shutil.copytree(folder / "demo/.ci_support", folder / "jobs/.ci_support")
    empty.mkdir()
    index_channel(empty)
    words = [{"CHANNEL": str(gpu_feedstock.channel), "EMPTY": str(empty)}.get(word, word) for word in UNKNOWN[name]]
    runs = [gpu_feedstock.ask(*words, "--json", *more) for more in ((), ("--strict",))]
    assert runs[0].stdout, runs[0].stderr
    found = json.loads(runs[0].stdout)
    assert found["verdict"] == "unknown", found["checks"]
    assert {each["verdict"] for each in found["checks"]} <= {"right", "unknown"}
    assert all(bool(each["reason"]) == (each["verdict"] == "unknown") for each in found["checks"])
    assert [each.returncode for each in runs] == [0, 1]


@pytest.mark.parametrize(
    "words", [["build", f"{GPU}_py3.11"], ["ci"], ["cuda", "variants", "--output", "out"], ["test", "--compare"]]
)
def test_so_is_what_a_command_does(words: list[str], gpu_feedstock: TinyFeedstock) -> None:
    channel = ["-c", str(gpu_feedstock.channel)] if words[0] == "build" else []
    run = gpu_feedstock.run(*words, *channel, "--json")
    assert run.returncode == 0, run.stderr
    json.loads(run.stdout)
