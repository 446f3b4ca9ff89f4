"""Tests of built packages that take too long, that run at once, and that are interrupted."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from feedstock_tools.builds.testing import tests as session
from feedstock_tools.builds.testing.running import Gpus, Subject, one_by_one, run_benchmark
from feedstock_tools.builds.testing.tests import TestedPackage, TestOptions
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.archive import replace_document, write_package
from feedstock_tools.channel.packages.reading import read_documents
from feedstock_tools.report.testing import TestLines
from tests.support import command
from tests.support.feedstocks import TinyFeedstock
from tests.support.waiting import wait_until

SILENT = TestLines(io.StringIO(), several=False)
TWO = Gpus(("NVIDIA H200 (9.0)", "NVIDIA L4 (8.9)"), "580.159.04", "13.0")


def package(folder: Path, name: str, *commands: str) -> TestedPackage:
    """A package with nothing in it but a benchmark."""
    extra = {"benchmarks": {name: {"commands": [*commands, """echo '{"name": "runs", "value": 1, "unit": "1"}'"""]}}}
    metadata = PackageMetadata(name, "1.0", "0", 0, "noarch", noarch="generic", extra=extra)
    return TestedPackage(write_package(folder / "packages", metadata), None)


def meeting(folder: Path, *commands: str) -> list[TestedPackage]:
    """Two packages whose benchmarks each wait for the other's to have begun."""
    wait = f"test -e {folder}/a && test -e {folder}/b"
    return [
        package(folder, name, f"touch {folder}/{name}; until {wait}; do sleep 0.05; done", *commands) for name in "ab"
    ]


def test_a_benchmark_that_takes_too_long_is_ended_and_has_failed(tmp_path: Path, tiny_channel: Path) -> None:
    options = TestOptions(benchmark=True, channels=(str(tiny_channel),), seconds=1.0)
    began = time.monotonic()
    (record,) = session.run_tests([package(tmp_path, "slow", "sleep 60")], options, os.environ, SILENT)
    assert time.monotonic() - began < 30
    assert (record.result, "time limit of 1 s" in record.reason) == ("failed", True)


def test_packages_are_tested_in_parallel_and_distinguished(tmp_path: Path, tiny_channel: Path) -> None:
    options = TestOptions(benchmark=True, channels=(str(tiny_channel),), seconds=30.0, jobs=2)
    shown = io.StringIO()
    records = session.run_tests(meeting(tmp_path), options, os.environ, TestLines(shown, several=True))
    assert [(record.file, record.result) for record in records] == [
        ("noarch/a-1.0-0.conda", "passed"),
        ("noarch/b-1.0-0.conda", "passed"),
    ]
    assert any(line.startswith("b-1.0-0.conda: + touch") for line in shown.getvalue().splitlines())


def test_each_gpu_runs_one_test_at_a_time(tmp_path: Path, tiny_channel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_gpus", lambda: TWO)
    tell = """printf '{"name": "gpu", "value": %s, "unit": "number"}\\n' "$CUDA_VISIBLE_DEVICES" """
    options = TestOptions(gpu=True, benchmark=True, channels=(str(tiny_channel),), seconds=30.0, jobs=8)
    records = session.run_tests(meeting(tmp_path, tell), options, os.environ, SILENT)
    assert {(record.gpu, record.benchmark["gpu"]["value"]) for record in records} == {
        ("NVIDIA H200 (9.0)", 0),
        ("NVIDIA L4 (8.9)", 1),
    }


def test_of_several_packages_those_are_measured_that_can_be(tmp_path: Path, tiny_channel: Path) -> None:
    plain = write_package(tmp_path / "packages", PackageMetadata("plain", "1.0", "0", 0, "noarch", noarch="generic"))
    options = TestOptions(benchmark=True, channels=(str(tiny_channel),))
    places = [TestedPackage(plain, None), package(tmp_path, "measured")]
    records = session.run_tests(places, options, os.environ, SILENT)
    assert [(record.result, list(record.benchmark)) for record in records] == [("passed", []), ("passed", ["runs"])]


def test_a_package_s_own_tests_see_the_gpu_that_they_are_given(
    gpu_feedstock: TinyFeedstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through rattler-build, which clears the environment of a test."""
    monkeypatch.setattr(session, "find_gpus", lambda: TWO)
    path = next(gpu_feedstock.artifacts.glob("*/libtiny-*.conda"))
    tests = read_documents(path, ["info/tests/tests.yaml"])["info/tests/tests.yaml"]
    assert tests is not None
    told = tests.replace(b"grep -q answer", b'echo "sees $CUDA_VISIBLE_DEVICES;" && grep -q answer')
    replace_document(path, "info/tests/tests.yaml", told)
    alone = Path(shutil.copy(path, gpu_feedstock.folder))
    options = TestOptions(gpu=True, channels=(str(gpu_feedstock.channel),), jobs=2)
    shown = io.StringIO()
    (record,) = session.run_tests([TestedPackage(alone, None)], options, os.environ, TestLines(shown, several=True))
    assert record.result == "passed"
    assert "sees 0;\n" in shown.getvalue()


def test_gpus_that_this_process_is_shown_keep_their_names() -> None:
    shown = {"CUDA_VISIBLE_DEVICES": "GPU-5ebe9f43, 3"}
    assert [each.visible for each in one_by_one(TWO, shown)] == ["GPU-5ebe9f43", "3"]
    assert [each.visible for each in one_by_one(TWO, {})] == ["0", "1"]


def test_a_test_ends_with_the_run_that_began_it(tmp_path: Path, tiny_channel: Path) -> None:
    noted = tmp_path / "pid"
    place = package(tmp_path, "endless", f"echo $$ > {noted}.part; mv {noted}.part {noted}; exec sleep 600")
    words = ("test", str(place.path), "--benchmark", "--channel", str(tiny_channel))
    run = command.start(command.tool(*words), stdout=subprocess.DEVNULL)
    try:
        wait_until(noted.exists)
        run.send_signal(signal.SIGTERM)
        assert run.wait(120) == 128 + signal.SIGTERM
    finally:
        run.kill()
        run.wait()
    wait_until(lambda: not Path("/proc", noted.read_text().strip()).exists())


def test_an_error_in_one_test_ends_the_others(
    tmp_path: Path, tiny_channel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(subject: Subject, *rest: object) -> object:
        if subject.metadata.name == "a":
            wait_until((tmp_path / "b").exists)
            raise OSError("no space left on device")
        return run_benchmark(subject, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(session, "run_benchmark", run)
    places = [package(tmp_path, "a"), package(tmp_path, "b", f"touch {tmp_path}/b; sleep 600")]
    options = TestOptions(benchmark=True, channels=(str(tiny_channel),), jobs=2)
    began = time.monotonic()
    with pytest.raises(OSError, match="no space left"):
        session.run_tests(places, options, os.environ, SILENT)
    assert time.monotonic() - began < 30


def test_lines_without_figures_are_skipped(tmp_path: Path, tiny_channel: Path) -> None:
    lines = (
        "{" * 9,
        '{"a":' * 30000,
        '{"name": "x", "value": 1e999, "unit": ""}',
        f'{{"name": "y", "value": {"9" * 400}, "unit": ""}}',
    )
    noise = tmp_path / "noise"
    noise.write_text("\n".join([*lines, ""]))
    options = TestOptions(benchmark=True, channels=(str(tiny_channel),))
    (record,) = session.run_tests([package(tmp_path, "noisy", f"cat {noise}")], options, os.environ, SILENT)
    assert record.benchmark == {"runs": {"value": 1, "unit": "1"}}
