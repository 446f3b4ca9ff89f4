"""How rarely the Pythons of the tests collect garbage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.garbage import RARELY, collect_rarely


def test_new_processes_collect_garbage_rarely_while_the_tests_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FEEDSTOCK_TOOLS_TESTS_RARELY", raising=False)
    end = collect_rarely(tmp_path)
    (starter,) = tmp_path.iterdir()
    line = starter.read_text()
    assert line.startswith("import ")
    assert line.count("\n") == 1
    program = f"{line}import gc; print(gc.get_threshold())"
    of_others = program.replace(f"os.kill({os.getpid()}, 0)", "os.kill(2 ** 22 + 1, 0)")  # more than Linux numbers
    assert of_others != program
    told = [subprocess.check_output([sys.executable, "-S", "-c", each], text=True) for each in (program, of_others)]
    assert [text == f"{RARELY}\n" for text in told] == [True, False]
    collect_rarely(tmp_path)()
    assert starter.exists()
    end()
    assert not starter.exists()
