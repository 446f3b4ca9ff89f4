"""Built packages tested again: in fresh environments, recorded, with benchmarks that can be compared."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from feedstock_tools.builds.ledger import Ledger, TestRecord
from feedstock_tools.builds.testing import tests as session
from feedstock_tools.builds.testing.running import Conditions, Gpus, run_own_tests, subject_of
from feedstock_tools.builds.testing.tests import TestedPackage, TestOptions, compared
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.archive import replace_document, write_package
from feedstock_tools.channel.packages.reading import read_package
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.report.testing import TestLines, compared_text
from tests.support.feedstocks import HERE, TinyFeedstock

SILENT = TestLines(io.StringIO(), several=False)
BENCHMARK = """
extra:
  benchmarks:
    libtiny:
      commands:
        - 'printf "{\\"name\\": \\"answers\\", \\"value\\": 42, \\"unit\\": \\"1/s\\"}\\nnoise\\n{broken\\n"'
        - test -f "$CONDA_PREFIX/share/tiny/answer.txt"
"""


def run(feedstock: TinyFeedstock, *words: str) -> subprocess.CompletedProcess[str]:
    """`feedstock-tools test` in the feedstock's folder."""
    return feedstock.run("test", *words)


def library(feedstock: TinyFeedstock) -> Path:
    """The package of the library."""
    (path,) = feedstock.artifacts.glob(f"{HERE.subdir}/libtiny-*.conda")
    return path


def test_the_packages_of_a_configuration_are_tested_and_recorded(gpu_feedstock: TinyFeedstock) -> None:
    done = run(gpu_feedstock, f"{HERE.name}_cuda11.2_py3.11", "--json")
    assert done.returncode == 0, done.stderr
    tested = json.loads(done.stdout)
    assert {each["result"] for each in tested} == {"passed"}
    assert len(tested) == len(gpu_feedstock.packages())
    with Ledger(gpu_feedstock.artifacts / "ledger.sqlite") as ledger:
        recorded = ledger.tests()
    assert [each.file for each in recorded] == [each["file"] for each in tested]
    assert all((gpu_feedstock.artifacts / each.log).is_file() for each in recorded)


def test_a_package_with_unavailable_dependencies_fails(gpu_feedstock: TinyFeedstock) -> None:
    package = library(gpu_feedstock)
    done = run(gpu_feedstock, str(package), "--channel", str(gpu_feedstock.folder / "nowhere"))
    assert done.returncode == 1
    assert "its tests failed" in done.stdout


def test_the_reason_why_an_environment_cannot_be_created_is_reported(
    gpu_feedstock: TinyFeedstock, tmp_path: Path
) -> None:
    package = library(gpu_feedstock)
    needy = replace(read_package(package), depends=("no-such-package >=2",))
    replace_document(package, "info/index.json", json.dumps(needy.index_json()).encode())
    done = run(gpu_feedstock, str(package), "--channel", str(gpu_feedstock.channel))
    assert done.returncode == 1
    assert "no-such-package" in done.stdout.partition("failed to setup test environment")[2]


def test_a_gpu_build_is_known_by_what_its_hash_was_made_of(gpu_feedstock: TinyFeedstock) -> None:
    """Its dependencies may need a driver where it needs none itself, as those of a metapackage do."""
    package = library(gpu_feedstock)
    plain = replace(read_package(package), depends=())
    replace_document(package, "info/index.json", json.dumps(plain.index_json()).encode())
    subject = subject_of(package, (str(gpu_feedstock.channel),), {})
    assert (subject.cuda, subject.built_for) == (None, "11.2")


