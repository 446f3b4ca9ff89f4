"""Which tests are measured for coverage, and what is kept of that."""

from __future__ import annotations

import json
import marshal
import os
import sys
from pathlib import Path

from coverage import Coverage
from coverage.config import CoverageConfig

from tests.support import command
from tests.support.measured_data import add_executed
from tests.support.measuring import NOT_HERE, UNMEASURED
from tests.support.needs import needs
from tests.support.paths import ROOT

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


MODULE = """def of_a_fork():
    return 1
def of_a_fork_of_a_fork():
    return 2
def of_the_first():
    return 3
"""
FORKS = """
import os, sys
sys.path[:0] = [os.getcwd(), sys.argv[1]]
from tests.support import measured_process
measured_process.begin(os.getpid(), sys.argv[2], "COVERAGE_PROCESS_CONFIG", "NOT_HERE", ("others",))
import measured_module
if os.fork() == 0:
    measured_module.of_a_fork()
    if os.fork() == 0:
        measured_module.of_a_fork_of_a_fork()
        os.execv(sys.executable, [sys.executable, "-c", ""])
    os.wait()
    os._exit(0)
os.wait()
measured_module.of_the_first()
"""


@needs("system", hasattr(os, "fork"), "fork")
def test_each_process_leaves_what_it_has_executed_itself(tmp_path: Path) -> None:
    module = tmp_path / "measured_module.py"
    module.write_text(MODULE)
    settings = CoverageConfig()
    settings.branch, settings.data_file, settings.run_include = True, str(tmp_path / "data"), [str(module)]
    given = [str(ROOT), settings.serialize()]
    variables = {name: value for name, value in command.environment().items() if not name.startswith("COVERAGE_")}
    variables[NOT_HERE] = "1"
    run = command.run([sys.executable, "-c", FORKS, *given], tmp_path, variables)
    assert run.returncode == 0, run.stderr
    left = [marshal.loads(path.read_bytes()) for path in tmp_path.glob("executed.*")]  # noqa: S302
    assert sorted(len(steps) for each in left for steps in each.values()) == [2, 2, 6]
    (tmp_path / "executed.1.cut.part").write_bytes(b"half of")
    add_executed(tmp_path)
    combined = Coverage(data_file=str(tmp_path / "data"), config_file=False)
    combined.combine([str(tmp_path)])  # a warning would be an error
    assert combined.get_data().lines(str(module)) == [1, 2, 3, 4, 5, 6]
    assert {path.name for path in tmp_path.iterdir()} == {"data", "measured_module.py", "__pycache__"}
