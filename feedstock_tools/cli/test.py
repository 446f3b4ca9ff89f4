"""`feedstock-tools test`: run built packages' own tests again, and their benchmarks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import command
from feedstock_tools.cli.opening import opened_to_read
from feedstock_tools.cli.printing import is_quiet, say_result, stream_of_logs
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.wording import time_limit_of

if TYPE_CHECKING:
    from feedstock_tools.builds.testing.tests import TestedPackage


@command("test")
@options.gpu("the CPU alone", default=False)
@click.option("--benchmark", is_flag=True, help="Run the benchmark of each package too, if its spec has one.")
@options.jobs
@options.timeout("1 h")
@click.option("--compare", is_flag=True, help="Test nothing; compare the results of benchmarks.")
@options.output_dir
@options.channels("those of the build")
@options.as_json
@options.packages_or_configurations
@options.gathered("place", options.Place)
def test(
    targets: tuple[str, ...],
    gpu: bool,
    benchmark: bool,
    jobs: int,
    timeout: str,
    compare: bool,
    place: options.Place,
    as_json: bool,
) -> int:
    """Run the tests of built packages again, each in a fresh environment, and record the results.

    A PACKAGE is a .conda or .tar.bz2 file, which needs no feedstock; a NAME selects configurations as in `build`, with
    all of their built packages. With --gpu, tests run on the GPU of this machine; without a GPU that is an error.
    """
    if compare:
        return _compare(place, as_json=as_json)
    if not targets:
        message = "name the packages to test: files, or configurations as `build` takes them"
        raise InputError(message, hint="'feedstock-tools status' lists the configurations, and which are built.")
    from feedstock_tools.builds.engines.process.supervision import signals_as_exit
    from feedstock_tools.builds.testing.tests import TestOptions, run_tests
    from feedstock_tools.report.testing import TestFailures, TestLines, tested_json, tested_text

    test_options = TestOptions(gpu, benchmark, place.channels, jobs, time_limit_of(timeout))
    packages = _packages(targets, place)
    observer = (TestFailures if is_quiet() else TestLines)(stream_of_logs(as_json=as_json), several=jobs > 1)
    with signals_as_exit():
        records = run_tests(packages, test_options, os.environ, observer)
    say_result((tested_json if as_json else tested_text)(records))
    return 0 if all(record.result == "passed" for record in records) else 1


def _compare(place: options.Place, *, as_json: bool) -> int:
    from feedstock_tools.builds.testing.tests import figures_of
    from feedstock_tools.feedstock.layout import Artifacts
    from feedstock_tools.report.testing import compared_json, compared_text

    figures = figures_of(Artifacts(place.output_dir or Feedstock(place.feedstock or Path.cwd()).artifacts))
    say_result((compared_json if as_json else compared_text)(figures))
    return 0


def _packages(targets: Sequence[str], place: options.Place) -> tuple[TestedPackage, ...]:
    """The packages that targets name: files, or the built packages of configurations.

    Raises:
        InputError: a file is missing, a name matches nothing, or nothing that it matches has been built.
    """
    from feedstock_tools.builds.testing.tests import built_packages, packages_in_files
    from feedstock_tools.channel.packages.reading import PACKAGE_SUFFIXES

    files = [(Path.cwd() / target).resolve() for target in targets if target.endswith(PACKAGE_SUFFIXES)]
    names = [target for target in targets if not target.endswith(PACKAGE_SUFFIXES)]
    nearby = [place.output_dir, place.feedstock and Feedstock(place.feedstock).artifacts]
    from_files = packages_in_files(files, [folder for folder in nearby if folder])
    if not names:
        return from_files
    workspace = opened_to_read(place)
    built = built_packages(workspace, workspace.chosen(names))
    if not built:
        raise InputError(
            f"nothing has been built for {', '.join(names)}", hint=f"Build it first: feedstock-tools build {names[0]}"
        )
    return (*from_files, *built)
