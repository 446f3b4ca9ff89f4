"""Which tests are measured for coverage."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.support import command
from tests.support.measuring import UNMEASURED
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
        assert f"def {name}" in (ROOT / file).read_text(), each


def test_measuring_pauses(tmp_path: Path) -> None:
    (tmp_path / "measured_module.py").write_text("def first():\n    return 1\ndef second():\n    return 2\n")
    variables = {name: value for name, value in command.environment().items() if not name.startswith("COVERAGE_")}
    run = command.run([sys.executable, "-c", PROGRAM, str(ROOT)], tmp_path, variables)
    assert json.loads(run.stdout) == [False, True, [1, 3, 4]], run.stderr
