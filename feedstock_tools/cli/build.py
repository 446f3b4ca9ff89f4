"""`feedstock-tools build`, which is also `build-locally.py`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from feedstock_tools.builds.engines.choice import ENGINES

__all__ = ["command"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--filter", "glob", metavar="GLOB", help="Consider only configurations whose names match.")
@click.option("--list", "only_list", is_flag=True, help="List the configurations and what is built already.")
@click.option("--feedstock", type=click.Path(path_type=Path), metavar="DIR", help="The feedstock (default: here).")
@click.option("--output-dir", type=click.Path(path_type=Path), metavar="DIR", help="Default: build_artifacts in it.")
@click.option("--channel", "channels", multiple=True, metavar="CHANNEL", help="Solve in this channel; repeatable.")
@click.option("--engine", type=click.Choice(ENGINES), help="What builds (default: what the recipe needs).")
@click.option("--all", "everything", is_flag=True, help="Build all configurations that can be built here.")
@click.option("--jobs", "-j", type=click.IntRange(1), default=1, metavar="N", help="Build so many rows at once.")
@click.option("--cores", type=click.IntRange(1), metavar="N", help="Cores for all builds together (default: all).")
@click.option("--memory", metavar="SIZE", help="Memory for all builds together, such as 48 GiB (default: most of it).")
@click.option("--timeout", metavar="TIME", help="End a row's build after so long: 90 s, 30 min, 3 h.")
@click.option("--retries", type=click.IntRange(0), default=2, metavar="N", help="Further attempts where they can help.")
@click.option("--keep-going/--fail-fast", default=True, help="After a failure, build the others (default), or stop.")
@click.option("--debug", is_flag=True, help="Set up the environments of one output, run nothing, open a shell.")
@click.option("--output-id", metavar="OUTPUT", help="With --debug: which output.")
@click.option("--json", "as_json", is_flag=True, help="Print the result (or the list) as JSON; the log goes to stderr.")
def command(
    names: tuple[str, ...],
    glob: str | None,
    only_list: bool,
    feedstock: Path | None,
    output_dir: Path | None,
    channels: tuple[str, ...],
    engine: str | None,
    everything: bool,
    jobs: int,
    cores: int | None,
    memory: str | None,
    timeout: str | None,
    retries: int,
    keep_going: bool,
    debug: bool,
    output_id: str | None,
    as_json: bool,
) -> int:
    """Build configurations of a feedstock.

    A NAME is the name of a file in .ci_support without .yaml, a glob over those names, or a short name such as
    linux_64_cuda11.2 or linux_64_cpu_py3.12. Without one there is a menu.

    A row is one variant of a configuration: one Python, say.
    """
    if output_id and not debug:
        raise click.UsageError("--output-id says what --debug is to set up; a build makes all outputs of a row")
    from feedstock_tools.builds.plan.capacity import Capacity, Limits
    from feedstock_tools.builds.plan.session import Session
    from feedstock_tools.feedstock.folder import feedstock_or_example
    from feedstock_tools.units import size_of, time_of

    capacity = Capacity.of_machine(cores, size_of(memory) if memory else None)
    limits = Limits(jobs, time_of(timeout) if timeout else None, retries, not keep_going)
    found = feedstock_or_example(feedstock, Path.cwd(), os.environ)
    if found.note:
        click.echo(found.note, err=as_json)
    session = Session.open(found.folder, output_dir, channels, Path.cwd(), os.environ, as_json=as_json, engine=engine)
    if only_list:
        return session.list(names, glob)
    if debug:
        return session.debug(names, glob, output_id, interactive=sys.stdin.isatty())
    interactive = sys.stdin.isatty()
    return session.build(names, glob, capacity, limits, everything=everything, interactive=interactive)
