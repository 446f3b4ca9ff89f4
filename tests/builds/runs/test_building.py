"""Building the tiny feedstock from the command line: its results, what it skips, and how it fails."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from feedstock_tools.builds.engines.contract import Failed
from feedstock_tools.builds.engines.variables import RowSetting, build_environment
from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.runs import building
from feedstock_tools.builds.runs.building import errors_in
from feedstock_tools.builds.runs.row_build import RowBuild
from feedstock_tools.channel.packages.reading import read_documents, read_package
from feedstock_tools.digests import sha256_of
from tests.support.feedstocks import CPU, GPU, HERE, TinyFeedstock
from tests.support.needs import needs
from tests.support.serving import failing, files, serving

pytestmark = needs("system", sys.platform != "win32", "the embedded engine does not run on Windows")


def built(feedstock: TinyFeedstock, name: str) -> dict[str, str]:
    """Build with `--json`: the build string of each output that is new."""
    run = feedstock.build(name, "--json")
    assert run.returncode == 0, run.stderr
    return {each["name"]: each["build"] for each in json.loads(run.stdout)["outputs"] if each["new"]}


def test_a_configuration_is_built_pinned_exactly_and_indexed(gpu_feedstock: TinyFeedstock) -> None:
    index = gpu_feedstock.index()
    assert sorted(index) == gpu_feedstock.packages()
    by_name = {entry["name"]: entry for entry in index.values()}
    assert by_name["tiny-gpu"]["depends"] == [f"tiny ==1.0.0 {by_name['tiny']['build']}"]
    assert by_name["tiny"]["depends"] == [f"tiny-base ==1.0.0 {by_name['tiny-base']['build']}"]
    assert f"libtiny ==1.0.0 {by_name['libtiny']['build']}" in by_name["tiny-base"]["depends"]
    assert by_name["libtiny"]["depends"] == ["__cuda >=11.2"]
    assert all(str(entry["build"]).startswith("cuda112") for entry in by_name.values() if entry["name"] != "tiny-gpu")


def test_every_row_is_pinned_to_its_own_siblings(whole_feedstock: TinyFeedstock) -> None:
    entries = whole_feedstock.index().values()
    assert [entry["name"] for entry in entries].count("tiny") == 4
    for entry in entries:
        if entry["name"] == "tiny":
            (pin,) = entry["depends"]
            start = str(entry["build"])[: str(entry["build"]).index("h")]
            assert f" {start}" in pin


def test_the_table_shows_package_size_hash_and_time(gpu_feedstock: TinyFeedstock) -> None:
    output = (gpu_feedstock.folder / "output.txt").read_text()
    (package,) = gpu_feedstock.artifacts.glob("*/libtiny-*.conda")
    row = next(line for line in output.splitlines() if line.startswith(f"{HERE.subdir}/libtiny-"))
    assert row.endswith(f" s  {sha256_of(package)}")
    assert "\nChannel: file:///" in output


def test_what_is_built_and_unchanged_is_not_built_again(gpu_feedstock: TinyFeedstock) -> None:
    assert len(gpu_feedstock.records()) == len(gpu_feedstock.packages()) == 4
    assert built(gpu_feedstock, f"{GPU}_py3.11") == {}
    assert "Nothing to do" in gpu_feedstock.build(f"{GPU}_py3.11").stdout
    assert len(gpu_feedstock.records()) == 4


def test_rows_share_what_does_not_depend_on_python(gpu_feedstock: TinyFeedstock) -> None:
    assert set(built(gpu_feedstock, f"{GPU}_py3.12")) == {"tiny-base", "tiny", "tiny-gpu"}


def test_a_changed_source_is_built_again_with_all_that_holds_it(gpu_feedstock: TinyFeedstock) -> None:
    gpu_feedstock.edit("src/answer.txt", "42", "43")
    assert set(built(gpu_feedstock, f"{GPU}_py3.11")) == {"libtiny", "tiny-base", "tiny", "tiny-gpu"}
    index = gpu_feedstock.index()
    for name, entry in index.items():
        assert entry["sha256"] == sha256_of(gpu_feedstock.artifacts / HERE.subdir / name)
    (base,) = gpu_feedstock.artifacts.glob("*/tiny-base-*.conda")
    answer = "lib/python3.11/site-packages/tiny-answer.txt"
    assert read_documents(base, [answer])[answer] == b"The answer is 43.\n"


def test_a_changed_script_of_one_output_leaves_those_alone_that_do_not_need_it(gpu_feedstock: TinyFeedstock) -> None:
    gpu_feedstock.edit("recipe/recipe.yaml", "cp tiny.py $SP_DIR/", "cp -f tiny.py $SP_DIR/")
    assert set(built(gpu_feedstock, f"{GPU}_py3.11")) == {"tiny-base", "tiny", "tiny-gpu"}


def test_a_comment_in_the_recipe_builds_nothing_again(gpu_feedstock: TinyFeedstock) -> None:
    gpu_feedstock.edit("recipe/recipe.yaml", "context:", "# where it begins\ncontext:")
    assert built(gpu_feedstock, f"{GPU}_py3.11") == {}


def test_a_package_that_was_removed_is_built_again(gpu_feedstock: TinyFeedstock) -> None:
    next(gpu_feedstock.artifacts.glob("*/libtiny-*.conda")).unlink()
    assert set(built(gpu_feedstock, f"{GPU}_py3.11")) == {"libtiny"}


def test_track_features_rank_the_cpu_build_last(whole_feedstock: TinyFeedstock) -> None:
    entries = [entry for entry in whole_feedstock.index().values() if str(entry["build"]).startswith("cpu")]
    features = {str(entry["name"]): entry.get("track_features") for entry in entries}
    assert features == {"libtiny": None, "tiny-base": None, "tiny": "tiny-p-0"}


def test_a_script_that_fails_leaves_nothing_in_the_channel_and_its_error_in_the_summary(
    feedstock: TinyFeedstock,
) -> None:
    feedstock.edit("recipe/build-library.sh", "mkdir", "echo 'error: no compiler here'; exit 7\nmkdir")
    run = feedstock.build(f"{GPU}_py3.11")
    assert run.returncode == 1
    assert "libtiny failed: its build script failed" in run.stdout
    _, _, summary = run.stdout.partition("FAILED: ")
    assert summary.splitlines()[1] == "error: no compiler here"
    assert "To run the script manually" not in run.stdout
    assert feedstock.packages() == []
    (log,) = (feedstock.artifacts / "logs").iterdir()
    assert "no compiler here" in log.read_text()
    assert "To run the script manually" in log.read_text()
    assert f"Log:    {log}" in run.stdout


def test_a_test_that_fails_keeps_the_package_out_of_the_channel(feedstock: TinyFeedstock) -> None:
    feedstock.edit("recipe/recipe.yaml", "grep -q answer", "grep -q question")
    run = feedstock.build(f"{GPU}_py3.11")
    assert run.returncode == 1
    assert "libtiny failed: its tests failed" in run.stdout
    assert feedstock.packages() == []


def test_what_was_finished_before_a_failure_is_kept(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(2)
    feedstock.edit("recipe/recipe.yaml", "cp tiny.py", "cp missing.py")
    assert feedstock.build(f"{GPU}_py3.11").returncode == 1
    assert [name.split("-1.0.0")[0] for name in feedstock.packages()] == ["libtiny"]
    feedstock.edit("recipe/recipe.yaml", "cp missing.py", "cp tiny.py")
    assert set(built(feedstock, f"{GPU}_py3.11")) == {"tiny-base"}


def test_an_environment_that_cannot_be_solved_is_explained(feedstock: TinyFeedstock) -> None:
    feedstock.edit("recipe/recipe.yaml", "- tiny-compiler", "- tiny-compiler >=2")
    run = feedstock.build(f"{GPU}_py3.11")
    assert run.returncode == 1
    assert "no channel has 'tiny-compiler >=2'" in run.stdout


def test_the_ledger_records_each_build(gpu_feedstock: TinyFeedstock) -> None:
    gpu_feedstock.edit("recipe/recipe.yaml", "cp tiny.py", "cp missing.py")
    gpu_feedstock.build(f"{GPU}_py3.11")
    with Ledger(gpu_feedstock.artifacts / "ledger.sqlite") as ledger:
        records = ledger.builds()
    assert [(record.output, record.result) for record in records] == [
        ("libtiny", "done"),
        ("tiny-base", "done"),
        ("tiny", "done"),
        ("tiny-gpu", "done"),
        ("tiny-base", "failed"),
    ]
    for record in records:
        assert (gpu_feedstock.artifacts / record.log).is_file()
        for package in record.packages:
            assert sha256_of(gpu_feedstock.artifacts / package.channel / package.file) == package.sha256


def test_a_log_file_holds_the_whole_build_with_times(gpu_feedstock: TinyFeedstock) -> None:
    (log,) = (gpu_feedstock.artifacts / "logs").iterdir()
    lines = log.read_text().splitlines()
    assert any("tests passed" in line for line in lines)
    assert all(line[2] == line[5] == ":" for line in lines)


def test_a_build_sees_what_conda_smithys_script_sets(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(1)
    feedstock.edit("recipe/recipe.yaml", "script: build-library.sh", SHOW_ENVIRONMENT)
    run = feedstock.build(f"{GPU}_py3.11", environment={"CPU_COUNT": "1", "SECRET_TOKEN": "hidden"})
    configuration = f"{HERE.name}_cuda_compiler_version11.2"
    assert f"<{configuration} False True>" in run.stdout
    assert "<1 tiny-feedstock unset>" in run.stdout


@pytest.mark.parametrize(("asked", "given"), [(None, "4"), ("2", "2"), ("16", "4"), ("0", "4"), ("many", "4")])
def test_a_share_of_the_cores_can_be_made_smaller_and_not_larger(asked: str | None, given: str, tmp_path: Path) -> None:
    machine = {"CPU_COUNT": asked} if asked else {}
    row = RowSetting(tmp_path, "any", cuda=None, folder=tmp_path, cache=tmp_path, jobs=4)
    environment = build_environment(machine, row)
    assert environment["CPU_COUNT"] == given


SHOW_ENVIRONMENT = """script:
        - echo "<${{ env.get("CONFIG") }} ${{ env.get("UPLOAD_PACKAGES") }} ${{ env.get("IS_PR_BUILD") }}>"
        - echo "<$CPU_COUNT ${{ env.get("FEEDSTOCK_NAME") }} ${{ env.get("SECRET_TOKEN", default="unset") }}>\""""


