"""The table of `conda search` with the toolkit of each build, and the graph of a channel that has just those builds."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageMetadata, Record, RunExports
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.cli.cuda import cuda, search
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.pins.channels import channel_title, channel_urls, toolkit_of
from feedstock_tools.pins.graph.answers import resolve
from tests.support.pins import holds

CUDATOOLKIT_TABLE = """\
# Name                       Version           Build  Channel               CUDA
cudatoolkit                      9.0      h13b8566_0  pkgs/main             9.0
cudatoolkit                      9.2               0  pkgs/main             9.2
cudatoolkit                 10.0.130               0  pkgs/main             10.0
cudatoolkit                 10.1.168               0  pkgs/main             10.1
cudatoolkit                 10.1.243      h6bb024c_0  pkgs/main             10.1
cudatoolkit                  10.2.89      hfd86e86_0  pkgs/main             10.2
cudatoolkit                  10.2.89      hfd86e86_1  pkgs/main             10.2
cudatoolkit                 11.0.221      h6bb024c_0  pkgs/main             11.0
cudatoolkit                   11.3.1      h2bc3f7f_2  pkgs/main             11.3
"""
CUDNN_ROWS = [
    "7.0.5 cuda8.0_0", "7.1.2 cuda9.0_0", "7.1.3 cuda8.0_0", "7.2.1 cuda9.2_0",
    "7.3.1 cuda10.0_0", "7.3.1 cuda9.0_0", "7.3.1 cuda9.2_0",
    "7.6.0 cuda10.0_0", "7.6.0 cuda10.1_0", "7.6.0 cuda9.0_0", "7.6.0 cuda9.2_0",
    "7.6.4 cuda10.0_0", "7.6.4 cuda10.1_0", "7.6.4 cuda9.0_0", "7.6.4 cuda9.2_0",
    "7.6.5 cuda10.0_0", "7.6.5 cuda10.1_0", "7.6.5 cuda10.2_0", "7.6.5 cuda9.0_0", "7.6.5 cuda9.2_0",
    "8.2.1 cuda11.3_0",
]  # fmt: skip


def run(command: click.Command, *arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments), standalone_mode=False)


def searched(channel: Path, *arguments: str) -> str:
    result = run(search, *arguments, "--channel", str(channel), "--platform", "linux-64")
    if result.exception:
        raise result.exception
    return result.output


def test_cudatoolkit_as_conda_lists_it(defaults_channel: Path) -> None:
    assert searched(defaults_channel, "cudatoolkit") == CUDATOOLKIT_TABLE


def test_cudnn_as_conda_lists_it_with_the_toolkit_of_each_build(defaults_channel: Path) -> None:
    lines = [line.split() for line in searched(defaults_channel, "cudnn").splitlines()[1:]]
    assert [f"{version} {build}" for _, version, build, _, _ in lines] == CUDNN_ROWS
    assert all(build == f"cuda{toolkit}_0" for _, _, build, _, toolkit in lines)


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        (["cudnn=7.6.5", "--cuda", "10"], ["cuda10.0_0", "cuda10.1_0", "cuda10.2_0"]),
        (["cudnn >=8"], ["cuda11.3_0"]),
        (["cudnn=7.3.1=cuda9*"], ["cuda9.0_0", "cuda9.2_0"]),
        (["cudatoolkit 10.2.*"], ["hfd86e86_0", "hfd86e86_1"]),
        (["cud*>=11"], ["h6bb024c_0", "h2bc3f7f_2"]),
    ],
)
def test_a_specification(defaults_channel: Path, arguments: list[str], rows: list[str]) -> None:
    assert [line.split()[2] for line in searched(defaults_channel, *arguments).splitlines()[1:]] == rows


def test_as_json(defaults_channel: Path) -> None:
    (found,) = json.loads(searched(defaults_channel, "cudnn >=8", "--json"))
    assert (found["version"], found["cuda"], found["depends"]) == ("8.2.1", "11.3", ["cudatoolkit 11.3.*"])


def test_what_is_not_there(defaults_channel: Path) -> None:
    with pytest.raises(WorkError, match="The nearest are: cudnn"):
        searched(defaults_channel, "cuddn")
    with pytest.raises(WorkError, match=r"CUDA 12"):
        searched(defaults_channel, "cudnn", "--cuda", "12")
    with pytest.raises(InputError, match="not a match specification"):
        searched(defaults_channel, "cudnn >=8,<")


def test_resolve_takes_what_the_channel_has(defaults_channel: Path) -> None:
    answer = resolve(("cuda=11.3",), channels=(str(defaults_channel),))
    (found,) = answer.sets
    assert found.items() >= {"cuda": "11.3", "cudnn": "8.2.1", "gcc": "10", "driver": "450.80.02"}.items()
    assert holds(answer.graph, found)


def test_resolve_explains_what_the_channel_does_not_have(defaults_channel: Path) -> None:
    result = run(cuda, "resolve", "cuda=11.2", "--channel", str(defaults_channel))
    assert result.return_value == 1
    assert "there is no such CUDA in pkgs/main" in result.output
    assert "there are 8.0" not in result.output
    assert "10.2, 11.0, 11.3" in result.output
    assert "The nearest that would work: cuda=11.3" in result.output


@pytest.mark.parametrize(
    ("demands", "expected"),
    [
        (["cuda=10.1"], {"cudnn": "7.6.5"}),
        (["cuda", "cudnn<7.6"], {"cuda": "10.0", "cudnn": "7.3.1"}),
        (["cuda=11.0"], {}),
        (["cudnn=7.1.3"], None),  # for a cudatoolkit 8.0 that is not there
    ],
)
def test_what_goes_together_there(defaults_channel: Path, demands: list[str], expected: dict[str, str] | None) -> None:
    answer = resolve(tuple(demands), channels=(str(defaults_channel),))
    if expected is None:
        assert answer.conflict is not None
        return
    (found,) = answer.sets
    assert found.items() >= expected.items()
    assert ("cudnn" in found) == ("cudnn" in expected)


def test_the_facts_say_what_the_channel_cannot_of_old_toolkits(defaults_channel: Path) -> None:
    (found,) = resolve(("cuda=9.0",), channels=(str(defaults_channel),)).sets
    asked = {"gcc": "6", "driver": "384.81", "__cuda": "9.0"}
    assert found == {"platform": "linux-64", "cuda": "9.0", "cudnn": "7.6.5", **asked}


def test_nothing_is_claimed_of_a_toolkit_without_facts(tmp_path: Path) -> None:
    write_package(tmp_path, PackageMetadata("cudatoolkit", "7.5", "0", 0, "linux-64"))
    index_channel(tmp_path)
    (found,) = resolve(("cuda=7.5",), channels=(str(tmp_path),)).sets
    assert found == {"platform": "linux-64", "cuda": "7.5"}


def test_the_metadata_alone(defaults_channel: Path) -> None:
    (found,) = resolve(("cuda=11.3",), channels=(str(defaults_channel),), facts=False).sets
    assert found == {"platform": "linux-64", "cuda": "11.3", "cudnn": "8.2.1"}


def test_builds_of_a_package_tie_python_and_cuda_together(tmp_path: Path) -> None:
    for version in ("11.2.2", "11.8.0"):
        constrains = ("__cuda >=11",)
        write_package(tmp_path, PackageMetadata("cudatoolkit", version, "h_0", 0, "linux-64", constrains=constrains))
    for version in ("3.8.1", "3.9.5"):
        write_package(tmp_path, PackageMetadata("python", version, "h_0_cpython", 0, "linux-64"))
    for python, toolkit in (("3.8", "11.8"), ("3.9", "11.2")):
        depends = (f"python {python}.*", f"cudatoolkit {toolkit}.*", "__cuda >=11")
        write_package(tmp_path, PackageMetadata("tf", "2.6", f"cuda_{python}", 0, "linux-64", depends=depends))
    index_channel(tmp_path)

    def found(*demands: str) -> dict[str, str]:
        return resolve(demands, channels=(str(tmp_path),)).sets[0]

    assert found("tf")["cuda"] == "11.8"
    assert found("tf", "python=3.9")["cuda"] == "11.2"
    conflict = resolve(("tf", "python=3.9", "cuda=11.8"), channels=(str(tmp_path),)).conflict
    assert conflict is not None
    assert len(conflict.demands) == 3


def test_what_conda_could_not_read_does_no_harm(tmp_path: Path) -> None:
    packages = {
        "cudnn-8-0.conda": {"name": "cudnn", "version": "8.1", "build": "0", "build_number": 0},
        "cudnn-bad-0.conda": {"name": "cudnn", "version": "not!a!version", "build": "0", "build_number": 0},
        "cudnn-9-0.conda": {
            "name": "cudnn", "version": "9.1", "build": "0", "build_number": 0, "depends": ["cudatoolkit >=>="],
        },
        "cudatoolkit-11.2-0.conda": {"name": "cudatoolkit", "version": "11.2.2", "build": "0", "build_number": 0},
    }  # fmt: skip
    for subdir, found in (("linux-64", packages), ("noarch", {})):
        (tmp_path / subdir).mkdir()
        (tmp_path / subdir / "repodata.json").write_text(json.dumps({"packages.conda": found}), encoding="utf-8")
    assert [line.split()[1] for line in searched(tmp_path, "cudnn").splitlines()[1:]] == ["not!a!version", "8.1", "9.1"]
    assert resolve(("cuda=11.2",), channels=(str(tmp_path),)).sets[0]["cudnn"] == "8.1"


def record(name: str, version: str, build: str, *depends: str) -> Record:
    entry = {"name": name, "version": version, "build": build, "build_number": 0, "depends": list(depends)}
    return Record.from_repodata(f"{name}.conda", entry, channel="file:///c", subdir="linux-64")


@pytest.mark.parametrize(
    ("of", "toolkit"),
    [
        (record("cudatoolkit", "10.1.243", "h6bb024c_0"), "10.1"),
        (record("cudnn", "7.6.5", "cuda9.2_0"), "9.2"),
        (record("tensorflow-base", "2.6.0", "cuda112py39h7e79a9c_2", "cudatoolkit >=11.2,<12"), "11.2"),
        (record("tensorflow", "2.6.0", "cpu_py39h4655687_2"), None),
        (record("pytorch", "2.0.1", "py3.11_cuda11.7_cudnn8.5.0_0", "pytorch-cuda >=11.6,<11.8"), "11.7"),
        (record("libtorch", "2.7.0", "cuda126_generic_h68e6f94_200", "cuda-version >=12.6,<13"), "12.6"),
        (record("nccl", "2.30.4.1", "h4d09622_0", "cuda-version >=12,<13.0a0"), "12"),
        (record("faiss", "1.7", "py39cuda92h_0"), "9.2"),
        (record("numpy", "1.20", "py39_0"), None),
        (record("gpuprobe", "1.0", "h1_0", "__cuda >=11.2"), "11.2"),
    ],
)  # fmt: skip
def test_the_toolkit_of_a_build(of: Record, toolkit: str | None) -> None:
    assert toolkit_of(of) == toolkit


@pytest.mark.parametrize(
    ("channel", "title", "urls"),
    [
        ("conda-forge", "conda-forge", ("https://conda.anaconda.org/conda-forge",)),
        ("pkgs/main", "pkgs/main", ("https://repo.anaconda.com/pkgs/main",)),
        ("defaults", "defaults", ("https://repo.anaconda.com/pkgs/main", "https://repo.anaconda.com/pkgs/r")),
        ("https://conda.anaconda.org/nvidia/", "nvidia", ("https://conda.anaconda.org/nvidia",)),
        ("https://prefix.dev/mine", "prefix.dev/mine", ("https://prefix.dev/mine",)),
        ("/srv/mine", "mine", ("file:///srv/mine",)),
    ],
)
def test_names_of_channels(channel: str, title: str, urls: tuple[str, ...]) -> None:
    assert (channel_title(channel), channel_urls(channel)) == (title, urls)


def test_what_a_package_depends_on_through_others_ties_it_too(tmp_path: Path) -> None:
    def package(name: str, build: str, *depends: str, version: str = "1.0", exports: tuple[str, ...] = ()) -> None:
        run_exports = RunExports(strong=exports)
        metadata = PackageMetadata(name, version, build, 0, "linux-64", depends=depends, run_exports=run_exports)
        write_package(tmp_path, metadata)

    for version in ("11.2.2", "11.8.0"):
        package("cudatoolkit", "h_0", version=version)
    for short, toolkit, python in (("112", "11.2", "3.8"), ("118", "11.8", "3.9")):
        package("tf-base", f"cuda{short}_0", f"cudatoolkit {toolkit}.*", f"python {python}.*")
        package("tf", f"cuda{short}_0", f"tf-base 1.0 cuda{short}_0")
        package("python", f"h{short}_0", version=f"{python}.1")
    package("tf-gpu", "h_0", "tf 1.0 cuda*")
    package("tf-old", "h_0", "tf 1.0 cuda112*")
    package("tf-lost", "h_0", "tf 2.0")
    package("compiler", "h_0", exports=("cudatoolkit >=11.8,<12",))
    index_channel(tmp_path)

    def sets(*demands: str) -> tuple[dict[str, str], ...]:
        return resolve(demands, channels=(str(tmp_path),), facts=False, most=9).sets

    assert {one["cuda"] for one in sets("tf-gpu")} == {"11.8", "11.2"}
    assert {(one["cuda"], one["python"]) for one in sets("tf-gpu", "python")} == {("11.8", "3.9"), ("11.2", "3.8")}
    assert {one["cuda"] for one in sets("tf-old")} == {"11.2"}
    assert sets("tf-lost") == ()
    assert {one["cuda"] for one in sets("compiler")} == {"11.8"}
