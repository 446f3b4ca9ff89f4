"""`feedstock-tools build`, which is also `build-locally.py`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

__all__ = ["command"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--filter", "glob", metavar="GLOB", help="Consider only configurations whose names match.")
@click.option("--list", "only_list", is_flag=True, help="List the configurations and what is built already.")
@click.option("--feedstock", type=click.Path(path_type=Path), metavar="DIR", help="The feedstock (default: here).")
@click.option("--output-dir", type=click.Path(path_type=Path), metavar="DIR", help="Default: build_artifacts in it.")
@click.option("--channel", "channels", multiple=True, metavar="CHANNEL", help="Solve in this channel; repeatable.")
@click.option("--engine", type=click.Choice(["rattler-build"]), default="rattler-build", help="What builds.")
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
    engine: str,
    debug: bool,
    output_id: str | None,
    as_json: bool,
) -> int:
    """Build configurations of a feedstock.

    A NAME is the name of a file in .ci_support without .yaml, a glob over those names, or a short name such as
    linux_64_cuda11.2 or linux_64_cpu_py3.12. Without one there is a menu.
    """
    from feedstock_tools.build.session import Session

    session = Session.open(feedstock, output_dir, channels, Path.cwd(), os.environ, as_json=as_json)
    if only_list:
        return session.list(names, glob)
    if debug:
        return session.debug(names, glob, output_id, interactive=sys.stdin.isatty())
    return session.build(names, glob, interactive=sys.stdin.isatty())
