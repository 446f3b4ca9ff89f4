"""The named variant files: their contents, and writing them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from feedstock_tools.cli.cuda import variants as command
from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import PinningRow, load_cuda
from feedstock_tools.generate.named_variants import choose, compare, variant_files, write
from feedstock_tools.platforms import Platform
from feedstock_tools.variants.files import load
from feedstock_tools.variants.model import explode

FACTS = load_cuda()
FILES = variant_files(FACTS)
SHIPPED = data_folder("variants")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments], standalone_mode=False)


def test_the_shipped_files_are_what_the_command_writes() -> None:
    assert compare(SHIPPED, FILES, list(FILES)) == ()


@pytest.mark.parametrize("row", FACTS.rows, ids=lambda row: row.name)
def test_a_file_spans_one_variant_with_the_values_of_its_row(row: PinningRow) -> None:
    config = load(SHIPPED / f"{row.name}.yaml", row.platform)
    space = explode(config)
    assert space.count == 1
    (variant,) = space
    assert dict(row.values).items() <= dict(variant).items()
    assert variant["target_platform"] == row.platform.subdir
    assert variant["channel_sources"] == "conda-forge"


@pytest.mark.parametrize("row", FACTS.rows, ids=lambda row: row.name)
def test_a_file_reads_alike_as_plain_yaml_and_on_every_platform(row: PinningRow) -> None:
    path = SHIPPED / f"{row.name}.yaml"
    plain = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert all(isinstance(values, list) and len(values) == 1 for values in plain.values())
    there = load(path, row.platform).values
    assert {key: (str(value),) for key, (value,) in plain.items()} == dict(there)
    assert there == load(path, Platform.parse("win-arm64")).values, "no line depends on a selector"


def test_a_file_says_where_it_is_from() -> None:
    row = FACTS.pinning_row("11.2", Platform.parse("linux-64"))
    first, second, *_ = FILES["linux_64_cuda11.2"].splitlines()
    assert first == "# CUDA 11.2 on linux-64, as conda-forge's pinning last had it (2024-05-01):"
    assert second.endswith(f"/blob/{row.commit}/recipe/conda_build_config.yaml")
    assert "recipe/migrations/cuda130.yaml" in FILES["linux_64_cuda13.0"].splitlines()[1]


def test_there_is_a_file_for_every_platform_and_accelerator() -> None:
    cpu = {"linux_64", "linux_aarch64", "linux_ppc64le", "linux_riscv64", "osx_64", "osx_arm64", "win_64", "win_arm64"}
    assert {name.removesuffix("_cpu") for name in FILES if name.endswith("_cpu")} == cpu
    for platform in ("linux_64", "linux_aarch64", "win_64"):
        assert {f"{platform}_cuda{version}" for version in ("11.2", "11.8", "12.9", "13.0")} <= set(FILES)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["linux_64_cuda11.2"], ["linux_64_cuda11.2"]),
        (["linux_64_cuda11.2.yaml"], ["linux_64_cuda11.2"]),
        (["osx_*"], ["osx_64_cpu", "osx_arm64_cpu"]),
        (["win_64_cpu", "osx_64_cpu"], ["osx_64_cpu", "win_64_cpu"]),
        ([], list(FILES)),
    ],
)
def test_files_are_chosen_by_name_or_glob(names: list[str], chosen: list[str]) -> None:
    assert list(choose(names, FILES)) == chosen


def test_all_unknown_names_are_reported_with_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        choose(["linux_64_cuda11.9", "linux_64_cpu", "bsd", "bsd"], FILES)
    assert len(caught.value.mistakes) == 2
    assert "linux_64_cuda11.8" in (caught.value.mistakes[0].hint or "")


def test_writing_twice_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "variants"
    assert len(write(folder, FILES, list(FILES))) == len(FILES)
    assert write(folder, FILES, list(FILES)) == ()
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{name}.yaml" for name in FILES)


def test_only_requested_files_are_written(tmp_path: Path) -> None:
    assert run("win_64_cpu", "--output", tmp_path).return_value == 0
    assert [path.name for path in tmp_path.iterdir()] == ["win_64_cpu.yaml"]


def test_a_file_of_someone_else_stops_everything(tmp_path: Path) -> None:
    own = tmp_path / "linux_64_cpu.yaml"
    own.write_text("python:\n- '3.12'\n", encoding="utf-8")
    with pytest.raises(InputError, match="was not written by this command"):
        write(tmp_path, FILES, list(FILES))
    assert [path.name for path in tmp_path.iterdir()] == ["linux_64_cpu.yaml"]
    assert own.read_text(encoding="utf-8") == "python:\n- '3.12'\n"


def test_check_names_what_would_change_and_writes_nothing(tmp_path: Path) -> None:
    write(tmp_path, FILES, list(FILES))
    assert run("--check", "--output", tmp_path).return_value == 0
    (tmp_path / "osx_64_cpu.yaml").unlink()
    changed = tmp_path / "win_64_cpu.yaml"
    changed.write_text(FILES["win_64_cpu"] + "# more\n", encoding="utf-8")
    (tmp_path / "linux_64_cuda9.2.yaml").write_text(FILES["linux_64_cuda10.2"], encoding="utf-8")
    (tmp_path / "packages.yaml").write_text("not: ours\n", encoding="utf-8")
    result = run("--check", "--output", tmp_path)
    assert result.return_value == 1
    assert [line.rsplit("/", 1)[1] for line in result.stdout.splitlines()] == [
        "osx_64_cpu.yaml: missing",
        "win_64_cpu.yaml: changed",
        "linux_64_cuda9.2.yaml: unknown",
    ]
    assert changed.read_text(encoding="utf-8").endswith("# more\n")


def test_the_list_is_a_table_or_json() -> None:
    table = run("linux_64_cuda1*").stdout.splitlines()
    assert table[0].split()[:3] == ["name", "pinning", "compiler"]
    assert "linux-anvil-cuda:11.2" in next(line for line in table if line.startswith("linux_64_cuda11.2 "))
    entries = json.loads(run("--json", "linux_64_cuda11.2").stdout)
    assert [entry["values"]["c_compiler_version"] for entry in entries] == ["10"]
    assert entries[0]["commit"] == FACTS.pinning_row("11.2", Platform.parse("linux-64")).commit


def test_files_can_be_printed() -> None:
    assert run("--print", "osx_arm64_cpu").stdout == FILES["osx_arm64_cpu"]
