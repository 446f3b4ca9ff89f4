"""What `cuda resolve` prints: text, lines for conda_build_config.yaml, JSON, tables, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from feedstock_tools.cli.cuda import cuda as command
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.platforms import Platform
from feedstock_tools.variants.files import load


def resolve(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(command, ["resolve", *arguments], catch_exceptions=False, standalone_mode=False)
    assert result.return_value == code
    return result.output


def test_one_line_for_each_release_with_its_reason() -> None:
    lines = {line.split("  ")[0]: line for line in resolve("cuda=11.2", "cudnn=8.1").splitlines()}
    assert lines["cuDNN"].split()[1] == "8.1.0.77"
    assert lines["gcc"].endswith("CUDA 11.2: its nvcc accepts host gcc 5 to 10")
    assert lines["driver"].split()[1:4] == ["450.80.02", "or", "later"]


def test_lines_for_a_variant_file(tmp_path: Path) -> None:
    text = resolve("cuda=11.2", "cudnn=8.1", "python=3.9", "--config")
    values = yaml.safe_load(text)
    assert values["cuda_compiler_version"] == ["11.2"]
    assert values["c_compiler_version"] == ["10"]
    assert values["cudnn"] == ["8.1"]
    assert values["python"] == ["3.9"]
    assert values["docker_image"] == ["quay.io/condaforge/linux-anvil-cuda:11.2"]
    assert all(isinstance(value, str) for key, found in values.items() if key != "zip_keys" for value in found)
    path = tmp_path / "conda_build_config.yaml"
    path.write_text(text, encoding="utf-8")
    assert load(path, Platform.parse("linux-64")).values["cuda_compiler_version"] == ("11.2",)


def test_lines_where_the_pinning_never_had_the_version() -> None:
    text = resolve("cuda=11.3", "--config")
    assert "never had CUDA 11.3 for linux-64" in text
    assert "docker_image" not in yaml.safe_load(text)


def test_json_has_sources() -> None:
    found = json.loads(resolve("cuda=11.2", "--json"))
    (bound,) = [bound for bound in found["cuda"]["bounds"] if "gcc" in bound["said"]]
    assert bound["sources"][0].startswith("https://docs.nvidia.com/cuda/archive/11.2.0/")


def test_every_set_as_a_table() -> None:
    lines = resolve("cuda=11.2", "--limit", "1000", "--kind", "cuda", "--kind", "gcc").splitlines()
    assert lines == ["CUDA  gcc", *(f"11.2  {gcc}" for gcc in (10, 9, 8, 7, 6, 5))]
    limited = resolve("cuda=11.2", "--limit", "3")
    assert limited.splitlines()[-1].startswith("(and more")


def test_a_conflict_exits_with_1() -> None:
    text = resolve("cuda=11.2", "gcc=13", code=1)
    assert text.startswith("cuda=11.2 and gcc=13 are incompatible:\n")
    assert "The nearest that would work: cuda=11.2 gcc=10" in text
    document = json.loads(resolve("cuda=11.2", "gcc=13", "--json", code=1))
    assert document["conflict"] == ["cuda=11.2", "gcc=13"]
    assert document["nearest"][0] == ["cuda=11.2", "gcc=10"]
    with pytest.raises(WorkError):
        resolve("cuda=11.2", "gcc=13", "--config")


@pytest.mark.parametrize(
    "arguments",
    [
        ["cuda=x"],
        ["cuda", "--kind", "bazel"],
        ["cuda", "--no-facts"],
        ["cuda", "--platform", "win-64"],
        ["gpu=RTX 9999"],
    ],
)
def test_bad_input(arguments: list[str]) -> None:
    with pytest.raises(InputError):
        resolve(*arguments)


def test_a_driver_that_no_fact_names() -> None:
    text = resolve("driver=535.129.03", "cuda")
    assert "535.129.03 or later" in text
    assert text.splitlines()[1].split()[:2] == ["CUDA", "12.9"]


def test_a_driver_newer_than_the_facts_is_distinguished_from_known_ones() -> None:
    assert "it is newer than every driver in the facts (up to 5" not in resolve("driver=535")
    assert "it is newer than every driver in the facts (up to" in resolve("driver=999")
