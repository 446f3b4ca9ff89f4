"""Coverage of child processes, of those too that get an environment of their own, as the workers of builds do.

`coverage run -m pytest` measures a child that inherits COVERAGE_PROCESS_CONFIG. For the others, a file in this Python's
site-packages starts the measuring of each process while such a run lasts. Measuring doubles the processor time, so
that the tests of some files go unmeasured.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import measured_process
from tests.support.paths import ROOT

#: Beginnings of the names of tests that are not measured: bombs and attacks against every command and reader, commands
#: that are killed, or repeated many times, floods of output, all output as JSON, many questions, whole ways from a spec
#: to packages, fleets and clusters that few machines have, and the checks and tools of this checkout. Other tests reach
#: the same code. Nor are commands that get Ctrl-C at any moment: while coverage holds the lock of its
#: data, its next line would wait for that lock forever.
UNMEASURED = (
    "tests/builds/engines/test_containers_of_killed_runs.py",
    "tests/builds/fleet/provision/test_hosts.py",
    "tests/builds/fleet/provision/test_systemd.py",
    "tests/builds/fleet/test_machines.py",
    "tests/builds/fleet/test_slurm.py",
    "tests/builds/ledger/test_years.py",
    "tests/builds/publish/test_hostile_parts.py",
    "tests/builds/runs/test_comparable_builds.py",
    "tests/builds/runs/test_faults.py::test_a_run_that_is_killed_again_and_again",
    "tests/builds/runs/test_faults.py::test_several_builds_that_ignore_signals",
    "tests/builds/runs/test_from_init.py",
    "tests/builds/runs/test_gpuprobe_builds.py",
    "tests/builds/runs/test_hostile_output.py",
    "tests/builds/runs/test_interruption.py",
    "tests/builds/runs/test_logs.py::test_of_a_flood",
    "tests/builds/test_hostile_artifacts.py",
    "tests/cli/test_interruption.py",
    "tests/cli/test_json.py",
    "tests/maintenance/",
    "tests/pins/test_questions.py",
    "tests/pins/test_resolve.py::test_random_",
    "tests/recipe/test_hostile_templates.py",
    "tests/test_architecture.py",
    "tests/test_bounded_commands.py",
    "tests/test_collection.py",
    "tests/test_english.py",
    "tests/test_guides.py",
    "tests/test_import_graph.py",
    "tests/test_my_feedstock.py",
    "tests/test_own_feedstock.py::test_the_conda_package",
    "tests/test_wheel.py",
    "tests/yaml_reading/test_hostile_yaml.py",
)

_CONFIG = "COVERAGE_PROCESS_CONFIG"
#: Set in a process that is not measured, for the file in site-packages.
NOT_HERE = "FEEDSTOCK_TOOLS_TESTS_UNMEASURED"
#: Beginnings of the names of programs that run nothing of feedstock-tools but what other tests reach.
_OF_OTHERS = ("ansible", "mkdocs", "pip")
#: Its name comes before that of coverage's own file, which then finds the process measured.
_STARTER = Path(sysconfig.get_path("purelib"), "a0_measured_tests.pth")


def begin_measuring() -> bool:
    """Measure every process of this Python from now on if this one is measured; returns whether it is."""
    config = os.environ.get(_CONFIG)
    if config is None:
        return False
    os.environ[_CONFIG] = config = _of_children(config)
    program = Path(measured_process.__file__).read_text(encoding="utf-8")
    call = f"begin{(os.getpid(), config, _CONFIG, NOT_HERE, _OF_OTHERS)}"
    _STARTER.write_text(f"import sys; exec({program + call!r}, {{'__name__': ''}})\n", encoding="utf-8")
    return True


def _of_children(config: str) -> str:
    """Coverage's configuration for children.

    They list only the files that they run; this process lists all files. `measured_process` does the rest.
    """
    from coverage.config import CoverageConfig

    settings = CoverageConfig.deserialize(config)
    settings.source = None
    settings.run_include = [str(ROOT / "feedstock_tools" / "*")]
    settings.patch = []
    return settings.serialize()


def end_measuring() -> None:
    """Leave this Python as it was."""
    _STARTER.unlink(missing_ok=True)


def measured_here() -> bool:
    """Whether processes that this one starts are measured."""
    return _CONFIG in os.environ


@contextmanager
def unmeasured() -> Iterator[None]:
    """Measure neither this process nor those that it starts, other than the workers of builds."""
    from coverage import Coverage

    config, coverage = os.environ.pop(_CONFIG), Coverage.current()
    os.environ[NOT_HERE] = "1"
    if coverage is not None:
        coverage.stop()
    try:
        yield
    finally:
        if coverage is not None:
            coverage.start()
        del os.environ[NOT_HERE]
        os.environ[_CONFIG] = config


class Measuring:
    """A plugin of a measured process that leaves the tests of `UNMEASURED` out."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Run a test, measured or not."""
        if not (item.nodeid.startswith(UNMEASURED) and measured_here()):
            return (yield)
        with unmeasured():
            return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Save what a worker has measured: the process that collects the reports kills one that takes 10 s to end."""
        from coverage import Coverage

        coverage = Coverage.current()
        if coverage is not None and "PYTEST_XDIST_WORKER" in os.environ:
            coverage.stop()
            coverage.save()
