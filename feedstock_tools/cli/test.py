"""`feedstock-tools test`: run built packages' own tests again, and their benchmarks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.spelling import Command

__all__ = ["command"]


@click.command("test", cls=Command)
@options.gpu("the CPU alone", default=False)
@click.option("--benchmark", is_flag=True, help="Run the benchmark of each package too, if its spec has one.")
@options.jobs
@options.timeout("1 h")
@click.option("--compare", is_flag=True, help="Test nothing; compare the results of benchmarks.")
@options.output_dir
@options.channels("those of the build")
@options.as_json
@options.packages_or_configurations
def command(
    targets: tuple[str, ...],
    gpu: bool,
    benchmark: bool,
    jobs: int,
    timeout: str,
    compare: bool,
    feedstock: Path | None,
    output_dir: Path | None,
    channels: tuple[str, ...],
    as_json: bool,
) -> int:
    """Run the tests of built packages again, each in a fresh environment, and record them.

    A PACKAGE is a .conda or .tar.bz2 file, which needs no feedstock; a NAME means configurations as in `build`, of
    which every package that is built is tested.
    """
    from feedstock_tools.builds.engines.process.supervision import signals_as_exit
    from feedstock_tools.builds.testing import comparing
    from feedstock_tools.builds.testing import tests as session
    from feedstock_tools.errors import InputError
    from feedstock_tools.units import time_of

    if compare:
        figures = comparing.figures_of(feedstock or Path.cwd(), output_dir)
        click.echo(
            json.dumps(comparing.compared_json(figures), indent=2) if as_json else comparing.compared_text(figures)
        )
        return 0
    if not targets:
        raise InputError("name the packages to test: files, or configurations as `build` takes them")
    options = session.TestOptions(gpu, benchmark, channels, jobs, time_of(timeout))
    places = session.places_of(targets, feedstock, output_dir, Path.cwd(), os.environ)
    with signals_as_exit():
        records = session.test_packages(places, options, os.environ, lambda text: click.echo(text, err=as_json))
    click.echo(json.dumps(session.tested_json(records), indent=2) if as_json else session.tested_text(records))
    return 0 if all(record.result == "passed" for record in records) else 1