def test_a_terminal_without_the_characters_of_a_log_is_fine(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(1)
    feedstock.edit("recipe/build-library.sh", "mkdir", "echo 'compilé ✔'\nmkdir")
    run = feedstock.build(f"{CPU}_py3.11", environment={"PYTHONIOENCODING": "ascii"})
    assert run.returncode == 0, run.stderr
    assert "compil? ?" in run.stdout
    (log,) = (feedstock.artifacts / "logs").iterdir()
    assert "compilé ✔" in log.read_text(encoding="utf-8")


def test_a_gpu_build_is_solved_for_a_driver_of_its_cuda_version(gpu_feedstock: TinyFeedstock) -> None:
    logs = list(gpu_feedstock.artifacts.glob("logs/*.log"))
    assert any("__cuda=11.2=0" in log.read_text() for log in logs)
    gpu_feedstock.keep_outputs(1)
    gpu_feedstock.build(f"{CPU}_py3.11", environment={"CONDA_OVERRIDE_CUDA": "12.0"})
    of_cpu = set(gpu_feedstock.artifacts.glob("logs/*.log")).difference(logs)
    assert of_cpu
    assert not any("__cuda" in log.read_text() for log in of_cpu)


def test_packages_say_what_they_are(gpu_feedstock: TinyFeedstock) -> None:
    (package,) = gpu_feedstock.artifacts.glob("*/libtiny-*.conda")
    assert read_package(package).extra == {}


def test_a_platform_that_cannot_be_built_here_is_refused(feedstock: TinyFeedstock) -> None:
    other = "osx_64" if HERE.os != "osx" else "linux_64"
    run = feedstock.build(f"{other}_*", "--filter", f"{other}_*")
    assert run.returncode == 2
    assert "cannot be built here" in run.stderr
    assert not (feedstock.artifacts / "ledger.sqlite").exists()


def test_an_unknown_name_is_bad_input(feedstock: TinyFeedstock) -> None:
    run = feedstock.build(f"{HERE.name}_cuda11.3")
    assert run.returncode == 2
    assert f"{HERE.name}_cuda11.2" in run.stderr


def test_without_a_name_and_a_terminal_the_names_are_listed(feedstock: TinyFeedstock) -> None:
    run = feedstock.build()
    assert run.returncode == 2
    assert f"{HERE.name}_cuda11.2" in run.stderr


def test_an_invalid_recipe_is_bad_input(feedstock: TinyFeedstock) -> None:
    (feedstock.folder / "recipe" / "recipe.yaml").write_text("outputs:\n  - package: [\n")
    run = feedstock.build(GPU)
    assert run.returncode == 2
    assert "recipe.yaml" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_channel_that_answers_with_an_error_ends_the_run(feedstock: TinyFeedstock) -> None:
    with serving(failing(503)) as address:
        url = f"{address}/unwell"
        run = feedstock.build(f"{CPU}_py3.11", "--channel", url)
    assert run.returncode == 1
    assert f"cannot reach {url}: it answers with HTTP status 503" in run.stderr
    assert feedstock.packages() == []


def test_a_channel_on_a_server_is_built_on(feedstock: TinyFeedstock) -> None:
    channel = Path(feedstock.channel)
    with serving(files(channel.parent)) as address:
        served = dataclasses.replace(feedstock, channel=f"{address}/{channel.name}")
        served.keep_outputs(2)
        assert set(built(served, f"{CPU}_py3.11")) == {"libtiny", "tiny-base"}
        assert built(served, f"{CPU}_py3.11") == {}
        assert set(built(served, f"{CPU}_py3.12")) == {"tiny-base"}


def test_a_folder_without_a_feedstock_is_bad_input(feedstock: TinyFeedstock, tmp_path: Path) -> None:
    run = feedstock.build(GPU, "--feedstock", str(tmp_path))
    assert run.returncode == 2
    assert "there is no feedstock in this folder" in run.stderr


def test_another_output_folder_is_used(feedstock: TinyFeedstock, tmp_path: Path) -> None:
    feedstock.keep_outputs(1)
    assert feedstock.build(f"{CPU}_py3.11", "--output-dir", str(tmp_path / "out")).returncode == 0
    assert not feedstock.artifacts.exists()
    assert (tmp_path / "out" / "ledger.sqlite").is_file()
    assert len(list((tmp_path / "out" / HERE.subdir).glob("*.conda"))) == 1


def test_two_runs_at_once_share_the_work(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(2)
    names = (f"{GPU}_py3.11", f"{GPU}_py3.12")
    runs = [feedstock.start_build(name, "--json", stderr=subprocess.DEVNULL) for name in names]
    outputs = [json.loads(run.communicate()[0])["outputs"] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    new = [each["name"] + each["build"] for output in outputs for each in output if each["new"]]
    assert len(new) == len(set(new)) == 3
    assert sorted(feedstock.index()) == feedstock.packages()


def test_a_disk_without_room_for_an_environment_is_the_reason_why_none_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=2 << 20))
    build = SimpleNamespace(
        guard=SimpleNamespace(ran_out_of_memory=False),
        site=SimpleNamespace(artifacts=SimpleNamespace(root=tmp_path)),
    )
    failed = Failed("tiny", "its environments cannot be solved", "solve")
    assert building._explained(cast("RowBuild", build), failed) == (f"the disk is full: 2.0 MiB are free in {tmp_path}")


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (["error: unsupported linker arg: -B", "  error: subprocess-exited-with-error", "ERROR: Failed building wheel"],
         ["error: unsupported linker arg: -B"]),
        (["IndexError: list index out of range", "subprocess.CalledProcessError: Command '['ninja']' returned 1"],
         ["IndexError: list index out of range"]),
        (["  CMake Error at a.cmake:24 (message):", "    The compiler", "", '      "nvcc"', "", "  Call:", "    b"],
         ['CMake Error at a.cmake:24 (message): The compiler "nvcc"']),
        (["a.c:1:1: error: one", "a.c:1:1: error: one", *(f"a.c:{line}:1: error: x" for line in range(2, 6))],
         [f"a.c:{line}:1: error: x" for line in (3, 4, 5)]),
        (["checking for strerror... yes", "+ g++ -Werror=format a.c", "+ test -f b"], ["+ test -f b"]),
        ([f"error: {'x' * 1000}"], [f"error: {'x' * 143}…{'x' * 149}"]),
        ([], []),
    ],
)  # fmt: skip
def test_the_lines_that_tell_the_error_are_those_of_the_failing_program(printed: list[str], told: list[str]) -> None:
    assert errors_in(printed) == told
