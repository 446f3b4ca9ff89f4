"""Which tests are measured for coverage, and what is kept of that."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from coverage import Coverage, CoverageData

from tests.support import command
from tests.support.measuring import UNMEASURED
from tests.support.paths import ROOT
from tests.support.unfinished import remove_unfinished

PROGRAM = """
import json, os, sys
from coverage import Coverage
sys.path[:0] = [os.getcwd(), sys.argv[1]]
os.environ["COVERAGE_PROCESS_CONFIG"] = "of this test"
measured = Coverage(data_file=None)
measured.start()
import measured_module
from tests.support.measuring import measured_here, unmeasured
with unmeasured():
    inside = measured_here()
    measured_module.first()
measured_module.second()
measured.stop()
print(json.dumps([inside, measured_here(), sorted(measured.get_data().lines(measured_module.__file__))]))
"""


def test_what_is_not_measured_is_there() -> None:
    for each in UNMEASURED:
        file, _, name = each.partition("::")
        assert (ROOT / file).is_dir() or f"def {name}" in (ROOT / file).read_text(), each


def test_measuring_pauses(tmp_path: Path) -> None:
    (tmp_path / "measured_module.py").write_text("def first():\n    return 1\ndef second():\n    return 2\n")
    variables = {name: value for name, value in command.environment().items() if not name.startswith("COVERAGE_")}
    run = command.run([sys.executable, "-c", PROGRAM, str(ROOT)], tmp_path, variables)
    assert json.loads(run.stdout) == [False, True, [1, 3, 4]], run.stderr


def data_of(folder: Path, name: str, lines: int) -> Path:
    """A file of coverage's data, as a process leaves it."""
    data = CoverageData(str(folder / name))
    data.add_arcs({str(folder / f"module{at}.py"): [(-1, at), (at, -1)] for at in range(1, lines)})
    data.write()
    data.close()
    return folder / name


def test_data_that_killed_processes_left_incomplete_is_removed_and_the_rest_is_combined(tmp_path: Path) -> None:
    whole = {data_of(tmp_path, f"data.host.{number}", 2 + number) for number in range(2)}
    cut = data_of(tmp_path, "data.host.cut", 500)
    cut.write_bytes(cut.read_bytes()[:-8192])
    (tmp_path / "data.host.empty").touch()
    (tmp_path / "data.host.text").write_text("no data")
    (tmp_path / "data.host.text-journal").touch()
    assert {path.name.rpartition(".")[2] for path in remove_unfinished(tmp_path)} == {"cut", "empty", "text"}
    assert set(tmp_path.iterdir()) == whole
    combined = Coverage(data_file=str(tmp_path / "data"), config_file=False)
    combined.combine([str(tmp_path)])  # a warning would be an error
    assert len(combined.get_data().measured_files()) == 2
    assert set(tmp_path.iterdir()) == {tmp_path / "data"}