def test_a_file_alone_needs_no_feedstock(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    alone = Path(shutil.copy(library(gpu_feedstock), tmp_path))
    (place,) = session.packages_in_files([alone])
    assert place == TestedPackage(alone, None)
    options = TestOptions(channels=(str(gpu_feedstock.channel),))
    shown = io.StringIO()
    (record,) = session.run_tests([place], options, os.environ, TestLines(shown, several=False))
    assert (record.result, record.log) == ("passed", "")
    assert "grep -q answer" in shown.getvalue()


def test_a_benchmark_comes_with_the_package_and_goes_into_the_ledger(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(1)
    recipe = feedstock.folder / "recipe/recipe.yaml"
    recipe.write_text(recipe.read_text() + BENCHMARK)
    assert feedstock.build(f"{HERE.name}_cuda11.2_py3.11").returncode == 0
    done = run(feedstock, str(library(feedstock)), "--benchmark")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "answers 42 1/s" in done.stdout
    assert "answers" in run(feedstock, "--compare").stdout


def test_a_missing_benchmark_is_reported_before_any_test(gpu_feedstock: TinyFeedstock) -> None:
    done = run(gpu_feedstock, str(library(gpu_feedstock)), "--benchmark")
    assert done.returncode == 2
    assert "has no benchmark" in done.stderr


def test_a_required_gpu_that_is_missing_is_an_error(
    gpu_feedstock: TinyFeedstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> Gpus:
        raise WorkError("this machine has no GPU driver")

    monkeypatch.setattr(session, "find_gpus", nothing)
    with pytest.raises(WorkError, match="no GPU driver"):
        session.run_tests([TestedPackage(library(gpu_feedstock), None)], TestOptions(gpu=True), os.environ, SILENT)


def test_a_driver_that_is_too_old_for_a_package_is_an_error(
    gpu_feedstock: TinyFeedstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "find_gpus", lambda: Gpus(("GeForce GTX 1080 (6.1)",), "440.33", "10.2"))
    options = TestOptions(gpu=True, channels=(str(gpu_feedstock.channel),))
    with pytest.raises(WorkError, match=r"needs a driver for CUDA 11\.2, but this machine's runs up to 10\.2"):
        session.run_tests([TestedPackage(library(gpu_feedstock), None)], options, os.environ, SILENT)


@pytest.mark.parametrize(("script", "status"), [("test -e $PREFIX/answer", 0), ("test -e $PREFIX/nothing", 1)])
def test_tests_as_conda_build_writes_them_are_run(script: str, status: int, tmp_path: Path) -> None:
    index = PackageMetadata("a", "1.0", "0", 0, HERE.subdir).index_json()
    answer = {"_path": "answer", "path_type": "hardlink", "sha256": sha256(b"42").hexdigest(), "size_in_bytes": 2}
    files = {
        "answer": b"42",
        "info/files": b"answer\n",
        "info/index.json": json.dumps(index).encode(),
        "info/paths.json": json.dumps({"paths": [answer], "paths_version": 1}).encode(),
        "info/test/run_test.sh": f"set -e\n{script}\n".encode(),
    }
    path = tmp_path / HERE.subdir / "a-1.0-0.tar.bz2"
    path.parent.mkdir()
    with tarfile.open(path, "w:bz2") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    index_channel(tmp_path)
    subject = subject_of(path, (str(tmp_path),), {})
    lines: list[bytes] = []
    conditions = Conditions(None, os.environ)
    if status:
        with pytest.raises(WorkError, match="its tests failed"):
            run_own_tests(subject, conditions, lines.append)
    else:
        run_own_tests(subject, conditions, lines.append)
    assert not any(b"has no tests" in line for line in lines)


def test_a_package_for_another_platform_is_refused(tmp_path: Path) -> None:
    other = "win-64" if HERE.subdir != "win-64" else "linux-64"
    path = write_package(tmp_path, PackageMetadata("a", "1.0", "0", 0, other))
    with pytest.raises(InputError, match=f"is for {other}"):
        subject_of(path, (), {})


def test_figures_are_compared_on_like_machines_only() -> None:
    def tested(file: str, gpu: str, value: float) -> TestRecord:
        return TestRecord(
            sha256=file,
            channel=".",
            file=f"linux-64/{file}.conda",
            started="2026-11-21T12:00:00.000+00:00",
            result="passed",
            log="",
            machine="here",
            gpu=gpu,
            benchmark={"axpy": {"value": value, "unit": "GB/s"}},
        )

    figures = compared(
        [tested("a", "H200", 3000.0), tested("b", "H200", 1.0), tested("b", "H200", 3300.0), tested("a", "", 40.0)]
    )
    assert [(each.package, each.where, each.ratio) for each in figures] == [
        ("a.conda", "H200", 1.0),
        ("b.conda", "H200", 1.1),
        ("a.conda", "here", 1.0),
    ]
    assert "1.100" in compared_text(figures)
