"""`feedstock-tools build`, which is also `build-locally.py`."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import command
from feedstock_tools.cli.opening import opened_to_build, tidy
from feedstock_tools.cli.printing import is_quiet, loudness, say_note, stream_of_logs, table_width
from feedstock_tools.feedstock.folder import find_or_example
from feedstock_tools.wording import size_of, time_limit_of

if TYPE_CHECKING:
    from feedstock_tools.builds.plan.hosts import Capacity, Limits
    from feedstock_tools.report.observers import Terminal

    _Parameter = click.ParamType[int]
else:
    _Parameter = click.ParamType  # takes no type before click 8.4


class _Count(_Parameter):
    """A number of rows, or `all` of them."""

    name = "count"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if value == "all":
            return sys.maxsize
        if isinstance(value, str) and value.isascii() and value.isdecimal() and int(value) > 0:
            return int(value)
        return self.fail(f"{value!r} is neither a number of rows nor all", param, ctx)


_COUNT = _Count()


@dataclass(frozen=True, slots=True)
class _Run:
    """How a run builds: the options that share the machine among rows, and say when to give up."""

    jobs: int
    cores: int | None
    memory: str | None
    timeout: str
    log_limit: str
    retries: int
    keep_going: bool

    def capacity(self) -> Capacity:
        from feedstock_tools.builds.plan.hosts import Capacity

        return Capacity.of_machine(self.cores, size_of(self.memory) if self.memory else None)

    def limits(self) -> Limits:
        from feedstock_tools.builds.plan.hosts import Limits

        timeout, log_limit = time_limit_of(self.timeout), size_of(self.log_limit)
        return Limits(self.jobs, timeout, self.retries, not self.keep_going, log_limit)


@dataclass(frozen=True, slots=True)
class _WithoutBuild:
    """What to do without building."""

    only_list: bool
    debug: bool
    output_id: str | None


@command("build", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--filter", "glob", metavar="GLOB", help="Consider only configurations whose names match.")
@click.option(
    "--list", "only_list", is_flag=True, help="List the configurations and their built outputs; build nothing."
)
@options.output_dir
@options.channels("those of the configuration, else conda-forge")
@options.engine
@click.option("--all", "everything", is_flag=True, help="Build all configurations that can be built here.")
@options.jobs
@options.cores
@options.memory
@options.timeout("48 h")
@options.log_limit
@options.option(
    "--retries",
    type=click.IntRange(0),
    default=2,
    metavar="N",
    meaning="Try again up to N times where that can help",
    default_text="2",
)
@click.option(
    "--keep-going/--fail-fast",
    default=True,
    help="After a failure, build the other rows, or start nothing more (default: --keep-going).",
)
@options.fleet("on this machine")
@click.option(
    "--build-twice",
    type=_COUNT,
    metavar="N|all",
    help="Then build N rows, or all, a second time, on other hosts of a fleet, and compare the packages file by file.",
)
@click.option("--debug", is_flag=True, help="Set up the environments of one output and open a shell; build nothing.")
@click.option("--output-id", metavar="OUTPUT", help="With --debug: the output to set up.")
@options.as_json
@options.configurations
@options.gathered("named", options.Named)
@options.gathered("place", options.Place)
@options.gathered("run", _Run)
@options.gathered("without_build", _WithoutBuild)
@click.pass_context
def build(
    context: click.Context,
    named: options.Named,
    place: options.Place,
    run: _Run,
    without_build: _WithoutBuild,
    engine: str | None,
    fleet: str | None,
    build_twice: int | None,
    as_json: bool,
) -> int:
    """Build configurations of a feedstock.

    Without a NAME, a menu asks for one. A row is one variant of a configuration: for one Python, for example. With
    --json the log goes to stderr.
    """
    from feedstock_tools.cli import running

    if without_build.output_id and not without_build.debug:
        raise click.UsageError("--output-id needs --debug; a build makes all outputs of a row")
    feedstock = find_or_example(place.feedstock, Path.cwd(), context.obj)
    terminal = None if without_build.only_list else _terminal(stream_of_logs(as_json=as_json))
    say = terminal.say if terminal else say_note
    if feedstock.note:
        say(feedstock.note)
    if terminal is None:
        workspace = opened_to_build(feedstock, place, engine, say)
        return running.list_configurations(workspace, named, as_json=as_json)
    capacity, limits = run.capacity(), run.limits()
    workspace = opened_to_build(feedstock, place, engine, say)
    tidy(feedstock.folder, workspace.artifacts)
    if without_build.debug:
        return running.debug(workspace, named, without_build.output_id, terminal)
    if fleet is not None:
        from feedstock_tools.cli.fleet import chosen_fleet

        found = chosen_fleet(fleet)
        return running.build_on_fleet(workspace, named, limits, terminal, found, build_twice, as_json=as_json)
    return running.build_here(workspace, named, capacity, limits, terminal, build_twice, as_json=as_json)


def _terminal(stream: TextIO) -> Terminal:
    """What observes a run and prints it: all of it, or failures alone with --quiet."""
    from feedstock_tools.report.observers import Failures, Terminal, fold_of

    width = table_width()
    if is_quiet():
        return Failures(stream, width)
    return Terminal(stream, fold_of(os.environ), whole=loudness() == "verbose", width=width)
