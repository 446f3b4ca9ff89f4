"""What a host does after a build, where its settings ask for it: the package's hello-world, and its benchmark.

The hello-world is the package's own tests, in a fresh environment into which the package is installed as a user would:
the build has run them already, beside the files of the build. Neither decides whether a row is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from feedstock_tools.builds.ledger import TestRecord
from feedstock_tools.builds.testing.running import find_gpus, subject_of
from feedstock_tools.builds.testing.tests import TestedPackage, TestOptions, packages_in_files, run_tests
from feedstock_tools.errors import FeedstockError, WorkError
from feedstock_tools.wording import duration


def after_build(packages: Sequence[Path], machine: Mapping[str, str], tell: Callable[[str], None]) -> None:
    """Run the hello-world and the benchmark of packages, one after the other, on this machine's GPU if it has one.

    Args:
        packages: their files, in the channel of an attempt.
        machine: the environment of this machine.
        tell: gets a line for each result.
    """
    gpu = _has_gpu()
    for place in packages_in_files(packages):
        try:
            (record,) = run_tests([place], _options(place, machine, gpu=gpu), machine)
        except FeedstockError as error:
            tell(f"after the build: {place.path.name}: not tried: {error}")
        else:
            tell(f"after the build: {place.path.name}: {_text(record)}")


def _has_gpu() -> bool:
    try:
        find_gpus()
    except WorkError:
        return False
    return True


def _options(place: TestedPackage, machine: Mapping[str, str], *, gpu: bool) -> TestOptions:
    """With its benchmark, if it has one that means something on this machine."""
    subject = subject_of(place.path, place.channels, machine)
    return TestOptions(gpu=gpu, benchmark=bool(subject.benchmark) and subject.emulator is None)


def _text(record: TestRecord) -> str:
    if record.result != "passed":
        return f"hello-world or benchmark failed: {record.reason}"
    figures = [
        f"{name} {figure['value']:g} {figure.get('unit', '')}".rstrip() for name, figure in record.benchmark.items()
    ]
    summary = f"hello-world passed in {duration(record.seconds)}"
    return f"{summary}; benchmark: {', '.join(figures)}" if figures else summary
