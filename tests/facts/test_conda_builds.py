"""Lists of architectures in the recipes of feedstocks, read from their histories. The feedstock is one of our own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from feedstock_tools.facts.frameworks import conda_builds as facts_of_builds
from maintenance.facts import conda_builds, records
from maintenance.facts.conda_builds import Feedstock, builds_of

LISTS = """\
if [[ "$cuda_compiler_version" == "12.9" ]]; then
  export TORCH_CUDA_ARCH_LIST="6.0;9.0+PTX"
else
  export TORCH_CUDA_ARCH_LIST="7.5;12.0+PTX"
fi
export CUDAARCHS=50  # of a library in it
"""


def commit(clone: Path, version: str, script: str, **configurations: str) -> None:
    (clone / "recipe").mkdir(exist_ok=True)
    (clone / "recipe" / "meta.yaml").write_text(f'{{% set version = "{version}" %}}\n', encoding="utf-8")
    (clone / "recipe" / "build.sh").write_text(script, encoding="utf-8")
    for name, content in configurations.items():
        (clone / ".ci_support").mkdir(exist_ok=True)
        (clone / ".ci_support" / f"{name}.yaml").write_text(content, encoding="utf-8")
    subprocess.run(["git", "-C", str(clone), "add", "."], check=True)
    as_us = ("-c", "user.name=us", "-c", "user.email=us@example.org")
    subprocess.run(["git", "-C", str(clone), *as_us, "commit", "-qm", version], check=True)


def test_the_last_state_of_each_minor_version_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "RECORDED", tmp_path)
    monkeypatch.setattr(conda_builds, "FEEDSTOCKS", {"solver": Feedstock("solver", "TORCH_CUDA_ARCH_LIST")})
    clone = tmp_path / "conda-forge+solver-feedstock" / "repo"
    subprocess.run(["git", "init", "-q", str(clone)], check=True)
    commit(clone, "0.9.0", LISTS)  # before there were jobs
    cuda = "cuda_compiler_version:\n- '{}'\n".format
    commit(clone, "1.0.0", "", linux_64_cuda=cuda("12.9"))
    commit(
        clone,
        "1.1.0",
        LISTS,
        linux_64_cuda=cuda("12.9"),
        linux_64_cpu=cuda("None"),
        win_64_cuda=cuda("13.0"),
        linux_aarch64_tegra=f"{cuda('12.9')}arm_variant_type:\n- tegra\n",
    )
    commit(clone, "1.1.1", LISTS)
    assert conda_builds.update(tmp_path, again=False) == 0
    table = records.read_table("conda_builds/solver")
    assert list(table) == ["0.9.0", "1.0.0", "1.1.1"]
    assert table["0.9.0"]["builds"] == {}
    place = {"path": "recipe/build.sh", "line": 2}
    assert table["1.1.1"]["builds"]["12.9"] == {"linux-64": {"code": "sm_60 sm_90 compute_90", **place}}
    (linux, windows) = builds_of("solver")  # 1.0.0 has no list
    assert (linux["version"], linux["built"], linux["code"]) == (
        "1.1.1",
        "12.9",
        {"linux-64": "sm_60 sm_90 compute_90"},
    )
    assert windows["unread"] == {"win-64": "no list was found in its recipe and scripts"}
    monkeypatch.setattr(conda_builds, "lists_in_scripts", lambda *_: pytest.fail("it was read before"))
    assert conda_builds.update(tmp_path, again=False) == 0


def test_all_major_is_what_the_toolkit_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "RECORDED", tmp_path)
    monkeypatch.setattr(conda_builds, "FEEDSTOCKS", {"solver": Feedstock("solver")})
    clone = tmp_path / "conda-forge+solver-feedstock" / "repo"
    subprocess.run(["git", "init", "-q", str(clone)], check=True)
    cuda = "cuda_compiler_version:\n- '{}'\n".format
    script = "python build.py CMAKE_CUDA_ARCHITECTURES=all-major\n"
    commit(clone, "1.0.0", script, linux_64_cuda11=cuda("11.8"), linux_64_cuda13=cuda("13.0"), win_64=cuda("13.0"))
    assert conda_builds.update(tmp_path, again=False) == 0
    builds = records.read_table("conda_builds/solver")["1.0.0"]["builds"]
    assert builds["11.8"]["linux-64"]["code"] == "sm_35 sm_50 sm_60 sm_70 sm_80 sm_90 compute_90"
    assert builds["13.0"]["linux-64"]["code"] == "sm_75 sm_80 sm_90 sm_100 sm_110 sm_120 compute_120"
    assert "unread" in builds["13.0"]["win-64"]  # its script is for Linux


def test_the_facts_are_those_that_were_recorded() -> None:
    for framework, builds in facts_of_builds().items():
        assert [(each.version, each.built, each.commit) for each in builds] == [
            (entry["version"], entry["built"], entry["commit"]) for entry in builds_of(framework)
        ]
